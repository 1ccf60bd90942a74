"""How the shape of a result follows from the arguments, for functions whose rules don't say so themselves.

The tags are read by the compiler's facts: "same" (as the first argument), "second", "scalar", "filled" (the
first argument is the shape), "nested" (an array of nested sequences), "transpose", "reshape", "vector",
"matrix", "outer", "matmul", "broadcast", "list", "anything" (as the first argument, which may also be a
container), "cotangent" (as the first argument, a list for a tuple), "join" (rank of the joined arrays),
"stack" (one more), "einsum", "det" (without the last two), "cumulative", "sorted" (along an axis, or of all),
"solve", "dot", "trace", "matrices" (as the first argument, which is no vector), "rank" (of the first
argument), "diagonal" (one less), "expanded" (one more), "numeric" (a number or an array), "shaped" (the
second argument is the shape), "parts" (a list of arrays of the first argument's rank), "places" (the
first argument's shape, numbers of the others), "rows" (of vectors or matrices a matrix), "beside" (arrays
of the same rank, or a vector), "row" (a vector), "diag" and "inner" (as the functions of these names),
"spectrum" (the rank of the first argument, perhaps complex).
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from srcgrad.runtime import support, tangents, trees
from srcgrad.runtime.rules import table

TAGS: dict[str, list[Any]] = {
    "filled": [np.zeros, np.ones, np.empty, np.full],
    "same": [
        *(
            np.zeros_like,
            np.ones_like,
            np.empty_like,
            np.full_like,
            np.ndarray.copy,
            np.flip,
            np.roll,
        ),
        *(
            np.fliplr,
            np.flipud,
            np.linalg.inv,
            np.linalg.cholesky,
            np.nan_to_num,
        ),
        *(
            np.real,
            np.imag,
            np.conj,
            np.round,
            np.ndarray.round,
        ),
        *(np.isnan, np.isfinite, np.isinf, np.sign, np.floor, np.ceil, np.rint, np.trunc, np.logical_not),
        trees.sort_array,
    ],
    "solve": [np.linalg.solve],
    "matrices": [np.triu, np.tril],
    "second": [
        support.unbroadcast,
        trees.match,
        trees.stored,
        trees.conform,
        trees.like,
        support.expand,
        support.scatter,
    ],
    "nested": [np.array, np.asarray, np.asanyarray, np.copy],
    "transpose": [np.transpose, np.ndarray.transpose, np.ndarray.T],
    "reshape": [np.reshape, np.ndarray.reshape],
    "rank": [
        *(np.swapaxes, np.ndarray.swapaxes, np.moveaxis, np.rollaxis, np.rot90, np.pad),
        *(np.matrix_transpose, np.ndarray.mT, np.take_along_axis, np.diff, np.linalg.pinv),
        *(np.linalg.matrix_power, np.fft.fftshift, np.fft.ifftshift, np.ascontiguousarray),
    ],
    "spectrum": [
        *(np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.fft2, np.fft.ifft2, np.fft.rfft2),
        np.fft.irfft2,
    ],
    "diagonal": [np.diagonal, np.ndarray.diagonal, np.linalg.eigvalsh, np.linalg.svdvals],
    "expanded": [np.expand_dims],
    "numeric": [
        *(np.squeeze, np.ndarray.squeeze, np.tile, np.kron, np.dstack, np.append, np.insert),
        *(np.delete, np.resize, np.block, np.take, np.ndarray.take, np.compress, np.extract, np.choose),
        *(np.select, np.piecewise, np.partition, np.ediff1d, np.trapezoid, np.cross, np.tensordot),
        *(np.quantile, np.percentile, np.nanquantile, np.nanpercentile, np.nanmedian, np.average, np.cov),
        *(np.corrcoef, np.polyval, np.poly, np.polyfit, np.polyder, np.polyint, np.polyadd, np.polysub),
        *(np.polymul, np.roots, np.angle, np.unwrap, np.unique_values, np.cumulative_sum),
        *(np.cumulative_prod, np.nancumsum, np.nancumprod, np.linalg.cond, np.linalg.vector_norm),
        *(np.linalg.matrix_norm, np.linalg.multi_dot, np.linalg.tensorsolve, np.linalg.tensorinv),
        *(np.vecdot, np.matvec, np.vecmat, np.linalg.cross, np.linalg.tensordot, np.linalg.vecdot),
        *(np.apply_along_axis, np.apply_over_axes, np.ndarray.choose, np.ndarray.compress),
    ],
    "places": [np.interp],
    "beside": [np.hstack],
    "rows": [np.vstack, np.column_stack],
    "row": [np.convolve, np.correlate, np.bincount],
    "diag": [np.diag],
    "inner": [np.inner],
    "shaped": [np.broadcast_to],
    "parts": [np.split, np.array_split],
    "vector": [
        np.arange,
        np.linspace,
        np.ravel,
        np.ndarray.ravel,
        np.ndarray.flatten,
        np.logspace,
        np.geomspace,
    ],
    "matrix": [np.eye, np.identity, np.vander],
    "outer": [np.outer],
    "dot": [np.dot, np.ndarray.dot],
    "matmul": [operator.matmul, np.matmul],
    "join": [np.concatenate],
    "stack": [np.stack],
    "einsum": [np.einsum],
    "det": [np.linalg.det],
    "cumulative": [np.cumsum, np.ndarray.cumsum, np.cumprod, np.ndarray.cumprod],
    "sorted": [np.sort, np.argsort, np.ndarray.argsort],
    "reduction": [
        *(
            np.linalg.norm,
            np.argmax,
            np.argmin,
            np.ndarray.argmax,
            np.ndarray.argmin,
            np.any,
            np.all,
            np.count_nonzero,
        ),
        *(np.median, np.ndarray.any, np.ndarray.all),
    ],
    "trace": [np.trace],
    "scalar": [np.vdot, math.fsum, np.ndarray.item, np.ndim, np.size],
    "where": [np.where],
    "broadcast": [np.clip, np.ndarray.clip, np.less, np.greater, np.equal, np.floor_divide],
    "anything": [trees.snapshot, trees.copy],
    "list": [trees.buffer_list, trees.zero_list, tangents.listed, tangents.leaves, tangents.leaves_of],
    "cotangent": [trees.zeros_like],
    "tile": [np.repeat, np.ndarray.repeat],
}


def tag_all() -> None:
    """Give every listed function's rule its tag, unless the rule states one."""
    for tag, functions in TAGS.items():
        for function in functions:
            rule = table.find(function)
            if rule is not None and rule.shape is None:
                rule.shape = tag


tag_all()
