"""Recurrent layers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from srcgrad.runtime.nn import functional as F
from srcgrad.runtime.nn import init
from srcgrad.runtime.nn.module import Module
from srcgrad.runtime.nn.parameter import Parameter
from srcgrad.runtime.nn.utils.rnn import PackedSequence
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_create import empty
from srcgrad.runtime.tensor_index import index_select
from srcgrad.runtime.tensor_join import cat, stack
from srcgrad.runtime.tensor_views import split


def _lstm(x: Tensor, state: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any = None) -> Any:
    h, c = state
    i, f, g, o = (F.linear(x, w_ih, b_ih) + F.linear(h, w_hh, b_hh)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return h if w_hr is None else F.linear(h, w_hr), c


def _gru(x: Tensor, state: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    (h,) = state
    x_r, x_z, x_n = F.linear(x, w_ih, b_ih).chunk(3, -1)
    h_r, h_z, h_n = F.linear(h, w_hh, b_hh).chunk(3, -1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return ((1 - z) * n + z * h,)


def _rnn(activation: str) -> Callable[..., Any]:
    def step(x: Tensor, state: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
        (h,) = state
        out = F.linear(x, w_ih, b_ih) + F.linear(h, w_hh, b_hh)
        return (out.tanh() if activation == "tanh" else out.relu(),)

    return step


def _forwards(step: Any, times: list[Tensor], state: Any, weights: Any) -> tuple[list[Tensor], Any]:
    """The outputs of each step and the last state; a packed sequence has fewer rows from step to step."""
    outputs, ended = [], []
    for part in times:
        n = part.shape[0]
        if n < state[0].shape[0]:
            ended.append(tuple(s[n:] for s in state))
            state = tuple(s[:n] for s in state)
        state = step(part, state, *weights)
        outputs.append(state[0])
    if ended:
        state = tuple(cat(parts) for parts in zip(state, *ended[::-1], strict=True))
    return outputs, state


def _backwards(step: Any, times: list[Tensor], first: Any, weights: Any) -> tuple[list[Tensor], Any]:
    """The same from the last step to the first, where a packed sequence gets more rows from step to step."""
    state = first
    if times and times[-1].shape[0] < first[0].shape[0]:
        state = tuple(s[: times[-1].shape[0]] for s in first)
    outputs = []
    for part in reversed(times):
        n, m = part.shape[0], state[0].shape[0]
        if n > m:
            state = tuple(cat([s, f[m:n]]) for s, f in zip(state, first, strict=True))
        state = step(part, state, *weights)
        outputs.append(state[0])
    return outputs[::-1], state


class RNNBase(Module):
    """What `RNN`, `LSTM` and `GRU` share."""

    gates = 1
    states = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if dropout and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                UserWarning,
                stacklevel=3,
            )
        for name, size in (
            ("input_size", input_size),
            ("hidden_size", hidden_size),
            ("num_layers", num_layers),
        ):
            if size <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if proj_size and self.states == 1:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if proj_size < 0 or proj_size >= hidden_size > 0:
            raise ValueError("proj_size has to be smaller than hidden_size")
        self.proj_size, out_size = proj_size, proj_size or hidden_size
        self.input_size, self.hidden_size, self.num_layers, self.bias = (
            input_size,
            hidden_size,
            num_layers,
            bias,
        )
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else out_size * (2 if bidirectional else 1)
            for suffix in ("", "_reverse") if bidirectional else ("",):
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, width),
                    "weight_hh": (rows, out_size),
                }
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes |= {"weight_hr": (proj_size, hidden_size)}
                for name, shape in shapes.items():
                    values = init.uniform_(empty(*shape, dtype=dtype, device=device), -bound, bound)
                    self.register_parameter(f"{name}_l{layer}{suffix}", Parameter(values))

    def _step(self) -> Callable[..., Any]:
        raise NotImplementedError

    def _weights(self, layer: int, suffix: str) -> tuple[Any, ...]:
        own = self._parameters
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", *(("weight_hr",) if self.proj_size else ()))
        return tuple(own.get(f"{n}_l{layer}{suffix}") for n in names)

    def _check_states(self, given: tuple[Tensor, ...], batch: int) -> None:
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)
        for h, size, which in zip(given, sizes, ("hidden[0]", "hidden[1]"), strict=False):
            wanted = (self.num_layers * (2 if self.bidirectional else 1), batch, size)
            if tuple(h.shape) != wanted:
                name = which if self.states > 1 else "hidden"
                raise RuntimeError(f"Expected {name} size {wanted}, got {list(h.shape)}")

    def flatten_parameters(self) -> None:
        """Nothing to do: there is no fused kernel here."""

    def forward(self, input: Any, hx: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.ndim not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D tensor instead"
            )
        alone = input.ndim == 2
        x = input.unsqueeze(1) if alone else input.transpose(0, 1) if self.batch_first else input
        if alone and hx is not None:
            hx = tuple(h.unsqueeze(1) for h in (hx if isinstance(hx, tuple | list) else (hx,)))
        x, final = self._run(x, hx, x.shape[1], lambda layer: list(layer.unbind(0)), stack)
        if alone:
            x, final = x.squeeze(1), tuple(s.squeeze(1) for s in final)
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, final if self.states > 1 else final[0]

    def _forward_packed(self, input: PackedSequence, hx: Any) -> Any:
        data, batch_sizes, order, back = input
        sizes = batch_sizes.tolist()
        if hx is not None and order is not None:
            hx = tuple(index_select(h, 1, order) for h in (hx if isinstance(hx, tuple | list) else (hx,)))
        x, final = self._run(data, hx, sizes[0], lambda layer: list(split(layer, sizes)), cat)
        if back is not None:
            final = tuple(index_select(s, 1, back) for s in final)
        return input._replace(data=x), final if self.states > 1 else final[0]

    def _run(
        self, x: Tensor, hx: Any, batch: int, parted: Callable[..., list[Tensor]], joined: Callable[..., Any]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """All layers; `parted` gives the steps of a layer's input, `joined` joins its outputs."""
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.shape[-1]}"
            )
        directions = 2 if self.bidirectional else 1
        if hx is None:
            depth = self.num_layers * directions
            given: tuple[Any, ...] = tuple(
                x.new_zeros(depth, batch, size)
                for size in (self.proj_size or self.hidden_size, self.hidden_size)[: self.states]
            )
        else:
            given = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
            if len(given) != self.states:
                raise RuntimeError(f"expected {self.states} hidden states, got {len(given)}")
            self._check_states(given, batch)
        step = self._step()
        last: list[list[Any]] = [[] for _ in range(self.states)]
        for layer in range(self.num_layers):
            outputs = []
            times = parted(x)
            for direction, suffix in enumerate(("", "_reverse")[:directions]):
                weights = self._weights(layer, suffix)
                state = tuple(h[layer * directions + direction] for h in given)
                steps, state = (_backwards if direction else _forwards)(step, times, state, weights)
                outputs.append(joined(steps))
                for place, s in zip(last, state, strict=True):
                    place.append(s)
            x = outputs[0] if directions == 1 else cat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return x, tuple(stack(s) for s in last)

    def extra_repr(self) -> str:
        out = f"{self.input_size}, {self.hidden_size}"
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0.0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != default:
                out += f", {name}={getattr(self, name)}"
        return out


