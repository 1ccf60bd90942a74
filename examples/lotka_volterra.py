"""Hares and lynxes: the parameters of a Lotka-Volterra system, fitted through a hand-written solver.

The populations are integrated by the classical Runge-Kutta method; the loss compares them with noisy counts.
The gradient runs through every step of the solver. Run it with
`pip install -e ".[examples]" && python examples/lotka_volterra.py`.
"""

import numpy as np
from scipy.optimize import minimize

import srcgrad


def change(state, rates):
    """Time derivatives of the numbers of hares and lynxes."""
    hares, lynxes = state
    birth, eaten, death, growth = rates
    return np.array([hares * (birth - eaten * lynxes), lynxes * (growth * hares - death)])


def step(state, rates, dt):
    """One step of the classical Runge-Kutta method of order 4."""
    k1 = change(state, rates)
    k2 = change(state + dt / 2 * k1, rates)
    k3 = change(state + dt / 2 * k2, rates)
    k4 = change(state + dt * k3, rates)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def loss(logs, counts, dt, every):
    """Mean squared difference of the logarithms of modelled and counted numbers.

    `logs` holds the logarithms of the two initial numbers and of the four rates; a count is taken every
    `every` steps.
    """
    state = np.exp(logs[:2])
    rates = np.exp(logs[2:])
    total = 0.0
    for counted in counts:
        total += np.sum((np.log(state) - np.log(counted)) ** 2)
        for _ in range(every):
            state = step(state, rates, dt)
    return total / len(counts)


def simulate(logs, years, dt, every, rng):
    state, rates = np.exp(logs[:2]), np.exp(logs[2:])
    counts = []
    for _ in range(years):
        counts.append(state * np.exp(0.05 * rng.normal(size=2)))
        for _ in range(every):
            state = step(state, rates, dt)
    return np.array(counts)


def main():
    truth = np.log([30.0, 4.0, 0.5, 0.03, 0.8, 0.025])
    dt, every = 0.1, 10
    counts = simulate(truth, years=21, dt=dt, every=every, rng=np.random.default_rng(0))
    start = np.log([counts[0, 0], counts[0, 1], 0.6, 0.03, 0.9, 0.03])

    objective = srcgrad.value_and_grad(loss)
    check(objective, start, counts, dt, every)
    fit = minimize(
        objective, start, args=(counts, dt, every), jac=True, method="BFGS", options={"gtol": 1e-6}
    )

    names = ["hares at first", "lynxes at first", "births", "eaten", "deaths", "growth"]
    for name, true, found in zip(names, np.exp(truth), np.exp(fit.x), strict=True):
        print(f"{name}: {found:.4g} (simulated with {true:.4g})")
    print(f"{fit.nit} iterations, loss {fit.fun:.5f}")
    assert fit.fun < 1.2 * loss(truth, counts, dt, every)
    assert np.all(np.abs(fit.x - truth) < 0.1)


def check(objective, logs, counts, dt, every):
    """The gradient against central differences."""
    _, gradient = objective(logs, counts, dt, every)
    for i, shift in enumerate(1e-6 * np.eye(len(logs))):
        difference = (loss(logs + shift, counts, dt, every) - loss(logs - shift, counts, dt, every)) / 2e-6
        assert abs(gradient[i] - difference) < 1e-5 * max(1, abs(difference))


if __name__ == "__main__":
    main()
