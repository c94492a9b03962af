"""Layers of few bits against the same layers in floats: low_bits.py FACULA [--threads N] [--rounds N] [--isa NAME].

Chains of six 3 x 3 convolutions, so that operands lie as they do within a network.  Both run in turn, so that they see the
same machine; the time of a run is the least of all rounds.  W1A1 is with learned levels, xnor with signs; even: levels of
activations lie evenly, and are constants.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

LAYERS = 6
SHAPES = [(64, 56), (128, 28), (256, 14), (512, 7)]
KINDS = [("W1A1", 1, 1), ("xnor", 1, 0), ("W1A2", 1, 2), ("W1A2 even", 1, 2), ("W2A2", 2, 2), ("W2A2 even", 2, 2)]


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
        basis = "-"
        if inputs and even:
            basis = "f32{" + ", ".join(str(0.25 * 2**j) for j in range(inputs)) + "}"
        elif inputs:
            lines.append(f"param u{k} f32[{inputs}]")
            basis = f"u{k}"
        calls.append(f"%{k} = conv2d_basis({last}, w{k}, b{k}, {basis}, v{k}, s{k}) pad=1,1,1,1 "
                     f"dims={channels},{channels},3,3 relu")
        last = f"%{k}"
    return "\n".join(lines + calls + [f"output y = {last}", ""])


def least(args, path):
    command = [args.facula, "bench", str(path), "--threads", str(args.threads), "--seconds", "0.5", "--json"]
    if args.isa:
        command += ["--isa", args.isa]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["min_ms"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("facula")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--isa")
    args = parser.parse_args()
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