class RNN(RNNBase):
    """`h = tanh(W x + U h)` (or relu) along a sequence."""

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **keywords: Any):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(*args, **keywords)
        self.nonlinearity = nonlinearity

    def _step(self) -> Callable[..., Any]:
        return _rnn(self.nonlinearity)


class LSTM(RNNBase):
    """Long short-term memory (gates i, f, g, o)."""

    gates, states = 4, 2

    def _step(self) -> Callable[..., Any]:
        return _lstm


class GRU(RNNBase):
    """Gated recurrent units (gates r, z, n)."""

    gates = 3

    def _step(self) -> Callable[..., Any]:
        return _gru


class RNNCellBase(Module):
    """What `RNNCell`, `LSTMCell` and `GRUCell` share."""

    gates = 1
    states = 1

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0
        rows = self.gates * hidden_size
        for name, shape in {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}.items():
            self.register_parameter(
                name, Parameter(init.uniform_(empty(*shape, dtype=dtype, device=device), -bound, bound))
            )
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(
                name,
                Parameter(init.uniform_(empty(rows, dtype=dtype, device=device), -bound, bound))
                if bias
                else None,
            )

    def _step(self) -> Callable[..., Any]:
        raise NotImplementedError

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        if hx is None:
            state: tuple[Any, ...] = (input.new_zeros(*input.shape[:-1], self.hidden_size),) * self.states
        else:
            state = hx if isinstance(hx, tuple) else (hx,)
        out = self._step()(input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return out if self.states > 1 else out[0]

    def extra_repr(self) -> str:
        kind = getattr(self, "nonlinearity", "tanh")
        other = "" if kind == "tanh" else f", nonlinearity={kind}"
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False") + other


class RNNCell(RNNCellBase):
    """One step of an RNN."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def _step(self) -> Callable[..., Any]:
        return _rnn(self.nonlinearity)


class LSTMCell(RNNCellBase):
    """One step of an LSTM."""

    gates, states = 4, 2

    def _step(self) -> Callable[..., Any]:
        return _lstm


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    gates = 3

    def _step(self) -> Callable[..., Any]:
        return _gru
