"""Rules for filters, interpolation and measurements on images of any dimension (SciPy manual,
`scipy.ndimage`).

A filter is a correlation of the image with its border: its adjoint spreads the cotangent with the same
weights and then adds the border's part to the elements that the border was copied from.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np
from scipy import ndimage, signal

from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import ratio, ties, unbroadcast, unpad

LINE, IMAGE, CUBE = generic(7), generic(4, 5), generic(3, 4, 3)
KERNEL, ROW = generic(3, 2, seed=1), generic(3, seed=1)
BORDERS = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "constant": "constant",
    "grid-constant": "constant",
    "nearest": "edge",
    "mirror": "reflect",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}
"""The modes of `np.pad` that make the borders of `scipy.ndimage`."""


def per_axis(option, rank):
    """An option that is given once, or for each axis."""
    return [option] * rank if isinstance(option, str) or np.ndim(option) == 0 else list(option)


def border(sizes, origins):
    """How wide the border is that a correlation sees before and after each axis."""
    before = [size // 2 + origin for size, origin in zip(sizes, origins, strict=True)]
    return [(b, size - 1 - b) for b, size in zip(before, sizes, strict=True)]


def padded(x, widths, modes, cval):
    for axis, (width, mode) in enumerate(zip(widths, modes, strict=True)):
        options = {"constant_values": cval} if BORDERS[mode] == "constant" else {}
        x = np.pad(x, [width if i == axis else (0, 0) for i in range(np.ndim(x))], BORDERS[mode], **options)
    return x


def unpadded(g, x, widths, modes):
    for axis in range(np.ndim(x)):
        shape = [
            n if i == axis or i < axis else m
            for i, (n, m) in enumerate(zip(np.shape(x), g.shape, strict=True))
        ]
        width = [widths[i] if i == axis else (0, 0) for i in range(np.ndim(x))]
        g = unpad(g, np.zeros(shape, g.dtype), width, BORDERS[modes[axis]])
    return unbroadcast(g, x)


def correlate_adjoint(g, x, weights, mode, origin):
    """The cotangent of the image of a correlation."""
    rank = np.ndim(x)
    widths = border(np.shape(weights), per_axis(origin, rank))
    return unpadded(signal.convolve(g, weights, "full"), x, widths, per_axis(mode, rank))


def weights_adjoint(g, x, weights, mode, cval, origin):
    """The cotangent of the weights of a correlation."""
    rank = np.ndim(x)
    around = padded(x, border(np.shape(weights), per_axis(origin, rank)), per_axis(mode, rank), cval)
    return unbroadcast(signal.convolve(around, np.flip(g), "valid"), weights)


def convolution_origin(weights, origin):
    """The origin of the correlation with reversed weights that a convolution is."""
    return [
        -o - (size % 2 == 0)
        for o, size in zip(per_axis(origin, np.ndim(weights)), np.shape(weights), strict=True)
    ]


NAMED = [case(IMAGE, KERNEL, mode=mode) for mode in ("reflect", "constant", "nearest", "mirror", "wrap")]
FILTERS = [
    (IMAGE, KERNEL),
    *NAMED,
    case(IMAGE, KERNEL, mode="constant", cval=1.5, origin=(1, -1)),
    (LINE, ROW),
    (LINE, generic(4)),
]


@reverse(ndimage.correlate, wrt=("input", "weights"), at=FILTERS)
def correlate(g, y, input, weights, *, mode="reflect", cval=0.0, origin=0):
    return correlate_adjoint(g, input, weights, mode, origin), weights_adjoint(
        g, input, weights, mode, cval, origin
    )


@forward(ndimage.correlate)
def correlate_forward(input_dot, weights_dot, y, input, weights, *, mode="reflect", cval=0.0, origin=0):
    return (
        ndimage.correlate(input_dot, weights, mode=mode, cval=0.0, origin=origin)
        if np.ndim(input_dot)
        else 0 * y,
        ndimage.correlate(input, weights_dot, mode=mode, cval=cval, origin=origin)
        if np.ndim(weights_dot)
        else 0 * y,
    )


@reverse(ndimage.convolve, wrt=("input", "weights"), at=FILTERS)
def convolve(g, y, input, weights, *, mode="reflect", cval=0.0, origin=0):
    kernel, origin = np.flip(weights), convolution_origin(weights, origin)
    return (
        correlate_adjoint(g, input, kernel, mode, origin),
        np.flip(weights_adjoint(g, input, kernel, mode, cval, origin)),
    )


@forward(ndimage.convolve)
def convolve_forward(input_dot, weights_dot, y, input, weights, *, mode="reflect", cval=0.0, origin=0):
    return (
        ndimage.convolve(input_dot, weights, mode=mode, cval=0.0, origin=origin)
        if np.ndim(input_dot)
        else 0 * y,
        ndimage.convolve(input, weights_dot, mode=mode, cval=cval, origin=origin)
        if np.ndim(weights_dot)
        else 0 * y,
    )


def laid(weights, axis, rank):
    """One-dimensional weights along one of several axes."""
    return np.reshape(weights, [-1 if i == axis % rank else 1 for i in range(rank)])


def laid_origin(origin, axis, rank):
    return [origin if i == axis % rank else 0 for i in range(rank)]


def line_adjoint(g, x, weights, axis, mode, origin=0):
    """The cotangent of the image of a correlation along one axis."""
    rank = np.ndim(x)
    return correlate_adjoint(g, x, laid(weights, axis, rank), mode, laid_origin(origin, axis, rank))


LINES = [
    (IMAGE, ROW),
    (IMAGE, ROW, 0),
    case(IMAGE, generic(4), 1, mode="constant", cval=1.5, origin=-1),
    case(LINE, ROW, mode="wrap"),
]


@reverse(ndimage.correlate1d, wrt=("input", "weights"), at=LINES)
def correlate1d(g, y, input, weights, axis=-1, *, mode="reflect", cval=0.0, origin=0):
    rank = np.ndim(input)
    kernel = laid(weights, axis, rank)
    found = weights_adjoint(g, input, kernel, mode, cval, laid_origin(origin, axis, rank))
    return line_adjoint(g, input, weights, axis, mode, origin), unbroadcast(np.ravel(found), weights)


@forward(ndimage.correlate1d)
def correlate1d_forward(
    input_dot, weights_dot, y, input, weights, axis=-1, *, mode="reflect", cval=0.0, origin=0
):
    return (
        ndimage.correlate1d(input_dot, weights, axis, mode=mode, cval=0.0, origin=origin)
        if np.ndim(input_dot)
        else 0 * y,
        ndimage.correlate1d(input, weights_dot, axis, mode=mode, cval=cval, origin=origin)
        if np.ndim(weights_dot)
        else 0 * y,
    )


@reverse(ndimage.convolve1d, wrt=("input", "weights"), at=LINES)
def convolve1d(g, y, input, weights, axis=-1, *, mode="reflect", cval=0.0, origin=0):
    rank, kernel = np.ndim(input), np.flip(weights)
    origin = -origin - (np.size(weights) % 2 == 0)
    found = weights_adjoint(g, input, laid(kernel, axis, rank), mode, cval, laid_origin(origin, axis, rank))
    return line_adjoint(g, input, kernel, axis, mode, origin), unbroadcast(np.flip(np.ravel(found)), weights)


@forward(ndimage.convolve1d)
def convolve1d_forward(
    input_dot, weights_dot, y, input, weights, axis=-1, *, mode="reflect", cval=0.0, origin=0
):
    return (
        ndimage.convolve1d(input_dot, weights, axis, mode=mode, cval=0.0, origin=origin)
        if np.ndim(input_dot)
        else 0 * y,
        ndimage.convolve1d(input, weights_dot, axis, mode=mode, cval=cval, origin=origin)
        if np.ndim(weights_dot)
        else 0 * y,
    )


# --- smoothing and differentiating filters: linear in the image up to the constant border -------------------


def gaussian_weights(sigma, order, truncate, radius):
    """The weights of `gaussian_filter1d`: its answer to a single bright spot, turned round."""
    half = int(truncate * float(sigma) + 0.5) if radius is None else int(radius)
    spot = np.zeros(2 * half + 1)
    spot[half] = 1.0
    return np.flip(
        ndimage.gaussian_filter1d(spot, sigma, -1, order, mode="constant", truncate=truncate, radius=radius)
    )


def gaussian_adjoint(g, x, sigma, order, mode, truncate, radius):
    rank = np.ndim(x)
    options = [per_axis(option, rank) for option in (sigma, order, mode, radius)]
    for axis in range(rank - 1, -1, -1):
        s, o, m, r = (option[axis] for option in options)
        if s > 1e-15:
            g = line_adjoint(g, x, gaussian_weights(s, o, truncate, r).astype(g.real.dtype), axis, m)
    return unbroadcast(g, x)


@reverse(
    ndimage.gaussian_filter1d,
    at=[(LINE, 0.8), (IMAGE, 1.2, 0), case(LINE, 0.8, order=1), case(LINE, 0.8, mode="constant", cval=2.0)],
)
def gaussian_filter1d(
    g, y, input, sigma, axis=-1, order=0, *, mode="reflect", cval=0.0, truncate=4.0, radius=None
):
    return line_adjoint(
        g, input, gaussian_weights(sigma, order, truncate, radius).astype(g.real.dtype), axis, mode
    )


@forward(ndimage.gaussian_filter1d)
def gaussian_filter1d_forward(
    input_dot, y, input, sigma, axis=-1, order=0, *, mode="reflect", cval=0.0, truncate=4.0, radius=None
):
    return ndimage.gaussian_filter1d(
        input_dot, sigma, axis, order, mode=mode, cval=0.0, truncate=truncate, radius=radius
    )


@reverse(
    ndimage.gaussian_filter,
    at=[
        (IMAGE, 0.8),
        (IMAGE, (0.8, 1.3)),
        case(IMAGE, 0.8, (0, 1)),
        case(IMAGE, 0.8, mode=("wrap", "constant"), cval=1.0),
        (LINE, 0.7),
    ],
)
def gaussian_filter(g, y, input, sigma, order=0, *, mode="reflect", cval=0.0, truncate=4.0, radius=None):
    return gaussian_adjoint(g, input, sigma, order, mode, truncate, radius)


@forward(ndimage.gaussian_filter)
def gaussian_filter_forward(
    input_dot, y, input, sigma, order=0, *, mode="reflect", cval=0.0, truncate=4.0, radius=None
):
    return ndimage.gaussian_filter(
        input_dot, sigma, order, mode=mode, cval=0.0, truncate=truncate, radius=radius
    )


@reverse(
    ndimage.uniform_filter1d,
    at=[(LINE, 3), (IMAGE, 2, 0), case(LINE, 4, mode="constant", cval=1.0, origin=1)],
)
def uniform_filter1d(g, y, input, size, axis=-1, *, mode="reflect", cval=0.0, origin=0):
    return line_adjoint(g, input, np.full(size, 1 / size, g.real.dtype), axis, mode, origin)


@forward(ndimage.uniform_filter1d)
def uniform_filter1d_forward(input_dot, y, input, size, axis=-1, *, mode="reflect", cval=0.0, origin=0):
    return ndimage.uniform_filter1d(input_dot, size, axis, mode=mode, cval=0.0, origin=origin)


@reverse(
    ndimage.uniform_filter, at=[(IMAGE, 2), IMAGE, (IMAGE, (2, 3)), case(IMAGE, 3, mode="constant", cval=1.0)]
)
def uniform_filter(g, y, input, size=3, *, mode="reflect", cval=0.0, origin=0):
    rank = np.ndim(input)
    sizes, modes, origins = per_axis(size, rank), per_axis(mode, rank), per_axis(origin, rank)
    for axis in range(rank - 1, -1, -1):
        g = line_adjoint(
            g, input, np.full(sizes[axis], 1 / sizes[axis], g.real.dtype), axis, modes[axis], origins[axis]
        )
    return unbroadcast(g, input)


@forward(ndimage.uniform_filter)
def uniform_filter_forward(input_dot, y, input, size=3, *, mode="reflect", cval=0.0, origin=0):
    return ndimage.uniform_filter(input_dot, size, mode=mode, cval=0.0, origin=origin)


def edge_adjoint(g, x, axis, mode, across):
    """The adjoint of a difference along one axis that is smoothed along the others."""
    rank = np.ndim(x)
    modes = per_axis(mode, rank)
    for i in range(rank - 1, -1, -1):
        if i != axis % rank:
            g = line_adjoint(g, x, np.array(across, g.real.dtype), i, modes[i])
    return line_adjoint(g, x, np.array([-1.0, 0.0, 1.0], g.real.dtype), axis, modes[axis])


@reverse(
    ndimage.sobel,
    at=[IMAGE, (IMAGE, 0), case(CUBE, 1, mode="mirror"), case(IMAGE, mode="constant", cval=1.0)],
)
def sobel(g, y, input, axis=-1, *, mode="reflect", cval=0.0):
    return edge_adjoint(g, input, axis, mode, [1.0, 2.0, 1.0])


@forward(ndimage.sobel)
def sobel_forward(input_dot, y, input, axis=-1, *, mode="reflect", cval=0.0):
    return ndimage.sobel(input_dot, axis, mode=mode, cval=0.0)


@reverse(ndimage.prewitt, at=[IMAGE, (IMAGE, 0), case(CUBE, 1, mode="mirror")])
def prewitt(g, y, input, axis=-1, *, mode="reflect", cval=0.0):
    return edge_adjoint(g, input, axis, mode, [1.0, 1.0, 1.0])


@forward(ndimage.prewitt)
def prewitt_forward(input_dot, y, input, axis=-1, *, mode="reflect", cval=0.0):
    return ndimage.prewitt(input_dot, axis, mode=mode, cval=0.0)


@reverse(ndimage.laplace, at=[IMAGE, LINE, case(CUBE, mode="wrap"), case(IMAGE, mode="constant", cval=1.0)])
def laplace(g, y, input, *, mode="reflect", cval=0.0):
    modes = per_axis(mode, np.ndim(input))
    weights = np.array([1.0, -2.0, 1.0], g.real.dtype)
    parts = [line_adjoint(g, input, weights, axis, modes[axis]) for axis in range(np.ndim(input))]
    return sum(parts)


@forward(ndimage.laplace)
def laplace_forward(input_dot, y, input, *, mode="reflect", cval=0.0):
    return ndimage.laplace(input_dot, mode=mode, cval=0.0)


def second_orders(rank, order):
    return [[order if i == axis else 0 for i in range(rank)] for axis in range(rank)]


@reverse(ndimage.gaussian_laplace, at=[(IMAGE, 0.8), (LINE, 1.1), case(IMAGE, (0.8, 1.2), mode="nearest")])
def gaussian_laplace(g, y, input, sigma, *, mode="reflect", cval=0.0):
    parts = [
        gaussian_adjoint(g, input, sigma, order, mode, 4.0, None)
        for order in second_orders(np.ndim(input), 2)
    ]
    return sum(parts)


@forward(ndimage.gaussian_laplace)
def gaussian_laplace_forward(input_dot, y, input, sigma, *, mode="reflect", cval=0.0):
    return ndimage.gaussian_laplace(input_dot, sigma, mode=mode, cval=0.0)


@reverse(
    ndimage.gaussian_gradient_magnitude,
    at=[(IMAGE, 0.8), (LINE, 1.1), case(IMAGE, 0.7, mode="constant", cval=1.0)],
)
def gaussian_gradient_magnitude(g, y, input, sigma, *, mode="reflect", cval=0.0):
    """Where the gradient is 0 the derivative is taken as 0."""
    scaled, parts = ratio(g, y), []
    for order in second_orders(np.ndim(input), 1):
        slope = ndimage.gaussian_filter(input, sigma, order, mode=mode, cval=cval)
        parts.append(gaussian_adjoint(scaled * slope, input, sigma, order, mode, 4.0, None))
    return sum(parts)


@forward(ndimage.gaussian_gradient_magnitude)
def gaussian_gradient_magnitude_forward(input_dot, y, input, sigma, *, mode="reflect", cval=0.0):
    total = 0.0
    for order in second_orders(np.ndim(input), 1):
        slope = ndimage.gaussian_filter(input, sigma, order, mode=mode, cval=cval)
        total = total + slope * ndimage.gaussian_filter(input_dot, sigma, order, mode=mode, cval=0.0)
    return ratio(total, y)


# --- order statistics ---------------------------------------------------------------------------------------


def window_offsets(size, footprint, rank):
    if footprint is None:
        footprint = np.ones(per_axis(size, rank), bool)
    return np.shape(footprint), np.argwhere(footprint)


def window_values(x, size, footprint, mode, cval, origin):
    """The elements that each window sees, along a new first axis, and their places."""
    rank = np.ndim(x)
    shape, offsets = window_offsets(size, footprint, rank)
    widths = border(shape, per_axis(origin, rank))
    around = padded(x, widths, per_axis(mode, rank), cval)
    places = [tuple(slice(o, o + n) for o, n in zip(offset, np.shape(x), strict=True)) for offset in offsets]
    return np.stack([around[place] for place in places]), places, widths


def ranked(values, rank):
    """1 for the element of that rank in each window, elements that tie in order."""
    order = np.argsort(np.argsort(values, axis=0, kind="stable"), axis=0, kind="stable")
    return (order == rank) * np.ones(1, values.dtype)


def window_adjoint(g, x, shares, places, widths, mode):
    shape = [n + before + after for n, (before, after) in zip(np.shape(x), widths, strict=True)]
    found = np.zeros(shape, np.result_type(g))
    for share, place in zip(shares, places, strict=True):
        found[place] += share * g
    return unpadded(found, x, widths, per_axis(mode, np.ndim(x)))


def window_tangent(x_dot, shares, size, footprint, mode, origin):
    values = window_values(x_dot, size, footprint, mode, 0.0, origin)[0]
    return np.sum(shares * values, axis=0)


EXTREMES = [
    (IMAGE, 2),
    (IMAGE, (3, 2)),
    (LINE, 3),
    case(IMAGE, 3, mode="wrap"),
    case(IMAGE, footprint=np.array([[True, False], [True, True]])),
]
DISTANT = case(IMAGE, 3, mode="constant", cval=-9.0, origin=(1, 0))


@reverse(ndimage.maximum_filter, at=[*EXTREMES, DISTANT])
def maximum_filter(g, y, input, size=None, footprint=None, *, mode="reflect", cval=0.0, origin=0):
    """Elements that tie share evenly."""
    values, places, widths = window_values(input, size, footprint, mode, cval, origin)
    return window_adjoint(g, input, ties(y, values, 0), places, widths, mode)


@forward(ndimage.maximum_filter)
def maximum_filter_forward(
    input_dot, y, input, size=None, footprint=None, *, mode="reflect", cval=0.0, origin=0
):
    values = window_values(input, size, footprint, mode, cval, origin)[0]
    return window_tangent(input_dot, ties(y, values, 0), size, footprint, mode, origin)


@reverse(ndimage.minimum_filter, at=EXTREMES)
def minimum_filter(g, y, input, size=None, footprint=None, *, mode="reflect", cval=0.0, origin=0):
    """Elements that tie share evenly."""
    values, places, widths = window_values(input, size, footprint, mode, cval, origin)
    return window_adjoint(g, input, ties(y, values, 0), places, widths, mode)


@forward(ndimage.minimum_filter)
def minimum_filter_forward(
    input_dot, y, input, size=None, footprint=None, *, mode="reflect", cval=0.0, origin=0
):
    values = window_values(input, size, footprint, mode, cval, origin)[0]
    return window_tangent(input_dot, ties(y, values, 0), size, footprint, mode, origin)


@reverse(ndimage.median_filter, at=EXTREMES)
def median_filter(g, y, input, size=None, footprint=None, *, mode="reflect", cval=0.0, origin=0):
    values, places, widths = window_values(input, size, footprint, mode, cval, origin)
    return window_adjoint(g, input, ranked(values, len(values) // 2), places, widths, mode)


@forward(ndimage.median_filter)
def median_filter_forward(
    input_dot, y, input, size=None, footprint=None, *, mode="reflect", cval=0.0, origin=0
):
    values = window_values(input, size, footprint, mode, cval, origin)[0]
    return window_tangent(input_dot, ranked(values, len(values) // 2), size, footprint, mode, origin)


@reverse(ndimage.rank_filter, at=[(IMAGE, 1, 2), (IMAGE, -2, 3), (LINE, 0, 3)])
def rank_filter(g, y, input, rank, size=None, footprint=None, *, mode="reflect", cval=0.0, origin=0):
    values, places, widths = window_values(input, size, footprint, mode, cval, origin)
    return window_adjoint(g, input, ranked(values, rank % len(values)), places, widths, mode)


@forward(ndimage.rank_filter)
def rank_filter_forward(
    input_dot, y, input, rank, size=None, footprint=None, *, mode="reflect", cval=0.0, origin=0
):
    values = window_values(input, size, footprint, mode, cval, origin)[0]
    return window_tangent(input_dot, ranked(values, rank % len(values)), size, footprint, mode, origin)


def percentile_rank(percentile, n):
    percentile = percentile + 100 if percentile < 0 else percentile
    return n - 1 if percentile == 100 else int(float(n) * percentile / 100)


@reverse(ndimage.percentile_filter, at=[(LINE, 40, 3), (IMAGE, 70, 2), (IMAGE, -20, 3), (LINE, 100, 3)])
def percentile_filter(
    g, y, input, percentile, size=None, footprint=None, *, mode="reflect", cval=0.0, origin=0
):
    values, places, widths = window_values(input, size, footprint, mode, cval, origin)
    return window_adjoint(
        g, input, ranked(values, percentile_rank(percentile, len(values))), places, widths, mode
    )


@forward(ndimage.percentile_filter)
def percentile_filter_forward(
    input_dot, y, input, percentile, size=None, footprint=None, *, mode="reflect", cval=0.0, origin=0
):
    values = window_values(input, size, footprint, mode, cval, origin)[0]
    return window_tangent(
        input_dot, ranked(values, percentile_rank(percentile, len(values))), size, footprint, mode, origin
    )


# --- splines and geometric transformations ------------------------------------------------------------------


def spline(order, t):
    """The central B-spline of that order (M. Unser, "Splines: a perfect fit", 1999)."""
    if order == 0:
        return np.where((t >= -0.5) & (t < 0.5), 1.0, 0.0)
    total = 0.0 * t
    for j in range(order + 2):
        shifted = t + (order + 1) / 2 - j
        total = (
            total
            + (-1) ** j * math.comb(order + 1, j) / math.factorial(order) * np.maximum(shifted, 0) ** order
        )
    return total


def spline_slope(order, t):
    return spline(order - 1, t + 0.5) - spline(order - 1, t - 0.5) if order else 0.0 * t


def coefficients_adjoint(g, x, order, mode):
    """The adjoint of finding spline coefficients, by way of its matrix for each axis."""
    if order > 1:
        for axis in range(np.ndim(x)):
            matrix = ndimage.spline_filter1d(np.eye(np.shape(x)[axis]), order, 0, mode=mode)
            g = np.moveaxis(np.tensordot(matrix, np.moveaxis(g, axis, 0), (0, 0)), 0, axis)
    return unbroadcast(g, x)


@reverse(
    ndimage.spline_filter, linear=True, at=[IMAGE, (IMAGE, 2), case(IMAGE, 3, mode="reflect"), (LINE, 4)]
)
def spline_filter(g, y, input, order=3, *, mode="mirror"):
    return coefficients_adjoint(g, input, order, mode)


@reverse(ndimage.spline_filter1d, linear=True, at=[IMAGE, (IMAGE, 2, 0), LINE])
def spline_filter1d(g, y, input, order=3, axis=-1, *, mode="mirror"):
    matrix = ndimage.spline_filter1d(np.eye(np.shape(input)[axis]), order, 0, mode=mode)
    return unbroadcast(np.moveaxis(np.tensordot(matrix, np.moveaxis(g, axis, 0), (0, 0)), 0, axis), input)


def mirrored(i, n):
    """Indices reflected at the first and last element."""
    if n == 1:
        return np.zeros_like(i)
    i = np.mod(i, 2 * (n - 1))
    return np.minimum(i, 2 * (n - 1) - i)


class Interpolation:
    """The elements and weights from which `map_coordinates` makes each value."""

    def __init__(self, x, coordinates, order, mode):
        if mode not in ("constant", "nearest", "mirror") or (mode == "nearest" and order > 1):
            raise NotImplementedError(f"the derivative of interpolation with mode={mode!r} and order={order}")
        self.shape, self.order = np.shape(x), order
        self.inside = np.full(np.shape(coordinates)[1:], True)
        self.index, self.weight, self.slope = [], [], []
        for c, n in zip(coordinates, self.shape, strict=True):
            c = np.asarray(c, float)
            free = (c >= 0) & (c <= n - 1)
            turn = 1.0
            if mode == "constant":
                self.inside = self.inside & free
            elif mode == "nearest":
                c, turn = np.clip(c, 0, n - 1), np.where(free, 1.0, 0.0)
            else:
                period = np.mod(c, 2 * (n - 1)) if n > 1 else 0 * c
                turn = np.where(period <= n - 1, 1.0, -1.0)
                c = np.minimum(period, 2 * (n - 1) - period) if n > 1 else 0 * c
            c = np.where(self.inside, c, 0)
            start = np.floor(c + (0.5 if order % 2 == 0 else 0.0)).astype(int) - order // 2
            places = [start + k for k in range(order + 1)]
            self.index.append([mirrored(p, n) for p in places])
            self.weight.append([spline(order, c - p) if order else np.ones(np.shape(c)) for p in places])
            self.slope.append([turn * spline_slope(order, c - p) for p in places])

    def terms(self, along=None):
        """The pairs (index of an element, its weight, or the weight's derivative for the coordinate
        `along`)."""
        found = []
        for choice in np.ndindex(*[self.order + 1] * len(self.shape)):
            weight = np.where(self.inside, 1.0, 0.0)
            for axis, k in enumerate(choice):
                factors = self.slope[axis] if axis == along else self.weight[axis]
                weight = weight * factors[k]
            found.append((tuple([self.index[axis][k] for axis, k in enumerate(choice)]), weight))
        return found

    def values(self, coefficients, along=None):
        total = 0.0
        for place, weight in self.terms(along):
            total = total + weight * coefficients[place]
        return total

    def spread(self, g):
        out = np.zeros(self.shape, np.result_type(g, np.float64))
        for place, weight in self.terms():
            np.add.at(out, place, weight * g)
        return out


def coefficients_of(x, order, prefilter):
    return ndimage.spline_filter(x, order) if order > 1 and prefilter else np.asarray(x)


def interpolate_adjoint(g, x, coordinates, order, mode, prefilter):
    """The cotangents of the image and of the coordinates."""
    grid = Interpolation(x, coordinates, order, mode)
    x_bar = grid.spread(g)
    x_bar = coefficients_adjoint(x_bar, x, order, "mirror") if prefilter else unbroadcast(x_bar, x)
    found = coefficients_of(x, order, prefilter)
    return x_bar, np.stack([np.real(g * grid.values(found, axis)) for axis in range(np.ndim(x))])


def interpolate_tangents(x_dot, coordinates_dot, x, coordinates, order, mode, prefilter):
    grid = Interpolation(x, coordinates, order, mode)
    of_x = grid.values(coefficients_of(x_dot, order, prefilter)) if np.ndim(x_dot) else 0.0
    if not np.ndim(coordinates_dot):
        return of_x, 0.0
    found = coefficients_of(x, order, prefilter)
    moves = [grid.values(found, axis) * coordinates_dot[axis] for axis in range(np.ndim(x))]
    return of_x, sum(moves)


SPOTS = np.array([[0.3, 1.6, 2.2, -0.4], [1.3, 2.2, 3.7, 1.1]])


@reverse(
    ndimage.map_coordinates,
    wrt=("input", "coordinates"),
    at=[
        *[case(IMAGE, SPOTS, order=order) for order in (1, 2, 3, 4, 5)],
        *[case(IMAGE, SPOTS, order=1, mode="nearest"), case(IMAGE, SPOTS, order=3, mode="mirror")],
        *[case(IMAGE, SPOTS, prefilter=False), case(LINE, SPOTS[:1, :, None] * 2, cval=1.5)],
    ],
)
def map_coordinates(g, y, input, coordinates, *, order=3, mode="constant", cval=0.0, prefilter=True):
    found = interpolate_adjoint(g, input, coordinates, order, mode, prefilter)
    return found[0], unbroadcast(found[1], coordinates)


@forward(ndimage.map_coordinates)
def map_coordinates_forward(
    input_dot, coordinates_dot, y, input, coordinates, *, order=3, mode="constant", cval=0.0, prefilter=True
):
    of_x, of_c = interpolate_tangents(input_dot, coordinates_dot, input, coordinates, order, mode, prefilter)
    return unbroadcast(of_x, y), unbroadcast(of_c, y)


def pixels(shape):
    return np.stack(np.meshgrid(*[np.arange(float(n)) for n in shape], indexing="ij"))


def across(coordinates):
    """The axes of the pixels, behind that of the coordinates."""
    return tuple(range(1, np.ndim(coordinates)))


@reverse(
    ndimage.shift,
    wrt=("input", "shift"),
    at=[
        case(LINE, 0.4, order=1),
        (IMAGE, [0.3, -0.6]),
        case(IMAGE, 0.3, order=1, mode="nearest"),
        case(IMAGE, [0.3, 0.6], mode="mirror"),
    ],
)
def shift_(g, y, input, shift, *, order=3, mode="constant", cval=0.0, prefilter=True):
    moved = np.array(per_axis(shift, np.ndim(input)), float)
    where = pixels(np.shape(input)) - moved.reshape(-1, *[1] * np.ndim(input))
    x_bar, c_bar = interpolate_adjoint(g, input, where, order, mode, prefilter)
    return x_bar, unbroadcast(-np.sum(c_bar, axis=across(c_bar)), shift)


@forward(ndimage.shift)
def shift_forward(
    input_dot, shift_dot, y, input, shift, *, order=3, mode="constant", cval=0.0, prefilter=True
):
    rank = np.ndim(input)
    column = (-1, *[1] * rank)
    where = pixels(np.shape(input)) - np.array(per_axis(shift, rank), float).reshape(column)
    moves = -np.array(per_axis(shift_dot, rank), float).reshape(column) + 0 * where
    of_x, of_c = interpolate_tangents(input_dot, moves, input, where, order, mode, prefilter)
    return unbroadcast(of_x, y), unbroadcast(of_c, y)


def zoomed(y, input):
    """Where the pixels of an enlarged image lie in the original: corners on corners."""
    scale = [(n - 1) / (m - 1) if m > 1 else 1.0 for n, m in zip(np.shape(input), np.shape(y), strict=True)]
    return pixels(np.shape(y)) * np.array(scale).reshape(-1, *[1] * np.ndim(y))


@reverse(
    ndimage.zoom,
    wrt="input",
    at=[case(IMAGE, 1.5, order=1), (IMAGE, (1.5, 2.0)), case(LINE, 0.6, order=1, mode="nearest")],
)
def zoom(g, y, input, zoom, *, order=3, mode="constant", cval=0.0, prefilter=True):
    return interpolate_adjoint(g, input, zoomed(y, input), order, mode, prefilter)[0]


@forward(ndimage.zoom)
def zoom_forward(input_dot, y, input, zoom, *, order=3, mode="constant", cval=0.0, prefilter=True):
    return unbroadcast(
        interpolate_tangents(input_dot, 0.0, input, zoomed(y, input), order, mode, prefilter)[0], y
    )


def affine_parts(matrix, offset, rank):
    """The matrix and the shift; the matrix may be a diagonal, or hold the shift as its last column."""
    matrix = np.asarray(matrix, float)
    if matrix.ndim == 1:
        return np.diag(matrix), np.array(per_axis(offset, rank), float)
    if matrix.shape[1] == rank + 1:
        return matrix[:rank, :rank], matrix[:rank, rank]
    return matrix, np.array(per_axis(offset, rank), float)


def affine_places(matrix, offset, shape):
    grid = pixels(shape)
    return np.tensordot(matrix, grid, (1, 0)) + offset.reshape(-1, *[1] * len(shape)), grid


TURN = np.array([[1.0, 0.1], [-0.05, 0.9]])


@reverse(
    ndimage.affine_transform,
    wrt=("input", "matrix", "offset"),
    at=[
        *[
            case(IMAGE, TURN, order=1),
            (IMAGE, TURN, [0.2, 0.3]),
            case(IMAGE, TURN, 0.2, (3, 6), mode="mirror"),
        ],
        *[(IMAGE, [0.9, 0.8], 0.1), (IMAGE, np.concatenate([TURN, [[0.2], [0.37]]], 1))],
    ],
)
def affine_transform(
    g, y, input, matrix, offset=0.0, output_shape=None, *, order=3, mode="constant", cval=0.0, prefilter=True
):
    rank = np.ndim(input)
    where, grid = affine_places(*affine_parts(matrix, offset, rank), np.shape(y))
    x_bar, c_bar = interpolate_adjoint(g, input, where, order, mode, prefilter)
    rows, flat = np.reshape(c_bar, (rank, -1)), np.reshape(grid, (rank, -1))
    turned, moved = rows @ flat.T, np.sum(rows, axis=1)
    if np.ndim(matrix) == 1:
        return x_bar, unbroadcast(np.diagonal(turned), matrix), unbroadcast(moved, offset)
    if np.shape(matrix)[1] == rank + 1:
        whole = np.concatenate([turned, moved[:, None]], axis=1)
        whole = np.concatenate([whole, np.zeros((np.shape(matrix)[0] - rank, rank + 1))])
        return x_bar, unbroadcast(whole, matrix), np.zeros_like(offset)
    return x_bar, unbroadcast(turned, matrix), unbroadcast(moved, offset)


@forward(ndimage.affine_transform)
def affine_transform_forward(
    input_dot,
    matrix_dot,
    offset_dot,
    y,
    input,
    matrix,
    offset=0.0,
    output_shape=None,
    *,
    order=3,
    mode="constant",
    cval=0.0,
    prefilter=True,
):
    rank = np.ndim(input)
    where, grid = affine_places(*affine_parts(matrix, offset, rank), np.shape(y))
    of_matrix, of_offset = 0.0 * where, 0.0 * where
    if np.ndim(matrix_dot):
        turn, move = affine_parts(matrix_dot, 0.0, rank)
        of_matrix = np.tensordot(turn, grid, (1, 0)) + move.reshape(-1, *[1] * rank)
    if np.shape(matrix)[-1] == rank:
        of_offset = of_offset + np.array(per_axis(offset_dot, rank), float).reshape(-1, *[1] * rank)
    of_x, turned = interpolate_tangents(input_dot, of_matrix, input, where, order, mode, prefilter)
    moved = interpolate_tangents(0.0, of_offset, input, where, order, mode, prefilter)[1]
    return unbroadcast(of_x, y), unbroadcast(turned, y), unbroadcast(moved, y)


def rotation(angle, axes, shape, input_shape):
    """The affine map of `rotate` in the plane, and its derivative for the angle in degrees."""
    if len(input_shape) != 2:
        raise NotImplementedError("the derivative of rotate for images that are not flat")
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    matrix, slope = np.array([[c, s], [-s, c]]), np.array([[-s, c], [-c, -s]]) * math.radians(1)
    center, target = (np.array(input_shape) - 1) / 2, (np.array(shape) - 1) / 2
    return matrix, center - matrix @ target, slope, -slope @ target


@reverse(
    ndimage.rotate,
    wrt=("input", "angle"),
    at=[
        case(IMAGE, 20.0, order=1, reshape=False),
        (IMAGE, 33.0),
        case(IMAGE, -15.0, order=1, mode="nearest"),
    ],
)
def rotate(
    g, y, input, angle, axes=(1, 0), reshape=True, *, order=3, mode="constant", cval=0.0, prefilter=True
):
    matrix, offset, slope, move = rotation(angle, axes, np.shape(y), np.shape(input))
    where, grid = affine_places(matrix, offset, np.shape(y))
    x_bar, c_bar = interpolate_adjoint(g, input, where, order, mode, prefilter)
    return x_bar, unbroadcast(np.sum(c_bar * affine_places(slope, move, np.shape(y))[0]), angle)


@forward(ndimage.rotate)
def rotate_forward(
    input_dot,
    angle_dot,
    y,
    input,
    angle,
    axes=(1, 0),
    reshape=True,
    *,
    order=3,
    mode="constant",
    cval=0.0,
    prefilter=True,
):
    matrix, offset, slope, move = rotation(angle, axes, np.shape(y), np.shape(input))
    where = affine_places(matrix, offset, np.shape(y))[0]
    moves = angle_dot * affine_places(slope, move, np.shape(y))[0]
    of_x, of_angle = interpolate_tangents(input_dot, moves, input, where, order, mode, prefilter)
    return unbroadcast(of_x, y), unbroadcast(of_angle, y)


# --- measurements -------------------------------------------------------------------------------------------


def membership(x, labels, index):
    """For each measured region the mask of its elements, along a new first axis."""
    if labels is None:
        return np.full((1, *np.shape(x)), True)
    labels = np.broadcast_to(labels, np.shape(x))
    if index is None:
        return (labels > 0)[None]
    return labels == np.reshape(index, (-1, *[1] * np.ndim(x)))


def by_region(g, x):
    return np.reshape(g, (-1, *[1] * np.ndim(x)))


LABELS = np.array([1, 1, 2, 2, 2, 1, 3])
REGIONS = [LINE, (LINE, LABELS), (LINE, LABELS, 2), (LINE, LABELS, np.array([1, 2])), (IMAGE, IMAGE > 0)]


@reverse(ndimage.sum, ndimage.sum_labels, at=REGIONS)
def sum_labels(g, y, input, labels=None, index=None):
    return unbroadcast(np.sum(by_region(g, input) * membership(input, labels, index), axis=0), input)


@forward(ndimage.sum)
def sum_labels_forward(input_dot, y, input, labels=None, index=None):
    return ndimage.sum_labels(input_dot, labels, index)


def counts(members):
    return np.sum(members, axis=tuple(range(1, members.ndim)), keepdims=True)


@reverse(ndimage.mean, at=REGIONS)
def mean(g, y, input, labels=None, index=None):
    members = membership(input, labels, index)
    return unbroadcast(np.sum(by_region(g, input) * members / counts(members), axis=0), input)


@forward(ndimage.mean)
def mean_forward(input_dot, y, input, labels=None, index=None):
    return ndimage.mean(input_dot, labels, index)


def variance_slopes(input, members):
    means = np.sum(input * members, axis=tuple(range(1, members.ndim)), keepdims=True) / counts(members)
    return 2 * (input - means) * members / counts(members)


@reverse(ndimage.variance, at=REGIONS)
def variance(g, y, input, labels=None, index=None):
    slopes = variance_slopes(input, membership(input, labels, index))
    return unbroadcast(np.sum(by_region(g, input) * slopes, axis=0), input)


def regional(products, y):
    """The sums over the regions, in the form of the result."""
    return unbroadcast(np.reshape(np.sum(products, axis=tuple(range(1, products.ndim))), np.shape(y)), y)


@forward(ndimage.variance)
def variance_forward(input_dot, y, input, labels=None, index=None):
    return regional(input_dot * variance_slopes(input, membership(input, labels, index)), y)


@reverse(ndimage.standard_deviation, at=REGIONS[:2] + REGIONS[3:])
def standard_deviation(g, y, input, labels=None, index=None):
    slopes = variance_slopes(input, membership(input, labels, index))
    return unbroadcast(
        np.sum(by_region(ratio(np.asarray(g), 2 * np.asarray(y)), input) * slopes, axis=0), input
    )


@forward(ndimage.standard_deviation)
def standard_deviation_forward(input_dot, y, input, labels=None, index=None):
    products = input_dot * variance_slopes(input, membership(input, labels, index))
    return ratio(regional(products, y), 2 * np.asarray(y))[()]


@reverse(
    ndimage.center_of_mass, at=[np.abs(IMAGE), (LINE, LABELS, 2), (positive(7), LABELS, np.array([1, 2]))]
)
def center_of_mass(g, y, input, labels=None, index=None):
    members, grid = membership(input, labels, index), pixels(np.shape(input))
    centers, weights = np.reshape(y, (len(members), -1)), np.reshape(g, (len(members), -1))
    total = 0.0
    for member, center, weight in zip(members, centers, weights, strict=True):
        away = grid - center.reshape(-1, *[1] * np.ndim(input))
        total = total + member * np.tensordot(weight, away, (0, 0)) / np.sum(input * member)
    return unbroadcast(total, input)


@forward(ndimage.center_of_mass)
def center_of_mass_forward(input_dot, y, input, labels=None, index=None):
    members, grid = membership(input, labels, index), pixels(np.shape(input))
    found = []
    for member, center in zip(members, np.reshape(y, (len(members), -1)), strict=True):
        away = grid - center.reshape(-1, *[1] * np.ndim(input))
        moves = np.sum(away * input_dot * member, axis=across(away)) / np.sum(input * member)
        found.append(tuple(moves))
    return found if isinstance(y, list) else found[0]


nondifferentiable(ndimage.label, ndimage.find_objects, ndimage.maximum_position, ndimage.minimum_position)
nondifferentiable(
    ndimage.binary_erosion, ndimage.binary_dilation, ndimage.binary_opening, ndimage.binary_closing
)
nondifferentiable(ndimage.binary_fill_holes, ndimage.binary_propagation, ndimage.generate_binary_structure)
