"""A polynomial by Horner's rule, its coefficients an array read from the end."""

import numpy as np


def polynomial(c, x):
    y = 0.0
    for i in range(len(c) - 1, -1, -1):
        y = y * x + c[i]
    return y


ARGS = (np.array([1.0, -0.5, 0.3]), 0.7)

# output: grad(polynomial, argnums=(0, 1))
def polynomial_grad(c, x):
    y = 0.0
    saved = []
    for i in range(len(c) - 1, -1, -1):
        saved.append((i, y))
        y = y * x + c[i]
    c_bar = np.zeros_like(c)
    x_bar = 0.0
    y_bar = 1.0
    for i, y in reversed(saved):
        # reverse of: y = y * x + c[i]
        c_bar[i] += y_bar
        x_bar += y_bar * y
        y_bar = y_bar * x
    return c_bar, x_bar
