"""Rules for Fourier, cosine and sine transforms (SciPy manual, `scipy.fft`).

The Fourier transforms go by the formulas beside NumPy's. A cosine or sine transform of type 1 to 4 is a real
matrix whose transpose is a transform of the same or the inverse type, with some end elements doubled or
halved.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np
from scipy import fft as sfft

from srcgrad.runtime.rules.fft import fit, half_weights, transformed, whole
from srcgrad.runtime.rules.inputs import complexes, generic, positive
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import unbroadcast

X, E, Z = generic(5), generic(6), complexes(5)
M, W, T = generic(3, 4), complexes(3, 4), generic(2, 3, 4)
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
REAL = [X, E, (X, 7), (X, 3), (E, 8), (M, 5, 0), case(E, norm="ortho"), case(X, norm="forward")]
HALF = [Z, (Z, 9), (Z, 7), (Z, 6), (Z, 12), (W, 5, 0), case(Z, norm="ortho"), case(Z, 9, norm="forward")]


@reverse(sfft.fft, linear=True, at=LINES)
def fft(g, y, x, n=None, axis=-1, norm=None, *, workers=None):
    return fit(sfft.fft(g, None, axis, norm), x)


@reverse(sfft.ifft, linear=True, at=LINES)
def ifft(g, y, x, n=None, axis=-1, norm=None, *, workers=None):
    return fit(sfft.ifft(g, None, axis, norm), x)


@reverse(sfft.rfft, linear=True, at=REAL)
def rfft(g, y, x, n=None, axis=-1, norm=None, *, workers=None):
    return fit(sfft.fft(g, x.shape[axis] if n is None else n, axis, norm), x)


@reverse(sfft.irfft, linear=True, at=HALF)
def irfft(g, y, x, n=None, axis=-1, norm=None, *, workers=None):
    return fit(half_weights(sfft.ifft(g, None, axis, norm), axis), x)


@reverse(sfft.hfft, linear=True, at=HALF)
def hfft(g, y, x, n=None, axis=-1, norm=None, *, workers=None):
    return fit(half_weights(sfft.fft(g, None, axis, norm), axis), x)


@reverse(sfft.ihfft, linear=True, at=REAL)
def ihfft(g, y, x, n=None, axis=-1, norm=None, *, workers=None):
    return fit(sfft.ifft(g, x.shape[axis] if n is None else n, axis, norm), x)


PLANES = [
    M,
    W,
    T,
    (M, (4, 3)),
    case(T, axes=(0, 2)),
    case(M, norm="ortho"),
    case(T, (2, 5), (0, 1), norm="forward"),
]
REAL_PLANES = [
    M,
    T,
    (M, (4, 3)),
    case(T, axes=(0, 2)),
    case(M, norm="ortho"),
    case(T, (2, 5), (0, 1), norm="forward"),
]
HALF_PLANES = [
    W,
    (W, (4, 3)),
    (W, (3, 8)),
    case(W, axes=(1, 0)),
    case(W, norm="ortho"),
    case(complexes(2, 3, 4), (2, 5), (0, 1)),
]


@reverse(sfft.fft2, linear=True, at=PLANES)
def fft2(g, y, x, s=None, axes=(-2, -1), norm=None, *, workers=None):
    return fit(sfft.fftn(g, None, axes, norm), x)


@reverse(sfft.ifft2, linear=True, at=PLANES)
def ifft2(g, y, x, s=None, axes=(-2, -1), norm=None, *, workers=None):
    return fit(sfft.ifftn(g, None, axes, norm), x)


@reverse(sfft.fftn, linear=True, at=[*PLANES, X])
def fftn(g, y, x, s=None, axes=None, norm=None, *, workers=None):
    return fit(sfft.fftn(g, None, transformed(x, s, axes), norm), x)


@reverse(sfft.ifftn, linear=True, at=[*PLANES, X])
def ifftn(g, y, x, s=None, axes=None, norm=None, *, workers=None):
    return fit(sfft.ifftn(g, None, transformed(x, s, axes), norm), x)


@reverse(sfft.rfft2, linear=True, at=REAL_PLANES)
def rfft2(g, y, x, s=None, axes=(-2, -1), norm=None, *, workers=None):
    return fit(sfft.fftn(g, whole(g, x, s, axes), axes, norm), x)


@reverse(sfft.rfftn, linear=True, at=[*REAL_PLANES, X])
def rfftn(g, y, x, s=None, axes=None, norm=None, *, workers=None):
    axes = transformed(x, s, axes)
    return fit(sfft.fftn(g, whole(g, x, s, axes), axes, norm), x)


@reverse(sfft.ihfft2, linear=True, at=REAL_PLANES)
def ihfft2(g, y, x, s=None, axes=(-2, -1), norm=None, *, workers=None):
    return fit(sfft.ifftn(g, whole(g, x, s, axes), axes, norm), x)


@reverse(sfft.ihfftn, linear=True, at=[*REAL_PLANES, X])
def ihfftn(g, y, x, s=None, axes=None, norm=None, *, workers=None):
    axes = transformed(x, s, axes)
    return fit(sfft.ifftn(g, whole(g, x, s, axes), axes, norm), x)


@reverse(sfft.irfft2, linear=True, at=HALF_PLANES)
def irfft2(g, y, x, s=None, axes=(-2, -1), norm=None, *, workers=None):
    return fit(half_weights(sfft.ifftn(g, None, axes, norm), axes[-1]), x)


@reverse(sfft.irfftn, linear=True, at=[*HALF_PLANES, Z])
def irfftn(g, y, x, s=None, axes=None, norm=None, *, workers=None):
    axes = transformed(x, s, axes)
    return fit(half_weights(sfft.ifftn(g, None, axes, norm), axes[-1]), x)


@reverse(sfft.hfft2, linear=True, at=HALF_PLANES)
def hfft2(g, y, x, s=None, axes=(-2, -1), norm=None, *, workers=None):
    return fit(half_weights(sfft.fftn(g, None, axes, norm), axes[-1]), x)


@reverse(sfft.hfftn, linear=True, at=[*HALF_PLANES, Z])
def hfftn(g, y, x, s=None, axes=None, norm=None, *, workers=None):
    axes = transformed(x, s, axes)
    return fit(half_weights(sfft.fftn(g, None, axes, norm), axes[-1]), x)


# --- cosine and sine transforms -----------------------------------------------------------------------------

INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
SWAPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def scaled_ends(x, factor, ends):
    """`x` with the given elements of its last axis multiplied."""
    factors = np.ones(x.shape[-1], x.real.dtype)
    factors[list(ends)] = factor
    return x * factors


def trigonometric_adjoint(g, transform, type, axis, norm, orthogonalize):
    """The transpose of `scipy.fft.dct` or `dst`, applied to `g` along `axis`."""
    g = np.moveaxis(g, axis, -1)
    n = g.shape[-1]
    cosine = transform is sfft.dct
    orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    period = 2 * (n + {True: -1, False: 1}[cosine]) if type == 1 else 2 * n
    g = g * {None: 1.0, "backward": 1.0, "ortho": 1 / math.sqrt(period), "forward": 1 / period}[norm]
    end = 0 if cosine else n - 1
    if type == 1 and cosine:
        ends = (0, n - 1)
        if orthogonal:
            g = scaled_ends(g, math.sqrt(0.5), ends)
        x = scaled_ends(transform(scaled_ends(g, 2.0, ends) / 2, 1, orthogonalize=False) * 2, 0.5, ends)
        x = scaled_ends(x, math.sqrt(2), ends) if orthogonal else x
    elif type == 2:
        g = scaled_ends(g, math.sqrt(0.5), (end,)) if orthogonal else g
        x = transform(scaled_ends(g, 2.0, (end,)), 3, orthogonalize=False)
    elif type == 3:
        x = scaled_ends(transform(g, 2, orthogonalize=False), 0.5, (end,))
        x = scaled_ends(x, math.sqrt(2), (end,)) if orthogonal else x
    else:
        x = transform(g, type, orthogonalize=False)
    return np.moveaxis(x, -1, axis)


TYPES = [
    *[(X, t) for t in (1, 2, 3, 4)],
    *[case(X, t, norm=norm) for t in (1, 2, 3, 4) for norm in ("ortho", "forward")],
    *[case(X, t, norm="ortho", orthogonalize=False) for t in (1, 2, 3)],
    *[(X, 2, 7), (X, 3, 4), (M, 2, None, 0), X, Z],
]


@reverse(sfft.dct, linear=True, at=TYPES)
def dct(g, y, x, type=2, n=None, axis=-1, norm=None, *, workers=None, orthogonalize=None):
    return fit(trigonometric_adjoint(g, sfft.dct, type, axis, norm, orthogonalize), x)


@reverse(sfft.idct, linear=True, at=TYPES)
def idct(g, y, x, type=2, n=None, axis=-1, norm=None, *, workers=None, orthogonalize=None):
    orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    return fit(trigonometric_adjoint(g, sfft.dct, INVERSE[type], axis, SWAPPED[norm], orthogonal), x)


@reverse(sfft.dst, linear=True, at=TYPES)
def dst(g, y, x, type=2, n=None, axis=-1, norm=None, *, workers=None, orthogonalize=None):
    return fit(trigonometric_adjoint(g, sfft.dst, type, axis, norm, orthogonalize), x)


@reverse(sfft.idst, linear=True, at=TYPES)
def idst(g, y, x, type=2, n=None, axis=-1, norm=None, *, workers=None, orthogonalize=None):
    orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    return fit(trigonometric_adjoint(g, sfft.dst, INVERSE[type], axis, SWAPPED[norm], orthogonal), x)


def all_axes(g, x, s, axes, transform, type, norm, orthogonalize):
    for axis in transformed(x, s, axes):
        g = trigonometric_adjoint(g, transform, type, axis, norm, orthogonalize)
    return fit(g, x)


GRIDS = [
    M,
    case(M, axes=0),
    case(M, s=4, axes=1),
    (M, 3),
    (T, 2, None, (0, 2)),
    (M, 2, (4, 3)),
    case(M, norm="ortho"),
]


@reverse(sfft.dctn, linear=True, at=GRIDS)
def dctn(g, y, x, type=2, s=None, axes=None, norm=None, *, workers=None, orthogonalize=None):
    return all_axes(g, x, s, axes, sfft.dct, type, norm, orthogonalize)


@reverse(sfft.idctn, linear=True, at=GRIDS)
def idctn(g, y, x, type=2, s=None, axes=None, norm=None, *, workers=None, orthogonalize=None):
    orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    return all_axes(g, x, s, axes, sfft.dct, INVERSE[type], SWAPPED[norm], orthogonal)


@reverse(sfft.dstn, linear=True, at=GRIDS)
def dstn(g, y, x, type=2, s=None, axes=None, norm=None, *, workers=None, orthogonalize=None):
    return all_axes(g, x, s, axes, sfft.dst, type, norm, orthogonalize)


@reverse(sfft.idstn, linear=True, at=GRIDS)
def idstn(g, y, x, type=2, s=None, axes=None, norm=None, *, workers=None, orthogonalize=None):
    orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    return all_axes(g, x, s, axes, sfft.dst, INVERSE[type], SWAPPED[norm], orthogonal)


# --- Hankel transforms --------------------------------------------------------------------------------------


@reverse(sfft.fht, wrt="a", linear=True, at=[(positive(6), 0.1, 0.5), (positive(2, 6), 0.1, 0.5, 0.2, 0.1)])
def fht(g, y, a, dln, mu, offset=0.0, bias=0.0):
    """By way of the matrix of the transform."""
    return fit(g @ sfft.fht(np.eye(np.shape(a)[-1]), dln, mu, offset, bias).T, a)


@reverse(sfft.ifht, wrt="A", linear=True, at=[(positive(6), 0.1, 0.5), (positive(2, 6), 0.1, 0.5, 0.2, 0.1)])
def ifht(g, y, A, dln, mu, offset=0.0, bias=0.0):
    """By way of the matrix of the transform."""
    return fit(g @ sfft.ifht(np.eye(np.shape(A)[-1]), dln, mu, offset, bias).T, A)


nondifferentiable(sfft.next_fast_len, sfft.prev_fast_len, sfft.get_workers, sfft.set_workers, sfft.fhtoffset)


@reverse(sfft.fftshift, linear=True, at=[X, M, (M, 1)])
def fftshift(g, y, x, axes=None):
    return np.fft.ifftshift(g, axes)


@reverse(sfft.ifftshift, linear=True, at=[X, M, (M, 1)])
def ifftshift(g, y, x, axes=None):
    return np.fft.fftshift(g, axes)


@reverse(sfft.fftfreq, sfft.rfftfreq, wrt="d", at=[(5, 0.7), case(4, d=-1.3)])
def fftfreq(g, y, n, d=1.0, *, xp=None, device=None):
    return unbroadcast(-np.sum(g * y) / d, d)


@forward(sfft.fftfreq, sfft.rfftfreq)
def fftfreq_forward(d_dot, y, n, d=1.0, *, xp=None, device=None):
    return -d_dot * y / d
