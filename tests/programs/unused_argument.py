"""An argument that does not matter gets zeros of its own shape."""

import numpy as np


def mean_of_first(x, y):
    n = y.shape[0]
    return np.sum(x * x) / n


ARGS = (np.array([0.3, -0.7]), np.array([1.0, 2.0, 3.0]))

# output: grad(mean_of_first, argnums=(0, 1))
def mean_of_first_grad(x, y):
    n = y.shape[0]
    return 2 * (1 / n) * x, np.zeros_like(y)
