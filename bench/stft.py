"""Short-time spectra: the solver stft/fft against the product that the op expands to, one thread.

    python3 bench/stft.py build/facula [--frames 1000]

Each row is the least time of a frame in microseconds. `floor` is 2.5 N log2 N operations of a real
transform at 80 GFLOP/s, what a core of 2.5 GHz adds up with AVX-512. SciPy's real transform (pocketfft), with window, is a peer where it is installed.
Shared machines: run it twice, and believe the smaller numbers.
"""
import argparse
import json
import math
import subprocess
import time

PEAK = 80e9


def least(facula, problem):
    """Seconds of the fastest run."""
    said = subprocess.run([facula, "bench", problem, "--threads", "1", "--json"], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(said)["min_ms"] / 1e3


def of_scipy(n, hop, frames):
    """Seconds of the same by SciPy, or nothing."""
    try:
        import numpy
        import scipy.fft
    except ImportError:
        return math.nan
    x = numpy.random.default_rng(0).standard_normal(n + (frames - 1) * hop).astype("float32")
    rows = numpy.lib.stride_tricks.sliding_window_view(x, n)[::hop]
    window = numpy.hanning(n).astype("float32")
    best = math.inf
    for _ in range(20):
        start = time.thread_time()
        scipy.fft.rfft(rows * window, axis=1)
        best = min(best, time.thread_time() - start)
    return best


def row(facula, n, frames):
    hop = n // 2
    samples, bins = n + (frames - 1) * hop, n // 2 + 1
    fft = least(facula, f"stft(f32[1,{samples}], f32[{n}], i64{{{hop}}}, i64{{{n}}}) onesided")
    conv = least(facula, f"conv1d(f32[1,1,{samples}], f32[{2 * bins},1,{n}]) stride={hop}")
    peer = of_scipy(n, hop, frames)
    floor = 2.5 * n * math.log2(n) / PEAK * 1e6
    print(f"{n:5d} {1e6 * fft / frames:10.3f} {1e6 * conv / frames:10.3f} "
          f"{1e6 * peer / frames:10.3f} {floor:8.3f} {conv / fft:8.1f}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("facula")
    options.add_argument("--frames", type=int, default=1000)
    given = options.parse_args()
    print("us a frame:\n    N   stft/fft    product      scipy    floor  product/fft")
    for n in (256, 400, 512, 1024, 2048):
        row(given.facula, n, given.frames)


if __name__ == "__main__":
    main()
