"""Rules for power series and series of orthogonal polynomials, lowest degree first (NumPy manual,
`numpy.polynomial`)."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre, polynomial

from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.polynomials import fit_adjoint, fit_tangents
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import unbroadcast

P = generic(4)
V = generic(3, seed=1)
M = generic(2, 3)
X = np.array([-1.2, -0.5, 0.1, 0.7, 1.3, 1.9])
Y = generic(6, seed=2)

VALUES = [(0.7, P), (V, P), (M, P), (V, generic(4, 2)), case(V, generic(4, 3), tensor=False), (V, P[:1])]


def series_adjoint(g, x, c, tensor, value, derivative, basis):
    """The cotangents of a series: of x through its derivative, of c through the values of the basis."""
    slope = value(x, derivative(c), tensor)
    values = np.moveaxis(basis(np.asarray(x), len(c) - 1), -1, 0)
    if tensor:
        values = np.reshape(values, (len(c), *[1] * (np.ndim(c) - 1), *np.shape(x)))
        c_bar = np.sum(g * values, axis=tuple(range(np.ndim(c), np.ndim(c) + np.ndim(x))))
    else:
        c_bar = g * values
    return unbroadcast(g * slope, x), unbroadcast(c_bar, c)


def series_tangents(x_dot, c_dot, y, x, c, tensor, value, derivative):
    of_c = value(x, c_dot, tensor) if np.ndim(c_dot) else 0 * y
    return x_dot * value(x, derivative(c), tensor), of_c


def basis_slope(values, derivative):
    """The derivatives of the basis, from its values: each is a combination of those of lower degree."""
    n = values.shape[-1]
    columns = [np.concatenate([derivative(row), np.zeros(n)])[:n] for row in np.eye(n)]
    return values @ np.stack(columns, axis=-1).astype(values.dtype)


@reverse(polynomial.polyval, wrt=("x", "c"), at=VALUES)
def series_value(g, y, x, c, tensor=True):
    return series_adjoint(g, x, c, tensor, polynomial.polyval, polynomial.polyder, polynomial.polyvander)


@forward(polynomial.polyval)
def series_value_forward(x_dot, c_dot, y, x, c, tensor=True):
    return series_tangents(x_dot, c_dot, y, x, c, tensor, polynomial.polyval, polynomial.polyder)


@reverse(polynomial.polyvander, at=[(V, 3), (0.7, 2), (M, 2), (V, 0)])
def polyvander(g, y, x, deg):
    return unbroadcast(np.sum(g * basis_slope(y, polynomial.polyder), axis=-1), x)


@forward(polynomial.polyvander)
def polyvander_forward(x_dot, y, x, deg):
    return np.expand_dims(x_dot, -1) * basis_slope(y, polynomial.polyder)


@reverse(chebyshev.chebval, wrt=("x", "c"), at=VALUES)
def chebval(g, y, x, c, tensor=True):
    return series_adjoint(g, x, c, tensor, chebyshev.chebval, chebyshev.chebder, chebyshev.chebvander)


@forward(chebyshev.chebval)
def chebval_forward(x_dot, c_dot, y, x, c, tensor=True):
    return series_tangents(x_dot, c_dot, y, x, c, tensor, chebyshev.chebval, chebyshev.chebder)


@reverse(chebyshev.chebvander, at=[(V, 3), (0.7, 2), (M, 2), (V, 0)])
def chebvander(g, y, x, deg):
    return unbroadcast(np.sum(g * basis_slope(y, chebyshev.chebder), axis=-1), x)


@forward(chebyshev.chebvander)
def chebvander_forward(x_dot, y, x, deg):
    return np.expand_dims(x_dot, -1) * basis_slope(y, chebyshev.chebder)


@reverse(legendre.legval, wrt=("x", "c"), at=VALUES)
def legval(g, y, x, c, tensor=True):
    return series_adjoint(g, x, c, tensor, legendre.legval, legendre.legder, legendre.legvander)


@forward(legendre.legval)
def legval_forward(x_dot, c_dot, y, x, c, tensor=True):
    return series_tangents(x_dot, c_dot, y, x, c, tensor, legendre.legval, legendre.legder)


@reverse(legendre.legvander, at=[(V, 3), (0.7, 2), (M, 2), (V, 0)])
def legvander(g, y, x, deg):
    return unbroadcast(np.sum(g * basis_slope(y, legendre.legder), axis=-1), x)


@forward(legendre.legvander)
def legvander_forward(x_dot, y, x, deg):
    return np.expand_dims(x_dot, -1) * basis_slope(y, legendre.legder)


@reverse(hermite.hermval, wrt=("x", "c"), at=VALUES)
def hermval(g, y, x, c, tensor=True):
    return series_adjoint(g, x, c, tensor, hermite.hermval, hermite.hermder, hermite.hermvander)


@forward(hermite.hermval)
def hermval_forward(x_dot, c_dot, y, x, c, tensor=True):
    return series_tangents(x_dot, c_dot, y, x, c, tensor, hermite.hermval, hermite.hermder)


@reverse(hermite.hermvander, at=[(V, 3), (0.7, 2), (M, 2), (V, 0)])
def hermvander(g, y, x, deg):
    return unbroadcast(np.sum(g * basis_slope(y, hermite.hermder), axis=-1), x)


@forward(hermite.hermvander)
def hermvander_forward(x_dot, y, x, deg):
    return np.expand_dims(x_dot, -1) * basis_slope(y, hermite.hermder)


@reverse(hermite_e.hermeval, wrt=("x", "c"), at=VALUES)
def hermeval(g, y, x, c, tensor=True):
    return series_adjoint(g, x, c, tensor, hermite_e.hermeval, hermite_e.hermeder, hermite_e.hermevander)


@forward(hermite_e.hermeval)
def hermeval_forward(x_dot, c_dot, y, x, c, tensor=True):
    return series_tangents(x_dot, c_dot, y, x, c, tensor, hermite_e.hermeval, hermite_e.hermeder)


@reverse(hermite_e.hermevander, at=[(V, 3), (0.7, 2), (M, 2), (V, 0)])
def hermevander(g, y, x, deg):
    return unbroadcast(np.sum(g * basis_slope(y, hermite_e.hermeder), axis=-1), x)


@forward(hermite_e.hermevander)
def hermevander_forward(x_dot, y, x, deg):
    return np.expand_dims(x_dot, -1) * basis_slope(y, hermite_e.hermeder)


@reverse(laguerre.lagval, wrt=("x", "c"), at=VALUES)
def lagval(g, y, x, c, tensor=True):
    return series_adjoint(g, x, c, tensor, laguerre.lagval, laguerre.lagder, laguerre.lagvander)


@forward(laguerre.lagval)
def lagval_forward(x_dot, c_dot, y, x, c, tensor=True):
    return series_tangents(x_dot, c_dot, y, x, c, tensor, laguerre.lagval, laguerre.lagder)


@reverse(laguerre.lagvander, at=[(V, 3), (0.7, 2), (M, 2), (V, 0)])
def lagvander(g, y, x, deg):
    return unbroadcast(np.sum(g * basis_slope(y, laguerre.lagder), axis=-1), x)


@forward(laguerre.lagvander)
def lagvander_forward(x_dot, y, x, deg):
    return np.expand_dims(x_dot, -1) * basis_slope(y, laguerre.lagder)


@reverse(
    polynomial.polyfit,
    wrt=("x", "y", "w"),
    at=[(X, Y, 2), case(X, Y, 1, w=positive(6)), (X, np.stack([Y, Y * Y], 1), 1)],
)
def polynomial_fit(g, z, x, y, deg, *, w=None):
    matrix = polynomial.polyvander(x, deg)
    v_bar, y_bar, w_bar = fit_adjoint(g, z, matrix, y, w)
    return polyvander(v_bar, matrix, x, deg), y_bar, w_bar


@forward(polynomial.polyfit)
def polynomial_fit_forward(x_dot, y_dot, w_dot, z, x, y, deg, *, w=None):
    matrix = polynomial.polyvander(x, deg)
    moved = polyvander_forward(x_dot, matrix, x, deg) if np.ndim(x_dot) else 0 * matrix
    return fit_tangents(moved, y_dot, w_dot, z, matrix, y, w)
