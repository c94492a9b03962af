"""Losses as modules."""
from __future__ import annotations

from typing import Any

from .._facula import Tensor
from . import functional as F
from .module import Module


class _Loss(Module):
    function: Any = None

    def __init__(self, *args: Any, reduction: str = "mean", **options: Any) -> None:
        super().__init__()
        self.reduction, self.args, self.options = reduction, args, options
        for name, value in options.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)

    def forward(self, *inputs: Tensor) -> Tensor:
        return type(self).function(*inputs, *self.args, reduction=self.reduction, **self.options)


def _loss(name: str, function: Any) -> type[_Loss]:
    return type(name, (_Loss,), {"function": staticmethod(function), "__module__": "facula.nn", "__doc__": function.__doc__})


CrossEntropyLoss, NLLLoss = _loss("CrossEntropyLoss", F.cross_entropy), _loss("NLLLoss", F.nll_loss)
MSELoss, L1Loss = _loss("MSELoss", F.mse_loss), _loss("L1Loss", F.l1_loss)
SmoothL1Loss, HuberLoss = _loss("SmoothL1Loss", F.smooth_l1_loss), _loss("HuberLoss", F.huber_loss)
BCELoss = _loss("BCELoss", F.binary_cross_entropy)
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits)
KLDivLoss = _loss("KLDivLoss", F.kl_div)
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", F.hinge_embedding_loss)
MarginRankingLoss, SoftMarginLoss = _loss("MarginRankingLoss", F.margin_ranking_loss), _loss("SoftMarginLoss", F.soft_margin_loss)
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", F.cosine_embedding_loss)
TripletMarginLoss, MultiMarginLoss = _loss("TripletMarginLoss", F.triplet_margin_loss), _loss("MultiMarginLoss", F.multi_margin_loss)
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", F.multilabel_margin_loss)
TripletMarginWithDistanceLoss = _loss("TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss)
MultiLabelSoftMarginLoss = _loss("MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss)
PoissonNLLLoss, GaussianNLLLoss = _loss("PoissonNLLLoss", F.poisson_nll_loss), _loss("GaussianNLLLoss", F.gaussian_nll_loss)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along a dim."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return F.cosine_similarity(a, b, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of the difference of vectors."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.p, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return F.pairwise_distance(a, b, self.p, self.eps, self.keepdim)


class CTCLoss(Module):
    """-ln of the sum over all ways to spell the targets in time."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__()
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)
