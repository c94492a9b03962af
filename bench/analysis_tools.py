#!/usr/bin/env python3
"""Counting, simplifying, cutting, comparing and shrinking models, beside the tools that people use for it, as Markdown tables.

    python bench/analysis_tools.py --facula build/facula --models DIR [--rounds 3] [--only count,simplify,extract,verify,reduce]
                                   [--networks resnet18,resnet50,mobilenet_v2]

DIR holds torchvision's networks as NAME.onnx (bench/cpu_networks.py makes them).  A rival's time is that of its call alone, in a
process in which Python, its packages and, where it takes a module, the network are there already; facula's is that of its
process from start to end, reading included.  Polygraphy is a program too and is measured as one.  Memory is the process's most.
Medians of rounds, in which the tools take turns.  Counts must be equal to the unit: it is an error when they are not.
Tools that are not installed are left out.  Needs numpy and onnx; for the rest whatever is there of torch and torchvision with
torchinfo, ptflops, fvcore, thop, and of onnx-tool, onnxsim, onnxslim, onnx_graphsurgeon, polygraphy, onnxruntime.
"""
import argparse
import importlib.util
import json
import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scripts", "peers"))
from check_simplify import RIVALS, count, forked, launched, launcher     # noqa: E402

SHAPE = (1, 3, 224, 224)
POLYGRAPHY = os.path.join(os.path.dirname(sys.executable), "polygraphy")


def there(*modules):
    return all(importlib.util.find_spec(m) for m in modules)


def middle(made):
    """Median time and memory of rounds, and what the last one printed."""
    for code, _, _, text in made:
        if code:
            raise SystemExit(f"a tool failed: {text.strip()[-400:]}")
    return statistics.median(m[1] for m in made), statistics.median(m[2] for m in made), made[-1][3]


def turns(a, tools):
    """{name: (seconds, bytes, text)} of {name: function or command}."""
    made = {name: [] for name in tools}
    for _ in range(a.rounds):
        for name, work in tools.items():
            made[name].append(forked(work) if callable(work) else launched(a.launcher, work))
    return {name: middle(m) for name, m in made.items()}


def rows(work, what, made, note=lambda name: ""):
    ours = made["facula"]
    for name, (seconds, memory, _) in made.items():
        if name != "facula":
            yield (work, what, name, f"{1e3 * seconds:.0f}", f"{1e3 * ours[0]:.0f}", f"{seconds / ours[0]:.1f}",
                   f"{memory / 1e6:.0f}", f"{ours[1] / 1e6:.0f}", note(name))


# ---- counting ----

def counters(net, path):
    """{tool: (convention, function that prints a number)}"""
    import numpy
    import torch
    x = torch.zeros(SHAPE)

    def torchinfo():
        import torchinfo as tool
        print(tool.summary(net, input_size=SHAPE, verbose=0).total_mult_adds)

    def ptflops():
        import ptflops as tool
        print(int(tool.get_model_complexity_info(net, SHAPE[1:], as_strings=False, print_per_layer_stat=False, verbose=False,
                                                 backend="pytorch")[0]))

    def fvcore():
        from fvcore.nn import FlopCountAnalysis
        print(int(FlopCountAnalysis(net, x).unsupported_ops_warnings(False).uncalled_modules_warnings(False).total()))

    def thop():
        import thop as tool
        print(int(tool.profile(net, (x,), verbose=False)[0]))

    def onnx_tool():
        import onnx_tool as tool
        m = tool.Model(path, {"verbose": False})
        m.graph.shape_infer({m.graph.input[0]: numpy.zeros(SHAPE, "float32")})
        m.graph.profile()
        print(int(m.graph.macs[0]))
    return {"torchinfo": ("torchinfo", torchinfo), "ptflops": ("ptflops", ptflops), "fvcore": ("fvcore", fvcore),
            "thop": ("thop", thop), "onnx_tool": ("onnx-tool", onnx_tool)}


def counting(a):
    if not there("torch", "torchvision"):
        return
    import torch
    import torchvision
    torch.set_num_threads(1)
    for tool in ("torchinfo", "ptflops", "fvcore.nn", "thop", "onnx_tool"):
        if there(tool.split(".")[0]):
            importlib.import_module(tool)
    for name in a.networks:
        more = {"init_weights": False} if name == "googlenet" else {}
        net, path = torchvision.models.get_model(name, weights=None, **more).eval(), os.path.join(a.models, name + ".onnx")
        for tool, (convention, work) in counters(net, path).items():
            if not there(tool):
                continue
            model = path if tool == "onnx_tool" else "zoo:" + name
            made = turns(a, {"facula": [a.facula, "summary", model, "--convention", convention, "--json"], tool: work})
            ours, theirs = json.loads(made["facula"][2])["macs"], int(made[tool][2].split()[-1])
            if ours != theirs:
                raise SystemExit(f"{name}: {tool} counts {theirs}, facula {ours}")
            yield from rows("count", name, made, lambda _: f"{ours:,} both")


# ---- rewriting ----

