"""Rules for discrete Fourier transforms (NumPy manual, `numpy.fft`).

The matrix of a Fourier transform is symmetric and cotangents are not conjugated, so the transform is its own
transpose: the cotangent is the same transform of `g`, cut or padded to the argument's shape. A real argument
gets the real part.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import complexes, generic
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import unbroadcast

X = generic(5)
E = generic(6)
Z = complexes(5)
M = generic(3, 4)
W = complexes(3, 4)
T = generic(2, 3, 4)
LINES = [
    X,
    E,
    Z,
    (X, 7),
    (X, 3),
    (M, 4, 0),
    case(W, axis=0),
    case(E, norm="ortho"),
    case(E, 8, norm="forward"),
]


@reverse(np.fft.fft, linear=True, at=LINES)
def fft(g, y, a, n=None, axis=-1, norm=None):
    return fit(np.fft.fft(g, None, axis, norm), a)


@reverse(np.fft.ifft, linear=True, at=LINES)
def ifft(g, y, a, n=None, axis=-1, norm=None):
    return fit(np.fft.ifft(g, None, axis, norm), a)


REAL = [
    X,
    E,
    (X, 7),
    (X, 3),
    (E, 8),
    (M, 5, 0),
    case(M, axis=0),
    case(E, norm="ortho"),
    case(X, norm="forward"),
]


@reverse(np.fft.rfft, linear=True, at=REAL)
def rfft(g, y, a, n=None, axis=-1, norm=None):
    return fit(np.fft.fft(g, a.shape[axis] if n is None else n, axis, norm), a)


HALF = [
    Z,
    (Z, 9),
    (Z, 7),
    (Z, 6),
    (Z, 12),
    (W, 5, 0),
    case(W, axis=0),
    case(Z, norm="ortho"),
    case(Z, 9, norm="forward"),
    X,
]


@reverse(np.fft.irfft, linear=True, at=HALF)
def irfft(g, y, a, n=None, axis=-1, norm=None):
    return fit(half_weights(np.fft.ifft(g, None, axis, norm), axis), a)


@reverse(np.fft.hfft, linear=True, at=HALF)
def hfft(g, y, a, n=None, axis=-1, norm=None):
    return fit(half_weights(np.fft.fft(g, None, axis, norm), axis), a)


@reverse(np.fft.ihfft, linear=True, at=REAL)
def ihfft(g, y, a, n=None, axis=-1, norm=None):
    return fit(np.fft.ifft(g, a.shape[axis] if n is None else n, axis, norm), a)


PLANES = [
    M,
    W,
    T,
    (M, (4, 3)),
    case(T, axes=(0, 2)),
    case(M, norm="ortho"),
    case(T, (2, 5), (0, 1), norm="forward"),
]


@reverse(np.fft.fft2, linear=True, at=PLANES)
def fft2(g, y, a, s=None, axes=(-2, -1), norm=None):
    return fit(np.fft.fftn(g, None, axes, norm), a)


@reverse(np.fft.ifft2, linear=True, at=PLANES)
def ifft2(g, y, a, s=None, axes=(-2, -1), norm=None):
    return fit(np.fft.ifftn(g, None, axes, norm), a)


@reverse(np.fft.fftn, linear=True, at=[*PLANES, case(M, axes=(0, 0)), X])
def fftn(g, y, a, s=None, axes=None, norm=None):
    return fit(np.fft.fftn(g, None, transformed(a, s, axes), norm), a)


@reverse(np.fft.ifftn, linear=True, at=[*PLANES, case(M, axes=(0, 0)), X])
def ifftn(g, y, a, s=None, axes=None, norm=None):
    return fit(np.fft.ifftn(g, None, transformed(a, s, axes), norm), a)


REAL_PLANES = [
    M,
    T,
    (M, (4, 3)),
    case(T, axes=(0, 2)),
    case(M, norm="ortho"),
    case(T, (2, 5), (0, 1), norm="forward"),
]


@reverse(np.fft.rfft2, linear=True, at=REAL_PLANES)
def rfft2(g, y, a, s=None, axes=(-2, -1), norm=None):
    return fit(np.fft.fftn(g, whole(g, a, s, axes), axes, norm), a)


@reverse(np.fft.rfftn, linear=True, at=[*REAL_PLANES, X])
def rfftn(g, y, a, s=None, axes=None, norm=None):
    axes = transformed(a, s, axes)
    return fit(np.fft.fftn(g, whole(g, a, s, axes), axes, norm), a)


HALF_PLANES = [
    W,
    (W, (4, 3)),
    (W, (3, 8)),
    case(W, axes=(1, 0)),
    case(W, norm="ortho"),
    case(complexes(2, 3, 4), (2, 5), (0, 1)),
]


@reverse(np.fft.irfft2, linear=True, at=HALF_PLANES)
def irfft2(g, y, a, s=None, axes=(-2, -1), norm=None):
    return fit(half_weights(np.fft.ifftn(g, None, axes, norm), axes[-1]), a)


@reverse(np.fft.irfftn, linear=True, at=[*HALF_PLANES, Z, complexes(2, 3, 4)])
def irfftn(g, y, a, s=None, axes=None, norm=None):
    axes = transformed(a, s, axes)
    return fit(half_weights(np.fft.ifftn(g, None, axes, norm), axes[-1]), a)


def transformed(a, s, axes):
    """The axes that an n-dimensional transform of `a` runs over."""
    if axes is not None:
        return (axes,) if np.ndim(axes) == 0 else axes
    return tuple(range(-np.size(s), 0)) if s is not None else tuple(range(np.ndim(a)))


def whole(g, a, s, axes):
    """The sizes of the full spectrum of which `g` is the cotangent's half along the last of `axes`."""
    return [*(g.shape[i] for i in axes[:-1]), a.shape[axes[-1]] if s is None else int(np.ravel(s)[-1])]


def half_weights(spectrum, axis):
    """The half of a spectrum that a real transform reads: twice, but its real ends once."""
    n = spectrum.shape[axis]
    weights = np.full(n // 2 + 1, 2.0, spectrum.real.dtype)
    weights[0] = 1.0
    if n % 2 == 0:
        weights[-1] = 1.0
    return np.moveaxis(np.moveaxis(spectrum, axis, -1)[..., : n // 2 + 1] * weights, -1, axis)


def fit(g, a):
    """`g` cut or padded with zeros to the shape of `a`; its real part where `a` is real."""
    g = g[tuple(slice(0, n) for n in a.shape)]
    if g.shape != a.shape:
        g = np.pad(g, [(0, n - m) for n, m in zip(a.shape, g.shape, strict=True)])
    return unbroadcast(g, a)


@reverse(np.fft.fftshift, linear=True, at=[X, M, (M, 1), (M, (0, 1))])
def fftshift(g, y, x, axes=None):
    return np.fft.ifftshift(g, axes)


@reverse(np.fft.ifftshift, linear=True, at=[X, M, (M, 1), (M, (0, 1))])
def ifftshift(g, y, x, axes=None):
    return np.fft.fftshift(g, axes)


@reverse(np.fft.fftfreq, np.fft.rfftfreq, wrt="d", at=[(5, 0.7), case(4, d=-1.3)])
def fftfreq(g, y, n, d=1.0, device=None):
    return unbroadcast(-np.sum(g * y) / d, d)


@forward(np.fft.fftfreq, np.fft.rfftfreq)
def fftfreq_forward(d_dot, y, n, d=1.0, device=None):
    return -d_dot * y / d
