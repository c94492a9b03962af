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
