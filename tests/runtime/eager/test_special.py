"""SciPy's special functions on Tensors: the ufuncs by NumPy's protocol, the others in `srcgrad.special`."""

from __future__ import annotations

import numpy as np
import pytest

import srcgrad as sg

special = pytest.importorskip("scipy.special")


def leaf(*values: float) -> sg.Tensor:
    return sg.tensor(list(values), dtype=sg.float64, requires_grad=True)


OTHERS = {
    "logsumexp": lambda f, x: f(x),
    "softmax": lambda f, x: f(x, axis=0),
    "log_softmax": lambda f, x: f(x, axis=0),
    "polygamma": lambda f, x: f(1, x),
    "multigammaln": lambda f, x: f(x + 2, 2),
    "zeta": lambda f, x: f(x + 2),
    "spherical_jn": lambda f, x: f(1, x),
    "factorial": lambda f, x: f(x),
    "comb": lambda f, x: f(5.3, x),
    "perm": lambda f, x: f(5.3, x),
    "diric": lambda f, x: f(x, 3),
    "legendre_p": lambda f, x: f(2, x),
    "softplus": lambda f, x: f(x),
}


@pytest.mark.host
@pytest.mark.parametrize("name", OTHERS)
def test_functions_that_are_no_ufuncs(name):
    function = getattr(sg.special, name)
    x = leaf(0.3, 0.7, 1.2)
    value = OTHERS[name](function, x)
    assert np.allclose(value.detach().numpy(), OTHERS[name](getattr(special, name), x.detach().numpy()))
    assert sg.autograd.gradcheck(lambda t: OTHERS[name](function, t), (x,))


@pytest.mark.parametrize(
    ("ours", "scipys"), [("bessel_j0", "j0"), ("modified_bessel_k1", "k1"), ("psi", "psi")]
)
def test_names_of_pytorch(ours, scipys):
    x = leaf(0.3, 1.2)
    made = getattr(sg.special, ours)(x)
    assert np.allclose(made.tolist(), getattr(special, scipys)(np.array([0.3, 1.2])))
    assert made.grad_fn is not None


@pytest.mark.host
def test_dimensions_are_given_as_in_pytorch_or_as_in_scipy():
    x = leaf(0.3, 0.7)
    for made in (sg.special.logsumexp(x, 0), sg.special.logsumexp(x, dim=0), sg.special.logsumexp(x, axis=0)):
        assert abs(made.item() - np.logaddexp(0.3, 0.7)) < 1e-12
    weighted = sg.special.logsumexp(x, b=np.array([1.0, 3.0]))
    assert abs(weighted.item() - np.log(np.exp(0.3) + 3 * np.exp(0.7))) < 1e-12
    weighted.backward()
    assert np.allclose(x.grad.tolist(), np.array([1, 3]) * np.exp([0.3, 0.7] - np.array(weighted.item())))


def test_arrays_and_untracked_tensors():
    assert abs(sg.special.logsumexp(np.zeros(2)) - np.log(2)) < 1e-12
    assert not sg.special.softmax(sg.zeros(2), 0).requires_grad


@pytest.mark.host
@pytest.mark.parametrize("name", ["logsumexp", "softmax", "factorial"])
def test_scipys_own_say_what_to_write(name):
    with pytest.raises(RuntimeError, match=rf"srcgrad\.special\.{name}\("):
        getattr(special, name)(leaf(0.3, 0.7))


@pytest.mark.host
def test_other_parts_of_scipy_point_to_the_bridge():
    linalg = pytest.importorskip("scipy.linalg")
    with pytest.raises(RuntimeError, match=r"srcgrad\.compile"):
        linalg.expm(leaf(0.3)[None])


def test_unknown_names():
    assert not hasattr(sg.special, "no_such_function") and "polygamma" in dir(sg.special)
