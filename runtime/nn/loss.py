"""Losses as modules."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

from srcgrad.runtime.nn import functional as F
from srcgrad.runtime.nn.module import Module
from srcgrad.runtime.nn.spatial import PairwiseDistance
from srcgrad.runtime.tensor_base import Tensor


class _Loss(Module):
    """A loss whose options are listed with their defaults; `buffers` among them are tensors kept as state."""

    function: Any = None
    options: dict[str, Any] = {}
    tensors: tuple[str, ...] = ()

    def __init__(
        self,
        *args: Any,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        **keywords: Any,
    ):
        super().__init__()
        values = dict(self.options)
        for name, value in zip(self.options, args, strict=False):
            values[name] = value
        for name, value in keywords.items():
            if name not in values:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'"
                )
            values[name] = value
        for name, value in values.items():
            if name in self.tensors:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)
        if reduce is False:
            reduction = "none"
        elif size_average is False:
            reduction = "sum"
        self.reduction = reduction

    def forward(self, *inputs: Tensor) -> Tensor:
        keywords = {name: getattr(self, name) for name in self.options}
        return type(self).function(*inputs, reduction=self.reduction, **keywords)


def _made(name: str, function: Any, tensors: tuple[str, ...] = (), **options: Any) -> Any:
    members = {
        "function": staticmethod(function), "options": options, "tensors": tensors,
        "__doc__": function.__doc__ or f"{name}.", "__module__": __name__,
    }  # fmt: skip
    return type(name, (_Loss,), members)


MSELoss = _made("MSELoss", F.mse_loss)
L1Loss = _made("L1Loss", F.l1_loss)
SmoothL1Loss = _made("SmoothL1Loss", F.smooth_l1_loss, beta=1.0)
HuberLoss = _made("HuberLoss", F.huber_loss, delta=1.0)
NLLLoss = _made("NLLLoss", F.nll_loss, ("weight",), weight=None, ignore_index=-100)
CrossEntropyLoss = _made(
    "CrossEntropyLoss", F.cross_entropy, ("weight",), weight=None, ignore_index=-100, label_smoothing=0.0
)
BCELoss = _made("BCELoss", F.binary_cross_entropy, ("weight",), weight=None)
BCEWithLogitsLoss = _made(
    "BCEWithLogitsLoss",
    F.binary_cross_entropy_with_logits,
    ("weight", "pos_weight"),
    weight=None,
    pos_weight=None,
)
KLDivLoss = _made("KLDivLoss", F.kl_div, log_target=False)
HingeEmbeddingLoss = _made("HingeEmbeddingLoss", F.hinge_embedding_loss, margin=1.0)
MarginRankingLoss = _made("MarginRankingLoss", F.margin_ranking_loss, margin=0.0)
SoftMarginLoss = _made("SoftMarginLoss", F.soft_margin_loss)
MultiMarginLoss = _made("MultiMarginLoss", F.multi_margin_loss, ("weight",), p=1, margin=1.0, weight=None)
CosineEmbeddingLoss = _made("CosineEmbeddingLoss", F.cosine_embedding_loss, margin=0.0)
TripletMarginLoss = _made("TripletMarginLoss", F.triplet_margin_loss, margin=1.0, p=2.0, eps=1e-6, swap=False)
PoissonNLLLoss = _made("PoissonNLLLoss", F.poisson_nll_loss, log_input=True, full=False, eps=1e-8)
MultiLabelSoftMarginLoss = _made(
    "MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, ("weight",), weight=None
)
MultiLabelMarginLoss = _made("MultiLabelMarginLoss", F.multilabel_margin_loss)
CTCLoss = _made("CTCLoss", F.ctc_loss, blank=0, zero_infinity=False)
GaussianNLLLoss = _made("GaussianNLLLoss", F.gaussian_nll_loss, full=False, eps=1e-6)


class TripletMarginWithDistanceLoss(Module):
    """The triplet loss with any distance (a function or a module)."""

    def __init__(
        self,
        *,
        distance_function: Any = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ):
        super().__init__()
        self.distance_function = distance_function or PairwiseDistance()
        self.margin, self.swap, self.reduction = margin, swap, reduction

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
