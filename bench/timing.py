"""How long calls take: a rival's, facula's own, and both in turns."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import record

AVX2 = dict(ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2", OPENBLAS_CORETYPE="Haswell")


def hold_to(isa):
    """Holds facula, and to AVX2 also rivals that are not imported yet, to an instruction set; None: to nothing."""
    if isa:
        os.environ["FACULA_ISA"] = isa
    if isa == "avx2":
        os.environ.update(AVX2)


def rival_times(call, seconds, wait=None, warm=1):
    """Milliseconds of at least five calls, `wait` for each to end; `warm` calls go before."""
    def finished():
        call()
        if wait:
            wait()

    for _ in range(warm):
        finished()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        finished()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def rival_ms(call, seconds, wait=None, warm=1):
    """Median of those."""
    return statistics.median(rival_times(call, seconds, wait, warm))


def onnxruntime_session(path, threads):
    """ONNX Runtime's own CPU session of a file, on so many threads; it is silent."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def peaks(facula, threads):
    """What the processor can do, by `facula peaks`."""
    command = [facula, "peaks", "--json", "--threads", str(threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["peaks"][0]


def fork_join_us(facula, threads):
    """Latency of a fork and join, now: it says in which state a virtual machine is, with its cores in one cache domain or in two."""
    return 1e6 * statistics.median(peaks(facula, threads)["fork_join_s"] for _ in range(3))


def facula_json(facula, verb, problem, device, seconds, *options):
    """What `facula VERB PROBLEM --json` says; what it complains about ends the program."""
    command = [facula, verb, problem, "--json", "--device", device, "--seconds", str(seconds), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{problem}: {done.stderr.strip()}")
    return json.loads(done.stdout)


class Facula:
    """One process for each network, a file or zoo:NAME: `facula bench --serve`."""

    def __init__(self, path, device, name, weights=None, threads=None):
        command = [path, "bench", name, "--device", device, "--serve"]
        command += ["--weights", weights] if weights else []
        command += ["--threads", str(threads)] if threads else []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        try:
            self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer or "failed" in json.loads(answer):
            raise RuntimeError("facula failed")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def in_turns(doc, seconds, rounds):
    """Options of a script that times models against ONNX Runtime: FACULA [--threads N] [--seconds S] [--rounds N] [--only TEXT]
    [--json FILE]."""
    p = argparse.ArgumentParser(description=doc.splitlines()[0])
    p.add_argument("binary")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=seconds, help="of each program in each round")
    p.add_argument("--rounds", type=int, default=rounds)
    p.add_argument("--only", default="", help="rows whose name has this text")
    p.add_argument("--json", metavar="FILE", help="the rows for docs/benchmarks, as bench/record.py says, too")
    return p


def with_processor_time(call, seconds):
    """Median and least milliseconds of a call, and its processor time."""
    start = time.process_time()
    times = rival_times(call, seconds)
    used = 1e3 * (time.process_time() - start) / (len(times) + 1)
    return statistics.median(times), min(times), used


def against_onnxruntime(models, a):
    """Prints a row for each (name, function that gives a path and its feed): ONNX Runtime and facula take turns.

    A row has milliseconds a call, the medians of the rounds, the least of all and the processor time (the median of the rounds;
    with two threads it counts what one waits for the other), and how many times as fast facula is by each."""
    rows = []
    kinds = ("median", "least", "cpu")
    print("%-32s" % "" + "".join("   %9s %9s %6s" % ("ORT " + k, "facula", "ratio") for k in kinds))
    for name, make in models:
        if a.only not in name:
            continue
        path, feed = make()
        session = onnxruntime_session(path, a.threads)
        facula = Facula(a.binary, "cpu", path, threads=a.threads)
        first = session.get_inputs()[0].shape[:1]
        batch = first[0] if first and isinstance(first[0], int) else 1
        facula.ask(batch, "high", "infer", 0)
        theirs, ours = [], []
        for _ in range(a.rounds):
            theirs.append(with_processor_time(lambda: session.run(None, feed), a.seconds))
            found = facula.ask(batch, "high", "infer", a.seconds)
            ours.append((found["median_ms"], found["min_ms"], found["cpu_ms"]))
        facula.close()
        of_rounds = (statistics.median, min, statistics.median)
        found = [tuple(f(t[k] for t in r) for r in (theirs, ours)) for k, f in enumerate(of_rounds)]
        print("%-32s" % name + "".join("   %9.3f %9.3f %6.2f" % (x, y, x / y) for x, y in found), flush=True)
        rows.append((name, {kind: round(x / y, 3) for kind, (x, y) in zip(kinds, found)}))
    if a.json:
        write_rows(a, rows)


def write_rows(a, rows):
    """The (work, values) of a run against ONNX Runtime as a table of docs/benchmarks."""
    import onnxruntime
    common = dict(machine=peaks(a.binary, a.threads)["device"], peer="ONNX Runtime " + onnxruntime.__version__,
                  date=time.strftime("%Y-%m-%d"), command="python " + " ".join(sys.argv))
    script = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    record.save(a.json, dict(title=script, page=script + ".md", about="", unit="times as fast", columns=["least", "median", "cpu"],
                             rows=[dict(common, id=f"{script}.{k}", work=work, values=values)
                                   for k, (work, values) in enumerate(rows)]))