def simplifying(a):
    tools = [r for r in RIVALS if there(r)]
    for r in tools:
        importlib.import_module(r)
    for name in a.networks:
        path, to = os.path.join(a.models, name + ".onnx"), {t: os.path.join(a.folder, t + ".onnx") for t in ["facula"] + tools}
        work = {"facula": [a.facula, "edit", path, "--simplify", "-o", to["facula"]]}
        work.update({t: (lambda t=t: RIVALS[t](path, to[t])) for t in tools})
        made = turns(a, work)
        nodes = {t: sum(count(to[t]).values()) for t in to}
        yield from rows("simplify", name, made, lambda t: f"nodes {nodes['facula']}, {t} {nodes[t]}")


def part_of(path):
    """The second half of a model: names of the value where it begins and of its output."""
    import onnx
    g = onnx.load(path, load_external_data=False).graph
    reads = {}
    for n in g.node:
        for i in n.input:
            reads[i] = reads.get(i, 0) + 1
    relus = [n.output[0] for n in g.node if n.op_type in ("Relu", "Clip", "MaxPool") and reads.get(n.output[0]) == 1]
    return relus[len(relus) // 2], g.output[0].name


def extracting(a):
    import onnx
    import onnx.utils
    surgeon = there("onnx_graphsurgeon")
    if surgeon:
        import onnx_graphsurgeon
    for name in a.networks:
        path, to = os.path.join(a.models, name + ".onnx"), os.path.join(a.folder, "part.onnx")
        inner = os.path.join(a.folder, "inferred.onnx")         # both rivals need the types of values in the file
        onnx.shape_inference.infer_shapes_path(path, inner)
        start, end = part_of(inner)

        def cut():
            g = onnx_graphsurgeon.import_onnx(onnx.load(inner))
            tensors = g.tensors()
            g.inputs, g.outputs = [tensors[start]], [tensors[end]]
            tensors[start].inputs.clear()
            g.cleanup()
            onnx.save(onnx_graphsurgeon.export_onnx(g), to)
        work = {"facula": [a.facula, "edit", path, "--part", f"{start}->{end}", "-o", to],
                "onnx.utils": lambda: onnx.utils.extract_model(inner, to, [start], [end], check_model=False)}
        if surgeon:
            work["graphsurgeon"] = cut
        yield from rows("extract", name, turns(a, work))


# ---- comparing, shrinking ----

def comparing(a):
    if not os.path.exists(POLYGRAPHY) or not there("onnxruntime"):
        return
    for name in a.networks:
        path, other = os.path.join(a.models, name + ".onnx"), os.path.join(a.folder, "other.onnx")
        launched(a.launcher, [a.facula, "edit", path, "--simplify", "-o", other])
        saved = os.path.join(a.folder, "outputs.json")
        both = (f"{POLYGRAPHY} run {path} --onnxrt --save-outputs {saved} && "
                f"{POLYGRAPHY} run {other} --onnxrt --load-outputs {saved} --rtol 1e-4 --atol 1e-4")
        made = turns(a, {"facula": [a.facula, "verify", path, other, "--mode", "data"], "polygraphy": ["sh", "-c", both]})
        yield from rows("compare outputs", name, made, lambda _: "both: the same")


def shrinking(a):
    if not os.path.exists(POLYGRAPHY):
        return
    for name in a.networks:
        path = os.path.join(a.models, name + ".onnx")
        to = {t: os.path.join(a.folder, t + "_small.onnx") for t in ("facula", "polygraphy")}
        check = "grep -aq GlobalAveragePool"
        work = {"facula": [a.facula, "reduce", path, "--check", check + " {}", "-o", to["facula"]],
                "polygraphy": ["sh", "-c", f"cd {a.folder} && {POLYGRAPHY} debug reduce {path} --mode bisect "
                               f"-o {to['polygraphy']} --check sh -c '! {check} polygraphy_debug.onnx'"]}
        made = turns(a, work)
        nodes = {t: sum(count(p).values()) if os.path.exists(p) else "?" for t, p in to.items()}
        bytes_ = {t: os.path.getsize(p) if os.path.exists(p) else 0 for t, p in to.items()}
        yield from rows("reduce", name, made, lambda t: f"nodes {nodes['facula']}, {t} {nodes[t]}; bytes {bytes_['facula']:,}, "
                                                        f"{bytes_[t]:,}")


PARTS = {"count": counting, "simplify": simplifying, "extract": extracting, "verify": comparing, "reduce": shrinking}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--models", default=os.path.expanduser("~/.cache/facula/bench"))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", default=",".join(PARTS))
    p.add_argument("--networks", default="resnet18,resnet50,mobilenet_v2")
    a = p.parse_args()
    a.facula, a.models, a.networks = os.path.abspath(a.facula), os.path.abspath(a.models), a.networks.split(",")
    a.launcher = launcher()
    print("| work | model | tool | tool ms | facula ms | tool / facula | tool MB | facula MB | |\n|" + " --- |" * 9, flush=True)
    with tempfile.TemporaryDirectory() as a.folder:
        for part in a.only.split(","):
            for row in PARTS[part](a):
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
