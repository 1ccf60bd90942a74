"""A callee with two results: its reverse half takes the cotangents of both."""

import math


def polar(x, y):
    return math.sqrt(x * x + y * y), math.atan2(y, x)


def sector(x, y):
    r, angle = polar(x, y)
    return 0.5 * r * r * angle


ARGS = (1.2, 0.5)

# output: grad(sector, argnums=(0, 1))
def sector_grad(x, y):
    p, polar_saved = polar_forward(x, y)
    r, angle = p
    p_2 = 0.5 * r
    # reverse of: r, angle = polar(x, y)
    p_bar = [angle * p_2 + angle * r * 0.5, p_2 * r]
    x_bar, y_bar = polar_reverse(p_bar, polar_saved)
    return float(x_bar), float(y_bar)


def polar_forward(x, y):
    sqrt = math.sqrt(x * x + y * y)
    a = math.atan2(y, x)
    return (sqrt, a), (sqrt, x, y)


def polar_reverse(result_bar, saved):
    sqrt, x, y = saved
    # reverse of: return math.sqrt(x * x + y * y), math.atan2(y, x)
    a_bar = result_bar[1]
    s_bar = result_bar[0] * (0.5 / sqrt if sqrt else math.inf)
    return (
        a_bar * ratio(-y, x * x + y * y) + 2 * s_bar * x,
        a_bar * ratio(x, x * x + y * y) + 2 * s_bar * y,
    )
