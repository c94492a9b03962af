"""Convolutions and matrix products of facula for tensors of torch, and under the layers of any model.

    y = ocl_conv2d(x, weight, bias, stride=2, padding=1)        # as torch.nn.functional.conv2d
    swap(model)                                                 # nn.Conv2d and nn.Linear compute by facula from now on
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .aten import rows
from .aten.call import short
from .graph import Graph, Refused, Value
from .parts import Part

Pair = int | Sequence[int]
_kept: dict[Any, Part] = {}
_lock = threading.Lock()
MOST = 512                      # programs that are kept


def _pair(x: Pair) -> tuple[int, int]:
    return (x, x) if isinstance(x, int) else (int(x[0]), int(x[1]))


def _program(key: Any, tensors: Sequence[torch.Tensor], write: Callable[[Graph, list[Value]], list[Value]], device: Any) -> Part:
    """A program for these types, kept."""
    full = (key, device, tuple((t.dtype, tuple(t.shape)) for t in tensors))
    part = _kept.get(full)
    if part is None:
        g = Graph()
        values = [g.input(f"x{k}", short(t.dtype), t.shape) for k, t in enumerate(tensors)]
        outs = write(g, values)
        for k, v in enumerate(outs):
            g.builder.output(f"y{k}", v.id)
        part = Part(g.builder.finish(), range(len(tensors)), {}, list(enumerate(outs)), device, None)
        with _lock:
            if len(_kept) >= MOST:
                _kept.pop(next(iter(_kept)))
            _kept[full] = part
    return part


def _run(key: Any, tensors: Sequence[torch.Tensor], write: Callable[[Graph, list[Value]], list[Value]], device: Any) -> list[torch.Tensor]:
    held = [t.detach().resolve_conj().resolve_neg() for t in tensors]
    try:
        return _program(key, held, write, device).run(held.__getitem__)
    except Refused as why:
        raise NotImplementedError(f"{key[0]}: {why}") from None


class _Conv2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, how: tuple[Any, ...], device: Any) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        ctx.how, ctx.device, ctx.biased = how, device, b is not None
        tensors = [x, w] if b is None else [x, w, b]

        def write(g: Graph, v: list[Value]) -> list[Value]:
            stride, pad, dilation, groups = how
            return [rows["convolution"](g, v[0], v[1], v[2] if b is not None else None, stride, pad, dilation, False, (0, 0), groups)]
        return _run(("ocl_conv2d", how, b is not None), tensors, write, device)[0]

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        x, w = ctx.saved_tensors
        stride, pad, dilation, groups = ctx.how
        mask = [ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.biased and ctx.needs_input_grad[2]]

        def write(g: Graph, v: list[Value]) -> list[Value]:
            back = rows["convolution_backward"](g, v[0], v[1], v[2], None, stride, pad, dilation, False, (0, 0), groups, mask)
            return [d for d in back if d is not None]
        made = iter(_run(("the gradient of ocl_conv2d", ctx.how, tuple(mask)), [dy, x, w], write, ctx.device)) if any(mask) else iter(())
        return (*[next(made) if m else None for m in mask], None, None)


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor, device: Any) -> torch.Tensor:
        ctx.save_for_backward(a, b)
        ctx.device = device
        return _run(("ocl_matmul",), [a, b], lambda g, v: [g.op("matmul", v[0], v[1])], device)[0]

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        a, b = ctx.saved_tensors
        da = db = None
        if ctx.needs_input_grad[0]:
            wide = dy.unsqueeze(-1) * b if b.dim() == 1 else ocl_matmul(dy.unsqueeze(-2) if a.dim() == 1 else dy, b.mT, ctx.device)
            da = wide.reshape(-1, *a.shape).sum(0) if a.dim() == 1 else wide.sum_to_size(a.shape)
        if ctx.needs_input_grad[1]:
            if b.dim() == 1:
                db = (a * dy.unsqueeze(-1)).reshape(-1, *b.shape).sum(0)
            else:
                left = a.unsqueeze(-1) if a.dim() == 1 else a.mT
                db = ocl_matmul(left, dy.unsqueeze(-2) if a.dim() == 1 else dy, ctx.device).sum_to_size(b.shape)
        return da, db, None


def _named(device: Any) -> Any:
    """"opencl", "cpu" or None, which is facula's cpu; what torch calls ocl:k is one of facula.torch.devices()."""
    text = str(device) if device is not None else "cpu"
    if text.startswith("ocl"):
        from .device import device_names
        return device_names()[torch.device(text).index or 0]
    return text


def _on_ocl(*tensors: torch.Tensor | None) -> bool:
    return any(t is not None and t.device.type == "ocl" for t in tensors)


