"""Heat flow: the inner part of an array is updated in place."""

import numpy as np


def heat(u, k, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


ARGS = (np.array([0.1, 0.9, 0.4, -0.3, 0.2]), 0.1, 3)

# output: grad(heat, argnums=(0, 1))
def heat_grad(u, k, steps):
    u_2 = u.copy()
    s_saved = []
    for _ in range(steps):
        s = u_2[2:] - 2 * u_2[1:-1] + u_2[:-2]
        s_saved.append(s)
        u_2[1:-1] += k * s
    k_bar = 0.0
    # reverse of: return np.sum(u**2)
    u_bar = 2 * u_2
    for s in reversed(s_saved):
        # reverse of: u[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2])
        p_bar = u_bar[1:-1].copy()
        s_bar = p_bar * k
        u_bar[:-2] += s_bar
        u_bar[1:-1] -= s_bar * 2
        u_bar[2:] += s_bar
        k_bar += np.sum(p_bar * s)
    return u_bar, k_bar
