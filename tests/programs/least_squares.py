"""Least squares with a ridge: products of matrices and vectors, two terms that share an argument."""

import numpy as np


def ridge(w, x, y, k):
    e = x @ w - y
    return e @ e + k * (w @ w)


ARGS = (np.array([0.3, -0.7]), np.array([[1.0, 2.0], [0.5, -1.0], [0.2, 0.1]]), np.array([0.1, 0.2, -0.3]), 0.1)

# output: grad(ridge)
def ridge_grad(w, x, y, k):
    e = x @ w - y
    return 2 * k * w + x.T @ (2 * e)


# output: value_and_grad(ridge, argnums=(0, 3))
def ridge_value_and_grad(w, x, y, k):
    e = x @ w - y
    m = w @ w
    return e @ e + k * m, (2 * k * w + x.T @ (2 * e), m)
