"""A loop over two arrays at once."""

import numpy as np


def weighted(x, y):
    s = 1.0
    for a, b in zip(x, y):
        s = s * a + b
    return s


ARGS = (np.array([0.3, -0.7]), np.array([1.0, 2.0]))

# output: grad(weighted, argnums=(0, 1))
def weighted_grad(x, y):
    s = 1.0
    saved = []
    for k in range(min(len(x), len(y))):
        a = x[k]
        saved.append((a, k, s))
        b = y[k]
        s = s * a + b
    s_bar = 1.0
    x_bar = np.zeros_like(x)
    y_bar = np.zeros_like(y)
    for a, k, s in reversed(saved):
        y_bar[k] += s_bar
        x_bar[k] += s_bar * s
        # reverse of: s = s * a + b
        s_bar = s_bar * a
    return x_bar, y_bar
