"""A loop whose number of trips depends on the data: Newton's iteration for a square root."""


def root(a, tolerance):
    x = a
    while abs(x * x - a) > tolerance:
        x = 0.5 * (x + a / x)
    return x


ARGS = (2.0, 1e-3)

# output: grad(root)
def root_grad(a, tolerance):
    x = a
    x_saved = []
    while abs(x * x - a) > tolerance:
        x_saved.append(x)
        x = 0.5 * (x + a / x)
    a_bar = 0.0
    x_bar = 1.0
    for x in reversed(x_saved):
        # reverse of: x = 0.5 * (x + a / x)
        s_bar = x_bar * 0.5
        x_bar = s_bar - s_bar * (a / x) / x
        a_bar += s_bar / x
    return a_bar + x_bar
