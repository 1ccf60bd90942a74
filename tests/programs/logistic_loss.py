"""The loss of a logistic regression: nothing is saved, and what the gradient does not need is not computed."""

import numpy as np


def loss(w, b, x, y):
    p = 1 / (1 + np.exp(-(x @ w + b)))
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))


ARGS = (
    np.array([0.3, -0.2]),
    0.1,
    np.array([[1.0, 2.0], [-1.0, 0.5], [0.3, -0.7]]),
    np.array([1.0, 0.0, 1.0]),
)

# output: grad(loss, argnums=(0, 1))
def loss_grad(w, b, x, y):
    exp = np.exp(-(x @ w + b))
    s = 1 + exp
    p = 1 / s
    # reverse of: return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
    s_bar = -1.0 / (y.size or 1)
    # reverse of: p = 1 / (1 + np.exp(-(x @ w + b)))
    s_2_bar = (s_bar * y / p - s_bar * (1 - y) / (1 - p)) * p / s * exp
    return x.T @ s_2_bar, np.sum(s_2_bar)
