"""Functions of networks with PyTorch's names: convolutions, pools, norms, activations, losses."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _facula, functional as T
from .._facula import Tensor, apply
from ..dtypes import int64
from ..functional import log_softmax, one_hot, pad, relu, sigmoid, softmax, tanh
from ..promote import cast
from ..random import default_generator

Size = int | Sequence[int]


def many(value: Size, n: int) -> list[int]:
    """One number for each dim."""
    return [value] * n if isinstance(value, int) else [int(v) for v in value]


def _words(**attributes: Any) -> str:
    def text(v: Any) -> str:
        return ",".join(map(str, v)) if isinstance(v, (list, tuple)) else str(int(v) if isinstance(v, bool) else v)
    return " ".join(f"{k}={text(v)}" for k, v in attributes.items() if v is not None)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x w^T + b"""
    return apply("linear", None, 0, x, weight, bias) if bias is not None else apply("linear", None, 0, x, weight)


def bilinear(a: Tensor, b: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    y = T.einsum("bi,oij,bj->bo", a, weight, b)
    return y if bias is None else y + bias


def _conv(n: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Size, padding: Any, dilation: Size, groups: int) -> Tensor:
    batched = x.ndim == n + 2
    if x.ndim not in (n + 1, n + 2):
        raise _facula.ShapeError(f"conv{n}d: an input of shape {x.shape}, {n + 1} or {n + 2} dims were expected")
    auto = {"same": "same_upper", "valid": None}.get(padding) if isinstance(padding, str) else None
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise ValueError(f"padding is a number, 'same' or 'valid', not {padding!r}")
    p = [0] * n if isinstance(padding, str) else many(padding, n)
    attrs = _words(stride=many(stride, n), pad=p + p, dilation=many(dilation, n), groups=groups, auto_pad=auto)
    inputs = [x if batched else x.unsqueeze(0), weight] + ([bias] if bias is not None else [])
    y = apply(f"conv{n}d", attrs, 0, *inputs)
    return y if batched else y.squeeze(0)


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Any = 0, dilation: Size = 1,
           groups: int = 1) -> Tensor:
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Any = 0, dilation: Size = 1,
           groups: int = 1) -> Tensor:
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Any = 0, dilation: Size = 1,
           groups: int = 1) -> Tensor:
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(n: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Size, padding: Size, output_padding: Size,
                    groups: int, dilation: Size) -> Tensor:
    p = many(padding, n)
    attrs = _words(stride=many(stride, n), pad=p + p, dilation=many(dilation, n), output_pad=many(output_padding, n), groups=groups)
    inputs = [x, weight] + ([bias] if bias is not None else [])
    return apply(f"conv_transpose{n}d", attrs, 0, *inputs)


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Size = 0,
                     output_padding: Size = 0, groups: int = 1, dilation: Size = 1) -> Tensor:
    return _conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Size = 0,
                     output_padding: Size = 0, groups: int = 1, dilation: Size = 1) -> Tensor:
    return _conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Size = 0,
                     output_padding: Size = 0, groups: int = 1, dilation: Size = 1) -> Tensor:
    return _conv_transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


# ---- pools ----

def _pool(op: str, n: int, x: Tensor, kernel: Size, stride: Size | None, padding: Size, dilation: Size, ceil_mode: bool,
          results: int = 0, include: bool | None = None) -> Any:
    batched = x.ndim == n + 2
    p = many(padding, n)
    attrs = _words(kernel=many(kernel, n), stride=many(kernel if stride is None else stride, n), pad=p + p,
                   dilation=many(dilation, n), ceil_mode=ceil_mode, count_include_pad=include)
    y = apply(f"{op}{n}d", attrs, results, x if batched else x.unsqueeze(0))
    if batched:
        return y
    return tuple(t.squeeze(0) for t in y) if isinstance(y, tuple) else y.squeeze(0)


def _max_pool(n: int) -> Any:
    def function(input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1,
                 ceil_mode: bool = False, return_indices: bool = False) -> Any:
        if not return_indices:
            return _pool("max_pool", n, input, kernel_size, stride, padding, dilation, ceil_mode)
        y, at = _pool("max_pool", n, input, kernel_size, stride, padding, dilation, ceil_mode, 2)
        return y, at % math.prod(input.shape[-n:])          # PyTorch counts within a plane
    function.__name__ = f"max_pool{n}d"
    function.__doc__ = "The largest of each window."
    return function


def _avg_pool(n: int) -> Any:
    def function(input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> Tensor:
        return _pool("avg_pool", n, input, kernel_size, stride, padding, 1, ceil_mode, 0, count_include_pad)
    function.__name__ = f"avg_pool{n}d"
    function.__doc__ = "The mean of each window."
    return function


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)
avg_pool1d, avg_pool2d, avg_pool3d = _avg_pool(1), _avg_pool(2), _avg_pool(3)


