"""A loop over scalars: what its body overwrites is saved, once per iteration."""


def growth(x, r, n):
    for _ in range(n):
        x = x + r * x * (1 - x)
    return x


ARGS = (0.3, 1.2, 5)

# output: grad(growth, argnums=(0, 1))
def growth_grad(x, r, n):
    x_saved = []
    for _ in range(n):
        x_saved.append(x)
        x = x + r * x * (1 - x)
    r_bar = 0.0
    x_bar = 1.0
    for x in reversed(x_saved):
        # reverse of: x = x + r * x * (1 - x)
        p_bar = x_bar * (1 - x)
        x_bar = x_bar + p_bar * r - x_bar * (r * x)
        r_bar += p_bar * x
    return x_bar, r_bar
