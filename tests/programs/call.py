"""A call of a function in a loop: it becomes a pair of functions, the second takes what the first has saved."""

import math


def rate(x, k):
    return k * x / (1 + math.exp(-x))


def euler(x, k, dt, n):
    for _ in range(n):
        x = x - dt * rate(x, k)
    return x


ARGS = (0.8, 1.3, 0.1, 4)

# output: grad(euler, argnums=(0, 1))
def euler_grad(x, k, dt, n):
    rate_saved = []
    for _ in range(n):
        rate_2, rate_2_saved = rate_forward(x, k)
        rate_saved.append(rate_2_saved)
        x = x - dt * rate_2
    k_bar = 0.0
    x_bar = 1.0
    for rate_2_saved in reversed(rate_saved):
        # reverse of: x = x - dt * rate(x, k)
        x_2_bar, k_2_bar = rate_reverse(-(x_bar * dt), rate_2_saved)
        x_bar = x_bar + x_2_bar
        k_bar += k_2_bar
    return x_bar, k_bar


def rate_forward(x, k):
    exp = math.exp(-x)
    s = 1 + exp
    q = k * x / s
    return q, (exp, k, q, s, x)


def rate_reverse(result_bar, saved):
    exp, k, q, s, x = saved
    # reverse of: return k * x / (1 + math.exp(-x))
    p_bar = result_bar / s
    return result_bar * q / s * exp + p_bar * k, p_bar * x