def _adaptive(n: int, x: Tensor, output_size: Any, largest: bool) -> Tensor:
    sizes = [output_size] * n if output_size is None or isinstance(output_size, int) else list(output_size)
    full: list[int] = [x.shape[x.ndim - n + i] if s is None else int(s) for i, s in enumerate(sizes)]
    if all(s == 1 for s in full):
        dims = list(range(x.ndim - n, x.ndim))
        return T.amax(x, dims, True) if largest else T.mean(x, dims, True)
    for i, out in enumerate(full):
        dim = x.ndim - n + i
        size = x.shape[dim]
        parts = [x[(slice(None),) * dim + (slice(k * size // out, -(-(k + 1) * size // out)),)] for k in range(out)]
        x = T.cat([T.amax(p, dim, True) if largest else T.mean(p, dim, True) for p in parts], dim)
    return x


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    return _adaptive(1, input, output_size, False)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    return _adaptive(2, input, output_size, False)


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> Tensor:
    return _adaptive(1, input, output_size, True)


def adaptive_max_pool2d(input: Tensor, output_size: Any) -> Tensor:
    return _adaptive(2, input, output_size, True)


# ---- norms ----

def batch_norm(x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Each channel with mean 0 and variance 1, of the batch in training, else of the running statistics, which training updates."""
    c = x.shape[1]
    scale = weight if weight is not None else T.ones(c, dtype=x.dtype)
    shift = bias if bias is not None else T.zeros(c, dtype=x.dtype)
    own = training or running_mean is None or running_var is None
    mean = running_mean if running_mean is not None else T.zeros(c, dtype=x.dtype)
    var = running_var if running_var is not None else T.ones(c, dtype=x.dtype)
    if not own:
        return apply("batch_norm", _words(epsilon=eps), 0, x, scale, shift, mean, var)
    n = math.prod(x.shape) // max(c, 1)
    if training and n <= 1:
        raise _facula.ShapeError(f"batch norm: one value for each channel has no variance (shape {x.shape})")
    attrs = _words(epsilon=eps, momentum=1 - momentum, training_mode=True)
    y, new_mean, new_var = apply("batch_norm", attrs, 3, x, scale, shift, mean, var)
    if training and running_mean is not None and running_var is not None:
        before = _facula.set_grad_enabled(False)
        try:
            share = n / (n - 1)                             # PyTorch keeps the variance over one less
            running_mean._become(new_mean.detach())
            running_var._become(new_var.detach() * share + var.detach() * ((1 - share) * (1 - momentum)))
        finally:
            _facula.set_grad_enabled(before)
    return y


def layer_norm(x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over the last dims."""
    axis = x.ndim - len(many(normalized_shape, 1))
    inputs = [x] + ([weight] if weight is not None else [None] if bias is not None else []) + ([bias] if bias is not None else [])  # type: ignore[list-item]
    return apply("layer_norm", _words(axis=axis, epsilon=eps), 0, *inputs)


def rms_norm(x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    axis = x.ndim - len(many(normalized_shape, 1))
    inputs = [x] + ([weight] if weight is not None else [])
    return apply("rms_norm", _words(axis=axis, epsilon=eps or 1.1920928955078125e-07), 0, *inputs)


def group_norm(x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    inputs = [x] + ([weight] if weight is not None else []) + ([bias] if bias is not None else [])
    return apply("group_norm", _words(groups=num_groups, epsilon=eps), 0, *inputs)


def instance_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    inputs = [x] + ([weight] if weight is not None else []) + ([bias] if bias is not None else [])
    return apply("instance_norm", _words(epsilon=eps), 0, *inputs)


def local_response_norm(x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    return apply("lrn", _words(size=size, alpha=alpha, beta=beta, bias=k), 0, x)


def normalize(x: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    return x / T.maximum(T.norm(x, p, dim, True), eps)


# ---- activations ----

def _with(op: str, **attributes: Any) -> Any:
    def function(x: Tensor, **options: Any) -> Tensor:
        return apply(op, _words(**{**attributes, **options}) or None, 0, x)
    function.__name__ = op
    return function


silu, mish, softsign, hardswish = _with("silu"), _with("mish"), _with("softsign"), _with("hard_swish")
selu = _with("selu", alpha=1.6732632423543772, gamma=1.0507009873554805)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return apply("gelu" if approximate == "none" else "gelu_tanh", None, 0, x)


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    return apply("leaky_relu", f"slope={negative_slope}", 0, x)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    return apply("elu", f"alpha={alpha}", 0, x)


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    return apply("celu", f"alpha={alpha}", 0, x)


def prelu(x: Tensor, weight: Tensor) -> Tensor:
    w = weight if weight._count == 1 or x.ndim < 2 else weight.reshape([-1] + [1] * (x.ndim - 2))
    return apply("prelu", None, 0, x, w)


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    return apply("clip", None, 0, x, Tensor(min_val, dtype=x.dtype), Tensor(max_val, dtype=x.dtype))


def relu6(x: Tensor) -> Tensor:
    return hardtanh(x, 0.0, 6.0)


def hardsigmoid(x: Tensor) -> Tensor:
    return apply("hard_sigmoid", f"slope={1 / 6} offset=0.5", 0, x)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    if beta == 1:
        return apply("softplus", None, 0, x)
    return apply("softplus", None, 0, x * beta) / beta


def logsigmoid(x: Tensor) -> Tensor:
    return -apply("softplus", None, 0, -x)


def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    return T.where(x > threshold, x, Tensor(value, dtype=x.dtype))


def tanhshrink(x: Tensor) -> Tensor:
    return x - tanh(x)


def softmin(x: Tensor, dim: int = -1) -> Tensor:
    return softmax(-x, dim)


def glu(x: Tensor, dim: int = -1) -> Tensor:
    a, b = T.chunk(x, 2, dim)
    return a * sigmoid(b)


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Each element is 0 with probability p, the others grow by 1 / (1 - p)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is between 0 and 1, not {p}")
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    counter = Tensor(int(default_generator._np.integers(0, 2 ** 62)), dtype="int64")
    return apply("dropout", f"ratio={p} training=1", 0, x, counter)


def _dropout_planes(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    if not training or p == 0:
        return x
    return x * dropout(T.ones(x.shape[0], x.shape[1], *[1] * (x.ndim - 2), dtype=x.dtype), p, True)


dropout1d = dropout2d = dropout3d = _dropout_planes


def embedding(ids: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of the weight."""
    if padding_idx is not None and weight.requires_grad:
        keep = T.ones(weight.shape[0], 1, dtype=weight.dtype)
        keep[padding_idx] = 0.0
        weight = weight * keep + weight.detach() * (1 - keep)
    return apply("gather", "axis=0", 0, weight, ids)


def interpolate(x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """Another size of the dims after the channels: nearest, linear, bilinear, trilinear, bicubic."""
    n = x.ndim - 2
    if size is None:
        factors = [scale_factor] * n if isinstance(scale_factor, (int, float)) else list(scale_factor)
        size = [int(math.floor(s * f)) for s, f in zip(x.shape[2:], factors)]
    how = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear",
           "bicubic": "cubic"}.get(mode)
    if how is None:
        raise ValueError(f"interpolate: no mode {mode!r}")
    from ..ops import _table
    attrs = {a["name"]: a for a in _table["interpolate"]["attrs"]}
    places = attrs["coordinates"]["choices"]
    where = next(c for c in places if c.startswith("align")) if align_corners else next(c for c in places if c.startswith("half"))
    rounding = None
    if mode == "nearest":
        where = next(c for c in places if c.startswith("asym"))
        rounding = next(c for c in attrs["rounding"]["choices"] if c.startswith("floor"))
    words = _words(mode=how, coordinates=where, rounding=rounding, axes=list(range(2, x.ndim)), cubic_a=-0.75 if how == "cubic" else None)
    return apply("interpolate", words, 0, x, Tensor(many(size, n), dtype="int64"))


def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    return apply("depth_to_space", f"block={upscale_factor} channels_first=1", 0, x)


def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    return apply("space_to_depth", f"block={downscale_factor} channels_first=1", 0, x)


def unfold(x: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """The patches of images, as columns."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = many(kernel_size, 2), many(dilation, 2), many(padding, 2), many(stride, 2)
    x = pad(x, (pw, pw, ph, ph)) if ph or pw else x
    h, w = ((x.shape[2] - dh * (kh - 1) - 1) // sh + 1, (x.shape[3] - dw * (kw - 1) - 1) // sw + 1)
    rows = [x[:, :, i * dh:i * dh + sh * (h - 1) + 1:sh, j * dw:j * dw + sw * (w - 1) + 1:sw] for i in range(kh) for j in range(kw)]
    return T.stack(rows, 2).reshape(x.shape[0], x.shape[1] * kh * kw, h * w)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None) -> Tensor:
    """softmax(scale q k^T + mask) v for every head; [batch, heads, positions, width]."""
    if dropout_p:
        s = matmul_scores(query, key, attn_mask, is_causal, scale)
        return dropout(softmax(s, -1), dropout_p) @ value
    inputs = [query, key, value] + ([attn_mask] if attn_mask is not None else [])
    return apply("attention", _words(causal=is_causal, scale=scale), 0, *inputs)


def matmul_scores(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    s = (query @ key.mT) * (scale or 1 / math.sqrt(query.shape[-1]))
    if causal:
        ones = T.ones(query.shape[-2], key.shape[-2])
        s = T.masked_fill(s, T.triu(ones, 1).bool(), -math.inf)
    if mask is None:
        return s
    return T.masked_fill(s, ~mask, -math.inf) if mask.dtype.name == "bool" else s + mask


# ---- losses ----

def _reduced(x: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return T.mean(x)
    if reduction == "sum":
        return T.sum(x)
    if reduction == "none":
        return x
    raise ValueError(f"reduction is mean, sum or none, not {reduction!r}")


def nll_loss(x: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """-x[label], x being logarithms of probabilities."""
    labels = cast(target, int64)
    counts = labels != ignore_index
    safe = T.where(counts, labels, T.zeros_like(labels))
    picked = -T.gather(x, 1, safe.unsqueeze(1)).squeeze(1) if x.ndim > 1 else -x[safe]
    share = cast(counts, x.dtype)
    if weight is not None:
        share = share * apply("gather", "axis=0", 0, weight, safe)
    losses = picked * share
    if reduction == "mean":
        return T.sum(losses) / T.sum(share)
    return _reduced(losses, reduction)


def cross_entropy(x: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """-log softmax(x)[label]; target: labels (integers), or probabilities (floats) of x's shape."""
    if target.dtype.is_floating_point:
        log_p = log_softmax(x, 1 if x.ndim > 1 else 0)
        classes = x.shape[1 if x.ndim > 1 else 0]
        t = target * (1 - label_smoothing) + label_smoothing / classes if label_smoothing else target
        if weight is not None:
            t = t * weight.reshape([1, -1] + [1] * (x.ndim - 2))
        losses = -T.sum(t * log_p, 1 if x.ndim > 1 else 0)
        return T.sum(losses) / losses._count if reduction == "mean" else _reduced(losses, reduction)
    if x.ndim == 1:
        return cross_entropy(x.unsqueeze(0), target.reshape(1), weight, ignore_index, reduction, label_smoothing)
    if weight is None and reduction in ("mean", "sum", "none"):
        attrs = _words(reduction=reduction, ignore=True, ignore_index=ignore_index, label_smoothing=label_smoothing or None)
        return apply("cross_entropy", attrs, 0, x, cast(target, int64))
    loss = nll_loss(log_softmax(x, 1), target, weight, ignore_index, reduction)
    if not label_smoothing:
        return loss
    spread = -T.sum(log_softmax(x, 1) * weight.reshape([1, -1] + [1] * (x.ndim - 2)), 1)  # type: ignore[union-attr]
    share = apply("gather", "axis=0", 0, weight, cast(target, int64))
    smooth = T.sum(spread) / T.sum(share) if reduction == "mean" else _reduced(spread, reduction)
    return loss * (1 - label_smoothing) + smooth * (label_smoothing / x.shape[1])


def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    d = x - target
    return _reduced(d * d, reduction)


def l1_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return _reduced(T.abs(x - target), reduction)


def smooth_l1_loss(x: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    d = T.abs(x - target)
    if beta == 0:
        return _reduced(d, reduction)
    return _reduced(T.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta), reduction)


def huber_loss(x: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    d = T.abs(x - target)
    return _reduced(T.where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta), reduction)


def binary_cross_entropy_with_logits(x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
    soft = apply("softplus", None, 0, -x)
    if pos_weight is None:
        losses = (1 - target) * x + soft
    else:
        losses = (1 - target) * x + (1 + (pos_weight - 1) * target) * soft
    return _reduced(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy(x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    low = Tensor(-100.0, dtype=x.dtype)
    losses = -(target * T.maximum(T.log(x), low) + (1 - target) * T.maximum(T.log(1 - x), low))
    return _reduced(losses if weight is None else losses * weight, reduction)


def kl_div(x: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    if log_target:
        losses = T.exp(target) * (target - x)
    else:
        zero = T.zeros_like(target)
        losses = T.where(target > 0, target * (T.log(T.where(target > 0, target, T.ones_like(target))) - x), zero)
    return T.sum(losses) / x.shape[0] if reduction == "batchmean" else _reduced(losses, reduction)


def cosine_similarity(a: Tensor, b: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    return T.sum(a * b, dim) / (T.maximum(T.norm(a, 2, dim), eps) * T.maximum(T.norm(b, 2, dim), eps))


def hinge_embedding_loss(x: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    return _reduced(T.where(target == 1, x, T.maximum(margin - x, 0.0)), reduction)


