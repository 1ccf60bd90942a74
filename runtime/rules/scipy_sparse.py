"""Rules for sparse arrays (SciPy manual, `scipy.sparse` and `scipy.sparse.linalg`).

The cotangent of a sparse array is a dict with that of its `data`: only the entries that it stores have a
derivative. Its tangent is a sparse array with the same pattern.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from srcgrad.runtime.rules.callbacks import part_of
from srcgrad.runtime.rules.inputs import generic, square
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import unbroadcast

COMPRESSED = (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.csc_matrix)
COORDINATES = (sparse.coo_array, sparse.coo_matrix)


def parts_of(arg1):
    """(entries, coordinates or indices, pointers or None) as given to the constructor of a sparse array."""
    if not isinstance(arg1, tuple) or len(arg1) < 2 or np.ndim(arg1[0]) == 0:
        raise NotImplementedError("the derivative of a sparse array made from a dense one: give its entries")
    return arg1 if len(arg1) == 3 else (*arg1, None)


def order_of(made, coordinates):
    """Where each entry, given with its coordinates, is stored."""
    places = made.copy()
    places.data = np.arange(1.0, places.data.size + 1)
    return np.asarray(places[tuple(coordinates)], int).ravel() - 1


@reverse(*COMPRESSED, at=[])
def compressed(g, made, arg1, shape=None, dtype=None, copy=False):
    """Entries in the same place are added."""
    _, coordinates, pointers = parts_of(arg1)
    data = part_of(g, "data") + np.zeros(made.data.shape)
    if pointers is None:
        return [data[order_of(made, coordinates)], 0.0]
    return [data, 0.0, 0.0]


@forward(*COMPRESSED)
def compressed_forward(arg1_dot, made, arg1, shape=None, dtype=None, copy=False):
    return type(made)((arg1_dot[0], *arg1[1:]), shape=made.shape)


@reverse(*COORDINATES, at=[])
def coordinate(g, made, arg1, shape=None, dtype=None, copy=False):
    parts_of(arg1)
    return [part_of(g, "data") + np.zeros(made.data.shape), 0.0]


@forward(*COORDINATES)
def coordinate_forward(arg1_dot, made, arg1, shape=None, dtype=None, copy=False):
    return type(made)((arg1_dot[0], *arg1[1:]), shape=made.shape)


# --- equations ----------------------------------------------------------------------------------------------

A, B = square(4, 4), generic(4)
SPARSE = sparse.csc_array(np.where(np.abs(A) > 0.6, A, 0))
SYMMETRIC = A + A.T + 6 * np.eye(4)


def matrix_bar(adjoint, x, a):
    """The cotangent of the matrix of an equation; `adjoint` solves the transposed one."""
    if not sparse.issparse(a):
        return -np.outer(adjoint, x)
    entries = a.tocoo()
    return {"data": -np.sum(rows_of(adjoint)[entries.row] * rows_of(x)[entries.col], axis=1)}


def rows_of(x):
    return np.reshape(x, (np.shape(x)[0], -1))


def moved(a_dot, x):
    """The change of a matrix times a vector; 0 for a constant."""
    return a_dot @ x if np.ndim(a_dot) == 2 else 0.0


def check_dense(b):
    if sparse.issparse(b):
        raise NotImplementedError("the derivative of spsolve with a sparse right-hand side")


@reverse(linalg.spsolve, wrt=("A", "b"), at=[(SPARSE, B), (SPARSE, generic(4, 2))])
def spsolve(g, x, A, b, permc_spec=None, use_umfpack=True):
    check_dense(b)
    adjoint = np.reshape(linalg.spsolve(A.T.tocsc(), g, permc_spec, use_umfpack), np.shape(b))
    return matrix_bar(adjoint, x, A), unbroadcast(adjoint, b)


@forward(linalg.spsolve, joint=True)
def spsolve_forward(a_dot, b_dot, x, A, b, permc_spec=None, use_umfpack=True):
    check_dense(b)
    return linalg.spsolve(A, b_dot - moved(a_dot, x), permc_spec, use_umfpack)


def solver(function, symmetric):
    """File the rule of an iterative solver: its derivative is found by the same solver."""
    options = {"rtol": 1e-12}
    at = [case(SYMMETRIC, B, **options)]
    if not symmetric:
        at.append(case(A, B, **options))

    @reverse(function, wrt=("A", "b"), at=at)
    def iterative(g, y, A, b, x0=None, *, rtol=1e-05, atol=0.0, maxiter=None, M=None):
        transposed_m = None if M is None else M.T
        adjoint = function(A.T, np.ravel(g[0]), rtol=rtol, atol=atol, maxiter=maxiter, M=transposed_m)[0]
        return matrix_bar(adjoint, np.ravel(y[0]), A), np.reshape(adjoint, np.shape(b))

    @forward(function, joint=True)
    def iterative_forward(a_dot, b_dot, y, A, b, x0=None, *, rtol=1e-05, atol=0.0, maxiter=None, M=None):
        right = np.ravel(b_dot) - moved(a_dot, np.ravel(y[0]))
        return np.reshape(
            function(A, right, rtol=rtol, atol=atol, maxiter=maxiter, M=M)[0], np.shape(y[0])
        ), 0


for _function in (linalg.cg, linalg.gmres, linalg.bicg, linalg.bicgstab):
    solver(_function, _function is linalg.cg)
