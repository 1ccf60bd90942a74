"""Rules for power series and series of orthogonal polynomials, lowest degree first (NumPy manual,
`numpy.polynomial`)."""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import numpy as np
from numpy.polynomial import _polybase, chebyshev, hermite, hermite_e, laguerre, legendre, polynomial

from srcgrad.runtime.rules.callbacks import kept, part_of, pulled, pushed
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


# --- derivatives, integrals and products --------------------------------------------------------------------


def image(g, matrix, axis):
    """The cotangent of coefficients along `axis`, which are multiplied by a matrix."""
    return np.moveaxis(np.tensordot(matrix, np.moveaxis(g, axis, 0), (0, 0)), 0, axis)


def product_bar(g, product, other, n):
    """The cotangent of a factor with `n` coefficients of a product of series."""
    found = np.zeros(n, np.result_type(g, other))
    for i, row in enumerate(np.eye(n)):
        whole = product(row, other)
        found[i] = np.sum(g[: len(whole)] * whole[: len(g)])
    return found


DERIVATIVES = [P, (P, 2), case(P, scl=1.7), (generic(4, 2), 1), case(generic(2, 4), axis=1), (P, 0), (P, 5)]
INTEGRALS = [P, (P, 2), (P, 1, 0.3), case(P, lbnd=0.4, scl=1.7), case(generic(2, 4), axis=1)]


def calculus(module, prefix):
    """File the rules of a kind of series for its derivatives, integrals and products."""
    derivative, integral, product, add, subtract = (
        getattr(module, prefix + name) for name in ("der", "int", "mul", "add", "sub")
    )

    @reverse(derivative, linear=True, at=DERIVATIVES)
    def series_derivative(g, y, c, m=1, scl=1, axis=0):
        return unbroadcast(image(g, derivative(np.eye(np.shape(c)[axis]), m, scl), axis), c)

    @reverse(integral, at=INTEGRALS)
    def series_integral(g, y, c, m=1, k=(), lbnd=0, scl=1, axis=0):
        return unbroadcast(image(g, integral(np.eye(np.shape(c)[axis]), m, [], lbnd, scl), axis), c)

    @forward(integral)
    def series_integral_forward(c_dot, y, c, m=1, k=(), lbnd=0, scl=1, axis=0):
        return integral(c_dot, m, [], lbnd, scl, axis)

    @reverse(product, wrt=("c1", "c2"), at=[(P, V), (V, P)])
    def series_product(g, y, c1, c2):
        return product_bar(g, product, c2, len(c1)), product_bar(g, product, c1, len(c2))

    @forward(product)
    def series_product_forward(c1_dot, c2_dot, y, c1, c2):
        return padded(product(c1_dot, c2), y), padded(product(c1, c2_dot), y)

    @reverse(add, wrt=("c1", "c2"), at=[(P, V), (V, P)])
    def series_sum(g, y, c1, c2):
        return padded(g, c1), padded(g, c2)

    @forward(add)
    def series_sum_forward(c1_dot, c2_dot, y, c1, c2):
        return padded(c1_dot, y), padded(c2_dot, y)

    @reverse(subtract, wrt=("c1", "c2"), at=[(P, V), (V, P)])
    def series_difference(g, y, c1, c2):
        return padded(g, c1), padded(-g, c2)

    @forward(subtract)
    def series_difference_forward(c1_dot, c2_dot, y, c1, c2):
        return padded(c1_dot, y), padded(-c2_dot, y)


def padded(c, like):
    """Coefficients cut or filled with zeros to the length of `like`."""
    n = len(like)
    return np.concatenate([c, np.zeros(n, np.result_type(c))])[:n]


for _module, _prefix in (
    *((polynomial, "poly"), (chebyshev, "cheb"), (legendre, "leg"), (laguerre, "lag"), (hermite, "herm")),
    (hermite_e, "herme"),
):
    calculus(_module, _prefix)


# --- series as objects --------------------------------------------------------------------------------------

CLASSES = (
    *(polynomial.Polynomial, chebyshev.Chebyshev, legendre.Legendre, laguerre.Laguerre, hermite.Hermite),
    hermite_e.HermiteE,
)
KEPT = ("coef", "domain", "window")


@reverse(*CLASSES, wrt=("coef", "domain", "window"), at=[])
def new_series(g, made, coef, domain=None, window=None, symbol="x"):
    """What a series keeps is its cotangent's parts."""
    return part_of(g, "coef"), part_of(g, "domain"), part_of(g, "window")


@forward(*CLASSES, joint=True)
def new_series_forward(coef_dot, domain_dot, window_dot, made, coef, domain=None, window=None, symbol="x"):
    return {
        "coef": np.asarray(coef_dot),
        "domain": np.zeros(2) if domain is None else np.asarray(domain_dot) + np.zeros(2),
        "window": np.zeros(2) if window is None else np.asarray(window_dot) + np.zeros(2),
    }


def mapped(domain, window):
    """The offset and scale of the linear map from one interval to another."""
    length = domain[1] - domain[0]
    return (domain[1] * window[0] - domain[0] * window[1]) / length, (window[1] - window[0]) / length


def value_of(coef, domain, window, arg, value):
    offset, scale = mapped(domain, window)
    return value(offset + scale * arg, coef)


def value_args(self, arg):
    return self.coef, self.domain, self.window, arg, type(self)._val


@reverse(_polybase.ABCPolyBase.__call__, wrt=("self", "arg"), at=[])
def series_at(g, y, self, arg):
    bars = pulled(value_of, value_args(self, arg), g, 4)
    return {"coef": bars[0], "domain": bars[1], "window": bars[2]}, bars[3]


@forward(_polybase.ABCPolyBase.__call__, joint=True)
def series_at_forward(self_dot, arg_dot, y, self, arg):
    return pushed(value_of, value_args(self, arg), (*kept(self_dot, KEPT), arg_dot))


def derived(coef, domain, window, derivative, m):
    return derivative(coef, m) * mapped(domain, window)[1] ** m


@reverse(_polybase.ABCPolyBase.deriv, wrt="self", at=[])
def series_deriv(g, made, self, m=1):
    bars = pulled(derived, (self.coef, self.domain, self.window, type(self)._der, m), part_of(g, "coef"), 3)
    return {
        "coef": bars[0],
        "domain": bars[1] + part_of(g, "domain"),
        "window": bars[2] + part_of(g, "window"),
    }


@forward(_polybase.ABCPolyBase.deriv)
def series_deriv_forward(self_dot, made, self, m=1):
    args = (self.coef, self.domain, self.window, type(self)._der, m)
    found = pushed(derived, args, kept(self_dot, KEPT))
    return {"coef": found, "domain": part_of(self_dot, "domain"), "window": part_of(self_dot, "window")}
