"""A first look: the derivative of a loop, printed as Python.

Run it with `python examples/growth.py`.
"""

import srcgrad


def growth(x, r, n):
    """Size of a population after n seasons of logistic growth at rate r."""
    for _ in range(n):
        x = x + r * x * (1 - x)
    return x


def main():
    growth_grad = srcgrad.grad(growth, argnums=(0, 1))
    x, r, n = 0.1, 0.3, 20
    x_bar, r_bar = growth_grad(x, r, n)
    print(growth_grad.source_for(x, r, n))
    print(f"after {n} seasons: {growth(x, r, n):.6f}")
    print(f"derivative by the start: {x_bar:.6f}, by the rate: {r_bar:.6f}")

    step = 1e-6
    assert abs(x_bar - (growth(x + step, r, n) - growth(x - step, r, n)) / (2 * step)) < 1e-6
    assert abs(r_bar - (growth(x, r + step, n) - growth(x, r - step, n)) / (2 * step)) < 1e-6


if __name__ == "__main__":
    main()
