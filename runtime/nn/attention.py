"""Attention, and the layers of transformers."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import copy
import math
from typing import Any

from srcgrad.runtime.nn import functional as F
from srcgrad.runtime.nn import init
from srcgrad.runtime.nn.containers import ModuleList
from srcgrad.runtime.nn.linear import Dropout, Linear
from srcgrad.runtime.nn.module import Module
from srcgrad.runtime.nn.normalization import LayerNorm
from srcgrad.runtime.nn.parameter import Parameter
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_create import empty, zeros
from srcgrad.runtime.tensor_join import cat
from srcgrad.runtime.tensor_reduce import softmax


class NonDynamicallyQuantizableLinear(Linear):
    """PyTorch's name for the output projection of attention."""


class MultiheadAttention(Module):
    """Scaled dot-product attention in several heads."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = (
            embed_dim,
            num_heads,
            dropout,
            batch_first,
        )
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        same = self.kdim == embed_dim == self.vdim
        shapes: dict[str, tuple[int, ...]] = {
            "q_proj_weight": (embed_dim, embed_dim),
            "k_proj_weight": (embed_dim, self.kdim),
            "v_proj_weight": (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim),
        }
        if same:
            shapes = {"in_proj_weight": shapes["in_proj_weight"]} | dict.fromkeys(list(shapes)[:3], ())
        else:
            shapes["in_proj_weight"] = ()
        for name, shape in shapes.items():
            drawn = init.xavier_uniform_(empty(*shape, dtype=dtype, device=device)) if shape else None
            self.register_parameter(name, None if drawn is None else Parameter(drawn))
        if bias:
            self.in_proj_bias = Parameter(zeros(3 * embed_dim, dtype=dtype, device=device))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        if bias:
            init.zeros_(self.out_proj.bias)
        for name in ("bias_k", "bias_v"):
            drawn = init.xavier_normal_(empty(1, 1, embed_dim, dtype=dtype, device=device))
            self.register_parameter(name, Parameter(drawn) if add_bias_kv else None)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:
        alone = query.ndim == 2
        q, k, v = (
            t.unsqueeze(0) if alone else t if self.batch_first else t.transpose(0, 1)
            for t in (query, key, value)
        )
        if self.in_proj_weight is None:
            ws: Any = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        else:
            ws = self.in_proj_weight.chunk(3)
        bs = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = (F.linear(t, w, b) for t, w, b in zip((q, k, v), ws, bs, strict=True))
        extra = 0
        if self.bias_k is not None:
            extra += 1
            k, v = (
                cat([t, b.expand(t.shape[0], 1, self.embed_dim)], 1)
                for t, b in ((k, self.bias_k), (v, self.bias_v))
            )
        if self.add_zero_attn:
            extra += 1
            k, v = (cat([t, t.new_zeros(t.shape[0], 1, self.embed_dim)], 1) for t in (k, v))
        q, k, v = (self._heads(t) for t in (q, k, v))
        scores = (q * (1 / math.sqrt(self.head_dim))) @ k.transpose(-2, -1)
        for mask in (
            self._broadcast(attn_mask, scores),
            None if key_padding_mask is None else self._padding(key_padding_mask),
        ):
            if mask is not None:
                if extra:
                    mask = F.pad(mask, (0, extra)) if mask.dtype.kind != "b" else _wider(mask, extra)
                scores = scores.masked_fill(mask, float("-inf")) if mask.dtype.kind == "b" else scores + mask
        weights = softmax(scores, -1)
        if self.dropout:
            weights = F.dropout(weights, self.dropout, self.training)
        mixed = (weights @ v).transpose(1, 2)
        out = self.out_proj(mixed.reshape(mixed.shape[0], mixed.shape[1], self.embed_dim))
        shown: Any = None
        if need_weights:
            shown = weights.mean(1) if average_attn_weights else weights
        if alone:
            return out.squeeze(0), shown if shown is None else shown.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), shown

    def _heads(self, t: Tensor) -> Tensor:
        return t.reshape(t.shape[0], t.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

    def _broadcast(self, mask: Any, scores: Tensor) -> Any:
        if mask is None or mask.ndim == 2:
            return mask
        return mask.reshape(scores.shape[0], self.num_heads, *mask.shape[-2:])

    def _padding(self, mask: Tensor) -> Tensor:
        return (mask if mask.ndim == 2 else mask.unsqueeze(0)).unsqueeze(1).unsqueeze(1)


def _wider(mask: Tensor, count: int) -> Tensor:
    """A mask for `count` more keys, which all may be attended to."""
    return cat([mask, mask.new_zeros(*mask.shape[:-1], count)], -1)


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with a residual connection and a norm behind (or
    before) it."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.norm_first = norm_first
        named: Any = {"relu": F.relu, "gelu": F.gelu}
        self.activation: Any = named[activation] if isinstance(activation, str) else activation

    def forward(
        self, src: Tensor, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False
    ) -> Tensor:
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self._feed(self.norm2(x))
        x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self._feed(x))

    def _attend(self, x: Tensor, mask: Any, padding: Any) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask)[0])

    def _feed(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Encoder layers one after the other."""

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src: Tensor, mask: Any = None, src_key_padding_mask: Any = None) -> Tensor:
        out = src
        for layer in self.layers:
            out = layer(out, mask, src_key_padding_mask)
        return out if self.norm is None else self.norm(out)


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's output and a feed-forward network, each with a residual
    connection and a norm behind (or before) it."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        where: Any = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **where)
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, **where
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm1, self.norm2, self.norm3 = (
            LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype) for _ in range(3)
        )
        self.dropout1, self.dropout2, self.dropout3 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        self.norm_first = norm_first
        named: Any = {"relu": F.relu, "gelu": F.gelu}
        self.activation: Any = named[activation] if isinstance(activation, str) else activation

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Tensor:
        def own(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask)[0])

        def across(x: Tensor) -> Tensor:
            got = self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask)
            return self.dropout2(got[0])

        def feed(x: Tensor) -> Tensor:
            return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        x = tgt
        for step, norm in ((own, self.norm1), (across, self.norm2), (feed, self.norm3)):
            x = x + step(norm(x)) if self.norm_first else norm(x + step(x))
        return x


class TransformerDecoder(Module):
    """Decoder layers one after the other."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, **masks: Any) -> Tensor:
        out = tgt
        for layer in self.layers:
            out = layer(out, memory, **masks)
        return out if self.norm is None else self.norm(out)
