"""Functions of neural networks that NumPy lacks, with their rules: activations, the error function, softmax.

Each function is written with NumPy, for arrays of any kind that speak NumPy's protocols. Formulas follow
PyTorch's documentation; the error function is W. J. Cody's rational approximation (Math. Comp. 23, 1969).
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import functools
import math

import numpy as np

from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.table import case, elementwise, forward, reverse
from srcgrad.runtime.support import expand

X = generic(2, 3)
P = positive(2, 3)
T = generic(2, 3, 2)

_ERF_A = (
    3.16112374387056560e00,
    1.13864154151050156e02,
    3.77485237685302021e02,
    3.20937758913846947e03,
    1.85777706184603153e-1,
)
_ERF_B = (2.36012909523441209e01, 2.44024637934444173e02, 1.28261652607737228e03, 2.84423683343917062e03)
_ERF_C = (
    5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e01, 2.98635138197400131e02,
    8.81952221241769090e02,
    1.71204761263407058e03, 2.05107837782607147e03, 1.23033935479799725e03, 2.15311535474403846e-8,
)  # fmt: skip
_ERF_D = (
    1.57449261107098347e01, 1.17693950891312499e02, 5.37181101862009858e02, 1.62138957456669019e03,
    3.29079923573345963e03,
    4.36261909014324716e03, 3.43936767414372164e03, 1.23033935480374942e03,
)  # fmt: skip
_ERF_P = (
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
    1.63153871373020978e-2,
)
_ERF_Q = (
    2.56852019228982242e00,
    1.87295284992346725e00,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
_INVERSE_ROOT_PI = 1 / math.sqrt(math.pi)
ROOT_HALF = math.sqrt(0.5)
ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)


def erfc(x):
    """The complementary error function.

    >>> abs(float(erfc(np.float64(0.5))) - math.erfc(0.5)) < 1e-15
    True
    """
    if type(x) is np.ndarray and x.size <= 32 and x.dtype.char in "fd":  # below are 60 calls
        return np.array([math.erfc(v) for v in x.ravel().tolist()], x.dtype).reshape(x.shape)[()]
    y = np.abs(x)
    s = np.where(y > 0.46875, 0.0, y * y)
    a, b = _ERF_A[4] * s, s
    for i in range(3):
        a, b = (a + _ERF_A[i]) * s, (b + _ERF_B[i]) * s
    small = 1 - y * (a + _ERF_A[3]) / (b + _ERF_B[3])
    m = np.where(y > 4, 1.0, y)
    c, d = _ERF_C[8] * m, m
    for i in range(7):
        c, d = (c + _ERF_C[i]) * m, (d + _ERF_D[i]) * m
    middle = (c + _ERF_C[7]) / (d + _ERF_D[7])
    z = 1 / np.where(y > 4, y * y, 16.0)
    p, q = _ERF_P[5] * z, z
    for i in range(4):
        p, q = (p + _ERF_P[i]) * z, (q + _ERF_Q[i]) * z
    r = z * (p + _ERF_P[4]) / (q + _ERF_Q[4])
    large = (_INVERSE_ROOT_PI - r) / np.where(y > 4, y, 4.0)
    cut = np.trunc(y * 16) / 16
    cut = np.where(cut > 100, 100.0, cut)
    w = np.where(y > 100, 100.0, y)
    tail = np.exp(-cut * cut) * np.exp(-(w - cut) * (w + cut)) * np.where(y > 4, large, middle)
    value = np.where(y > 0.46875, tail, small)
    value = np.where(x < 0, 2 - value, value)
    return np.where(np.isnan(x), x, value).astype(np.result_type(x))[()]


def erf(x):
    """The error function."""
    if type(x) is np.ndarray and x.size <= 32 and x.dtype.char in "fd":
        return np.array([math.erf(v) for v in x.ravel().tolist()], x.dtype).reshape(x.shape)[()]
    y = np.abs(x)
    s = np.where(y > 0.46875, 0.0, y * y)
    a, b = _ERF_A[4] * s, s
    for i in range(3):
        a, b = (a + _ERF_A[i]) * s, (b + _ERF_B[i]) * s
    small = x * (a + _ERF_A[3]) / (b + _ERF_B[3])
    return np.where(y > 0.46875, 1 - erfc(x), small).astype(np.result_type(x))[()]


@elementwise(erf, shape=None, at=[0.7, X, [-5.0, 0.0, 0.1, 3.0]])
def erf_rule(y, x):
    return 2 * _INVERSE_ROOT_PI * np.exp(-x * x)


@elementwise(erfc, shape=None, at=[0.7, X])
def erfc_rule(y, x):
    return -2 * _INVERSE_ROOT_PI * np.exp(-x * x)


def rsqrt(x):
    """`1 / sqrt(x)`."""
    return 1 / np.sqrt(x)


@elementwise(rsqrt, shape=None, at=[0.7, P])
def rsqrt_rule(y, x):
    return -0.5 * y * y * y


def relu(x):
    """`max(x, 0)`."""
    return np.maximum(x, 0)


@elementwise(relu, shape=None, at=[0.7, X])
def relu_rule(y, x):
    """At 0 the derivative is 0."""
    return y > 0


@functools.lru_cache(maxsize=256)
def _cell(value, dtype):
    return np.array(value, dtype)


def cell(value, x):
    """`value` to be computed with beside `x`: for an array a 0-dim array, in half the time of a number."""
    return _cell(value, x.dtype) if type(x) is np.ndarray else value


def sigmoid(x):
    """`1 / (1 + exp(-x))`."""
    one = cell(1, x)
    return one / (one + np.exp(-x))


@elementwise(sigmoid, shape=None, at=[0.7, X, [-40.0, 40.0]])
def sigmoid_rule(y, x):
    return y * (cell(1, y) - y)


def logsigmoid(x):
    """`log(sigmoid(x))`."""
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


@elementwise(logsigmoid, shape=None, at=[0.7, X, [-40.0, 40.0]])
def logsigmoid_rule(y, x):
    return sigmoid(-x)


def silu(x):
    """`x * sigmoid(x)`."""
    return x * sigmoid(x)


@elementwise(silu, shape=None, at=[0.7, X])
def silu_rule(y, x):
    s, one = sigmoid(x), cell(1, x)
    return s * (one + x * (one - s))


def gelu(x):
    """`x` times the normal distribution function of `x`."""
    return x * (cell(0.5, x) * erfc(cell(-ROOT_HALF, x) * x))


@elementwise(gelu, shape=None, at=[0.7, X])
def gelu_rule(y, x):
    return 0.5 * erfc(-ROOT_HALF * x) + x * np.exp(-0.5 * x * x) * (0.5 * ROOT_TWO_OVER_PI)


def gelu_tanh(x):
    """PyTorch's approximation of `gelu` by tanh."""
    return 0.5 * x * (1 + np.tanh(ROOT_TWO_OVER_PI * (x + 0.044715 * x * x * x)))


