"""Each row of the aten table against torch: a mode that computes every call of torch twice."""
from __future__ import annotations

import collections
import math
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

import facula
from facula import _facula
from facula.torch.aten.call import bound, row_name, short, write
from facula.torch.aten import rows
from facula.torch.graph import Graph, Refused, Value
from facula.torch.parts import Part

UNINITIALISED = {"empty.memory_format", "empty_strided", "empty_like", "new_empty", "empty_permuted"}
LOOSE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def functional(name: str) -> str:
    """add_.Tensor -> add.Tensor."""
    op, _, tail = name.partition(".")
    base = op[:-1] if op.endswith("_") and not op.endswith("__") and not op.startswith("_fused") else op
    return f"{base}.{tail}" if tail else base


def apply(name, overload, args, kwargs, result, writes=False):
    """The row of this call on these tensors; raises Refused."""
    g, leaves = Graph(), {}

    def leaf(x):
        if not isinstance(x, torch.Tensor):
            return x
        if x.device.type != "cpu" or x.layout is not torch.strided or x.is_conj() or x.is_neg():
            raise Refused("not plain memory")
        if id(x) not in leaves:
            v = g.input(f"x{len(leaves)}", short(x.dtype), tuple(x.shape))
            v.weak = x.dim() == 0 and x.unsafeGetTensorImpl().is_wrapped_number() if hasattr(x, "unsafeGetTensorImpl") else False
            leaves[id(x)] = (x.detach().clone() if writes else x.detach(), v)
        return leaves[id(x)][1]

    full = tree_map(leaf, bound(overload._schema, args, kwargs))
    want = [(short(t.dtype), tuple(t.shape)) if isinstance(t, torch.Tensor) else None
            for t in (result if isinstance(result, (tuple, list)) else [result])]
    y = write(g, name, full, want)
    if isinstance(y, dict):
        raise Refused("a call that writes")
    ys = y if isinstance(y, list) else [y]
    outs = [v for v in ys if isinstance(v, Value)]
    for k, v in enumerate(outs):
        g.builder.output(f"y{k}", v.id)
    part = Part(g.builder.finish(), list(leaves), {}, [(k, v) for k, v in enumerate(outs)], None, "highest")
    got = iter(part.run(lambda key: leaves[key][0]))
    return [next(got) if isinstance(v, Value) else None for v in ys]


def largest(args) -> float:
    """Of the numbers in the tensors of a call."""
    sizes = [t.detach()[t.detach().isfinite()].abs() for t in tree_leaves(args) if isinstance(t, torch.Tensor) and t.dtype.is_floating_point]
    return max([s.max().item() for s in sizes if s.numel()], default=1.0)


