#!/usr/bin/env python3
"""Convolutions and products of few bits on a GPU: rates, and times beside our own in bf16.

    python bench/gpu_bits.py --facula build/facula [--peak PROGRAM] [--rounds 3] [--seconds 0.3] [--solver NAME] [--json FILE] [TEXT...]

Chains of layers that read codes and give codes, so that launches overlap as they do within a network; times are those of one layer, the
least of all rounds, in which floats and bits take turns.  A product n x n x n is a 1 x 1 convolution of n images of one pixel.  TOPS
counts an operation of numbers as two, as it does for floats; bit TOPS counts each plane of weights by each plane of activations.
TEXT selects the rows whose name contains it.  --solver compares a solver, conv2d_codes/wgmma, mma or count, with the planner's choice.
--peak runs a program first and prints what it says: bench/programs/bits_peak.cu, which finds what the card can do at most.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

LAYERS = 6
KINDS = [("W1A1", 1, 1), ("xnor", 1, 0), ("W1A2", 1, 2), ("W2A2", 2, 2)]
SHAPES = [("3x3, 64 x 256 x 56 x 56", 64, 256, 56, 3), ("3x3, 64 x 256 x 28 x 28", 64, 256, 28, 3),
          ("3x3, 64 x 256 x 14 x 14", 64, 256, 14, 3), ("product 4096^3", 4096, 4096, 1, 1),
          ("product 8192^3", 8192, 8192, 1, 1)]


def bits_chain(images, channels, size, window, weights, inputs):
    planes, words = max(inputs, 1), channels // 32
    levels = "f32{" + ", ".join(str(0.25 * 2**j) for j in range(inputs)) + "}" if inputs else "-"
    row = (channels * window * window + 7) // 8
    lines, calls, last = [f"input x u32[{planes},{images},{size},{size},{words}]"], [], "x"
    for k in range(LAYERS):
        lines += [f"param w{k} u8[{weights},{channels},{row}]", f"param v{k} f32[{weights},{channels}]",
                  f"param s{k} f32[{channels}]", f"param b{k} f32[{channels}]"]
        limits = "-"
        if weights == 1:
            reach = channels * window * window * (2**planes - 1)
            calls.append(f"%{3 * k} = code_limits(v{k}, {levels}, s{k}, b{k}, {levels}) reach={reach}")
            limits = f"%{3 * k}"
        pad = window // 2
        calls.append(f"%{3 * k + 1}, %{3 * k + 2} = conv2d_codes({last}, w{k}, b{k}, {levels}, v{k}, s{k}, -, {levels}, {limits}) "
                     f"pad={pad},{pad},{pad},{pad} dims={channels},{channels},{window},{window}")
        last = f"%{3 * k + 1}"
    return "\n".join(lines + calls + [f"output y = {last}", ""])


def float_chain(images, channels, size, window):
    lines, calls, last, pad = [f"input x bf16[{images},{channels},{size},{size}]"], [], "x", window // 2
    for k in range(LAYERS):
        lines += [f"param w{k} bf16[{channels},{channels},{window},{window}]", f"param b{k} bf16[{channels}]"]
        calls += [f"%{2 * k} = conv2d({last}, w{k}, b{k}) pad={pad},{pad},{pad},{pad}", f"%{2 * k + 1} = relu(%{2 * k})"]
        last = f"%{2 * k + 1}"
    return "\n".join(lines + calls + [f"output y = {last}", ""])


def timed(a, path, solver):
    """Least milliseconds of a layer."""
    command = [a.facula, "bench", str(path), "--device", a.device, "--seconds", str(a.seconds), "--json"]
    if solver:
        command += ["--solver", solver]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{path.name}: {done.stderr.strip()}")
    return json.loads(done.stdout)["min_ms"] / LAYERS


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--peak", metavar="PROGRAM")
    p.add_argument("--solver")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--json", metavar="FILE")
    a = p.parse_args()
    if a.peak:
        print(subprocess.run([a.peak], check=True, capture_output=True, text=True).stdout, flush=True)
    print("| layer | bits | us | TOPS | bit TOPS | bf16 us | bf16 TOPS | bf16 / bits |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, images, channels, size, window in SHAPES:
            if a.names and not any(n in name for n in a.names):
                continue
            ops = 2.0 * images * size * size * channels * channels * window * window
            paths = {"bf16": pathlib.Path(folder) / "bf16.txt"}
            paths["bf16"].write_text(float_chain(images, channels, size, window))
            for kind, weights, inputs in KINDS:
                paths[kind] = pathlib.Path(folder) / f"{kind}.txt"
                paths[kind].write_text(bits_chain(images, channels, size, window, weights, inputs))
            best = {}
            for _ in range(a.rounds):
                for kind, path in paths.items():
                    ms = timed(a, path, a.solver if kind != "bf16" else None)
                    best[kind] = min(best.get(kind, ms), ms)
            floats = best["bf16"]
            for kind, weights, inputs in KINDS:
                ms, pairs = best[kind], weights * max(inputs, 1)
                row = dict(layer=name, bits=kind, us=1e3 * ms, tops=1e-9 * ops / ms, bit_tops=1e-9 * ops * pairs / ms,
                           bf16_us=1e3 * floats, bf16_tops=1e-9 * ops / floats, ratio=floats / ms)
                rows.append(row)
                print(f"| {name} | {kind} | {row['us']:.1f} | {row['tops']:.0f} | {row['bit_tops']:.0f} | {row['bf16_us']:.1f} | "
                      f"{row['bf16_tops']:.0f} | {row['ratio']:.2f} |", flush=True)
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
