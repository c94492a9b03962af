#!/usr/bin/env python3
"""Tokens a second of language models, against llama.cpp: python bench/language.py build/facula MODEL.gguf [--threads N]

    pip install llama-cpp-python            # built here, so for this machine's instructions

Both read the same file, in turns, and both are timed by the CPU seconds that their process took, so that other work
on the machine changes little.  A prompt is `--prompt` tokens, the answer `--tokens` greedy ones after a short prompt; what
loading and planning take is subtracted by a run with one token.  The floor is what reading the weights takes, once a token,
at the bandwidth that a copy of 256 MiB reaches meanwhile.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

LLAMA = """
import sys, time
import numpy as np
import llama_cpp
path, threads, prompt, tokens, plain, text = sys.argv[1], *map(int, sys.argv[2:6]), sys.argv[6]
if plain:
    usual = llama_cpp.llama_model_default_params
    def params():
        p = usual()
        p.use_extra_bufts = False
        return p
    llama_cpp.llama_cpp.llama_model_default_params = llama_cpp.llama_model_default_params = params
m = llama_cpp.Llama(path, n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False, n_batch=512)
ids = m.tokenize(text.encode(), add_bos=False)[:prompt]
begin = time.process_time()
m.eval(ids)
for _ in range(tokens - 1):
    m.eval([int(np.ctypeslib.as_array(m._ctx.get_logits(), shape=(m.n_vocab(),)).argmax())])
print(time.process_time() - begin)
"""


def cpu_of(command):
    """CPU seconds of a process, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, out


class Bench:
    def __init__(self, o):
        self.o = o
        with open(o.text, encoding="utf-8") as f:
            self.text = f.read()

    def words(self, n):
        """A text of n tokens of this model, or a few less."""
        ids = json.loads(cpu_of([self.o.facula, "tokenize", self.o.model, self.text[:12 * n], "--json"])[1])["tokens"]
        text = "".join(t["token"] for t in ids[:n])
        return text.replace("\u0120", " ").replace("\u010a", "\n").encode("ascii", "ignore").decode()

    def facula(self, text, tokens):
        return cpu_of([self.o.facula, "generate", self.o.model, text, "--temp", "0", "--ignore-eos", "-n", str(tokens),
                       "--threads", str(self.o.threads), "--ctx-size", "2048", "--precision", self.o.precision, "--json"])[0]

    def llama(self, text, tokens):
        return float(cpu_of([self.o.python, "-c", LLAMA, self.o.model, str(self.o.threads), str(self.o.prompt), str(tokens),
                             str(int(self.o.plain)), text])[1])

    def turn(self, one):
        """Seconds a token: of the prompt, of the answer."""
        few, many = self.words(2), self.words(self.o.prompt)
        first = one(few, 1)
        return (one(many, 1) - first) / self.o.prompt, (one(few, self.o.tokens + 1) - first) / self.o.tokens


def bandwidth():
    """Bytes a CPU second of reading: a sum over 256 MiB."""
    import numpy as np
    x = np.ones(1 << 26, np.float32)
    best = 0
    for _ in range(5):
        begin = time.process_time()
        x.max()
        best = max(best, x.nbytes / (time.process_time() - begin))
    return best


def main():
    p = argparse.ArgumentParser()
    p.add_argument("facula")
    p.add_argument("model")
    p.add_argument("--text", default=__file__, help="what prompts are made of")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--prompt", type=int, default=256)
    p.add_argument("--tokens", type=int, default=48)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--precision", default="default")
    p.add_argument("--python", default=sys.executable, help="that has llama_cpp")
    p.add_argument("--plain", action="store_true", help="llama.cpp without repacked weights (its AMX ones crash some virtual machines)")
    p.add_argument("--alone", action="store_true", help="without llama.cpp")
    b = Bench(p.parse_args())
    rivals = {"facula": b.facula} if b.o.alone else {"facula": b.facula, "llama.cpp": b.llama}
    got = {name: [] for name in rivals}
    for _ in range(b.o.turns):
        for name, one in rivals.items():
            got[name].append(b.turn(one))
    for name, turns in got.items():
        prompt, answer = (statistics.median(t[k] for t in turns) for k in (0, 1))
        print(f"{name:10s} prompt {1e3 * prompt:7.2f} ms, {1 / prompt:7.1f} tok/s    answer {1e3 * answer:7.2f} ms, {1 / answer:7.1f} tok/s")
    if len(got) == 2:
        ratios = [[x[k] / y[k] for x, y in zip(got["llama.cpp"], got["facula"])] for k in (0, 1)]
        print("times as fast as llama.cpp: " + ", ".join(f"{what} {statistics.median(r):.2f} ({min(r):.2f} to {max(r):.2f})"
                                                         for what, r in zip(("prompt", "answer"), ratios)))
    size, speed = os.path.getsize(b.o.model), bandwidth()
    print(f"floor: {size / 1e6:.1f} MB at {speed / 1e9:.1f} GB/s are {1e3 * size / speed:.2f} ms a token on one core")


main()
