"""Rows of products: matrices, convolutions, attention."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..graph import Graph, Refused, Value, kind
from .table import row, rows


def _floats(*xs: Value | None) -> None:
    if any(x is not None and kind(x.dt) != 2 for x in xs):
        raise Refused("a product of integers")


@row("mm", "bmm", "mv", "dot", "vdot")
def mm(g: Graph, a: Value, b: Value) -> Value:
    if not a.count or not b.count:
        return g.full(a.shape[:-1] + (b.shape[-1:] if b.rank > 1 else ()), 0, a.dt)
    if kind(a.dt) != 2:
        if a.dt not in ("i32", "i64"):
            raise Refused("a product of small integers")
    return g.op("matmul", a, b)


def _mixed(g: Graph, c: Value, product: Value, beta: Any, alpha: Any) -> Value:
    y = product if alpha == 1 else g.mul(product, alpha)
    if beta == 0:
        return g.expand(y, y.shape)
    return g.add(c if beta == 1 else g.mul(c, beta), y)


@row("addmm")
def addmm(g: Graph, c: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    _floats(c, a, b)
    if c.rank == 1 and beta == 1 and alpha == 1 and a.count and b.count and c.shape[0] == b.shape[1]:
        return g.op("linear", a, g.swap(b, 0, 1), c)
    return _mixed(g, c, mm(g, a, b), beta, alpha)


@row("baddbmm", "addmv", "addbmm")
def baddbmm(g: Graph, c: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    _floats(c, a, b)
    return _mixed(g, c, mm(g, a, b), beta, alpha)


rows["addbmm"] = lambda g, c, a, b, beta=1, alpha=1: _mixed(g, c, g.reduce("sum", mm(g, a, b), [0]), beta, alpha)


@row("addr")
def addr(g: Graph, c: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    _floats(c, a, b)
    return _mixed(g, c, g.mul(g.unsqueeze(a, 1), g.unsqueeze(b, 0)), beta, alpha)


@row("linear")
def linear(g: Graph, x: Value, w: Value, b: Value | None = None) -> Value:
    _floats(x, w, b)
    if not x.count or not w.count:
        raise Refused("a product of nothing")
    if w.rank == 1:
        y = g.op("matmul", x, w)
        return y if b is None else g.add(y, b)
    flat = g.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    return g.reshape(g.op("linear", flat, w, b), x.shape[:-1] + (w.shape[0],))


@row("linear_backward")
def linear_backward(g: Graph, x: Value, dy: Value, w: Value, mask: Sequence[bool]) -> list[Any]:
    raise Refused("decomposed by torch")


# ---- convolutions ----------------------------------------------------------------------------------------------


def spread(v: Sequence[int], n: int) -> list[int]:
    return list(v) * n if len(v) == 1 else list(v)


class Conv:
    """What the three convolutions share: one dim is computed as two."""

    def __init__(self, w: Value, stride: Any, pad: Any, dilation: Any, transposed: bool, output_pad: Any, groups: int) -> None:
        self.n = w.rank - 2
        if self.n not in (1, 2, 3):
            raise Refused(f"a convolution of {self.n} dims")
        self.stride, self.pad = spread(stride, self.n), spread(pad, self.n)
        self.dilation, self.output_pad = spread(dilation, self.n), spread(output_pad, self.n)
        self.transposed, self.groups = transposed, groups
        self.flat = self.n == 1
        if self.flat:
            self.stride, self.dilation = [1, *self.stride], [1, *self.dilation]
            self.pad, self.output_pad = [0, *self.pad], [0, *self.output_pad]
            self.n = 2

    def wide(self, g: Graph, x: Value) -> Value:
        return g.reshape(x, x.shape[:2] + (1,) + x.shape[2:]) if self.flat else x

    def narrow(self, g: Graph, x: Value) -> Value:
        return g.reshape(x, x.shape[:2] + x.shape[3:]) if self.flat else x

    def attrs(self) -> dict[str, Any]:
        return {"stride": self.stride, "pad": self.pad * 2, "dilation": self.dilation, "groups": self.groups}


@row("convolution", "convolution_overrideable", "_convolution", "mkldnn_convolution")
def convolution(g: Graph, x: Value, w: Value, b: Value | None, stride: Any, pad: Any, dilation: Any, transposed: bool, output_pad: Any,
                groups: int, *_: Any) -> Value:
    _floats(x, w, b)
    if not x.count or not w.count:
        raise Refused("a convolution of nothing")
    how = Conv(w, stride, pad, dilation, transposed, output_pad, groups)
    x, w = how.wide(g, x), how.wide(g, w)
    if transposed:
        y = g.op(f"conv_transpose{how.n}d", x, w, b, output_pad=how.output_pad, **how.attrs())
    else:
        y = g.op(f"conv{how.n}d", x, w, b, **how.attrs())
    return how.narrow(g, y)


def _transposed_back(g: Graph, how: Conv, dy: Value, x: Value, w: Value, mask: Sequence[bool]) -> tuple[Any, Any]:
    """The gradient of a transposed convolution is a convolution."""
    dx = g.op(f"conv{how.n}d", dy, w, None, **how.attrs()) if mask[0] else None
    dw = g.op(f"conv{how.n}d_grad_w", dy, x, w, **how.attrs()) if mask[1] else None
    if dx is not None and dx.shape != x.shape:
        raise Refused("a padded output")
    return dx, dw


def _plain_back(g: Graph, how: Conv, dy: Value, x: Value, w: Value, mask: Sequence[bool]) -> tuple[Any, Any]:
    dx = g.op(f"conv{how.n}d_grad_x", dy, w, x, **how.attrs()) if mask[0] else None
    dw = g.op(f"conv{how.n}d_grad_w", x, dy, w, **how.attrs()) if mask[1] else None
    return dx, dw


@row("convolution_backward")
def convolution_backward(g: Graph, dy: Value, x: Value, w: Value, bias_sizes: Any, stride: Any, pad: Any, dilation: Any, transposed: bool,
                         output_pad: Any, groups: int, mask: Sequence[bool]) -> list[Any]:
    _floats(dy, x, w)
    if not x.count or not w.count or not dy.count:
        raise Refused("a convolution of nothing")
    how = Conv(w, stride, pad, dilation, transposed, output_pad, groups)
    db = g.reduce("sum", dy, [0, *range(2, dy.rank)]) if mask[2] else None
    back = _transposed_back if transposed else _plain_back
    dx, dw = back(g, how, how.wide(g, dy), how.wide(g, x), how.wide(g, w), mask)
    return [None if dx is None else how.narrow(g, dx), None if dw is None else how.narrow(g, dw), db]


@row("convolution_backward_overrideable")
def convolution_backward_overrideable(g: Graph, dy: Value, x: Value, w: Value, *rest: Any) -> list[Any]:
    return convolution_backward(g, dy, x, w, None, *rest)


# ---- attention -------------------------------------------------------------------------------------------------


def _heads(q: Value, k: Value, v: Value, causal: bool, scale: float | None, dropout: float) -> dict[str, Any]:
    _floats(q, k, v)
    if dropout:
        raise Refused("dropout in attention")
    if q.rank != 4 or k.rank != 4 or not q.count or not k.count:
        raise Refused("attention of other dims than four")
    return {"causal": causal, "scale": scale if scale is not None else 1 / math.sqrt(q.shape[-1])}


def _mask(g: Graph, mask: Value | None, k: Value) -> Value | None:
    """One number for all keys is spread over them: a mask that is too short would hide keys."""
    return mask if mask is None else g.expand(mask, mask.shape[:-1] + (k.shape[2],))


@row("_scaled_dot_product_flash_attention_for_cpu")
def flash_for_cpu(g: Graph, q: Value, k: Value, v: Value, dropout: float = 0.0, causal: bool = False, attn_mask: Value | None = None,
                  scale: float | None = None) -> list[Any]:
    how = _heads(q, k, v, causal, scale, dropout)
    y, *_, lse = g.ops("attention", q, k, v, _mask(g, attn_mask, k), results=5, **how)
    return [y, lse]


@row("_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_for_cpu_backward(g: Graph, dy: Value, q: Value, k: Value, v: Value, y: Value, lse: Value, dropout: float, causal: bool,
                           attn_mask: Value | None = None, scale: float | None = None) -> list[Any]:
    how = _heads(q, k, v, causal, scale, dropout)
    lse = g.cast(lse, "f32") if q.dt != "f64" else lse
    return g.ops("attention_grad", q, k, v, y, dy, lse, _mask(g, attn_mask, k), results=3, **how)


@row("_scaled_dot_product_attention_math")
def attention_math(g: Graph, q: Value, k: Value, v: Value, attn_mask: Value | None = None, dropout: float = 0.0, causal: bool = False,
                   dropout_mask: Value | None = None, scale: float | None = None, enable_gqa: bool = False) -> list[Any]:
    raise Refused("decomposed by torch")
