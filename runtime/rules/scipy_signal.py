"""Rules for convolution, filtering, resampling and spectra (SciPy manual, `scipy.signal`).

Nearly everything here is linear in the signal, and the adjoint of a filter is the filter run backwards in
time (A. Oppenheim and R. Schafer, "Discrete-Time Signal Processing"). A few maps whose adjoint has no simple
form go by their matrix, got from the images of the unit vectors; these say so.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np
from scipy import fft as sfft
from scipy import signal

from srcgrad.runtime.rules.fft import fit, half_weights
from srcgrad.runtime.rules.inputs import complexes, generic, positive
from srcgrad.runtime.rules.table import case, elementwise, forward, nondifferentiable, reverse
from srcgrad.runtime.support import bessel_i, scatter, unbroadcast, unpad

LONG, SHORT, EVEN = generic(7), generic(3, seed=1), generic(4, seed=2)
M, K = generic(4, 5), generic(2, 3, seed=1)
T12 = generic(12)


# --- convolution --------------------------------------------------------------------------------------------


def turned(x, axes=None):
    """`x` reversed along all axes, or those given."""
    return np.flip(x, axes)


def uncut(g, a, v, mode, mirrored=False, axes=None):
    """The cotangent of the full convolution along `axes` (all) from that of the part that `mode` keeps.

    `mirrored`: where the middle is not unique the later one is meant.
    """
    if mode == "full":
        return g
    widths = []
    along = range(np.ndim(g)) if axes is None else np.ravel(axes) % np.ndim(g)
    for i, (n, m, kept) in enumerate(zip(np.shape(a), np.shape(v), np.shape(g), strict=True)):
        if i not in along:
            widths.append((0, 0))
            continue
        rest = n + m - 1 - kept
        before = (rest + mirrored) // 2 if mode == "same" else min(n, m) - 1
        widths.append((before, rest - before))
    return np.pad(g, widths)


def correlated(g, v, like, convolve=signal.convolve, axes=None):
    """For the cotangent `g` of a full convolution with `v`: that of the other factor."""
    if axes is None:
        return unbroadcast(convolve(g, turned(v), "valid"), like)
    return unbroadcast(convolve(g, turned(v, axes), "valid", axes=axes), like)


PAIRS = [
    (a, v, mode)
    for mode in ("full", "same")
    for a, v in ((LONG, SHORT), (SHORT, LONG), (LONG, EVEN), (M, K), (K, M))
]
VALID = [(LONG, SHORT, "valid"), (SHORT, LONG, "valid"), (M, K, "valid"), (LONG, EVEN, "valid")]
ALONG = [case(M, M + 1, axes=1), case(M, M[:, :2], "same", axes=-1), case(M, K[:1], "valid", (1,))]
COMPLEX = [(LONG * 1j + 1, SHORT - 1j, "same"), (LONG, SHORT * 1j + 1)]


@reverse(signal.convolve, wrt=("in1", "in2"), at=[*PAIRS, *VALID, *COMPLEX, case(LONG, SHORT, method="fft")])
def convolve(g, y, in1, in2, mode="full", method="auto"):
    full = uncut(g, in1, in2, mode)
    return correlated(full, in2, in1), correlated(full, in1, in2)


@forward(signal.convolve)
def convolve_forward(in1_dot, in2_dot, y, in1, in2, mode="full", method="auto"):
    return (
        signal.convolve(in1_dot, in2, mode, method) if np.ndim(in1_dot) else 0 * y,
        signal.convolve(in1, in2_dot, mode, method) if np.ndim(in2_dot) else 0 * y,
    )


@reverse(signal.fftconvolve, wrt=("in1", "in2"), at=[*PAIRS, *VALID, *COMPLEX, *ALONG])
def fftconvolve(g, y, in1, in2, mode="full", axes=None):
    full = uncut(g, in1, in2, mode, axes=axes)
    return (
        correlated(full, in2, in1, signal.fftconvolve, axes),
        correlated(full, in1, in2, signal.fftconvolve, axes),
    )


@forward(signal.fftconvolve)
def fftconvolve_forward(in1_dot, in2_dot, y, in1, in2, mode="full", axes=None):
    return (
        signal.fftconvolve(in1_dot, in2, mode, axes) if np.ndim(in1_dot) else 0 * y,
        signal.fftconvolve(in1, in2_dot, mode, axes) if np.ndim(in2_dot) else 0 * y,
    )


@reverse(signal.oaconvolve, wrt=("in1", "in2"), at=[*PAIRS, *VALID, *ALONG])
def oaconvolve(g, y, in1, in2, mode="full", axes=None):
    full = uncut(g, in1, in2, mode, axes=axes)
    return (
        correlated(full, in2, in1, signal.oaconvolve, axes),
        correlated(full, in1, in2, signal.oaconvolve, axes),
    )


@forward(signal.oaconvolve)
def oaconvolve_forward(in1_dot, in2_dot, y, in1, in2, mode="full", axes=None):
    return (
        signal.oaconvolve(in1_dot, in2, mode, axes) if np.ndim(in1_dot) else 0 * y,
        signal.oaconvolve(in1, in2_dot, mode, axes) if np.ndim(in2_dot) else 0 * y,
    )


@reverse(signal.correlate, wrt=("in1", "in2"), at=[*PAIRS, *VALID, *COMPLEX])
def correlate(g, y, in1, in2, mode="full", method="auto"):
    """The second argument is turned round and conjugated, then convolved with the first."""
    kernel = np.conj(turned(in2))
    full = uncut(g, in1, kernel, mode)
    return correlated(full, kernel, in1), unbroadcast(
        np.conj(turned(signal.convolve(full, turned(in1), "valid"))), in2
    )


@forward(signal.correlate)
def correlate_forward(in1_dot, in2_dot, y, in1, in2, mode="full", method="auto"):
    return (
        signal.correlate(in1_dot, in2, mode, method) if np.ndim(in1_dot) else 0 * y,
        signal.correlate(in1, in2_dot, mode, method) if np.ndim(in2_dot) else 0 * y,
    )


BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def surrounded(in1, kernel, boundary, fillvalue):
    """The image with a border so wide that a valid convolution with the kernel gives the full one."""
    widths = [(m - 1, m - 1) for m in np.shape(kernel)]
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    return np.pad(in1, widths, BOUNDARIES[boundary], **options)


def planar_adjoint(g, in1, kernel, mode, boundary, fillvalue, mirrored=False):
    """The cotangents of image and kernel for a convolution in the plane with a border."""
    full = uncut(g, in1, kernel, mode, mirrored)
    image = signal.convolve(full, turned(kernel), "full")
    image = unpad(image, in1, [(m - 1, m - 1) for m in np.shape(kernel)], BOUNDARIES[boundary])
    around = surrounded(in1, kernel, boundary, fillvalue)
    return unbroadcast(image, in1), turned(signal.convolve(around, turned(full), "valid"))


PLANAR = [
    *[
        (M, K),
        (M, K, "same"),
        (M, K, "valid"),
        (M, K, "full", "wrap"),
        (M, K, "same", "symm"),
        (M, generic(3, 3), "same", "wrap"),
    ],
    *[(M, K, "full", "fill", 1.5), (M, generic(3, 3), "valid", "symm"), (M * 1j + 1, K - 1j, "same")],
]


@reverse(signal.convolve2d, wrt=("in1", "in2"), at=PLANAR)
def convolve2d(g, y, in1, in2, mode="full", boundary="fill", fillvalue=0):
    found = planar_adjoint(g, in1, in2, mode, boundary, fillvalue)
    return found[0], unbroadcast(found[1], in2)


@forward(signal.convolve2d)
def convolve2d_forward(in1_dot, in2_dot, y, in1, in2, mode="full", boundary="fill", fillvalue=0):
    return (
        signal.convolve2d(in1_dot, in2, mode, boundary) if np.ndim(in1_dot) else 0 * y,
        signal.convolve2d(in1, in2_dot, mode, boundary, fillvalue) if np.ndim(in2_dot) else 0 * y,
    )


@reverse(signal.correlate2d, wrt=("in1", "in2"), at=PLANAR)
def correlate2d(g, y, in1, in2, mode="full", boundary="fill", fillvalue=0):
    """The second argument is turned round and conjugated, then convolved with the first."""
    found = planar_adjoint(g, in1, np.conj(turned(in2)), mode, boundary, fillvalue, True)
    return found[0], unbroadcast(np.conj(turned(found[1])), in2)


@forward(signal.correlate2d)
def correlate2d_forward(in1_dot, in2_dot, y, in1, in2, mode="full", boundary="fill", fillvalue=0):
    return (
        signal.correlate2d(in1_dot, in2, mode, boundary) if np.ndim(in1_dot) else 0 * y,
        signal.correlate2d(in1, in2_dot, mode, boundary, fillvalue) if np.ndim(in2_dot) else 0 * y,
    )


@reverse(signal.deconvolve, wrt=("signal", "divisor"), at=[(LONG, SHORT), (EVEN, SHORT)])
def deconvolve(g, y, signal, divisor):
    """From signal = divisor * quotient + remainder: the quotient solves a triangular system."""
    n = np.size(y[0])
    inner = np.linalg.solve(shifts(divisor, n).T, g[0] - np.convolve(g[1], np.flip(divisor), "valid"))
    total = g[1] + np.concatenate([inner, np.zeros(np.size(signal) - n)])
    return unbroadcast(total, signal), unbroadcast(-np.convolve(total, np.flip(y[0]), "valid"), divisor)


def shifts(v, n):
    """The lower triangular matrix that multiplies the first n coefficients of a polynomial by v."""
    padded = np.concatenate([np.zeros(n - 1), v, np.zeros(n)])
    return padded[np.arange(n)[:, None] - np.arange(n) + n - 1]


@forward(signal.deconvolve)
def deconvolve_forward(signal_dot, divisor_dot, y, signal, divisor):
    n = np.size(y[0])
    found = []
    for change in (
        signal_dot if np.ndim(signal_dot) else 0 * y[1],
        -np.convolve(y[0], divisor_dot) if np.ndim(divisor_dot) else 0 * y[1],
    ):
        q_dot = np.linalg.solve(shifts(divisor, n), change[:n])
        found.append((unbroadcast(q_dot, y[0]), unbroadcast(change - np.convolve(q_dot, divisor), y[1])))
    return found[0], found[1]


# --- recursive filters --------------------------------------------------------------------------------------


def backwards(b, a, g):
    """The filter b / a run backwards along the last axis."""
    return np.flip(signal.lfilter(b, a, np.flip(g, -1)), -1)


def future_state(a, zf_bar, order):
    """The state with which a filter 1 / a starts whose past outputs are `zf_bar` (latest first); a[0] is
    1."""
    state = np.zeros((*zf_bar.shape[:-1], order), zf_bar.dtype)
    for k in range(order):
        for j in range(k + 1, len(a)):
            if j - k - 1 < zf_bar.shape[-1]:
                state[..., k] -= a[j] * zf_bar[..., j - k - 1]
    return state


def lagged(g, x, n):
    """For k < n the sums of g[m] x[m - k] over the last axis and all others."""
    g, x = np.reshape(g, (-1, np.shape(g)[-1])), np.reshape(x, (-1, np.shape(x)[-1]))
    length = g.shape[-1]
    return np.array(
        [
            np.sum(g[:, k:] * x[:, : max(length - k, 0)]) if k < length else 0 * np.sum(g[:, :0])
            for k in range(n)
        ]
    )


B, A = np.array([0.3, 0.2, -0.1]), np.array([1.0, -0.4, 0.1])
FILTERS = [
    *[
        (B, A, LONG),
        (B, 2 * A, LONG),
        (SHORT, np.array([1.0]), LONG),
        (B[:1], A, LONG),
        (B, A, M),
        (B, A, M, 0),
    ],
    *[
        case(B, A, LONG, zi=generic(2)),
        case(B, 2 * A, M, zi=generic(4, 2)),
        case(B, A, M, axis=0, zi=generic(2, 5)),
    ],
    *[(B, A, SHORT[:2]), case(B, A, SHORT[:1], zi=generic(2)), (B * 1j, A, LONG)],
]


def normalized(b, a):
    """The coefficients divided by a[0]."""
    return np.atleast_1d(b) / np.atleast_1d(a)[0], np.atleast_1d(a) / np.atleast_1d(a)[0]


def with_end(x, end):
    return np.concatenate([x, np.zeros((*x.shape[:-1], end), x.dtype)], axis=-1)


@reverse(signal.lfilter, wrt=("b", "a", "x", "zi"), at=FILTERS)
def lfilter(g, y, b, a, x, axis=-1, zi=None):
    """With a[0] = 1: y[n] + sum_k a[k] y[n-k] = sum_k b[k] x[n-k] + zi[n], and the final state continues the
    right side.

    The cotangent of that equation is `g` filtered backwards by 1 / a, starting from the cotangent of the
    final state.
    """
    b_, a_ = normalized(b, a)
    order = max(len(a_), len(b_)) - 1
    x_last, g_last = np.moveaxis(x, axis, -1), np.moveaxis(g if zi is None else g[0], axis, -1)
    y_last = np.moveaxis(y if zi is None else y[0], axis, -1)
    later = g_last[..., :0] if zi is None else np.moveaxis(g[1], axis, -1)
    inner = np.flip(g_last, -1)
    if len(a_) > 1:
        inner = signal.lfilter(np.ones(1), a_, inner, zi=future_state(a_, later, len(a_) - 1))[0]
    inner = np.concatenate([np.flip(inner, -1), later], axis=-1)
    n = x_last.shape[-1]
    x_bar = np.moveaxis(backwards(b_, 1.0, inner)[..., :n], -1, axis)
    b_bar = lagged(inner, with_end(x_last, later.shape[-1]), len(b_))
    a_bar = -lagged(inner, with_end(y_last, later.shape[-1]), len(a_))
    a_bar[0] = -(np.sum(b_ * b_bar) + np.sum(a_[1:] * a_bar[1:]))
    zi_bar = (
        None if zi is None else unbroadcast(np.moveaxis(with_end(inner, order)[..., :order], -1, axis), zi)
    )
    a0 = np.atleast_1d(a)[0]
    return unbroadcast(b_bar / a0, b), unbroadcast(a_bar / a0, a), unbroadcast(x_bar, x), zi_bar


@forward(signal.lfilter)
def lfilter_forward(b_dot, a_dot, x_dot, zi_dot, y, b, a, x, axis=-1, zi=None):
    b_, a_ = normalized(b, a)
    a0 = np.atleast_1d(a)[0]
    out = y if zi is None else y[0]
    order = max(len(a_), len(b_)) - 1

    def answer(source):
        """The filter 1 / a applied to a change of the equation's right side, which reaches into the final
        state."""
        source = np.moveaxis(source, axis, -1)
        n = np.shape(out)[axis]
        head = signal.lfilter(np.ones(1), a_, source[..., :n])
        if zi is None:
            return unbroadcast(np.moveaxis(head, -1, axis), out)
        fed = signal.lfilter(np.concatenate([[0.0], a_[1:]]), 1.0, with_end(head, order))
        rest = source[..., n:] - fed[..., n:]
        return unbroadcast(np.moveaxis(head, -1, axis), out), unbroadcast(np.moveaxis(rest, -1, axis), y[1])

    def driven(coefficients, signal_):
        long = with_end(np.moveaxis(signal_, axis, -1), 0 if zi is None else order)
        return np.moveaxis(signal.lfilter(coefficients, 1.0, long), -1, axis)

    nothing = answer(driven(b_, 0 * np.asarray(x)))
    of_b = answer(driven(b_dot / a0, x)) if np.ndim(b_dot) else nothing
    of_a = nothing
    if np.ndim(a_dot):
        moved = (a_dot - a_ * a_dot[0]) / a0
        of_a = answer(driven(-b_ * a_dot[0] / a0, x) - driven(moved, out))
    of_x = answer(driven(b_, x_dot)) if np.ndim(x_dot) else nothing
    if zi is None:
        return of_b, of_a, of_x, None
    of_zi = signal.lfilter(b_, a_, 0 * np.asarray(x), axis, zi_dot) if np.ndim(zi_dot) else nothing
    return of_b, of_a, of_x, of_zi


SOS = np.array([[0.3, 0.2, 0.1, 1.0, -0.4, 0.1], [0.5, -0.2, 0.3, 1.0, 0.3, 0.05]])


@reverse(signal.sosfilt, wrt=("sos", "x"), at=[(SOS, LONG), (SOS[:1], M), (SOS, M, 0)])
def sosfilt(g, y, sos, x, axis=-1):
    """The sections one after the other."""
    stages = [x]
    for section in sos:
        stages.append(signal.lfilter(section[:3], section[3:], stages[-1], axis))
    rows = []
    for i in range(len(sos) - 1, -1, -1):
        b_bar, a_bar, g, _ = lfilter(g, stages[i + 1], sos[i][:3], sos[i][3:], stages[i], axis)
        rows.insert(0, np.concatenate([b_bar, a_bar]))
    return unbroadcast(np.stack(rows), sos), unbroadcast(g, x)


@forward(signal.sosfilt)
def sosfilt_forward(sos_dot, x_dot, y, sos, x, axis=-1):
    of_x = signal.sosfilt(sos, x_dot, axis) if np.ndim(x_dot) else 0 * y
    of_sos, stage = 0 * np.asarray(x), x
    for i, section in enumerate(sos):
        after = signal.lfilter(section[:3], section[3:], stage, axis)
        of_sos = signal.lfilter(section[:3], section[3:], of_sos, axis)
        if np.ndim(sos_dot):
            parts = lfilter_forward(
                sos_dot[i][:3], sos_dot[i][3:], 0.0, 0.0, after, section[:3], section[3:], stage, axis
            )
            of_sos = of_sos + parts[0] + parts[1]
        stage = after
    return unbroadcast(of_sos, y), unbroadcast(of_x, y)


def extension_adjoint(g, n, edge, padtype):
    """The adjoint of extending the last axis by `edge` at both ends, as `filtfilt` does."""
    if edge == 0:
        return g
    head, body, tail = g[..., :edge], g[..., edge : edge + n] + 0, g[..., edge + n :]
    if padtype == "constant":
        body[..., 0] += np.sum(head, axis=-1)
        body[..., -1] += np.sum(tail, axis=-1)
        return body
    sign = -1 if padtype == "odd" else 1
    body[..., 1 : edge + 1] += sign * np.flip(head, -1)
    body[..., n - edge - 1 : n - 1] += sign * np.flip(tail, -1)
    if padtype == "odd":
        body[..., 0] += 2 * np.sum(head, axis=-1)
        body[..., -1] += 2 * np.sum(tail, axis=-1)
    return body


def settled_adjoint(g, sections):
    """The adjoint of sections that start as if the first element had always been there."""
    for b, a, state in reversed(sections):
        found = backwards(b, a, g)
        inner = backwards(1.0, a, g)
        found[..., 0] += a[0] * np.sum(inner[..., : len(state)] * state, axis=-1)
        g = found
    return g


def both_ways_adjoint(g, x, axis, edge, padtype, sections):
    n = np.shape(x)[axis]
    g = np.moveaxis(g, axis, -1)
    padding = [(0, 0)] * (g.ndim - 1) + [(edge, edge)]
    g = np.flip(settled_adjoint(np.flip(np.pad(g, padding), -1), sections), -1)
    g = settled_adjoint(g, sections)
    return unbroadcast(np.moveaxis(extension_adjoint(g, n, edge, padtype), -1, axis), x)


FORTH = [
    *[
        (B, A, T12),
        case(B, A, T12, padtype="even"),
        case(B, A, T12, padtype="constant"),
        case(B, A, T12, padtype=None),
    ],
    *[
        case(B, 2 * A, np.stack([T12, T12**2], 1), axis=0, padlen=3),
        case(np.array([0.3, 0.2]), np.array([1.0, -0.4]), T12),
    ],
]


@reverse(signal.filtfilt, wrt="x", linear=True, at=FORTH)
def filtfilt(g, y, b, a, x, axis=-1, padtype="odd", padlen=None, *, method="pad"):
    """The coefficients must be constant."""
    if method != "pad":
        raise NotImplementedError("the derivative of filtfilt with method='gust'")
    edge = 0 if padtype is None else 3 * max(len(a), len(b)) if padlen is None else padlen
    return both_ways_adjoint(
        g, x, axis, edge, padtype, [(np.asarray(b), np.asarray(a), signal.lfilter_zi(b, a))]
    )


@reverse(
    signal.sosfiltfilt,
    wrt="x",
    linear=True,
    at=[(SOS, generic(20)), case(SOS[:1], generic(2, 16), padtype="even")],
)
def sosfiltfilt(g, y, sos, x, axis=-1, padtype="odd", padlen=None):
    """The coefficients must be constant."""
    taps = 2 * len(sos) + 1 - min(np.sum(sos[:, 2] == 0), np.sum(sos[:, 5] == 0))
    edge = 0 if padtype is None else 3 * taps if padlen is None else padlen
    states = signal.sosfilt_zi(sos)
    sections = [(section[:3], section[3:], state) for section, state in zip(sos, states, strict=True)]
    return both_ways_adjoint(g, x, axis, edge, padtype, sos_sections(sections))


def sos_sections(sections):
    """`sosfilt_zi` scales states for the cascade's input; here each is for its section's own."""
    scale, found = 1.0, []
    for b, a, state in sections:
        found.append((b, a, state / scale))
        scale = scale * np.sum(b) / np.sum(a)
    return found


@reverse(
    signal.detrend,
    linear=True,
    at=[LONG, case(LONG, type="constant"), case(M, axis=0), case(T12, bp=np.array([4, 8])), case(T12, bp=5)],
)
def detrend(g, y, data, axis=-1, type="linear", bp=0):
    """A projection, which is its own adjoint."""
    return signal.detrend(g, axis, type, bp)


MODES = {"mirror": "reflect", "constant": "constant", "nearest": "edge", "wrap": "wrap"}


@reverse(
    signal.savgol_filter,
    linear=True,
    at=[
        *[(LONG, 5, 2), (LONG, 5, 2, 1, 0.5), case(M, 3, 1, axis=0)],
        *[case(LONG, 5, 2, mode=mode) for mode in MODES],
    ],
)
def savgol_filter(g, y, x, window_length, polyorder, deriv=0, delta=1.0, axis=-1, mode="interp"):
    """A correlation; in mode "interp" the ends go by the matrix of the fit to their windows."""
    g = np.moveaxis(g, axis, -1)
    n, half = g.shape[-1], window_length // 2
    kernel = signal.savgol_coeffs(window_length, polyorder, deriv, delta).astype(g.real.dtype)
    if mode == "interp":
        ends = signal.savgol_filter(np.eye(window_length), window_length, polyorder, deriv, delta, 0).astype(
            g.real.dtype
        )
        inner = g[..., half : n - half]
        found = spread_kernel(inner, kernel[::-1])
        found[..., :window_length] += g[..., :half] @ ends[:half]
        found[..., n - window_length :] += g[..., n - half :] @ ends[window_length - half :]
    else:
        full = spread_kernel(g, kernel[::-1])
        widths = [(0, 0)] * (g.ndim - 1) + [(half, window_length - 1 - half)]
        found = unpad(full, np.zeros(g.shape, g.dtype), widths, MODES[mode])
    return unbroadcast(np.moveaxis(found, -1, axis), x)


def spread_kernel(g, kernel):
    """The full convolution of `g` with the kernel along the last axis: out[i + k] gets g[i] kernel[k]."""
    out = np.zeros((*g.shape[:-1], g.shape[-1] + len(kernel) - 1), g.dtype)
    for k, weight in enumerate(kernel):
        out[..., k : k + g.shape[-1]] += weight * g
    return out


# --- resampling ---------------------------------------------------------------------------------------------


@reverse(
    signal.upfirdn,
    wrt=("h", "x"),
    at=[
        (SHORT, LONG),
        (SHORT, LONG, 2),
        (EVEN, LONG, 2, 3),
        (SHORT, LONG, 1, 2),
        (SHORT, M, 2, 1, 0),
        (EVEN, M, 3, 2),
    ],
)
def upfirdn(g, y, h, x, up=1, down=1, axis=-1):
    """y[m] = sum over i of h[m down - i up] x[i]."""
    g, x_last = np.moveaxis(g, axis, -1), np.moveaxis(x, axis, -1)
    n, taps = x_last.shape[-1], np.size(h)
    lag = np.arange(g.shape[-1])[:, None] * down - np.arange(n) * up
    return unbroadcast(taps_adjoint(g, x_last, lag, taps), h), unbroadcast(
        np.moveaxis(signal_adjoint(g, h, n, up, down), -1, axis), x
    )


def signal_adjoint(g, h, n, up, down):
    """x_bar[i] = sum over m of h[m down - i up] g[m]."""
    taps = np.size(h)
    found = signal.upfirdn(np.flip(h), g, down, 1)[..., taps - 1 :: up][..., :n]
    return np.concatenate([found, np.zeros((*g.shape[:-1], n - found.shape[-1]), found.dtype)], axis=-1)


def taps_adjoint(g, x, lag, taps):
    """h_bar[k] = sum of g[m] x[i] where m down - i up is k."""
    inside = (lag >= 0) & (lag < taps)
    products = np.reshape(g, (-1, g.shape[-1])).T @ np.reshape(x, (-1, x.shape[-1]))
    return scatter(products[inside], np.zeros(taps, products.dtype), lag[inside])


@forward(signal.upfirdn)
def upfirdn_forward(h_dot, x_dot, y, h, x, up=1, down=1, axis=-1):
    return (
        signal.upfirdn(h_dot, x, up, down, axis) if np.ndim(h_dot) else 0 * y,
        signal.upfirdn(h, x_dot, up, down, axis) if np.ndim(x_dot) else 0 * y,
    )


def by_matrix(g, x, axis, function):
    """The adjoint of a linear map along one axis, by way of its matrix: the images of the unit vectors."""
    matrix = function(np.eye(np.shape(x)[axis]))
    return unbroadcast(np.moveaxis(np.tensordot(matrix, np.moveaxis(g, axis, 0), (0, 0)), 0, axis), x)


@reverse(
    signal.resample,
    linear=True,
    at=[(LONG, 5), (LONG, 10), (EVEN, 2), (EVEN, 7), (generic(6), 4), case(M, 6, axis=1), (M, 3)],
)
def resample(g, y, x, num, *, axis=0):
    """Resampling back, with a factor; the highest frequency, if split between signs, is made good."""
    n = np.shape(x)[axis]
    g = np.moveaxis(g, axis, -1)
    found = num / n * signal.resample(g, n, axis=-1)
    low = min(n, num)
    if low % 2 == 0 and n != num:
        wave = np.cos(math.pi * low / num * np.arange(num)).astype(g.real.dtype)
        back = np.cos(math.pi * low / n * np.arange(n)).astype(g.real.dtype)
        part = np.expand_dims(np.sum(g * wave, axis=-1), -1) * back / n
        found = found + part if num < n else found - part
    return unbroadcast(np.moveaxis(found, -1, axis), x)


@reverse(
    signal.resample_poly,
    linear=True,
    at=[(LONG, 3, 2), case(M, 1, 2, axis=1), case(LONG, 3, 2, padtype="line")],
)
def resample_poly(g, y, x, up, down, axis=0, window=("kaiser", 5.0), padtype="constant"):
    """By way of the matrix of the map."""
    matrix = signal.resample_poly(np.eye(np.shape(x)[axis]), up, down, window=window, padtype=padtype)
    return unbroadcast(np.moveaxis(np.tensordot(matrix, np.moveaxis(g, axis, 0), (0, 0)), 0, axis), x)


@reverse(
    signal.decimate,
    linear=True,
    at=[case(generic(30), 2, 3, "fir"), case(generic(30), 2, 3), case(generic(30), 3, zero_phase=False)],
)
def decimate(g, y, x, q, n=None, ftype="iir", axis=-1, zero_phase=True):
    """By way of the matrix of the map."""
    matrix = signal.decimate(np.eye(np.shape(x)[axis]), q, n, ftype, 0, zero_phase)
    return unbroadcast(np.moveaxis(np.tensordot(matrix, np.moveaxis(g, axis, 0), (0, 0)), 0, axis), x)


# --- spectra ------------------------------------------------------------------------------------------------


@reverse(signal.hilbert, linear=True, at=[LONG, EVEN, (LONG, 9), case(M, axis=0)])
def hilbert(g, y, x, N=None, axis=-1):
    """The transposed maps in the opposite order."""
    spectrum = sfft.ifft(g, axis=axis)
    n = spectrum.shape[axis]
    kept = np.zeros(n, spectrum.real.dtype)
    kept[0] = 1
    kept[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        kept[n // 2] = 1
    kept = np.reshape(kept, [-1 if i == axis % g.ndim else 1 for i in range(g.ndim)])
    return fit(sfft.fft(spectrum * kept, axis=axis), x)


@reverse(
    signal.czt, linear=True, wrt="x", at=[LONG, (LONG, 5), (M, 4, np.exp(0.3j), 1.1), case(M, 3, axis=0)]
)
def czt(g, y, x, m=None, w=None, a=1 + 0j, *, axis=-1):
    """y[k] is the sum of x[n] a^-n w^(n k): the same transform with n and k exchanged."""
    n, m = np.shape(x)[axis], np.shape(y)[axis]
    step = np.exp(-2j * math.pi / m) if w is None else w
    powers = np.asarray(a, complex) ** -np.arange(n)
    powers = np.reshape(powers, [-1 if i == axis % np.ndim(x) else 1 for i in range(np.ndim(x))])
    return unbroadcast(signal.czt(g, n, step, axis=axis) * powers, x)


@reverse(
    signal.zoom_fft,
    linear=True,
    at=[(LONG, 0.7), (LONG, [0.2, 0.9], 5), case(M, [0.2, 0.9], 5, endpoint=True, axis=0)],
)
def zoom_fft(g, y, x, fn, m=None, *, fs=2, endpoint=False, axis=-1):
    """A chirp z-transform between the two frequencies."""
    m = np.shape(y)[axis]
    first, last = (0.0, fn) if np.ndim(fn) == 0 else fn
    step = (last - first) / (m - 1 if endpoint else m)
    a, w = np.exp(2j * math.pi * first / fs), np.exp(-2j * math.pi * step / fs)
    return czt(g, y, x, m, w, a, axis=axis)


@reverse(
    signal.freqz,
    wrt=("b", "a"),
    at=[SHORT, case(SHORT, A, 5), case(SHORT, A, 4, whole=True), case(B, A, worN=[0.1, 0.5])],
)
def freqz(g, y, b, a=1, worN=512, whole=False, *, fs=2 * math.pi):
    """The frequencies are constant; the response is a quotient of polynomials in exp(-i w)."""
    b, a = np.asarray(b), np.asarray(a)
    z = np.exp(-2j * math.pi / fs * y[0])
    scaled = g[1] / np.polyval(np.flip(np.atleast_1d(a)), z)
    return (
        unbroadcast(np.vander(z, np.size(b), True).T @ scaled, b),
        unbroadcast(np.reshape(-np.vander(z, np.size(a), True).T @ (scaled * y[1]), np.shape(a)), a),
    )


@forward(signal.freqz)
def freqz_forward(b_dot, a_dot, y, b, a=1, worN=512, whole=False, *, fs=2 * math.pi):
    z = np.exp(-2j * math.pi / fs * y[0])
    below = np.polyval(np.flip(np.atleast_1d(a)), z)
    of_b = np.polyval(np.flip(np.atleast_1d(b_dot)), z) / below
    of_a = -np.polyval(np.flip(np.atleast_1d(a_dot)), z) * y[1] / below
    return (0 * y[0], unbroadcast(of_b, y[1])), (0 * y[0], unbroadcast(of_a, y[1]))


# --- order statistics, windows, waves -----------------------------------------------------------------------


@reverse(signal.medfilt, at=[(LONG, 3), (M, 3), (M, (1, 3)), LONG])
def medfilt(g, y, volume, kernel_size=None):
    """The border is 0; each result passes its cotangent to the element that it is."""
    return unbroadcast(scatter(*median_sources(g, volume, kernel_size)), volume)


def median_places(volume, kernel_size):
    """The flat index of the median of each window; -1 where it is in the border."""
    sizes = np.broadcast_to(3 if kernel_size is None else kernel_size, (np.ndim(volume),))
    widths = [(k // 2, k // 2) for k in sizes]
    padded = np.pad(volume, widths)
    places = np.pad(np.arange(np.size(volume)).reshape(np.shape(volume)), widths, constant_values=-1)
    axes = tuple(range(np.ndim(volume)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, tuple(sizes), axes)
    sources = np.lib.stride_tricks.sliding_window_view(places, tuple(sizes), axes)
    flat = np.reshape(windows, (*np.shape(volume), -1))
    middle = np.argsort(flat, axis=-1, kind="stable")[..., flat.shape[-1] // 2]
    return np.take_along_axis(np.reshape(sources, flat.shape), middle[..., None], -1)[..., 0]


def median_sources(g, volume, kernel_size):
    places = median_places(volume, kernel_size)
    return g[places >= 0], np.asarray(volume), np.unravel_index(places[places >= 0], np.shape(volume))


@forward(signal.medfilt)
def medfilt_forward(volume_dot, y, volume, kernel_size=None):
    places = median_places(volume, kernel_size)
    return np.where(places >= 0, np.ravel(volume_dot)[np.maximum(places, 0)], 0)


@reverse(signal.windows.gaussian, wrt="std", at=[(5, 1.3), case(6, 0.7, sym=False)])
def gaussian_window(g, y, M, std, sym=True):
    return unbroadcast(np.sum(-2 * g * y * np.log(y)) / std, std)


@forward(signal.windows.gaussian)
def gaussian_window_forward(std_dot, y, M, std, sym=True):
    return -2 * y * np.log(y) / std * std_dot


@reverse(signal.windows.exponential, wrt="tau", at=[case(5, None, 1.3), case(6, 1.5, 0.7, False)])
def exponential_window(g, y, M, center=None, tau=1.0, sym=True):
    return unbroadcast(np.sum(-g * y * np.log(y)) / tau, tau)


@forward(signal.windows.exponential)
def exponential_window_forward(tau_dot, y, M, center=None, tau=1.0, sym=True):
    return -y * np.log(y) / tau * tau_dot


@reverse(signal.windows.general_gaussian, wrt="sig", at=[(5, 1.5, 1.3), case(6, 1.2, 0.7, sym=False)])
def general_gaussian_window(g, y, M, p, sig, sym=True):
    return unbroadcast(np.sum(-2 * p * g * y * np.log(y)) / sig, sig)


@forward(signal.windows.general_gaussian)
def general_gaussian_window_forward(sig_dot, y, M, p, sig, sym=True):
    return -2 * p * y * np.log(y) / sig * sig_dot


@reverse(signal.windows.kaiser, wrt="beta", at=[(5, 1.3), case(6, 2.7, sym=False)])
def kaiser_window(g, y, M, beta, sym=True):
    return unbroadcast(np.sum(g * kaiser_slope(y, M, beta, sym)), beta)


@forward(signal.windows.kaiser)
def kaiser_window_forward(beta_dot, y, M, beta, sym=True):
    return beta_dot * kaiser_slope(y, M, beta, sym)


def kaiser_slope(y, M, beta, sym):
    """The window is i0(beta r) / i0(beta), with r a half circle over the window."""
    n = M if sym else M + 1
    r = np.sqrt(np.maximum(1 - (2 * np.arange(M) / (n - 1) - 1) ** 2, 0))
    return (r * bessel_i(1, beta * r) - y * bessel_i(1, beta)) / np.i0(beta)


@elementwise(signal.sawtooth, shape="where", at=[0.7, LONG, (LONG, 0.3)])
def sawtooth(y, t, width=1.0):
    """Where it jumps the slope is that on the right; width 0 or 1 has one slope only."""
    return sawtooth_slopes(t, width)[0], sawtooth_slopes(t, width)[1]


def sawtooth_slopes(t, width):
    phase = np.mod(t, 2 * math.pi) / (2 * math.pi)
    rising = phase < width
    up, down = np.where(np.equal(width, 0), 1, width), np.where(np.equal(width, 1), 1, 1 - width)
    slope = np.where(rising, 1 / up, -1 / down) / math.pi
    of_width = np.where(rising, -2 * phase / up**2, 2 * (1 - phase) / down**2)
    return slope, of_width


@elementwise(
    signal.chirp,
    at=[(0.7, 1.0, 2.0, 3.0), (LONG, 1.0, 2.0, 3.0), case(positive(3), 1.0, 2.0, 3.0, method="quadratic")],
)
def chirp(y, t, f0, t1, f1, *, method="linear", phi=0, vertex_zero=True):
    """A cosine, whose slope is minus the sine, a quarter period later, times that of the phase."""
    if method == "linear":
        return (
            chirp_sine(t, f0, t1, f1, method, phi, vertex_zero) * (f0 + (f1 - f0) * t / t1),
            chirp_sine(t, f0, t1, f1, method, phi, vertex_zero) * (t - t * t / (2 * t1)),
            chirp_sine(t, f0, t1, f1, method, phi, vertex_zero) * -(f1 - f0) * t * t / (2 * t1 * t1),
            chirp_sine(t, f0, t1, f1, method, phi, vertex_zero) * t * t / (2 * t1),
        )
    found = chirp_slopes(t, f0, t1, f1, method, phi, vertex_zero)
    return found


def chirp_sine(t, f0, t1, f1, method, phi, vertex_zero):
    """-2 pi sin(phase)"""
    return 2 * math.pi * signal.chirp(t, f0, t1, f1, method=method, phi=phi + 90, vertex_zero=vertex_zero)


def chirp_slopes(t, f0, t1, f1, method, phi, vertex_zero):
    if method not in ("quadratic", "quad", "q"):
        raise NotImplementedError(f"the derivative of chirp with method={method!r}")
    sine = chirp_sine(t, f0, t1, f1, method, phi, vertex_zero)
    beta, rest = (f1 - f0) / t1**2, t1 - t
    if vertex_zero:
        of_beta, of_t1_direct = t**3 / 3, 0.0
        instant, of_f0, of_f1 = f0 + beta * t * t, t, 0.0
    else:
        of_beta, of_t1_direct = (rest**3 - t1**3) / 3, beta * (rest**2 - t1**2)
        instant, of_f0, of_f1 = f1 - beta * rest**2, 0.0, t
    return (
        sine * instant,
        sine * (of_f0 - of_beta / t1**2),
        sine * (of_t1_direct - 2 * beta / t1 * of_beta),
        sine * (of_f1 + of_beta / t1**2),
    )


nondifferentiable(signal.square, signal.argrelextrema, signal.argrelmax, signal.argrelmin, signal.find_peaks)
nondifferentiable(signal.choose_conv_method, signal.correlation_lags)


@reverse(signal.sepfir2d, wrt=("input", "hrow", "hcol"), at=[(M, SHORT, generic(3)), (M, generic(5), SHORT)])
def sepfir2d(g, y, input, hrow, hcol):
    """Convolutions along the rows and columns of an image that is mirrored at its ends."""
    between = signal.sepfir2d(input, hrow, np.ones(1, np.result_type(hrow)))
    g, col_bar = mirrored_adjoint(g.T, between.T, hcol)
    image, row_bar = mirrored_adjoint(g.T, np.asarray(input), hrow)
    return unbroadcast(image, input), unbroadcast(row_bar, hrow), unbroadcast(col_bar, hcol)


def mirrored_adjoint(g, x, weights):
    """The cotangents of rows and weights for a convolution along the mirrored rows."""
    half = np.size(weights) // 2
    around = np.pad(x, ((0, 0), (half, half)), "symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(around, np.size(weights), 1)
    full = spread_kernel(g, np.flip(weights))
    return unpad(full, x, ((0, 0), (half, half)), "symmetric"), np.flip(np.tensordot(g, windows, 2))


@forward(signal.sepfir2d)
def sepfir2d_forward(input_dot, hrow_dot, hcol_dot, y, input, hrow, hcol):
    return (
        signal.sepfir2d(input_dot, hrow, hcol) if np.ndim(input_dot) else 0 * y,
        signal.sepfir2d(input, hrow_dot, hcol) if np.ndim(hrow_dot) else 0 * y,
        signal.sepfir2d(input, hrow, hcol_dot) if np.ndim(hcol_dot) else 0 * y,
    )


@reverse(signal.wiener, at=[(LONG, 3), LONG, case(M, (3, 3)), (LONG, 3, 0.5), case(M, 3, noise=0.2)])
def wiener(g, y, im, mysize=None, noise=None):
    """The local mean, plus the deviation from it times 1 - noise / variance where that is positive."""
    window, mean, variance, level = local_statistics(im, mysize, noise)
    noisy = variance < level
    safe = np.where(noisy, 1, variance)
    kept = np.where(noisy, 0, g * (1 - level / safe))
    above = np.where(noisy, 0, g * (im - mean) / safe)
    variance_bar = above * level / safe
    if noise is None:
        variance_bar = variance_bar - np.sum(above) / np.size(im)
    mean_bar = g - kept - 2 * mean * variance_bar
    local = correlate(mean_bar, None, im, window, "same")[0]
    return unbroadcast(kept + local + 2 * im * correlate(variance_bar, None, im, window, "same")[0], im)


def local_statistics(im, mysize, noise):
    sizes = np.broadcast_to(3 if mysize is None else mysize, (np.ndim(im),))
    window = np.full(sizes, 1 / np.prod(sizes))
    mean = signal.correlate(im, window, "same")
    variance = signal.correlate(im**2, window, "same") - mean**2
    return window, mean, variance, np.mean(variance) if noise is None else noise


@forward(signal.wiener)
def wiener_forward(im_dot, y, im, mysize=None, noise=None):
    window, mean, variance, level = local_statistics(im, mysize, noise)
    noisy = variance < level
    safe = np.where(noisy, 1, variance)
    mean_dot = signal.correlate(im_dot, window, "same")
    variance_dot = 2 * signal.correlate(im * im_dot, window, "same") - 2 * mean * mean_dot
    level_dot = np.mean(variance_dot) if noise is None else 0.0
    moved = (im_dot - mean_dot) * (1 - level / safe)
    moved = moved + (im - mean) * (level * variance_dot / safe**2 - level_dot / safe)
    return unbroadcast(mean_dot + np.where(noisy, 0, moved), y)


# --- short-time spectra -------------------------------------------------------------------------------------


class Segments:
    """How a real signal is cut into overlapping windowed segments, and their spectra."""

    def __init__(self, x, window, nperseg, noverlap, nfft, detrend, onesided, overlap=2):
        if np.iscomplexobj(x) or not onesided or detrend not in (False, None, "constant", "linear"):
            raise NotImplementedError(
                "the derivative of spectra that are two-sided, or with a detrend function"
            )
        n = np.shape(x)[-1]
        if isinstance(window, (str, tuple)):
            self.length = min(256, n) if nperseg is None else min(nperseg, n)
            self.window = signal.get_window(window, self.length)
        else:
            self.window = np.asarray(window)
            self.length = len(self.window)
        overlap = self.length // overlap if noverlap is None else noverlap
        self.nfft = self.length if nfft is None else nfft
        self.detrend, self.step, self.samples = detrend, self.length - overlap, n
        self.count = (n - overlap) // self.step

    def straight(self, segments):
        return signal.detrend(segments, type=self.detrend) if self.detrend else segments

    def transform(self, x):
        """The spectra of the segments: axes ..., segment, frequency."""
        segments = np.lib.stride_tricks.sliding_window_view(x, self.length, -1)[..., :: self.step, :][
            ..., : self.count, :
        ]
        return sfft.rfft(self.straight(segments) * self.window, self.nfft)

    def transposed(self, g):
        """The cotangent of the signal from that of the spectra."""
        segments = np.real(sfft.fft(g, self.nfft))[..., : self.length] * self.window
        segments = self.straight(np.ascontiguousarray(segments))
        out = np.zeros((*g.shape[:-2], self.samples), segments.dtype)
        for k in range(g.shape[-2]):
            out[..., k * self.step : k * self.step + self.length] += segments[..., k, :]
        return out

    def weights(self, fs, scaling):
        """What the products of spectra are multiplied by, for each frequency."""
        power = fs * np.sum(self.window**2) if scaling == "density" else np.sum(self.window) ** 2
        weights = np.full(self.nfft // 2 + 1, 2 / power)
        weights[0] = 1 / power
        if self.nfft % 2 == 0:
            weights[-1] = 1 / power
        return weights


def spectral_axes(g, axis, rank):
    """The cotangent of an average spectrum, for each segment: axes ..., 1, frequency."""
    return np.expand_dims(np.moveaxis(g, axis, -1), -2)


SPECTRA = [
    case(T12, nperseg=4),
    case(T12, 2.0, nperseg=5, nfft=8, scaling="spectrum"),
    case(np.stack([T12, T12**2], 1), nperseg=6, axis=0),
]


def cut(x, axis, window, nperseg, noverlap, nfft, detrend, onesided, overlap=2):
    last = np.moveaxis(x, axis, -1)
    return last, Segments(last, window, nperseg, noverlap, nfft, detrend, onesided, overlap)


@reverse(
    signal.welch,
    at=[*SPECTRA, case(T12, nperseg=4, detrend=False), case(T12, nperseg=6, detrend="linear"), T12],
)
def welch(
    g,
    y,
    x,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    detrend="constant",
    return_onesided=True,
    scaling="density",
    axis=-1,
):
    """The mean over the segments of squared spectra."""
    last, parts = cut(x, axis, window, nperseg, noverlap, nfft, detrend, return_onesided)
    spectra = parts.transform(last)
    inner = (
        2
        * spectral_axes(g[1], axis, np.ndim(x))
        * parts.weights(fs, scaling)
        * np.conj(spectra)
        / parts.count
    )
    return unbroadcast(np.moveaxis(parts.transposed(inner), -1, axis), x)


@forward(signal.welch)
def welch_forward(
    x_dot,
    y,
    x,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    detrend="constant",
    return_onesided=True,
    scaling="density",
    axis=-1,
):
    last, parts = cut(x, axis, window, nperseg, noverlap, nfft, detrend, return_onesided)
    moved = np.real(np.conj(parts.transform(last)) * parts.transform(np.moveaxis(x_dot, axis, -1)))
    found = 2 * np.mean(moved, axis=-2) * parts.weights(fs, scaling)
    return 0 * y[0], unbroadcast(np.moveaxis(found, -1, axis), y[1])


@reverse(
    signal.csd,
    wrt=("x", "y"),
    at=[case(T12, T12**2, nperseg=4), case(T12, generic(12, seed=3), 2.0, nperseg=6, scaling="spectrum")],
)
def csd(
    g,
    z,
    x,
    y,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    detrend="constant",
    return_onesided=True,
    scaling="density",
    axis=-1,
):
    """The mean over the segments of conj(X) Y."""
    x_last, parts = cut(x, axis, window, nperseg, noverlap, nfft, detrend, return_onesided)
    y_last = np.moveaxis(y, axis, -1)
    scaled = spectral_axes(g[1], axis, np.ndim(x)) * parts.weights(fs, scaling) / parts.count
    x_bar = parts.transposed(np.conj(scaled * parts.transform(y_last)))
    y_bar = parts.transposed(scaled * np.conj(parts.transform(x_last)))
    return unbroadcast(np.moveaxis(x_bar, -1, axis), x), unbroadcast(np.moveaxis(y_bar, -1, axis), y)


@forward(signal.csd)
def csd_forward(
    x_dot,
    y_dot,
    z,
    x,
    y,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    detrend="constant",
    return_onesided=True,
    scaling="density",
    axis=-1,
):
    x_last, parts = cut(x, axis, window, nperseg, noverlap, nfft, detrend, return_onesided)
    first, second = parts.transform(x_last), parts.transform(np.moveaxis(y, axis, -1))
    found = []
    for product in (
        np.conj(parts.transform(np.moveaxis(x_dot, axis, -1))) * second if np.ndim(x_dot) else 0 * second,
        np.conj(first) * parts.transform(np.moveaxis(y_dot, axis, -1)) if np.ndim(y_dot) else 0 * second,
    ):
        mean = np.mean(product, axis=-2) * parts.weights(fs, scaling)
        found.append((0 * z[0], unbroadcast(np.moveaxis(mean, -1, axis), z[1])))
    return found[0], found[1]


@reverse(
    signal.periodogram,
    at=[
        T12,
        case(T12, 2.0, "hann", scaling="spectrum"),
        case(np.stack([T12, T12**2], 1), axis=0),
        case(T12, nfft=16),
    ],
)
def periodogram(
    g,
    y,
    x,
    fs=1.0,
    window="boxcar",
    nfft=None,
    detrend="constant",
    return_onesided=True,
    scaling="density",
    axis=-1,
):
    """The spectrum of one segment, the whole signal."""
    return welch(g, y, x, fs, window, np.shape(x)[axis], 0, nfft, detrend, return_onesided, scaling, axis)


@forward(signal.periodogram)
def periodogram_forward(
    x_dot,
    y,
    x,
    fs=1.0,
    window="boxcar",
    nfft=None,
    detrend="constant",
    return_onesided=True,
    scaling="density",
    axis=-1,
):
    return welch_forward(
        x_dot, y, x, fs, window, np.shape(x)[axis], 0, nfft, detrend, return_onesided, scaling, axis
    )


@reverse(signal.spectrogram, at=[case(T12, nperseg=4), case(T12, nperseg=6, noverlap=2, scaling="spectrum")])
def spectrogram(
    g,
    y,
    x,
    fs=1.0,
    window=("tukey", 0.25),
    nperseg=None,
    noverlap=None,
    nfft=None,
    detrend="constant",
    return_onesided=True,
    scaling="density",
    axis=-1,
):
    """The squared spectra of the segments, which lie along the last axis."""
    last, parts = cut(x, axis, window, nperseg, noverlap, nfft, detrend, return_onesided, 8)
    placed = np.moveaxis(np.moveaxis(g[2], -1, 0), axis, -1)
    inner = 2 * np.moveaxis(placed, 0, -2) * parts.weights(fs, scaling) * np.conj(parts.transform(last))
    return unbroadcast(np.moveaxis(parts.transposed(inner), -1, axis), x)


@forward(signal.spectrogram)
def spectrogram_forward(
    x_dot,
    y,
    x,
    fs=1.0,
    window=("tukey", 0.25),
    nperseg=None,
    noverlap=None,
    nfft=None,
    detrend="constant",
    return_onesided=True,
    scaling="density",
    axis=-1,
):
    last, parts = cut(x, axis, window, nperseg, noverlap, nfft, detrend, return_onesided, 8)
    moved = np.real(np.conj(parts.transform(last)) * parts.transform(np.moveaxis(x_dot, axis, -1)))
    found = np.moveaxis(np.moveaxis(2 * moved * parts.weights(fs, scaling), -2, 0), -1, axis)
    return 0 * y[0], 0 * y[1], unbroadcast(np.moveaxis(found, 0, -1), y[2])


@reverse(
    signal.stft,
    at=[
        case(T12, nperseg=4),
        case(T12, nperseg=5, boundary=None),
        case(T12, nperseg=4, noverlap=3, scaling="psd"),
    ],
)
def stft(
    g,
    y,
    x,
    fs=1.0,
    window="hann",
    nperseg=256,
    noverlap=None,
    nfft=None,
    detrend=False,
    return_onesided=True,
    boundary="zeros",
    padded=True,
    axis=-1,
    scaling="spectrum",
):
    """Frequencies and times are constant; the segments lie along the last axis."""
    last = np.moveaxis(x, axis, -1)
    edge, tail, parts = stft_parts(
        last, window, nperseg, noverlap, nfft, detrend, return_onesided, boundary, padded
    )
    placed = np.moveaxis(np.moveaxis(np.moveaxis(g[2], -1, 0), axis, -1), 0, -2)
    found = parts.transposed(placed * stft_scale(parts, fs, scaling))
    return unbroadcast(np.moveaxis(found[..., edge : edge + np.shape(last)[-1]], -1, axis), x)


@forward(signal.stft)
def stft_forward(
    x_dot,
    y,
    x,
    fs=1.0,
    window="hann",
    nperseg=256,
    noverlap=None,
    nfft=None,
    detrend=False,
    return_onesided=True,
    boundary="zeros",
    padded=True,
    axis=-1,
    scaling="spectrum",
):
    moved = signal.stft(
        x_dot, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, boundary, padded, axis, scaling
    )
    return 0 * y[0], 0 * y[1], moved[2]


def stft_scale(parts, fs, scaling):
    return 1 / np.sum(parts.window) if scaling == "spectrum" else 1 / math.sqrt(fs * np.sum(parts.window**2))


def stft_parts(last, window, nperseg, noverlap, nfft, detrend, onesided, boundary, padded):
    """The widths of the zeros before and behind the signal, and how the whole is cut."""
    if boundary not in ("zeros", None):
        raise NotImplementedError(f"the derivative of stft with boundary={boundary!r}")
    parts = Segments(last, window, nperseg, noverlap, nfft, detrend, onesided)
    edge = parts.length // 2 if boundary else 0
    n = np.shape(last)[-1] + 2 * edge
    rest = (-(n - parts.length) % parts.step) % parts.length if padded else 0
    parts.samples = n + rest
    parts.count = (parts.samples - parts.length) // parts.step + 1
    return edge, edge + rest, parts


@reverse(
    signal.istft,
    wrt="Zxx",
    at=[
        case(complexes(3, 4), nperseg=4),
        case(complexes(5, 3), 2.0, nperseg=8, boundary=False, scaling="psd"),
    ],
)
def istft(
    g,
    y,
    Zxx,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    input_onesided=True,
    boundary=True,
    time_axis=-1,
    freq_axis=-2,
    scaling="spectrum",
):
    """The segments are transformed back, windowed, added, and divided by the sum of the squared windows."""
    if not input_onesided:
        raise NotImplementedError("the derivative of istft for two-sided spectra")
    spectra = np.moveaxis(Zxx, (time_axis, freq_axis), (-2, -1))
    count, n = spectra.shape[-2], 2 * (spectra.shape[-1] - 1)
    length = (n if nfft is None else nfft) if nperseg is None else nperseg
    nfft = (length + 1 if nperseg is not None and nperseg == n + 1 else n) if nfft is None else nfft
    window = signal.get_window(window, length) if isinstance(window, (str, tuple)) else np.asarray(window)
    step = length - (length // 2 if noverlap is None else noverlap)
    total = length + (count - 1) * step
    norm = np.zeros(total)
    for k in range(count):
        norm[k * step : k * step + length] += window**2
    edge = length // 2 if boundary else 0
    whole = np.zeros((*g[1].shape[:-1], total), g[1].dtype)
    whole[..., edge : total - edge] = g[1]
    whole = whole / np.where(norm > 1e-10, norm, 1.0)
    segments = np.stack([whole[..., k * step : k * step + length] for k in range(count)], axis=-2) * window
    segments = segments * (np.sum(window) if scaling == "spectrum" else math.sqrt(fs * np.sum(window**2)))
    spectrum = half_weights(sfft.ifft(fitted(segments, nfft)), -1)
    return unbroadcast(
        np.moveaxis(fitted(spectrum, Zxx.shape[freq_axis]), (-2, -1), (time_axis, freq_axis)), Zxx
    )


@forward(signal.istft)
def istft_forward(
    Zxx_dot,
    y,
    Zxx,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    input_onesided=True,
    boundary=True,
    time_axis=-1,
    freq_axis=-2,
    scaling="spectrum",
):
    moved = signal.istft(
        Zxx_dot, fs, window, nperseg, noverlap, nfft, input_onesided, boundary, time_axis, freq_axis, scaling
    )
    return 0 * y[0], moved[1]


def fitted(x, n):
    """The last axis cut or filled with zeros to length n."""
    return x[..., :n] if x.shape[-1] >= n else with_end(x, n - x.shape[-1])
