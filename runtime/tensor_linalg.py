"""Products of matrices, einsum, and linear algebra."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import types
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd.modes import paused, state
from srcgrad.runtime.autograd.nodes import rule_node
from srcgrad.runtime.autograd.record import call, record_plain, record_rule, tracked
from srcgrad.runtime.rules import neural_affine
from srcgrad.runtime.tensor import FUNCTIONS, operand_dtype, public, type_name
from srcgrad.runtime.tensor_base import Tensor, install, wrap
from srcgrad.runtime.tensor_create import convert
from srcgrad.runtime.tensor_guards import must_be_tensor, refuse
from srcgrad.runtime.tensor_reduce import norm
from srcgrad.runtime.tensor_types import F32, F64

MM = rule_node("MmBackward0", np.matmul)
MV = rule_node("MvBackward0", np.matmul)
DOT = rule_node("DotBackward0", np.matmul)
BMM = rule_node("BmmBackward0", np.matmul)
MATMUL = rule_node("UnsafeViewBackward0", np.matmul)
ADDMM = rule_node("AddmmBackward0", neural_affine.addmm)
OUTER = rule_node("MulBackward0", np.outer)
EINSUM = rule_node("EinsumBackward0", np.einsum)
DOT.saved_names = {"self": 0, "tensor": 1}
MV.saved_names = {"self": 0, "vec": 1}
ADDMM.saved_names = {"mat1": 1, "mat2": 2}
_KINDS = {(2, 2): MM, (2, 1): MV, (1, 1): DOT, (3, 3): BMM}


def _check(a: Any, b: Any) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {_c_name(a.dtype)} != {_c_name(b.dtype)}"
        )
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D"
        )
    if a.dtype.kind == "b":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] == inner:
        return
    if a.ndim == 1 and b.ndim == 1:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.shape[0]}] and src [{b.shape[0]}] to have the "
            f"same number of elements, but got {a.shape[0]} and {b.shape[0]} elements respectively"
        )
    if a.ndim == 2 and b.ndim == 1:
        raise RuntimeError(
            f"size mismatch, got input ({a.shape[0]}), mat ({a.shape[0]}x{a.shape[1]}), vec ({b.shape[0]})"
        )
    if a.ndim == 3 and b.ndim == 3:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] "
            "but got: "
            f"[{b.shape[0]}, {b.shape[1]}]."
        )
    rows = int(np.prod(a.shape[:-1]))
    columns = b.shape[-1] if b.ndim > 1 else 1
    raise RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a.shape[-1]} and {inner}x{columns})"
    )


def _c_name(dtype: Any) -> str:
    return {"float32": "float", "float64": "double", "int64": "long"}.get(dtype.name, dtype.name)


def matmul_(self: Tensor, other: Any) -> Any:
    if not isinstance(other, Tensor):
        if not arrays.is_array(other) or isinstance(other, np.generic):
            return NotImplemented
        other = wrap(other)
    a, b = self._array, other._array
    if (
        a.dtype is not b.dtype
        or a.dtype.kind == "b"
        or a.ndim != 2
        or b.ndim != 2
        or a.shape[1] != b.shape[0]
    ):
        _check(a, b)
        kind = _KINDS.get((a.ndim, b.ndim), MATMUL)
    else:
        kind = MM
    try:
        result = wrap(a @ b)
    except ValueError:
        raise RuntimeError(f"shapes {a.shape} and {b.shape} cannot be multiplied") from None
    if (
        self._history is not None
        or other._history is not None
        or self._more is not None
        or other._more is not None
    ) and (not paused or state.recording):
        if self._more is not None or other._more is not None:
            if not tracked((self, other)):
                return result
        if (a.dtype is F32 or a.dtype is F64) and (kind is MM or (kind is BMM and a.shape[0] == b.shape[0])):
            record_plain(kind, result, (self, other))
        else:
            record_rule(kind, result, (self, other), {})
    return result


install(__matmul__=matmul_)


def _reversed_matmul(self: Tensor, other: Any) -> Any:
    return matmul_(wrap(other), self) if arrays.is_array(other) else NotImplemented


install(__rmatmul__=_reversed_matmul)


@public("matmul")
def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The matrix product, batched over leading dimensions."""
    for place, (name, x) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(x, Tensor):
            raise must_be_tensor("matmul", name, place, x)
    return matmul_(input, other)


