"""Volatility of returns: a GARCH(1,1) model fitted by maximum likelihood.

The likelihood is a plain loop over the days, as a textbook has it (Bollerslev 1986). SciPy's optimizer takes
the value and the gradient from one function, `srcgrad.value_and_grad(nll)`. Run it with
`pip install -e ".[examples]" && python examples/garch.py`.
"""

import numpy as np
from scipy.optimize import minimize

import srcgrad


def nll(parameters, returns):
    """Negative log-likelihood per day, up to a constant.

    The variance of a day is omega + alpha * (yesterday's return)**2 + beta * (yesterday's variance); the
    parameters are the logarithms of omega, alpha and beta.
    """
    omega, alpha, beta = np.exp(parameters)
    variance = np.var(returns)
    total = 0.0
    for r in returns:
        total += 0.5 * (np.log(variance) + r * r / variance)
        variance = omega + alpha * r * r + beta * variance
    return total / len(returns)


def simulate(omega, alpha, beta, days, rng):
    returns = np.zeros(days)
    variance = omega / (1 - alpha - beta)
    for day in range(days):
        returns[day] = np.sqrt(variance) * rng.normal()
        variance = omega + alpha * returns[day] ** 2 + beta * variance
    return returns


def main():
    truth = np.array([0.05, 0.10, 0.85])
    returns = simulate(*truth, days=2500, rng=np.random.default_rng(0))
    start = np.log([0.1, 0.2, 0.6])

    objective = srcgrad.value_and_grad(nll)
    check(objective, start, returns)
    fit = minimize(objective, start, args=(returns,), jac=True, method="BFGS", options={"gtol": 1e-7})
    found = np.exp(fit.x)
    spread = np.sqrt(np.diag(fit.hess_inv) / len(returns)) * found

    for name, true, estimate, error in zip(["omega", "alpha", "beta"], truth, found, spread, strict=True):
        print(f"{name}: {estimate:.3f} +- {error:.3f} (simulated with {true})")
    print(f"{fit.nit} iterations, {fit.nfev} gradients, the last of norm {np.linalg.norm(fit.jac):.1e}")
    assert np.linalg.norm(fit.jac) < 1e-5
    assert np.all(np.abs(found - truth) < 4 * spread)


def check(objective, parameters, returns):
    """The gradient against central differences."""
    _, gradient = objective(parameters, returns)
    for i, step in enumerate(1e-6 * np.eye(3)):
        difference = (nll(parameters + step, returns) - nll(parameters - step, returns)) / 2e-6
        assert abs(gradient[i] - difference) < 1e-7


if __name__ == "__main__":
    main()
