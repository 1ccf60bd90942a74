"""A quadratic form, differentiated with respect to the vector."""

import numpy as np


def form(x, a):
    return x @ a @ x


ARGS = (np.array([0.3, -0.7]), np.array([[1.0, 0.2], [0.1, 0.6]]))

# output: grad(form)
def form_grad(x, a):
    return x @ a + a @ x
