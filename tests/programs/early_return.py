"""A return out of a branch: no flag, the reverse sweep takes the branch that was taken."""


def huber(r, delta):
    if abs(r) <= delta:
        return 0.5 * r * r
    return delta * (abs(r) - 0.5 * delta)


ARGS = (1.7, 1.0)

# output: grad(huber, argnums=(0, 1))
def huber_grad(r, delta):
    taken = abs(r) <= delta
    if taken:
        p = 0.5 * r
    else:
        abs_2 = abs(r)
        d = abs_2 - 0.5 * delta
    delta_bar = 0.0
    if taken:
        # reverse of: return 0.5 * r * r
        r_bar = p + r * 0.5
    else:
        # reverse of: return delta * (abs(r) - 0.5 * delta)
        delta_bar += d - delta * 0.5
        r_bar = delta * absolute(abs_2, r)
    return r_bar, delta_bar
