#!/usr/bin/env python3
"""The portable kernels (GNU vectors, no intrinsics) compiled with -mavx2 -mfma, against those written for AVX2.

    python bench/portable.py [--build build-portable] [--facula FILE] [--rounds 3] [--threads 1] [--seconds 0.1] [NAME...]

Builds a facula of its own whose portable set has these flags, unless --facula names one, and measures single problems with both
sets in turn; NAME selects rows whose text contains it.  Prints the median of the rounds' medians and the speed of the portable
set as a share of AVX2's, of which at least half is wanted.  Needs x86-64 with AVX2, and nothing but the C compiler and CMake.
"""
import argparse
import json
import os
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = ["-DCMAKE_C_FLAGS=-mavx2 -mfma", f"-DFACULA_PORTABLE_FLAGS=-include;{os.path.join(HERE, 'programs', 'portable.h')}"]
PROBLEMS = [
    "conv2d(f32[1,64,56,56], f32[64,64,3,3], f32[64]) pad=1,1,1,1 {relu}",
    "conv2d(f32[1,256,14,14], f32[256,256,3,3], f32[256]) pad=1,1,1,1 {relu}",
    "conv2d(f32[1,128,56,56], f32[128,128,3,3], f32[128]) pad=1,1,1,1 stride=2,2",
    "conv2d(f32[1,64,56,56], f32[256,64,1,1], f32[256])",
    "conv2d(f32[1,3,224,224], f32[64,3,7,7], f32[64]) pad=3,3,3,3 stride=2,2 {relu}",
    "conv2d(f32[1,96,56,56], f32[96,1,3,3], f32[96]) pad=1,1,1,1 groups=96 {relu}",
    "conv2d(f32[1,64,28,28], f32[64,4,3,3], f32[64]) pad=1,1,1,1 groups=16",
    "conv2d(f32[1,64,27,27], f32[192,64,5,5], f32[192]) pad=2,2,2,2",
    "max_pool2d(f32[1,64,112,112]) kernel=3,3 stride=2,2 pad=1,1,1,1",
    "avg_pool2d(f32[1,64,112,112]) kernel=3,3 stride=2,2 pad=1,1,1,1",
    "matmul(f32[512,512], f32[512,512])",
    "gemm(f32[512,512], f32[512,512]) trans_a trans_b",
    "linear(f32[1,768], f32[2304,768], f32[2304])",
    "linear(f32[16,768], f32[768,768], f32[768])",
    "matmul(f64[256,256], f64[256,256])",
    "matmul(i32[256,256], i32[256,256])",
    "attention(f32[1,12,256,64], f32[1,12,256,64], f32[1,12,256,64])",
    "layer_norm(f32[512,768], f32[768], f32[768]) axis=-1",
    "softmax(f32[512,768]) axis=-1",
    "gelu(f32[512,768])",
    "sum(f32[512,768], i64{0})",
    "sum(f32[512,768], i64{1})",
    "reduce_max(f32[512,768], i64{1})",
    "arg_max(f32[512,768]) axis=1",
    "transpose(f32[512,768]) perm=1,0",
    "add(f32[512,768], f32[512,768])",
    "cast(f32[512,768]) to=f16",
    "lrn(f32[1,64,56,56]) size=5",
]


def build(folder):
    source = os.path.dirname(HERE)
    for command in (["cmake", "-S", source, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DFACULA_TESTS=OFF", *FLAGS],
                    ["cmake", "--build", folder, "-j", str(os.cpu_count()), "-t", "facula"]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return os.path.join(folder, "facula")


def median_ms(a, isa, text):
    command = [a.facula, "bench", text, "--json", "--isa", isa, "--threads", str(a.threads), "--seconds", str(a.seconds)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["median_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--build", default="build-portable")
    p.add_argument("--facula", help="one that is built with FACULA_PORTABLE_FLAGS already")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=0.1)
    a = p.parse_args()
    a.facula = a.facula or build(a.build)
    print("| problem | AVX2 ms | portable ms | portable's share of AVX2's speed |\n| --- | --- | --- | --- |", flush=True)
    for text in PROBLEMS:
        if a.names and not any(n in text for n in a.names):
            continue
        own, portable = [], []
        for _ in range(a.rounds):
            own.append(median_ms(a, "avx2", text))
            portable.append(median_ms(a, "portable", text))
        share = statistics.median(x / y for x, y in zip(own, portable))
        print(f"| {text} | {statistics.median(own):.3f} | {statistics.median(portable):.3f} | {share:.2f} |", flush=True)


if __name__ == "__main__":
    main()
