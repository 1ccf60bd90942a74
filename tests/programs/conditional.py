"""A conditional expression, and a test that depends on the data inside a loop."""


def bounce(x, v, n):
    for _ in range(n):
        x = x + 0.1 * v
        v = -0.9 * v if x < 0 else v - 0.2
    return x


ARGS = (0.3, -0.7, 8)

# output: grad(bounce, argnums=(0, 1))
def bounce_grad(x, v, n):
    taken_saved = []
    for _ in range(n):
        x = x + 0.1 * v
        taken = x < 0
        taken_saved.append(taken)
        if taken:
            v = -0.9 * v
        else:
            v = v - 0.2
    v_bar = 0.0
    for taken in reversed(taken_saved):
        t_bar = v_bar
        if taken:
            # reverse of: v = -0.9 * v if x < 0 else v - 0.2
            v_bar = -(t_bar * 0.9)
        else:
            v_bar = t_bar
        # reverse of: x = x + 0.1 * v
        v_bar += 0.1
    return 1.0, v_bar
