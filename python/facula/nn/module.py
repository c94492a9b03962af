"""Modules: what a network is made of, with PyTorch's names."""
from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from .. import _facula, autograd
from .._facula import Tensor
from ..create import tensor


M = TypeVar("M", bound="Module")
traced: list[dict[int, str]] = []                   # modules that graphs are made of: id -> path


class Parameter(Tensor):
    """A tensor that a module learns."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        value = Tensor(0.0) if data is None else data
        p: Parameter = super().__new__(cls, value.detach() if isinstance(value, Tensor) else value)
        p.requires_grad = requires_grad
        return p

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (Parameter, (self.detach(), self.requires_grad))


def _placed(init: Any) -> Any:
    """The __init__ of a layer with device and dtype, as PyTorch's layers have them."""
    @functools.wraps(init)
    def made(self: Module, *args: Any, device: Any = None, dtype: Any = None, **options: Any) -> None:
        init(self, *args, **options)
        if device is not None or dtype is not None:
            self.to(device=device, dtype=dtype)
    return made


class Module:
    """The base of all networks: subclass it, make parts in __init__, write forward."""

    training: bool

    def __init__(self) -> None:
        self.__dict__.update(_parameters=OrderedDict(), _buffers=OrderedDict(), _modules=OrderedDict(), _transient=set(),
                             _forward_hooks=[], _forward_pre_hooks=[], training=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("facula.nn") and "__init__" in cls.__dict__:
            setattr(cls, "__init__", _placed(cls.__dict__["__init__"]))

    # -- parts

    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}.__init__ has to call super().__init__() before it sets {name!r}")
        if name in self._parameters and not isinstance(value, (Parameter, Module)):
            if value is not None:
                raise TypeError(f"{name!r} is a parameter of {type(self).__name__}: a Parameter or None was expected, not {type(value).__name__}")
            self._parameters[name] = None
            return
        for part in (self._parameters, self._modules, self._buffers):
            if name in part and not (part is self._buffers and isinstance(value, (Tensor, type(None)))):
                del part[name]
        if isinstance(value, Parameter):
            self.__dict__.pop(name, None)
            self._parameters[name] = value
        elif isinstance(value, Module):
            self.__dict__.pop(name, None)
            self._modules[name] = value
        elif name in self._buffers:
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for part in ("_modules", "_parameters", "_buffers"):
            found = own.get(part)
            if found and name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for part in (self._parameters, self._modules, self._buffers):
            if name in part:
                del part[name]
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self._parameters, *self._modules, *self._buffers]

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """A tensor that is part of the state but is not learned."""
        self.__dict__.pop(name, None)
        self._buffers[name] = tensor
        if not persistent:
            self._transient.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Gives it a parameter with a name, or a place for one."""
        self.__dict__.pop(name, None)
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Gives it a child with a name."""
        if module is not None and not isinstance(module, Module):
            what = f"the class {module.__name__}: make one, {module.__name__}(...)" if isinstance(module, type) else repr(module)
            raise TypeError(f"{type(self).__name__}: a Module was expected, not {what}")
        self._modules[name] = module

    register_module = add_module

    def _walk(self, prefix: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Module]]:
        seen = set() if seen is None else seen
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, m in self._modules.items():
            if m is not None:
                yield from m._walk(f"{prefix}.{name}" if prefix else name, seen)

    def _members(self, part: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, m in self._walk(prefix) if recurse else [(prefix, self)]:
            for name, t in getattr(m, part).items():
                if t is not None and id(t) not in seen:
                    seen.add(id(t))
                    yield (f"{path}.{name}" if path else name), t

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Pairs of paths and parameters."""
        return self._members("_parameters", prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Its parameters and those below, each once."""
        return (p for _, p in self.named_parameters("", recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Pairs of paths and buffers."""
        return self._members("_buffers", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Its buffers and those below."""
        return (b for _, b in self.named_buffers("", recurse))

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Pairs of paths and modules, it first."""
        return self._walk()

    def modules(self) -> Iterator[Module]:
        """It and everything below."""
        return (m for _, m in self._walk())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Pairs of names and children."""
        return ((n, m) for n, m in self._modules.items() if m is not None)

    def children(self) -> Iterator[Module]:
        """Its direct children."""
        return (m for _, m in self.named_children())

    def get_submodule(self, target: str) -> Module:
        """The module with a path: "layer1.0"."""
        m: Module = self
        for name in target.split(".") if target else []:
            if name not in m._modules:
                raise AttributeError(f"there is no module {target!r}")
            m = m._modules[name]
        return m

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a path: "layer1.0.weight"."""
        path, _, name = target.rpartition(".")
        return self.get_submodule(path)._parameters[name]

    # -- running

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What a call computes; for classes of your own."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        path = traced[-1].get(id(self)) if traced and _facula.is_tracing() else None
        before = None if path is None else _facula.set_scope(path)      # trace() takes it back when something fails
        if own["_forward_pre_hooks"]:
            for hook in list(own["_forward_pre_hooks"]):
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        y = self.forward(*args, **kwargs)
        if own["_forward_hooks"]:
            for hook in list(own["_forward_hooks"]):
                changed = hook(self, args, y)
                if changed is not None:
                    y = changed
        like = _facula.likes(args)                          # what export() takes for an example
        if like is not None:
            own["_last_inputs"] = like
        if path is not None:
            _facula.set_scope(before)
        return y

    def register_forward_hook(self, hook: Callable[..., Any]) -> autograd.RemovableHandle:
        """hook(module, inputs, output) after each forward; what it returns takes the place of the output."""
        autograd.callable_or_error(hook)
        self._forward_hooks.append(hook)
        return autograd.RemovableHandle(self._forward_hooks, hook)

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> autograd.RemovableHandle:
        """hook(module, inputs) before each forward."""
        autograd.callable_or_error(hook)
        self._forward_pre_hooks.append(hook)
        return autograd.RemovableHandle(self._forward_pre_hooks, hook)

    def register_full_backward_hook(self, hook: Callable[..., Any]) -> autograd.RemovableHandle:
        """hook(module, gradients of the inputs, gradients of the outputs) in each backward; of one input and output."""
        autograd.callable_or_error(hook)

        def watch(module: Module, args: tuple[Any, ...], y: Any) -> None:
            grads: dict[str, Tensor] = {}
            if isinstance(y, Tensor) and y.requires_grad:
                y.register_hook(lambda g: grads.__setitem__("y", g))
            if args and isinstance(args[0], Tensor) and args[0].requires_grad:
                args[0].register_hook(lambda g: (hook(module, (g,), (grads.get("y"),)) or (None,))[0])
        return self.register_forward_hook(watch)

    def train(self: M, mode: bool = True) -> M:
        """Dropout and batch norms behave as in training."""
        for m in self.modules():
            m.training = mode
        return self

    def eval(self: M) -> M:
        """... as in use."""
        return self.train(False)

    def apply(self: M, function: Callable[[Module], Any]) -> M:
        """function(module) for it and everything below."""
        for m in self.children():
            m.apply(function)
        function(self)
        return self

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Says of all parameters whether gradients by them are wanted."""
        for p in self.parameters():
            p.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of its parameters."""
        for p in self.parameters():
            p.grad = None if set_to_none or p.grad is None else p.grad * 0.0

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Parameters and buffers of another dtype, which integers keep, on another device.  Parameters stay what optimizers know."""
        def moved(t: Tensor) -> Tensor:
            return t.to(*args, **kwargs) if t.dtype.is_floating_point else t.to(Tensor(0.0, device=t.device).to(*args, **kwargs).device)
        for m in self.modules():
            for p in m._parameters.values():
                if p is not None:
                    grad = p.grad
                    p.data = moved(p.detach())
                    p.grad = None if grad is None else moved(grad)
            for name, t in m._buffers.items():
                if t is not None:
                    m._buffers[name] = moved(t.detach())
        return self

    def float(self: M) -> M:
        """Floats as float32, in place."""
        return self.to("float32")

    def double(self: M) -> M:
        """Floats as float64, in place."""
        return self.to("float64")

    def half(self: M) -> M:
        """Floats as float16, in place."""
        return self.to("float16")

    def cpu(self: M) -> M:
        """On the CPU, in place."""
        return self.to("cpu")

    # -- state

    def state_dict(self, prefix: str = "") -> OrderedDict[str, Tensor]:
        """Parameters and buffers by name, in PyTorch's layout; the tensors are shared."""
        out: OrderedDict[str, Tensor] = OrderedDict()
        for path, m in self._walk(prefix.rstrip(".")):
            for part in (m._parameters, m._buffers):
                for name, t in part.items():
                    if t is not None and name not in m._transient:
                        out[f"{path}.{name}" if path else name] = t.detach()
        return out

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> tuple[list[str], list[str]]:
        """Takes over values by name; (missing, unexpected).  strict: neither may be."""
        own: dict[str, Tensor] = {}
        for path, m in self._walk():
            for part in (m._parameters, m._buffers):
                own.update({(f"{path}.{n}" if path else n): t for n, t in part.items() if t is not None and n not in m._transient})
        missing = [k for k in own if k not in state]
        unexpected = [k for k in state if k not in own]
        values = {k: _value(state[k]) for k in own if k in state}
        wrong = [f"{k}: {v.shape} instead of {own[k].shape}" for k, v in values.items() if v.shape != own[k].shape]
        told = wrong + ([f"missing: {', '.join(missing)}"] if strict and missing else []) \
            + ([f"unexpected: {', '.join(unexpected)}"] if strict and unexpected else [])
        if told:
            raise _facula.ArgumentError(f"{type(self).__name__}: the state does not fit: " + "; ".join(told))
        with autograd.no_grad():
            for k, v in values.items():
                own[k].copy_(v)
        return missing, unexpected

    def save(self, path: Any) -> None:
        """The state as a file of safetensors."""
        from ..files import save
        save(self.state_dict(), path)

    def load(self: M, path: Any, strict: bool = True) -> M:
        """The state from a file: safetensors, npz or PyTorch's."""
        from ..files import load_weights
        self.load_state_dict(load_weights(path), strict)
        return self

    def export(self, path: Any, example: Any = None, **options: Any) -> Any:
        """Writes the network as an ONNX model; example: an input or its shape."""
        from ..export import export
        return export(self, path, example, **options)

    def summary(self, input_size: Any) -> Any:
        """Its layers and what they cost; see facula.summary."""
        from ..tools import summary
        return summary(self, input_size)

    def loss(self, x: Any, y: Any) -> Tensor:
        """The usual loss of a batch: cross entropy with labels (integers), squared distance from floats."""
        from . import functional as F
        out = self(x)
        target = y if isinstance(y, Tensor) else Tensor(y)
        return F.cross_entropy(out, target) if not target.dtype.is_floating_point or target.shape != out.shape else F.mse_loss(out, target)

    def extra_repr(self) -> str:
        """What repr says in brackets; for classes of your own."""
        return ""

    def __repr__(self) -> str:
        inner = [f"({n}): " + repr(m).replace("\n", "\n  ") for n, m in self._modules.items()]
        extra = self.extra_repr()
        if not inner:
            return f"{type(self).__name__}({extra})"
        lines = ([extra] if extra else []) + inner
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"

    def _repr_html_(self) -> str:
        from .picture import tree
        return tree(self)


def _value(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else tensor(x.detach().numpy() if hasattr(x, "detach") else x)    # a copy, as PyTorch makes