@elementwise(gelu_tanh, shape=None, at=[0.7, X])
def gelu_tanh_rule(y, x):
    t = np.tanh(ROOT_TWO_OVER_PI * (x + 0.044715 * x * x * x))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT_TWO_OVER_PI * (1 + 3 * 0.044715 * x * x)


def softplus(x, *, beta=1.0, threshold=20.0):
    """`log(1 + exp(beta x)) / beta`, and `x` itself above the threshold."""
    scaled = beta * x
    return np.where(scaled > threshold, x, (np.maximum(scaled, 0) + np.log1p(np.exp(-np.abs(scaled)))) / beta)


@elementwise(softplus, shape=None, at=[0.7, X, case(X, beta=2.0), case([-30.0, 30.0])])
def softplus_rule(y, x, *, beta=1.0, threshold=20.0):
    return np.where(beta * x > threshold, 1, sigmoid(beta * x))


def frac(x):
    """What stands behind the point."""
    return x - np.trunc(x)


@elementwise(frac, shape=None, at=[0.7, X + 0.1])
def frac_rule(y, x):
    return 1


def logit(x, *, eps=None):
    """`log(x / (1 - x))`, of `x` kept `eps` away from 0 and 1."""
    x = x if eps is None else np.minimum(np.maximum(x, eps), 1 - eps)
    return np.log(x / (1 - x))


@elementwise(logit, shape=None, at=[0.7, [0.2, 0.9], case([0.05, 0.5, 0.97], eps=0.1)])
def logit_rule(y, x, *, eps=None):
    low = 0.0 if eps is None else eps
    inside = (x >= low) & (x <= 1 - low)
    slope = 1 / np.where(inside, x * (1 - x), 1)
    return np.where(inside, slope, np.nan if eps is None else 0.0)


def elu(x, *, alpha=1.0, scale=1.0, input_scale=1.0):
    """`scale * x` above 0, `scale * alpha * (exp(input_scale * x) - 1)` below."""
    return scale * np.where(x > 0, x, alpha * np.expm1(input_scale * np.minimum(x, 0)))


@elementwise(elu, shape=None, at=[0.7, X, case(X, alpha=0.5), case(X, alpha=1.6, scale=1.05)])
def elu_rule(y, x, *, alpha=1.0, scale=1.0, input_scale=1.0):
    return scale * np.where(x > 0, 1, alpha * input_scale * np.exp(input_scale * np.minimum(x, 0)))


def leaky_relu(x, *, negative_slope=0.01):
    """`x` above 0, `negative_slope * x` below."""
    return np.where(x > 0, x, negative_slope * x)


