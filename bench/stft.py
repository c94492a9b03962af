"""Short-time spectra: the solver stft/fft against the product that the op expands to, one thread.

    python3 bench/stft.py build/facula [--frames 1000] [--kissfft PREFIX]

Each row is the least time of a frame in microseconds. `floor` is 2.5 N log2 N operations of a real
transform at 80 GFLOP/s, what a core of 2.5 GHz adds up with AVX-512. SciPy's real transform (pocketfft), with window, is a peer where it is installed, and KissFFT (Debian's
libkissfft-dev) with --kissfft /usr, or the folder in which the package was unpacked; it and facula take turns, three each.
Shared machines: run it twice, and believe the smaller numbers.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import tempfile
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


def build_kissfft(prefix, folder):
    """The command that times KissFFT."""
    found = sorted(pathlib.Path(prefix).glob("lib/**/libkissfft-float.so*"))
    if not found:
        raise SystemExit(f"{prefix}: no lib/.../libkissfft-float.so")
    out = os.path.join(folder, "kissfft")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "kissfft.c")
    subprocess.run(["cc", "-O3", "-march=native", source, "-I", f"{prefix}/include/kissfft", str(found[-1]),
                    f"-Wl,-rpath,{found[-1].parent}", "-o", out], check=True)
    return out


def of_kissfft(program, n, frames):
    return float(subprocess.run([program, str(n), str(frames)], check=True, capture_output=True, text=True).stdout)


def row(facula, n, frames, kissfft):
    hop = n // 2
    samples, bins = n + (frames - 1) * hop, n // 2 + 1
    problem = f"stft(f32[1,{samples}], f32[{n}], i64{{{hop}}}, i64{{{n}}}) onesided"
    turns = [(least(facula, problem), of_kissfft(kissfft, n, frames) if kissfft else math.nan) for _ in range(3)]
    fft, kiss = (min(t) for t in zip(*turns))
    conv = least(facula, f"conv1d(f32[1,1,{samples}], f32[{2 * bins},1,{n}]) stride={hop}")
    peer = of_scipy(n, hop, frames)
    floor = 2.5 * n * math.log2(n) / PEAK * 1e6
    print(f"{n:5d} {1e6 * fft / frames:10.3f} {1e6 * conv / frames:10.3f} "
          f"{1e6 * peer / frames:10.3f} {1e6 * kiss / frames:10.3f} {floor:8.3f} {conv / fft:8.1f} {kiss / fft:10.1f}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("facula")
    options.add_argument("--frames", type=int, default=1000)
    options.add_argument("--kissfft", metavar="PREFIX", help="where its include and lib are")
    given = options.parse_args()
    print("us a frame:\n    N   stft/fft    product      scipy    kissfft    floor  product/fft  kissfft/fft")
    with tempfile.TemporaryDirectory() as folder:
        kissfft = build_kissfft(given.kissfft, folder) if given.kissfft else None
        for n in (256, 400, 512, 1024, 2048):
            row(given.facula, n, given.frames, kissfft)


if __name__ == "__main__":
    main()
