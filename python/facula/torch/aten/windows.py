"""Rows of nn.Unfold and nn.Fold: windows of an image as columns, and their sum."""
from __future__ import annotations

from collections.abc import Sequence

from ..graph import Graph, Refused, Value, kind
from .products import spread
from .shapes import constant_pad, window
from .table import row


@row("im2col")
def im2col(g: Graph, x: Value, kernel: Sequence[int], dilation: Sequence[int], pad: Sequence[int], stride: Sequence[int]) -> Value:
    if x.rank not in (3, 4) or not x.count:
        raise Refused("windows of nothing")
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = (spread(v, 2) for v in (kernel, dilation, pad, stride))
    wide = x if x.rank == 4 else g.reshape(x, (1,) + x.shape)
    wide = constant_pad(g, wide, [pw, pw, ph, ph], 0) if ph or pw else wide
    n, c, h, w = wide.shape
    oh, ow = (h - dh * (kh - 1) - 1) // sh + 1, (w - dw * (kw - 1) - 1) // sw + 1
    y = window(g, wide, (n, c, kh, kw, oh, ow), (c * h * w, h * w, dh * w, dw, sh * w, sw), 0)
    return g.reshape(y, x.shape[:-3] + (c * kh * kw, oh * ow))


@row("col2im")
def col2im(g: Graph, x: Value, size: Sequence[int], kernel: Sequence[int], dilation: Sequence[int], pad: Sequence[int],
           stride: Sequence[int]) -> Value:
    if x.rank not in (2, 3) or not x.count or kind(x.dt) != 2:
        raise Refused("windows of nothing")
    wide = x if x.rank == 3 else g.reshape(x, (1,) + x.shape)
    y = g.op("col2im", wide, g.ints(size), g.ints(spread(kernel, 2)), dilation=spread(dilation, 2), stride=spread(stride, 2),
             pad=list(spread(pad, 2)) * 2)
    return y if x.rank == 3 else g.reshape(y, y.shape[1:])