@elementwise(leaky_relu, shape=None, at=[0.7, X])
def leaky_relu_rule(y, x, *, negative_slope=0.01):
    """At 0 the derivative is the slope."""
    return np.where(x > 0, np.ones_like(x), negative_slope * np.ones_like(x))


def clamped(x, low, high):
    """`x` kept between `low` and `high`."""
    return np.minimum(np.maximum(x, low), high)


def hardtanh(x, *, low=-1.0, high=1.0):
    """`x` kept between `low` and `high`."""
    return np.clip(x, low, high)


@elementwise(hardtanh, shape=None, at=[0.7, X, case(X, low=-0.3, high=0.4)])
def hardtanh_rule(y, x, *, low=-1.0, high=1.0):
    """On a bound the derivative is 0."""
    return (x > low) & (x < high)


def hardsigmoid(x):
    """`clip(x + 3, 0, 6) / 6`."""
    return np.clip(x + 3, 0, 6) / 6


@elementwise(hardsigmoid, shape=None, at=[0.7, X, [-4.0, 4.0]])
def hardsigmoid_rule(y, x):
    return ((x > -3) & (x < 3)) * (np.ones_like(x) / 6)


def hardswish(x):
    """`x * clip(x + 3, 0, 6) / 6`."""
    return x * np.clip(x + 3, 0, 6) / 6


@elementwise(hardswish, shape=None, at=[0.7, X, [-4.0, 4.0]])
def hardswish_rule(y, x):
    return np.where(x <= -3, 0, np.where(x < 3, x / 3 + 0.5, 1))


def mish(x):
    """`x * tanh(softplus(x))`."""
    return x * np.tanh(softplus(x))


@elementwise(mish, shape=None, at=[0.7, X])
def mish_rule(y, x):
    t = np.tanh(softplus(x))
    return t + x * (1 - t * t) * sigmoid(x)


def threshold(x, *, limit, value):
    """`x` above `limit`, else `value`."""
    return np.where(x <= limit, value, x)


@elementwise(threshold, shape=None, at=[case(X, limit=0.2, value=5.0)])
def threshold_rule(y, x, *, limit, value):
    return ~(x <= limit)


def prelu(x, weight):
    """`x` above 0, `weight * x` below."""
    return np.where(x > 0, x, weight * x)


@elementwise(prelu, shape=None, at=[(0.7, 0.2), (X, generic(3, seed=1))])
def prelu_rule(z, x, weight):
    return np.where(x > 0, 1, weight), np.where(x > 0, 0, x)


def xlogy(x, y):
    """`x * log(y)`, and 0 where `x` is 0."""
    zero = (x == 0) & ~np.isnan(y)
    return np.where(zero, 0, x * np.log(np.where(zero, 1, y)))


@elementwise(xlogy, shape=None, at=[(0.7, 0.4), (X, P)])
def xlogy_rule(z, x, y):
    """Where `x` is 0 and `y` has no logarithm, the derivative by `x` is 0."""
    none = (x == 0) & (y <= 0)
    return np.where(none, 0, np.log(np.where(none, 1, y))), x / y


def lerp(x, end, weight):
    """`x + weight * (end - x)`."""
    return x + weight * (end - x)


@elementwise(lerp, shape=None, at=[(0.7, 0.2, 0.3), (X, generic(3, seed=1), 0.25)])
def lerp_rule(z, x, end, weight):
    return 1 - weight, weight, end - x


def addcmul(x, a, b, *, value=1):
    """`x + value * a * b`."""
    return x + value * (a * b)


@elementwise(addcmul, shape=None, at=[(0.7, 0.2, 0.3), case(X, generic(3, seed=1), X, value=0.5)])
def addcmul_rule(z, x, a, b, *, value=1):
    return 1, value * b, value * a


def addcdiv(x, a, b, *, value=1):
    """`x + value * a / b`."""
    return x + value * (a / b)


@elementwise(addcdiv, shape=None, at=[(0.7, 0.2, 0.3), case(X, generic(3, seed=1), P, value=0.5)])
def addcdiv_rule(z, x, a, b, *, value=1):
    return 1, value / b, -value * a / (b * b)


def top(x, axis):
    """The maximum along `axis`, kept."""
    if type(x) is np.ndarray:
        return np.maximum.reduce(x, axis=axis, keepdims=True)
    return np.max(x, axis=axis, keepdims=True)


def total(x, axis):
    """The sum along `axis`, kept."""
    if type(x) is np.ndarray:
        return np.add.reduce(x, axis=axis, keepdims=True)
    return np.sum(x, axis=axis, keepdims=True)


# --- softmax ------------------------------------------------------------------------------------------------


def logsumexp(x, axis=None, keepdims=False):
    """`log(sum(exp(x)))` along `axis`, without overflow."""
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis=axis)