def ocl_conv2d(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Pair = 1, padding: Pair | str = 0,
               dilation: Pair = 1, groups: int = 1, device: Any = None) -> torch.Tensor:
    """torch.nn.functional.conv2d by facula, with gradients.

    Tensors of the cpu are used where they lie and computed on `device` ("cpu", "opencl", "opencl:1"); tensors of device
    ocl stay there.  padding: a number, a pair, "valid" or "same" (stride 1).  Errors are those of torch."""
    x = input if input.dim() == 4 else input.unsqueeze(0)
    if x.dim() != 4 or weight.dim() != 4:
        raise RuntimeError(f"ocl_conv2d: input [N,C,H,W] or [C,H,W] and weight [O,C/groups,h,w] were expected, not {list(input.shape)}"
                           f" and {list(weight.shape)}")
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise RuntimeError(f"ocl_conv2d: weight {list(weight.shape)} with groups={groups} expects {weight.shape[1] * groups} channels,"
                           f" input has {x.shape[1]}")
    if isinstance(padding, str) or _on_ocl(input, weight, bias):
        fits = padding == "valid" or not isinstance(padding, str)
        if _on_ocl(input, weight, bias):
            return torch.nn.functional.conv2d(input, weight, bias, stride, padding, dilation, groups)
        if not fits:
            return _same(x, weight, bias, stride, str(padding), dilation, groups, device, input.dim())
        padding = 0
    how = (_pair(stride), _pair(padding), _pair(dilation), groups)
    reach = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], how[2])]
    if any(n + 2 * p < r for n, p, r in zip(x.shape[2:], how[1], reach)):
        raise RuntimeError(f"ocl_conv2d: the kernel reaches over {reach}, the padded image is"
                           f" {[n + 2 * p for n, p in zip(x.shape[2:], how[1])]}")
    y = _Conv2d.apply(x, weight, bias, how, _named(device))
    return y if input.dim() == 4 else y.squeeze(0)


def _same(x: torch.Tensor, weight: torch.Tensor, bias: Any, stride: Pair, padding: str, dilation: Pair, groups: int, device: Any,
          dims: int) -> torch.Tensor:
    if padding != "same" or _pair(stride) != (1, 1):
        raise RuntimeError(f"ocl_conv2d: padding={padding!r} with stride {stride}: 'same' needs stride 1, else there is 'valid'")
    total = [d * (k - 1) for k, d in zip(weight.shape[2:], _pair(dilation))]
    before = [t // 2 for t in total]
    x = torch.nn.functional.pad(x, (before[1], total[1] - before[1], before[0], total[0] - before[0]))
    y = ocl_conv2d(x, weight, bias, stride, 0, dilation, groups, device)
    return y if dims == 4 else y.squeeze(0)


def ocl_matmul(a: torch.Tensor, b: torch.Tensor, device: Any = None) -> torch.Tensor:
    """torch.matmul by facula, with gradients: vectors, matrices and batches of them, broadcast.  See ocl_conv2d."""
    if _on_ocl(a, b) or not a.is_floating_point() or not a.numel() or not b.numel() or a.dtype != b.dtype:
        return torch.matmul(a, b)
    if not a.dim() or not b.dim() or a.shape[-1] != b.shape[-2 if b.dim() > 1 else -1]:
        raise RuntimeError(f"ocl_matmul: shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied")
    return _Matmul.apply(a, b, _named(device))


# ---- under the layers of a model -------------------------------------------------------------------------------


def _conv_forward(layer: Any, device: Any) -> Callable[..., Any]:
    def forward(x: torch.Tensor) -> torch.Tensor:
        if layer.padding_mode != "zeros":
            x = torch.nn.functional.pad(x, layer._reversed_padding_repeated_twice, mode=layer.padding_mode)
        pad = layer.padding if layer.padding_mode == "zeros" else 0
        return ocl_conv2d(x, layer.weight, layer.bias, layer.stride, pad, layer.dilation, layer.groups, device)
    return forward


def _linear_forward(layer: Any, device: Any) -> Callable[..., Any]:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = ocl_matmul(x, layer.weight.t(), device)
        return y if layer.bias is None else y + layer.bias
    return forward


def _gpt_forward(layer: Any, device: Any) -> Callable[..., Any]:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return ocl_matmul(x, layer.weight, device) + layer.bias
    return forward


def swap(model: torch.nn.Module, device: Any = None) -> int:
    """Replaces `forward` of each nn.Conv2d, nn.Linear (and transformers' Conv1D) in a model; gives how many.  unswap() undoes it."""
    n = 0
    for layer in model.modules():
        kinds: list[tuple[Any, Any]] = [(torch.nn.Conv2d, _conv_forward), (torch.nn.Linear, _linear_forward)]
        make = next((f for cls, f in kinds if type(layer) is cls), None)
        if make is None and type(layer).__name__ == "Conv1D" and hasattr(layer, "nf"):
            make = _gpt_forward
        if make is not None:
            layer.forward = make(layer, device)
            n += 1
    return n


def unswap(model: torch.nn.Module) -> None:
    """The layers' own forward again."""
    for layer in model.modules():
        if layer.__dict__.get("forward", None) is not None and getattr(layer.forward, "__module__", "") == __name__:
            del layer.__dict__["forward"]
