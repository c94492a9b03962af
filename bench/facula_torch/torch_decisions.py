"""On which side of a kink an activation is, and which element a max pool takes: rounding decides where two are nearly equal, and one
such decision moves a gradient by more than all rounding does.  A network in f64 can follow the decisions of another run: then
gradients are compared that belong to the same pieces of the function."""
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

T = torch.Tensor
# where the derivative jumps, and the pieces from left to right
_RELU = ((0,), (lambda x: x * 0, lambda x: x))
_HARDTANH = ((0, 6), (lambda x: x * 0, lambda x: x, lambda x: x * 0 + 6))
_HARDSWISH = ((-3, 3), (lambda x: x * 0, lambda x: x * (x + 3) / 6, lambda x: x))
_HARDSIGMOID = ((-3, 3), (lambda x: x * 0, lambda x: (x + 3) / 6, lambda x: x * 0 + 1))
KINKS = {**dict.fromkeys((F.relu, torch.relu, torch.relu_, T.relu, T.relu_), _RELU), **dict.fromkeys((F.relu6, F.hardtanh), _HARDTANH),
         F.hardswish: _HARDSWISH, F.hardsigmoid: _HARDSIGMOID}
POOLS = (F.max_pool2d, torch.max_pool2d)


def _side(x, kinks):
    return sum((x.detach() > k).to(torch.int8) for k in kinks)


class Recorded(TorchFunctionMode):
    """Notes the decisions of what is computed within."""

    def __init__(self):
        super().__init__()
        self.list = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in POOLS:
            y, at = F.max_pool2d(*args, **{**kwargs, "return_indices": True})
            self.list.append(at.detach())
            return y
        if func in KINKS:
            self.list.append(_side(args[0] if args else kwargs["input"], KINKS[func][0]))
        return func(*args, **kwargs)

    def host(self):
        return [x.cpu() for x in self.list]


class Following(TorchFunctionMode):
    """Takes the decisions of another run.  `other`: how many would have been different; `away`: how far the farthest of these was from
    the kink, or the two elements from each other, over the largest of the tensor."""

    def __init__(self, decisions):
        super().__init__()
        self.left, self.other, self.away = iter(decisions), 0, 0.0

    def _count(self, different, distance, x):
        self.other += int(different.sum())
        if different.any():
            self.away = max(self.away, (distance[different].max() / x.abs().max()).item())

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func not in POOLS and func not in KINKS:
            return func(*args, **kwargs)
        x, taken = args[0] if args else kwargs["input"], next(self.left)
        if func in POOLS:
            y, mine = F.max_pool2d(*args, **{**kwargs, "return_indices": True})
            got = x.flatten(2).gather(2, taken.flatten(2)).view(y.shape)
            self._count(mine != taken, (y - got).detach().abs(), x.detach())
            return got
        kinks, pieces = KINKS[func]
        distance = torch.stack([(x.detach() - k).abs() for k in kinks]).amin(0)
        self._count(_side(x, kinks) != taken, distance, x.detach())
        y = pieces[0](x)
        for side, piece in enumerate(pieces[1:], 1):
            y = torch.where(taken == side, piece(x), y)
        return y