@reverse(logsumexp, at=[X, case(X, axis=1), case(T, axis=(0, 2)), case(X, axis=0, keepdims=True)])
def logsumexp_rule(g, y, x, axis=None, keepdims=False):
    top = expand(y, x, axis, keepdims)
    return expand(g, x, axis, keepdims) * np.exp(x - np.where(np.isinf(top), 0, top))


@forward(logsumexp)
def logsumexp_forward(x_dot, y, x, axis=None, keepdims=False):
    return np.sum(x_dot * np.exp(x - expand(y, x, axis, keepdims)), axis=axis, keepdims=keepdims)


def softmax(x, axis=-1):
    """`exp(x) / sum(exp(x))` along `axis`."""
    if type(x) is np.ndarray and x.ndim:
        e = x - np.maximum.reduce(x, axis, None, None, True)
        np.exp(e, e)
        return np.divide(e, np.add.reduce(e, axis, None, None, True), e)
    e = np.exp(x - top(x, axis))
    return e / total(e, axis)


@reverse(softmax, at=[X, case(X, axis=0)])
def softmax_rule(g, y, x, axis=-1):
    t = g * y
    return t - y * total(t, axis)


@forward(softmax)
def softmax_forward(x_dot, y, x, axis=-1):
    return y * (x_dot - total(y * x_dot, axis))


def log_softmax(x, axis=-1):
    """`log(softmax(x))` along `axis`."""
    if type(x) is np.ndarray and x.ndim:
        out = x - np.maximum.reduce(x, axis, None, None, True)
        e = np.add.reduce(np.exp(out), axis, None, None, True)
        return np.subtract(out, np.log(e, e), out)
    shifted = x - top(x, axis)
    return shifted - np.log(total(np.exp(shifted), axis))


@reverse(log_softmax, at=[X, case(X, axis=0)])
def log_softmax_rule(g, y, x, axis=-1):
    return g - np.exp(y) * total(g, axis)


@forward(log_softmax)
def log_softmax_forward(x_dot, y, x, axis=-1):
    return x_dot - total(np.exp(y) * x_dot, axis)


# --- norms --------------------------------------------------------------------------------------------------


def safe_ratio(a, b):
    """`a / b`, and 0 where `b` is 0."""
    return np.where(b == 0, 0, a) / np.where(b == 0, 1, b)


def vector_norm(x, p=2.0, axis=None, keepdims=False):
    """The p-norm of the elements along `axis`."""
    if p == 2 and type(x) is np.ndarray and x.dtype.kind == "f":
        return np.sqrt(np.add.reduce(x * x, axis=axis, keepdims=keepdims))
    a = np.abs(x)
    if p == math.inf:
        return np.max(a, axis=axis, keepdims=keepdims)
    if p == -math.inf:
        return np.min(a, axis=axis, keepdims=keepdims)
    if p == 0:
        return np.sum((a != 0).astype(a.dtype), axis=axis, keepdims=keepdims)
    if p == 1:
        return np.sum(a, axis=axis, keepdims=keepdims)
    if p == 2:
        return np.sqrt(np.sum(a * a, axis=axis, keepdims=keepdims))
    return np.sum(a**p, axis=axis, keepdims=keepdims) ** (1 / p)


@reverse(
    vector_norm,
    at=[
        X,
        case(X, p=3.0),
        case(X, axis=1),
        case(X, p=1.0, axis=0),
        case(T, axis=(0, 2), keepdims=True),
        (X, math.inf),
        (X, 0.5),
    ],
)
def vector_norm_rule(g, y, x, p=2.0, axis=None, keepdims=False):
    """At 0 the derivative is 0."""
    if np.iscomplexobj(x):
        x = np.conj(x)
    if p == 0:
        return np.zeros_like(x) * expand(g, x, axis, keepdims)
    if p == 1:
        return expand(g, x, axis, keepdims) * np.sign(x)
    if p == 2:
        return x * expand(safe_ratio(g, y), x, axis, keepdims)
    if p == math.inf or p == -math.inf:
        hit = (np.abs(x) == expand(y, x, axis, keepdims)) * np.ones_like(x)
        return expand(g, x, axis, keepdims) * np.sign(x) * hit / np.sum(hit, axis=axis, keepdims=True)
    scaled = safe_ratio(np.abs(x), expand(y, x, axis, keepdims))
    return (
        expand(g, x, axis, keepdims)
        * np.sign(x)
        * np.where(scaled == 0, 0, np.where(scaled == 0, 1, scaled) ** (p - 1))
    )


@forward(vector_norm)
def vector_norm_forward(x_dot, y, x, p=2.0, axis=None, keepdims=False):
    each = x_dot * vector_norm_rule(np.ones_like(y), y, x, p, axis, keepdims)
    return np.sum(np.real(each) if np.iscomplexobj(x) else each, axis=axis, keepdims=keepdims)
