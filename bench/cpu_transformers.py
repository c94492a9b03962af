#!/usr/bin/env python3
"""Transformers on the CPU against ONNX Runtime: the same model file, the two programs take turns.

    python bench/cpu_transformers.py --facula build/facula [NAME...] [--models DIR] [--threads 2]
                                     [--rounds 5] [--seconds 1] [--before OTHER] [--json FILE]

Networks: those of bench/gpu_transformers.py, with its random weights and inputs, at batch 1.  Each
is exported to ONNX into DIR when it is not there.  A turn is --seconds long, and at least 3 runs.

    median    of the rounds' medians, milliseconds
    least     of all runs: what a machine that others use, too, hides least
    cpu       processor time of a run, the least of the rounds.  With two threads or more it counts
              what a thread waits for another that does not get its core; with one it does not
    ratios    ONNX Runtime's over facula's: the median of the rounds' ratios, of the least times, of
              the processor times
    peak      share of what the processor's multiply-adds could do (`facula peaks`), in the least
              time of both kinds
    error     the largest difference of the two results, relative to the largest value

--before is another build of facula, which takes turns, too.  Needs onnxruntime; and torch,
torchvision, transformers, onnx and onnxscript to make the models.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import numpy
import onnxruntime

import record
from timing import Facula, fork_join_us, onnxruntime_session, peaks

NETWORKS = ["vit_b_16", "bert_base", "gpt2", "convnext_tiny", "swin_t"]
MOST_ERROR = 1e-5


def make(name, folder):
    """The model and its input, made with random weights where they are not there."""
    path, there = (os.path.join(folder, name + end) for end in (".onnx", ".npy"))
    if not (os.path.exists(path) and os.path.exists(there)):
        import gpu_transformers

        x = gpu_transformers.input_of(name, 1)
        gpu_transformers.export(name, gpu_transformers.model_of(name), x, path)
        numpy.save(there, x.numpy())
    return path, there


class Rival:
    """ONNX Runtime in this process."""

    def __init__(self, path, there, threads):
        self.session = onnxruntime_session(path, threads)
        self.feed = {self.session.get_inputs()[0].name: numpy.load(there)}

    def run(self):
        return self.session.run(None, self.feed)[0]

    def turn(self, seconds):
        """Median, least and processor time of a run, in milliseconds."""
        self.run()
        times, cpu, end = [], time.process_time(), time.perf_counter() + seconds
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            self.run()
            times.append(1e3 * (time.perf_counter() - start))
        used = 1e3 * (time.process_time() - cpu) / len(times)
        return statistics.median(times), min(times), used


class Ours:
    """`facula bench --serve`, a process for each network; files: its input, and where results go."""

    def __init__(self, facula, path, files, threads):
        self.program = Facula(facula, "cpu", path, threads=threads)
        self.program.ask(1, "highest", "infer", 0, *files)

    def turn(self, seconds):
        found = self.program.ask(1, "highest", "infer", seconds)
        return found["median_ms"], found["min_ms"], found["cpu_ms"]


def operations(facula, path):
    """What a run does: two for each multiply-add."""
    command = [facula, "bench", path, "--runs", "1", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    return found["gflops"] * found["median_ms"] * 1e6


def line_of(a, name):
    """All numbers of a network."""
    path, there = make(name, a.models)
    result = os.path.join(a.models, name + ".facula.npy")
    programs = {"onnxruntime": Rival(path, there, a.threads)}
    if a.before:
        programs["before"] = Ours(a.before, path, [there, result], a.threads)
    programs["facula"] = Ours(a.facula, path, [there, result], a.threads)
    wanted = programs["onnxruntime"].run()
    error = float(abs(numpy.load(result) - wanted).max() / abs(wanted).max())
    turns = {program: [] for program in programs}
    for _ in range(a.rounds):
        for program, runs in programs.items():
            turns[program].append(runs.turn(a.seconds))
    for program in programs:
        if program != "onnxruntime":
            programs[program].program.close()
    line = {"network": name, "error": error, "turns": turns}
    for program, t in turns.items():
        line[program] = {
            "median": statistics.median(x[0] for x in t),
            "least": min(x[1] for x in t),
            "cpu": min(x[2] for x in t),
        }
    ours = line["facula"]
    for program in [p for p in turns if p != "facula"]:
        pairs = zip(turns[program], turns["facula"])
        ratios = {kind: line[program][kind] / ours[kind] for kind in ("least", "cpu")}
        line[program + "_ratio"] = {"median": statistics.median(x[0] / y[0] for x, y in pairs), **ratios}
    machine = peaks(a.facula, a.threads)
    one, all_ = machine["flops_one_thread"], machine["flops"]
    best = max(1 / (ours["least"] * all_), 1 / (ours["cpu"] * one)) * 1e3
    line["peak"] = operations(a.facula, path) * best
    return line


def text(line):
    ours, theirs, ratio = line["facula"], line["onnxruntime"], line["onnxruntime_ratio"]
    cells = [line["network"]]
    for kind in ("median", "least", "cpu"):
        cells += [f"{theirs[kind]:.1f}", f"{ours[kind]:.1f}", f"{ratio[kind]:.2f}"]
    cells += [f"{100 * line['peak']:.0f} %", f"{line['error']:.1e}"]
    if "before_ratio" in line:
        cells.append(" ".join(f"{x:.2f}" for x in line["before_ratio"].values()))
    return "| " + " | ".join(cells) + " |"


def save(a, lines):
    """Rows as bench/record.py says: a kind of time each."""
    works = {"median": "medians", "least": "least times", "cpu": "processor time"}
    common = {
        "machine": peaks(a.facula, a.threads)["device"],
        "peer": "ONNX Runtime " + onnxruntime.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "command": "python " + " ".join(sys.argv),
    }
    rows = [
        dict(
            common,
            id=f"cpu{a.threads}.{kind}",
            work=f"one input, {a.threads} thread{'s' if a.threads > 1 else ''}, {work}",
            values={x["network"]: round(x["onnxruntime_ratio"][kind], 2) for x in lines},
        )
        for kind, work in works.items()
    ]
    table = {
        "title": "Transformers on CPUs",
        "page": "transformers_cpu.md",
        "about": "",
        "unit": "times as fast",
        "columns": [x["network"] for x in lines],
        "rows": rows,
    }
    record.save(a.json, table)


def main():
    form = argparse.RawDescriptionHelpFormatter
    p = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    p.add_argument("names", nargs="*", default=NETWORKS, metavar="NAME")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--before", metavar="OTHER", help="another build of facula")
    p.add_argument("--models", default=os.path.expanduser("~/.cache/facula/bench"))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1, help="of each turn")
    p.add_argument("--json", metavar="FILE", help="ratios for docs/benchmarks, too")
    a = p.parse_args()
    os.makedirs(a.models, exist_ok=True)
    lines, wrong = [], []
    print(
        f"threads: {a.threads}, {a.rounds} rounds of {a.seconds:g} s, {time.strftime('%Y-%m-%d')}, ONNX Runtime "
        f"{onnxruntime.__version__}, fork and join {fork_join_us(a.facula, a.threads):.2f} us, "
        f"load {os.getloadavg()[0]:.1f}; ms: ONNX Runtime, facula, ratio\n"
    )
    head = "network | median | | | least | | | cpu | | | peak | error" + (" | before" if a.before else "")
    print(f"| {head} |\n" + "| --- " * (head.count("|") + 1) + "|", flush=True)
    for name in a.names:
        lines.append(line_of(a, name))
        print(text(lines[-1]), flush=True)
        if lines[-1]["error"] > MOST_ERROR:
            wrong.append(name)
        if a.json:
            save(a, lines)
    if wrong:
        sys.exit(f"results differ by more than {MOST_ERROR:g} of the largest: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
