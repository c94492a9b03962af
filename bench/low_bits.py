"""Layers of few bits against the same layers in floats:
low_bits.py FACULA [--layers] [--threads N] [--rounds N] [--isa NAME] [--json FILE --machine TEXT].

Chains of six 3 x 3 convolutions, so that operands lie as they do within a network.  Both run in
turn, so that they see the same machine; the time of a run is the least of all rounds.  W1A1 is with
learned levels, xnor with signs; even: levels of activations lie evenly, and are constants.
--layers: single layers that read codes and give codes, instead of chains, by counts and by tables.
--json writes the ratios of the faster way into FILE, docs/benchmarks/bits.json; then
scripts/benchmarks_page.py makes the page of it.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import tempfile

import record

LAYERS = 6
SHAPES = [(64, 56), (128, 28), (256, 14), (512, 7)]
KINDS = [("W1A1", 1, 1), ("xnor", 1, 0), ("W1A2", 1, 2), ("W1A2 even", 1, 2), ("W2A2", 2, 2), ("W2A2 even", 2, 2)]


FREE = [0.3, 0.65, 1.4, 2.7]  # near those of LQ-Nets after a relu, and no multiples


def constant(inputs, even):
    numbers = [0.25 * 2**j for j in range(inputs)] if even else FREE[:inputs]
    return "f32{" + ", ".join(map(str, numbers)) + "}"


def chain(channels, size, weights=0, inputs=0, even=False):
    """The text of a graph; weights 0: in floats."""
    lines = [f"input x f32[1,{channels},{size},{size}]"]
    calls = []
    last = "x"
    for k in range(LAYERS):
        lines.append(f"param b{k} f32[{channels}]")
        if not weights:
            lines.append(f"param w{k} f32[{channels},{channels},3,3]")
            calls += [f"%{2 * k} = conv2d({last}, w{k}, b{k}) pad=1,1,1,1", f"%{2 * k + 1} = relu(%{2 * k})"]
            last = f"%{2 * k + 1}"
            continue
        lines += [f"param w{k} u8[{weights},{channels},{(channels * 9 + 7) // 8}]",
                  f"param v{k} f32[{weights},{channels}]", f"param s{k} f32[{channels}]"]
        basis = constant(inputs, even) if inputs else "-"
        calls.append(f"%{k} = conv2d_basis({last}, w{k}, b{k}, {basis}, v{k}, s{k}) pad=1,1,1,1 "
                     f"dims={channels},{channels},3,3 relu")
        last = f"%{k}"
    return "\n".join(lines + calls + [f"output y = {last}", ""])


def layer(channels, size, weights=0, inputs=0, even=False):
    """A problem: a layer between codes; weights 0: in floats."""
    if not weights:
        return (f"conv2d(f32[1,{channels},{size},{size}], f32[{channels},{channels},3,3], f32[{channels}]) "
                "pad=1,1,1,1 {relu}")
    basis = constant(inputs, even)
    limits = f"i32[{2**inputs},{channels}]" if weights == 1 and (even or inputs == 1) else "-"
    return (f"conv2d_codes(u32[{inputs},1,{size},{size},{channels // 32}], u8[{weights},{channels},{channels * 9 // 8}], "
            f"f32[{channels}], {basis}, f32[{weights},{channels}], f32[{channels}], -, {basis}, {limits}) "
            f"pad=1,1,1,1 dims={channels},{channels},3,3 y_relu")


LAYER_KINDS = [("W1A1", 1, 1, True), ("W1A2 even", 1, 2, True), ("W1A2", 1, 2, False),
               ("W2A2 even", 2, 2, True), ("W2A2", 2, 2, False)]
GOALS = {"W1A1": 5, "W1A2": 3.5, "W2A2": 2}
GOAL_SHAPES = SHAPES[1:3]


def shape_name(channels, size):
    return f"{channels} x {size} x {size}"


def layer_times(args, channels, size):
    """Least times in us: of "float", and of each kind and way."""
    jobs = {"float": (layer(channels, size), [])}
    for name, weights, inputs, even in LAYER_KINDS:
        for way in ("bits", "tables"):
            solver = ["--solver", f"conv2d_codes/{way}"]
            jobs[name, way] = (layer(channels, size, weights, inputs, even), solver)
    best = {}
    for _ in range(args.rounds):
        for name, (problem, more) in jobs.items():
            us = 1e3 * least(args, problem, more)
            best[name] = min(best.get(name, us), us)
    return best


def row_of(args, name, times):
    """A row as bench/record.py says: ratios of the way that is faster at most shapes."""
    ratio = {way: {shape_name(*s): round(t["float"] / t[name, way], 2) for s, t in times.items()}
             for way in ("bits", "tables")}
    way = max(ratio, key=lambda w: sum(ratio[w].values()))
    short = name.removesuffix(" even")
    levels = {short: ", any levels", "W1A1": ""}.get(name, ", even levels")
    one = "" if args.threads == 1 else f"_{args.threads}"
    isa = f"_{args.isa}" if args.isa else ""
    more = f" --isa {args.isa}" if args.isa else ""
    row = dict(id=f"bits{isa}{one}." + name.lower().replace(" ", "_"), machine=args.machine,
               work=f"{short}{levels}, " + {"bits": "counted", "tables": "tables"}[way],
               peer="facula in floats", date=datetime.date.today().isoformat(),
               command=f"python bench/low_bits.py build/facula --layers --threads {args.threads}"
                       f" --rounds {args.rounds} --seconds {args.seconds}{more}")
    if not args.isa:
        row["goal"] = {shape_name(*s): GOALS[short] for s in GOAL_SHAPES}
    elif name == "W1A1":
        row["goal"] = 4
    return row | dict(page=False, values=ratio[way])


def write_rows(args, times):
    table = record.load(args.json)
    rows = {row["id"]: row for row in table["rows"]}
    for name, *_ in LAYER_KINDS:
        row = row_of(args, name, times)
        rows[row["id"]] = row
    table["rows"] = list(rows.values())
    record.save(args.json, table)


def layers(args):
    ways = [(name, way) for name, *_ in LAYER_KINDS for way in ("bits", "tables")]
    heads = " | ".join(f"{name} {way} us | ratio" for name, way in ways)
    print(f"| 3 x 3 layer | float us | {heads} |")
    print("| --- |" + " --- |" * (1 + 2 * len(ways)))
    times = {}
    for shape in SHAPES:
        best = times[shape] = layer_times(args, *shape)
        cells = [f"{best[way]:.0f} | {best['float'] / best[way]:.2f}" for way in ways]
        print(f"| {shape_name(*shape)} | {best['float']:.0f} | {' | '.join(cells)} |", flush=True)
    if args.json:
        write_rows(args, times)


def least(args, path, more=()):
    command = [args.facula, "bench", str(path), *more, "--threads", str(args.threads)]
    command += ["--seconds", str(args.seconds), "--json"]
    if args.isa:
        command += ["--isa", args.isa]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["min_ms"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("facula")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--isa")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--json", metavar="FILE", help="with --layers: the rows are written there")
    parser.add_argument("--machine", help="with --json: what it is, and how busy")
    args = parser.parse_args()
    if args.json and not (args.layers and args.machine):
        parser.error("--json needs --layers and --machine")
    if args.layers:
        layers(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for channels, size in SHAPES:
            for name, weights, inputs in [("float", 0, 0)] + KINDS:
                paths[channels, name] = pathlib.Path(folder) / f"{name}_{channels}.txt"
                paths[channels, name].write_text(chain(channels, size, weights, inputs, "even" in name))
        print("| 3 x 3 layer | float us | " + " | ".join(f"{name} us | ratio" for name, _, _ in KINDS) + " |")
        print("| --- |" + " --- |" * (1 + 2 * len(KINDS)))
        for channels, size in SHAPES:
            best = {}
            for _ in range(args.rounds):
                for name in ["float"] + [kind[0] for kind in KINDS]:
                    ms = least(args, paths[channels, name])
                    best[name] = min(best.get(name, ms), ms)
            us = {name: 1e3 * ms / LAYERS for name, ms in best.items()}
            cells = [f"{us[name]:.0f} | {us['float'] / us[name]:.2f}" for name, _, _ in KINDS]
            print(f"| {channels} x {size} x {size} | {us['float']:.0f} | " + " | ".join(cells) + " |", flush=True)


main()
