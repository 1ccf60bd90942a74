"""A chain of branches: the reverse sweep asks the same questions again, since their answers can't have changed."""

import numpy as np


def piecewise(x):
    if x < 0:
        y = -x
    elif x < 1:
        y = x * x
    else:
        y = 2 * x - 1
    return y * np.sin(x)


ARGS = (0.4,)

# output: grad(piecewise)
def piecewise_grad(x):
    if x < 0:
        y = -x
    elif x < 1:
        y = x * x
    else:
        y = 2 * x - 1
    sin = np.sin(x)
    # reverse of: return y * np.sin(x)
    x_bar = y * np.cos(x)
    if x < 0:
        # reverse of: y = -x
        x_bar -= sin
    elif x < 1:
        # reverse of: y = x * x
        x_bar += 2 * sin * x
    else:
        # reverse of: y = 2 * x - 1
        x_bar += sin * 2
    return x_bar


# output: value_and_grad(piecewise)
def piecewise_value_and_grad(x):
    if x < 0:
        y = -x
    elif x < 1:
        y = x * x
    else:
        y = 2 * x - 1
    sin = np.sin(x)
    # reverse of: return y * np.sin(x)
    x_bar = y * np.cos(x)
    if x < 0:
        # reverse of: y = -x
        x_bar -= sin
    elif x < 1:
        # reverse of: y = x * x
        x_bar += 2 * sin * x
    else:
        # reverse of: y = 2 * x - 1
        x_bar += sin * 2
    return y * sin, x_bar