def worst(got: torch.Tensor, want: torch.Tensor, operands: float = 1.0) -> float:
    """The largest difference over the largest value (at least 1), in multiples of what the dtype allows."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return math.inf
    if not want.dtype.is_floating_point:
        return 0.0 if torch.equal(got, want) else math.inf
    a, b = got.double(), want.double()
    if not torch.equal(a.isnan(), b.isnan()) or not torch.equal(a.isposinf(), b.isposinf()) or not torch.equal(a.isneginf(), b.isneginf()):
        return math.inf
    at = b.isfinite()
    if not at.any():
        return 0.0
    scale = max(1.0, operands, b[at].abs().max().item())
    return ((a - b)[at].abs().max().item() / scale) / LOOSE[want.dtype]


SHORT = (torch.bfloat16, torch.float16)


def in_floats(func, used):
    """What torch gives for the same numbers as f32.  Its kernels of 16 bits may round within: coordinates of a grid, say."""
    def wider(x):
        if isinstance(x, torch.dtype):
            return torch.float32 if x in SHORT else x
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach().float() if x.dtype in SHORT else x.detach().clone()
    args, kwargs = tree_map(wider, used)
    y = func(*args, **kwargs)
    return y if isinstance(y, (tuple, list)) else [y]


class Rows(TorchDispatchMode):
    """Counts in `native` and `other`, differences in `wrong`: [(row, how much, arguments)]."""

    def __init__(self):
        super().__init__()
        self.native, self.other = collections.Counter(), collections.Counter()
        self.refused, self.wrong, self.blocked = {}, [], set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload) or func.is_view:
            return func(*args, **kwargs)
        name = functional(row_name(func))
        writes = func._schema.is_mutable
        before = None
        if writes:
            before = tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, (args, kwargs))
        result = func(*args, **kwargs)
        if any(isinstance(t, torch.Tensor) and t.is_complex() for t in tree_leaves((args, kwargs, result))):
            self.blocked.add(name)
            self.refused[name] = "complex numbers"
            return result
        if name in UNINITIALISED:
            return result
        used = before if writes else (args, kwargs)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                got = apply(name, func, used[0], used[1], result)
            except Refused as why:
                self.other[name] += 1
                self.blocked.add(name)
                self.refused.setdefault(name, str(why))
                return result
            except _facula.Error as error:
                self.wrong.append((name, "error", str(error)[:300]))
                return result
        want = result if isinstance(result, (tuple, list)) else [result]
        self.native[name] += 1
        for k, (a, b) in enumerate(zip(got, want)):
            if a is None or not isinstance(b, torch.Tensor):
                continue
            if name == "sort" and k == 1:               # equal elements come in any order: what lies there counts
                x, dim = used[0][0], used[0][1] if len(used[0]) > 1 else used[1].get("dim", -1)
                a, b = (x.gather(dim, a), want[0]) if x.dim() else (a, b)
            off = worst(a, b.detach(), largest(used[0]))
            if off > 1 and b.dtype in SHORT:
                off = min(off, worst(a, in_floats(func, used)[k].to(b.dtype), largest(used[0])))
            if off > 1:
                shown = tree_map(lambda x: f"{str(x.dtype)[6:]}{list(x.shape)}" if isinstance(x, torch.Tensor) else x, (used[0], used[1]))
                self.wrong.append((name, f"output {k}: {off:.3g}", str(shown)[:200]))
        return result


RANDOM = ("empty", "rand", "normal", "bernoulli", "multinomial", "uniform", "dropout", "rrelu", "exponential", "cauchy", "geometric", "log_normal",
          "poisson", "jiterator", "sparse", "nested", "fractional")


def over_opinfo(dtypes=(torch.float32,), samples=4, only=None, ops=None, progress=None):
    """Runs samples of torch's op_db; gives {name: (native?, wrong rows)} and the mode with its counts."""
    from torch.testing._internal.common_methods_invocations import op_db
    total, entries = Rows(), {}
    torch.manual_seed(0)
    for op in ops or op_db:
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        if (only and name not in only and op.name not in only) or any(s in op.name for s in RANDOM):
            continue
        if progress:
            progress(name)
        mode, ran = Rows(), 0
        for dtype in dtypes:
            if not op.supports_dtype(dtype, "cpu"):
                continue
            try:
                some = []
                for s in op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd):
                    some.append(s)
                    if len(some) == samples:
                        break
                for s in some:
                    with mode:
                        y = op(s.input, *s.args, **s.kwargs)
                        leaf = s.input
                        if op.supports_autograd and isinstance(y, torch.Tensor) and y.requires_grad and isinstance(leaf, torch.Tensor) \
                                and leaf.requires_grad and not y.is_complex():
                            torch.autograd.grad(y.sum(), leaf, allow_unused=True)
                    ran += 1
            except Exception as error:      # what torch itself cannot do is no matter of ours
                entries.setdefault(name, ["torch", str(error)[:100]])
        if ran:
            entries[name] = ["wrong" if mode.wrong else "other" if mode.blocked else "native", sorted(mode.blocked)]
        total.native += mode.native
        total.other += mode.other
        total.refused.update({k: v for k, v in mode.refused.items() if k not in total.refused})
        total.wrong += mode.wrong
    return entries, total


def main():
    import argparse
    import sys
    p = argparse.ArgumentParser(description="every sample of torch's operators against the rows of the table")
    p.add_argument("--only", nargs="*")
    p.add_argument("--samples", type=int, default=4)
    p.add_argument("--dtypes", nargs="*", default=["float32"])
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--entries", action="store_true", help="says of each entry what torch computed")
    a = p.parse_args()
    torch.set_num_threads(1)
    facula.set_num_threads(1)
    warnings.filterwarnings("ignore")
    show = (lambda name: print(name, file=sys.stderr, flush=True)) if a.verbose else None
    entries, mode = over_opinfo([getattr(torch, d) for d in a.dtypes], a.samples, a.only, progress=show)
    counts = collections.Counter(e[0] for e in entries.values())
    print("entries", len(entries), dict(counts), "rows used", len(mode.native), "of", len(rows), "wrong", len(mode.wrong))
    seen = collections.Counter()
    for name, how, args in mode.wrong:
        seen[name] += 1
        if seen[name] <= 3:
            print("WRONG", name, how, args)
    for name, (how, blocked) in entries.items():
        if a.entries and how in ("other", "wrong"):
            print(f"{how} {name}: {', '.join(blocked)}")
    blockers = collections.Counter(b for e in entries.values() for b in e[1] if e[0] in ("other", "wrong"))
    print("blocked by:", ", ".join(f"{k} {n} ({mode.refused.get(k, '')[:60]})" for k, n in blockers.most_common(70)))


if __name__ == "__main__":
    main()
