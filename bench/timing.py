"""How long calls take: a rival's, and facula's own."""
import json
import os
import statistics
import subprocess
import time

AVX2 = dict(ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2", OPENBLAS_CORETYPE="Haswell")


def hold_to(isa):
    """Holds facula, and to AVX2 also rivals that are not imported yet, to an instruction set; None: to nothing."""
    if isa:
        os.environ["FACULA_ISA"] = isa
    if isa == "avx2":
        os.environ.update(AVX2)


def rival_ms(call, seconds, wait=None, warm=1):
    """Median of at least five calls in milliseconds, `wait` for each to end; `warm` calls go before."""
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
    return statistics.median(times)


def facula_json(facula, verb, problem, device, seconds, *options):
    """What `facula VERB PROBLEM --json` says; what it complains about ends the program."""
    command = [facula, verb, problem, "--json", "--device", device, "--seconds", str(seconds), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{problem}: {done.stderr.strip()}")
    return json.loads(done.stdout)