def _ranked(name: str, first: int, second: int, message: str, text: str) -> None:
    def function(input: Tensor, other: Tensor) -> Tensor:
        if input._array.ndim != first or other._array.ndim != second:
            raise RuntimeError(message.format(a=input._array.ndim, b=other._array.ndim))
        return matmul_(input, other)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The product of {text}; other ranks are a `RuntimeError`.

    >>> sg.{name}(sg.ones{(2,) * first}, sg.ones{(2,) * second if second > 1 else "(2)"}).shape
    srcgrad.Size({[2] * second})
    """
    public(name)(function)


_ranked("mm", 2, 2, "self must be a matrix", "two matrices")
_ranked("bmm", 3, 3, "batch1 must be a 3D tensor", "two batches of matrices")
_ranked("mv", 2, 1, "vector + matrix @ vector expected, got {a}, {b}", "a matrix and a vector")


@public("inner")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sums of products along the last dimensions."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input._array.dtype != other._array.dtype:
        kinds = " and ".join(type_name(x._array.dtype) for x in (input, other))
        raise RuntimeError(f"both inputs should have same dtype, not {kinds}")
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    if input._array.dtype.kind == "b":
        _check(input._array, other._array)
    return dot(input, other) if input.ndim == other.ndim == 1 else tensordot(input, other, ([-1], [-1]))


@public("dot")
def dot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two vectors."""
    a, b = input._array, other._array
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.size}] and src [{b.size}] to have the same "
            f"number of elements, but got {a.size} and {b.size} elements respectively"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {type_name(a.dtype)} and "
            f"{type_name(b.dtype)}"
        )
    return matmul_(input, other)


@public("vdot")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two vectors, with the first conjugated; the errors are those of `dot`.

    >>> sg.vdot(sg.tensor([1.0, 2.0]), sg.tensor([3.0, 4.0]))
    tensor(11.)
    """
    return dot(input.conj(), other)


@public("outer", "ger")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The products of all elements of a vector with all of another: n and m elements give (n, m).

    Other ranks are a `RuntimeError`.

    >>> sg.outer(sg.tensor([1, 2]), sg.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    for name, x in (("self", input), ("vec2", vec2)):
        if x.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.ndim}-D")
    return call(OUTER, (input, vec2))


@public("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`."""
    for place, m in enumerate((mat1, mat2), 1):
        if m.ndim != 2:
            raise RuntimeError(f"mat{place} must be a matrix, got {m.ndim}-D tensor")
    if beta != 1 or alpha != 1:
        return beta * input + alpha * matmul_(mat1, mat2)
    _check(mat1._array, mat2._array)
    x, a, b = input._array, mat1._array, mat2._array
    if x.dtype is a.dtype and (a.dtype is F32 or a.dtype is F64) and x.ndim <= 2:
        result = wrap(ADDMM.function(x, a, b))
        if tracked((input, mat1, mat2)):
            record_plain(ADDMM, result, (input, mat1, mat2))
        return result
    return call(ADDMM, (input, mat1, mat2))


