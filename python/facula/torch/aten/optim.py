"""Rows of optimizers: the calls over lists of tensors, and the fused steps.

A row of a call that writes gives {argument: values}: what each tensor of that argument becomes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph import Graph, Operand, Refused, Value, kind
from . import elementwise as e
from . import unary  # noqa: F401  (its rows are read below)
from .table import row, rows

Each = Callable[..., Value]


def _list(x: Any, n: int) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x] * n


def _foreach(name: str, function: Each, overloads: str, most: int = 9) -> None:
    """_foreach_NAME: function on each tensor, the other arguments lists or one for all."""
    def run(g: Graph, xs: list[Value], *rest: Any) -> list[Value]:
        columns = [_list(r, len(xs)) for r in rest[:most]]
        return [g.cast(function(g, x, *[c[i] for c in columns]), x.dt) if name not in ("div", "sqrt") else
                function(g, x, *[c[i] for c in columns]) for i, x in enumerate(xs)]
    for o in overloads.split():
        rows[f"_foreach_{name}{'' if o == '-' else '.' + o}"] = run


_foreach("add", lambda g, x, y, alpha=1: e.add(g, x, y, alpha), "Scalar List ScalarList Tensor")
_foreach("sub", lambda g, x, y, alpha=1: e.sub(g, x, y, alpha), "Scalar List ScalarList")
_foreach("mul", lambda g, x, y: e.mul(g, x, y), "Scalar List ScalarList Tensor")
_foreach("div", lambda g, x, y: g.div(x, y), "Scalar List ScalarList Tensor")
_foreach("maximum", lambda g, x, y: e.maximum(g, x, y), "Scalar List ScalarList")
_foreach("minimum", lambda g, x, y: e.minimum(g, x, y), "Scalar List ScalarList")
_foreach("clamp_min", lambda g, x, y: e.maximum(g, x, y), "Scalar List ScalarList")
_foreach("clamp_max", lambda g, x, y: e.minimum(g, x, y), "Scalar List ScalarList")
_foreach("lerp", lambda g, x, y, w: e.lerp(g, x, y, w), "Scalar List ScalarList")
_foreach("addcmul", lambda g, x, a, b, v=1: e.addcmul(g, x, a, b, v), "Scalar ScalarList")
_foreach("addcdiv", lambda g, x, a, b, v=1: e.addcdiv(g, x, a, b, v), "Scalar ScalarList")
_foreach("pow", lambda g, x, y: e.power(g, x, y), "Scalar List ScalarList")
_foreach("copy", lambda g, x, y, nb=False: g.expand(g.cast(y, x.dt), x.shape), "-")
_foreach("zero", lambda g, x: g.full(x.shape, 0, x.dt), "-")
_foreach("norm", lambda g, x, p=2, dt=None: rows["linalg_vector_norm"](g, x, p, None, False, dt), "Scalar")
for _name in "sqrt exp abs neg reciprocal rsqrt sign floor ceil round trunc log sigmoid tanh sin cos".split():
    _foreach(_name, (lambda f: lambda g, x: f(g, x))(rows[_name]), "-")


# ---- fused steps -----------------------------------------------------------------------------------------------


def _scaled(g: Graph, grads: list[Value], scale: Value | None, found: Value | None) -> list[Value]:
    if found is not None:
        raise Refused("a gradient scaler in a fused step")
    return grads if scale is None else [g.div(d, g.cast(scale, d.dt)) for d in grads]


def _adam_one(g: Graph, p: Value, d: Value, m: Value, v: Value, step: Value, lr: Operand, b1: float, b2: float, decay: float, eps: float,
              maximize: bool, decoupled: bool) -> tuple[Value, Value, Value]:
    d = g.op("neg", d) if maximize else d
    if decay:
        if decoupled:
            p = g.sub(p, g.mul(p, g.cast(g.mul(lr, decay), p.dt) if isinstance(lr, Value) else lr * decay))
        else:
            d = g.add(d, g.mul(p, decay))
    m = g.add(m, g.mul(g.sub(d, m), 1 - b1))
    v = g.add(g.mul(v, b2), g.mul(g.mul(d, d), 1 - b2))
    t = g.cast(step, p.dt)
    c1 = g.sub(1, g.op("exp", g.mul(t, _log(b1))))
    c2 = g.op("sqrt", g.sub(1, g.op("exp", g.mul(t, _log(b2)))))
    size = g.div(g.cast(lr, p.dt) if isinstance(lr, Value) else lr, c1)
    return g.sub(p, g.mul(size, g.div(m, g.add(g.div(g.op("sqrt", v), c2), eps)))), m, v


def _log(b: float) -> float:
    import math
    if not 0 < b < 1:
        raise Refused("a rate of decay that is 0")
    return math.log(b)


def _adam(decoupled: bool) -> Any:
    def function(g: Graph, ps: list[Value], ds: list[Value], ms: list[Value], vs: list[Value], maxes: list[Value], steps: list[Value],
                 lr: Operand, beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
                 grad_scale: Value | None = None, found_inf: Value | None = None) -> dict[int, list[Value]]:
        if amsgrad:
            raise Refused("amsgrad in a fused step")
        ds = _scaled(g, ds, grad_scale, found_inf)
        out = [_adam_one(g, *four, lr, beta1, beta2, weight_decay, eps, maximize, decoupled) for four in zip(ps, ds, ms, vs, steps)]
        return {0: [o[0] for o in out], 2: [o[1] for o in out], 3: [o[2] for o in out]}
    return function


rows["_fused_adam_"] = rows["_fused_adam_.tensor_lr"] = _adam(False)
rows["_fused_adamw_"] = rows["_fused_adamw_.tensor_lr"] = _adam(True)


@row("_fused_sgd_", "_fused_sgd_.tensor_lr")
def fused_sgd(g: Graph, ps: list[Value], ds: list[Value], bufs: list[Value], weight_decay: float, momentum: float, lr: Operand,
              dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Value | None = None,
              found_inf: Value | None = None) -> dict[int, list[Value]]:
    ds = _scaled(g, ds, grad_scale, found_inf)
    next_p, next_b = [], []
    for i, (p, d) in enumerate(zip(ps, ds)):
        d = g.op("neg", d) if maximize else d
        d = g.add(d, g.mul(p, weight_decay)) if weight_decay else d
        if momentum:
            b = d if is_first_step else g.add(g.mul(bufs[i], momentum), g.mul(d, 1 - dampening))
            d = g.add(d, g.mul(b, momentum)) if nesterov else b
            next_b.append(b)
        next_p.append(g.sub(p, g.mul(d, g.cast(lr, p.dt) if isinstance(lr, Value) else lr)))
    return {0: next_p, 2: next_b} if momentum else {0: next_p}


# ---- gradient scalers ----------------------------------------------------------------------------------------------


@row("_amp_foreach_non_finite_check_and_unscale")
def unscale(g: Graph, xs: list[Value], found: Value, inverse: Value) -> dict[int, Any]:
    """Gradients by 1 / scale, and 1 where one of them is no number."""
    for x in xs:
        if kind(x.dt) != 2 or not x.count:
            raise Refused("gradients that are no numbers")
        no_number = g.op("not", rows["isfinite"](g, x))
        found = g.op("max", found, g.cast(g.reduce("reduce_max", g.cast(no_number, "u8"), list(range(x.rank))) if x.rank else no_number, found.dt))
    return {0: [g.cast(g.mul(g.cast(x, "f32") if x.dt in ("f16", "bf16") else x, inverse), x.dt) for x in xs], 1: found}


@row("_amp_update_scale")
def update_scale(g: Graph, scale: Value, steps: Value, found: Value, growth: float, backoff: float, interval: int) -> dict[int, Value]:
    bad = g.compare("greater", found, 0)
    more, larger = g.add(steps, 1), g.mul(scale, growth)
    due = g.compare("equal", more, interval)
    grown = g.where(g.op("and", due, rows["isfinite"](g, larger)), larger, scale)
    return {0: g.where(bad, g.mul(scale, backoff), grown), 1: g.where(g.op("or", bad, due), 0, more)}
