"""Sequences of different lengths: padded to one tensor, or packed so that no step is computed on padding.

>>> from srcgrad.nn.utils.rnn import pack_sequence, pad_packed_sequence
>>> packed = pack_sequence([sg.tensor([1, 2, 3]), sg.tensor([4])])
>>> packed.data, packed.batch_sizes
(tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
>>> pad_packed_sequence(packed, batch_first=True)
(tensor([[1, 2, 3],
        [4, 0, 0]]), tensor([3, 1]))
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from srcgrad.runtime.arrays import beside, to_host
from srcgrad.runtime.autograd.nodes import rule_node
from srcgrad.runtime.autograd.record import call
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_create import full
from srcgrad.runtime.tensor_index import index_select
from srcgrad.runtime.tensor_views import transpose

PACK = rule_node("PackPaddedSequenceBackward0", operator.getitem)


class PackedSequence(NamedTuple):
    """The steps of a batch of sequences one after the other, longest sequence first.

    `batch_sizes[t]` says how many sequences are longer than `t`; `sorted_indices` and `unsorted_indices` lead
    from the batch as it was given to its sorted order and back (None if it was sorted).
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *args: Any, **keywords: Any) -> PackedSequence:
        """The same sequences with their data converted, as by `Tensor.to`."""
        return self._replace(data=self.data.to(*args, **keywords))

    def double(self) -> PackedSequence:
        return self._replace(data=self.data.double())

    def float(self) -> PackedSequence:
        return self._replace(data=self.data.float())


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack `input` of shape (longest, n, ...), or (n, longest, ...) with `batch_first`.

    `lengths` are a list or a Tensor of n positive integers, which decrease unless `enforce_sorted` is False;
    else, and where one is 0, a `RuntimeError`.

    >>> pack_padded_sequence(sg.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True).data
    tensor([1, 3, 2])
    """
    sizes = to_host(lengths._array if isinstance(lengths, Tensor) else np.asarray(lengths)).astype(np.int64)
    x = transpose(input, 0, 1) if batch_first else input
    order = back = None
    if not enforce_sorted:
        places = np.argsort(-sizes, kind="stable")
        order, back = (wrap(beside(i, x._array)) for i in (places, np.argsort(places)))
        sizes, x = sizes[places], index_select(x, 1, order)
    if sizes.shape != (x.shape[1],):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {sizes.size} "
            f"(batch_size={x.shape[1]})"
        )
    if np.any(sizes <= 0):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if np.any(sizes[1:] > sizes[:-1]):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement"
        )
    if sizes[0] > x.shape[0]:
        raise RuntimeError(f"Expected lengths of at most {x.shape[0]}, but got {sizes[0]}")
    steps, rows = _places(sizes)
    data = call(PACK, (x, (beside(steps, x._array), beside(rows, x._array))))
    return PackedSequence(data, wrap(np.bincount(steps)), order, back)


def _places(lengths: Any) -> tuple[Any, Any]:
    """The step and the row of each element of a packed sequence, in their order."""
    return np.nonzero(np.arange(lengths[0])[:, None] < lengths)  # type: ignore[return-value]


def lengths_of(batch_sizes: Tensor) -> Any:
    """The lengths of packed sequences, longest first."""
    sizes = to_host(batch_sizes._array)
    return np.sum(sizes[:, None] > np.arange(sizes[0]), axis=0)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """What was packed, padded, and its lengths; a `ValueError` if `total_length` is too short.

    >>> pad_packed_sequence(pack_sequence([sg.tensor([1, 2]), sg.tensor([3])]), padding_value=9)[0]
    tensor([[1, 3],
            [2, 9]])
    """
    data, batch_sizes, _, back = sequence
    lengths = lengths_of(batch_sizes)
    longest = int(lengths[0])
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    shape = (total_length or longest, len(lengths), *data.shape[1:])
    out = full(shape, padding_value, dtype=data.dtype, device=data.device)
    out[tuple(wrap(beside(i, data._array)) for i in _places(lengths))] = data
    out = transpose(out, 0, 1) if batch_first else out
    if back is None:
        return out, wrap(lengths)
    return index_select(out, 0 if batch_first else 1, back), wrap(lengths[to_host(back._array)])


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (length, ...) as one tensor (longest, n, ...), or (n, longest, ...) with `batch_first`.

    >>> pad_sequence([sg.tensor([1, 2]), sg.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    first, longest = sequences[0], max(s.shape[0] for s in sequences)
    sizes = (len(sequences), longest) if batch_first else (longest, len(sequences))
    out = full((*sizes, *first.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
    for i, s in enumerate(sequences):
        n = s.shape[0]
        place = slice(n) if padding_side == "right" else slice(longest - n, None)
        out[(i, place) if batch_first else (place, i)] = s
    return out


def unpad_sequence(padded: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences that `pad_sequence` padded.

    >>> unpad_sequence(sg.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    rows = padded if batch_first else transpose(padded, 0, 1)
    return [row[wrap(np.arange(int(n)))] for row, n in zip(rows.unbind(0), lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences (length, ...), longest first unless `enforce_sorted` is False.

    >>> pack_sequence([sg.tensor([1, 2]), sg.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The list of sequences that `pack_sequence` packed.

    >>> unpack_sequence(pack_sequence([sg.tensor([1, 2]), sg.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence",
    "unpack_sequence", "unpad_sequence",
]  # fmt: skip