@public("baddbmm")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * (batch1 @ batch2)`, for batches (b, n, k) and (b, k, m) of matrices.

    >>> sg.baddbmm(sg.ones(1, 1, 1), sg.ones(1, 1, 2), sg.ones(1, 2, 1))
    tensor([[[3.]]])
    """
    return beta * input + alpha * matmul_(batch1, batch2)


def einsum(equation: str, *operands: Any) -> Tensor:
    """Products and sums of operands by their subscripts."""
    if not isinstance(equation, str):
        given = (equation, *operands)
        parts, out = given[: len(given) // 2 * 2], given[len(given) // 2 * 2 :]
        letters = ["".join(chr(ord("a") + i) for i in s) for s in (*parts[1::2], *out)]
        inputs = ",".join(letters[: len(parts) // 2])
        return einsum(inputs + ("->" + letters[-1] if out else ""), *parts[::2])
    ts = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    try:
        return call(EINSUM, (equation.replace(" ", ""), *ts))
    except ValueError as error:
        raise RuntimeError(f"einsum(): {error}") from None


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sum of products over `dims`: the last and first so many, or a pair of lists of dimensions.

    A `RuntimeError` if their lengths differ.

    >>> sg.tensordot(sg.ones(2, 3), sg.ones(3, 4), dims=1).shape
    srcgrad.Size([2, 4])
    """
    try:
        return call(rule_node("TensordotBackward0", np.tensordot), (a, b, dims))
    except ValueError:
        raise RuntimeError(
            f"contracted dimensions need to match, but got {list(a.shape)} and {list(b.shape)} with {dims=}"
        ) from None


@public("kron")
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: `other` times each element of `input`, block by block.

    >>> sg.kron(sg.tensor([1, 10]), sg.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    dtype = operand_dtype((input, other))
    return call(rule_node("UnsafeViewBackward0", np.kron), (convert(input, dtype), convert(other, dtype)))


@public("trace")
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix; other ranks are a `RuntimeError`.

    >>> sg.trace(sg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    a = input._array
    wide = convert(input, np.dtype("int64")) if a.dtype.kind in "iu" else input
    return call(rule_node("TraceBackward0", np.trace), (wide,))


@public("cross")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of vectors with three components along `dim` (default: the first of length 3).

    A `RuntimeError` if the length isn't 3.

    >>> sg.cross(sg.tensor([1.0, 0.0, 0.0]), sg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    if dim is None and 3 not in input.shape:
        raise RuntimeError("no dimension of size 3 in input")
    return cross_along(input, other, dim=input.shape.index(3) if dim is None else dim)


def cross_along(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors with three components along `dim`; other lengths: a `RuntimeError`.

    >>> sg.linalg.cross(sg.tensor([1.0, 0.0, 0.0]), sg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    m, n = input.shape[dim], other.shape[dim]
    if m != 3 or n != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {m} and {n}")
    return call(
        rule_node("LinalgCrossBackward0", np.cross), (input, other), {"axis": dim} if dim != -1 else {}
    )


def _linalg(name: str, function: Any, node: str) -> Any:
    square = name in ("inv", "det", "slogdet", "cholesky", "eigh", "solve", "matrix_power")
    kind = rule_node(node + "Backward0", function)

    def compute(*args: Any, **keywords: Any) -> Any:
        a = args[0] if args else None
        if isinstance(a, Tensor):
            refuse(name, a._array.dtype)
            if a._array.dtype.name == "float16" and name != "matrix_power":
                raise RuntimeError(f"linalg.{name}: Low precision dtypes not supported. Got Half")
        if isinstance(a, Tensor) and (a.ndim < 2 or (square and a.shape[-1] != a.shape[-2])):
            if a.ndim < 2:
                raise RuntimeError(
                    f"linalg.{name}: The input tensor A must have at least 2 dimensions, but got {a.ndim}."
                )
            raise RuntimeError(
                f"linalg.{name}: A must be batches of square matrices, but they are {a.shape[-2]} by "
                f"{a.shape[-1]} matrices"
            )
        if name == "matrix_power" and (*args, *keywords.values())[-1] == 1:
            return args[0].clone()  # NumPy's is the argument itself
        try:
            return call(kind, args, keywords)
        except np.linalg.LinAlgError as error:
            raise LinAlgError(f"linalg.{name}: {error}") from error

    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = f"NumPy's `linalg.{name}`."
    return compute


class LinAlgError(RuntimeError):
    """A matrix that has no inverse, no decomposition."""


inv = _linalg("inv", np.linalg.inv, "LinalgInvEx")
det = _linalg("det", np.linalg.det, "LinalgDet")
solve = _linalg("solve", np.linalg.solve, "LinalgSolveEx")
cholesky = _linalg("cholesky", np.linalg.cholesky, "LinalgCholeskyEx")
matrix_power = _linalg("matrix_power", np.linalg.matrix_power, "MatrixPower")
pinv = _linalg("pinv", np.linalg.pinv, "LinalgPinv")


def _named(name: str, fields: list[str], function: Any, node: str) -> Any:
    pair = namedtuple(name, fields)  # type: ignore[misc]  # noqa: PYI024
    compute = _linalg(name, function, node)

    def several(*args: Any, **keywords: Any) -> Any:
        return pair(*compute(*args, **keywords))

    several.__name__ = several.__qualname__ = name
    several.__doc__ = f"NumPy's `linalg.{name}`, as a named tuple `({', '.join(fields)})`."
    return several


slogdet = _named("slogdet", ["sign", "logabsdet"], np.linalg.slogdet, "LinalgSlogdet")
eigh = _named("eigh", ["eigenvalues", "eigenvectors"], np.linalg.eigh, "LinalgEigh")
qr = _named("qr", ["Q", "R"], np.linalg.qr, "LinalgQr")
svd = _named("svd", ["U", "S", "Vh"], np.linalg.svd, "LinalgSvd")


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of order `ord` of all elements, flat, or of the vectors along `dim`.

    >>> sg.linalg.vector_norm(sg.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return norm(x, ord, dim, keepdim)


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:  # noqa: N803
    """The eigenvalues of symmetric or Hermitian matrices, ascending; only the triangle `UPLO` is read.

    >>> sg.linalg.eigvalsh(sg.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    return eigh(A, UPLO)[0]


def svdvals(A: Tensor) -> Tensor:  # noqa: N803
    """The singular values of matrices, descending.

    >>> sg.linalg.svdvals(sg.tensor([[1.0, 0.0], [0.0, 2.0]]))
    tensor([2., 1.])
    """
    return svd(A, full_matrices=False)[1]


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:  # noqa: N803
    """Norms of matrices: "fro", "nuc", 1, -1, 2, -2, inf, -inf."""
    if A.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    x = A.movedim(tuple(dim), (-2, -1))
    if ord == "fro":
        out = norm(x, 2, (-2, -1))
    elif ord in ("nuc", 2, -2):
        s = svdvals(x)
        out = s.sum(-1) if ord == "nuc" else s.amax(-1) if ord == 2 else s.amin(-1)
    elif ord in (1, -1, float("inf"), float("-inf")):
        sums = x.abs().sum(-2 if abs(ord) == 1 else -1)
        out = sums.amax(-1) if ord > 0 else sums.amin(-1)
    else:
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if not keepdim:
        return out
    return out.unsqueeze(-1).unsqueeze(-1).movedim((-2, -1), tuple(dim))


def general_norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:  # noqa: N803
    """The norm of all elements, flat; with an `ord` that of a vector or a matrix, or of those along `dim`.

    One dimension makes vectors, two make matrices. Without `dim` other ranks are a `RuntimeError`.

    >>> sg.linalg.norm(sg.tensor([[3.0, 0.0], [0.0, 4.0]])), sg.linalg.norm(sg.eye(2) * 3, 2)
    (tensor(5.), tensor(3.))
    """
    if ord is None:
        return norm(A, 2, dim, keepdim)
    if dim is None and A.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    dims = range(A.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    if len(dims) == 2 or isinstance(ord, str):
        return matrix_norm(A, ord, dims, keepdim)
    return norm(A, ord, tuple(dims), keepdim)


def cond(A: Tensor, p: Any = None) -> Tensor:  # noqa: N803
    """The condition number: the greatest singular value over the least, or norm(A) norm(inverse of A)."""
    if p is None or p == 2:
        s = svdvals(A)
        return s[..., 0] / s[..., -1]
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def matrix_rank(A: Tensor, *, tol: Any = None, hermitian: bool = False) -> Tensor:  # noqa: N803
    """How many singular values of matrices are greater than `tol`; it carries no derivative.

    >>> sg.linalg.matrix_rank(sg.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    return wrap(arrays.array_of(np.linalg.matrix_rank(A._array, tol, hermitian))[()])


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices (the first and the last may be vectors)."""
    out = tensors[0]
    for x in tensors[1:]:
        out = matmul_(out, x)
    return out


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Inner products of vectors along `dim`."""
    return (x.conj() * y).sum(dim)


def lstsq(A: Tensor, B: Tensor) -> Any:  # noqa: N803
    """The least-squares solution, by the pseudo-inverse."""
    pair: Any = namedtuple("pair", ["solution", "residuals"])  # noqa: PYI024
    x = matmul_(pinv(A), B)
    left = matmul_(A, x) - B
    return pair(x, (left * left).sum(-2) if B.ndim > 1 else (left * left).sum())


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:  # noqa: N803
    """A view of the diagonal of dimensions `dim1` and `dim2`, as a new last dimension.

    >>> sg.linalg.diagonal(sg.ones(3, 2, 2)).shape
    srcgrad.Size([3, 2])
    """
    return A.diagonal(offset, dim1, dim2)


linalg = types.SimpleNamespace(
    eigvalsh=eigvalsh, svdvals=svdvals, matrix_norm=matrix_norm, cond=cond, matrix_rank=matrix_rank,
    multi_dot=multi_dot, vecdot=vecdot, lstsq=lstsq, diagonal=diagonal,
    inv=inv, det=det, solve=solve, cholesky=cholesky, matrix_power=matrix_power, pinv=pinv, slogdet=slogdet,
    eigh=eigh, qr=qr,
    svd=svd, norm=general_norm,
    vector_norm=vector_norm,
    matmul=matmul, cross=cross_along, LinAlgError=LinAlgError,
)  # fmt: skip

for _name, _f in {
    "inverse": inv,
    "det": det,
    "slogdet": slogdet,
    "cholesky": cholesky,
    "matrix_power": matrix_power,
    "pinverse": pinv,
}.items():
    public(_name)(_f)
FUNCTIONS["einsum"], FUNCTIONS["tensordot"] = einsum, tensordot
