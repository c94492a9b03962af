#!/usr/bin/env python3
"""Decoding of language models on an OpenCL GPU, one sequence, against transformers on the same card:

    python bench/gpu_decode.py --facula build/facula [gpt2] [smollm2] [--rounds 3] [--tokens 128] [--budget SECONDS]
                               [--json FILE] [--profile FOLDER]

gpt2: GPT-2 124M with f32 weights, facula --precision highest and high.  smollm2: a Llama of SmolLM2-135M's shape, which
`facula quantize` makes Q4_1; transformers has it in bf16, with which it is fastest.  Weights are random, and the models are
made here.  Numbers are tokens a second, medians of --rounds turns: facula generate --temp 0, transformers eager, and its step
under torch.compile(mode="reduce-overhead") with a static cache.  Below them the floor: the bytes of the weights at
--bandwidth, and how many launches a step has by `facula profile`.  --profile keeps what that says.  When --budget is used up
what is not measured is named.  Needs torch with CUDA and transformers; without CUDA facula alone is measured.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch
import transformers

TEXT = "Once upon a time there was a small engine, and it ran wherever it was asked to run. "
FEW = 32  # with the prompt and 128 more they fit the first size of facula's caches
HOW = dict(attn_implementation="sdpa")


def byte_tokens():
    """The printable character of each byte, as byte-level BPE has them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {chr(b if b in plain else 256 + rest.index(b)): b for b in range(256)}


def write_tokenizer(folder):
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "vocab": byte_tokens(), "merges": []}
    text = {"version": "1.0", "added_tokens": [], "pre_tokenizer": level, "decoder": level, "model": model}
    pathlib.Path(folder, "tokenizer.json").write_text(json.dumps(text), encoding="utf-8")


def gpt2(layers):
    config = transformers.GPT2Config(n_layer=layers or 12, **HOW)
    return transformers.GPT2LMHeadModel(config)


def smollm2(layers):
    config = transformers.LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=layers or 30, num_attention_heads=9,
        num_key_value_heads=3, max_position_embeddings=2048, rms_norm_eps=1e-5, tie_word_embeddings=True, **HOW)
    config.rope_theta = 100000.0
    return transformers.LlamaForCausalLM(config)


def make(name, layers, folder, facula):
    """The model in torch, and the path of facula's."""
    torch.manual_seed(0)
    model = {"gpt2": gpt2, "smollm2": smollm2}[name](layers).eval()
    place = os.path.join(folder, name)
    model.save_pretrained(place)
    write_tokenizer(place)
    if name == "gpt2":
        return model, place
    path = place + ".gguf"
    subprocess.run([facula, "quantize", place, "--scheme", "q4_1", "-o", path], check=True, capture_output=True)
    return model.to(torch.bfloat16), path


def facula_seconds(a, path, precision, tokens):
    command = [a.facula, "generate", path, TEXT, "--temp", "0", "--ignore-eos", "-n", str(tokens), "--ctx-size", "1024",
               "--device", a.device, "--precision", precision, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["seconds"]


def facula_speed(a, path, precision):
    """Of tokens after the first ones, with which the plan of a step is made."""
    few = facula_seconds(a, path, precision, FEW)
    return a.tokens / (facula_seconds(a, path, precision, FEW + a.tokens) - few)


class Steps:
    """transformers: one token after the other, with a cache that grows, or with a static one and torch.compile."""

    def __init__(self, model, compiled):
        self.model, self.compiled = model, compiled
        self.ids = torch.tensor([list(TEXT.encode())], device=model.device)
        self.run = torch.compile(self.forward, mode="reduce-overhead", fullgraph=True) if compiled else self.forward

    def forward(self, ids, cache, at):
        y = self.model(ids, past_key_values=cache, position_ids=at[None], use_cache=True, **self.more(at))
        return y.logits[:, -1:].argmax(-1)

    def more(self, at):
        new = int(transformers.__version__.split(".")[0]) >= 5  # takes positions from the cache itself
        return {} if new else {"cache_position": at}

    def cache(self):
        if not self.compiled:
            return transformers.DynamicCache()
        return transformers.StaticCache(config=self.model.config, max_cache_len=1024)

    def speed(self, tokens):
        n = self.ids.shape[1]
        cache = self.cache()
        with torch.inference_mode():
            new = self.forward(self.ids, cache, torch.arange(n, device=self.ids.device))
            places = torch.arange(n, n + tokens + 4, device=self.ids.device)
            for k in range(4):
                new = self.run(new, cache, places[k : k + 1]).clone()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for k in range(4, tokens + 4):
                new = self.run(new, cache, places[k : k + 1]).clone()
            torch.cuda.synchronize()
        return tokens / (time.perf_counter() - begin)


def profile(a, name, path, precision):
    """The launches of a step, us of each kernel, and what the device did in all."""
    done = subprocess.run([a.facula, "profile", path, "--device", a.device, "--precision", precision, "--json", "--seconds", "0.3"],
                          capture_output=True, text=True)
    if done.returncode:
        return f"profile: {done.stderr.strip()}"
    if a.profile:
        pathlib.Path(a.profile).mkdir(exist_ok=True)
        pathlib.Path(a.profile, f"{name}.{precision}.json").write_text(done.stdout)
    got = json.loads(done.stdout)
    said = got.get("launches")
    if not said:
        return f"a step takes {1e3 * got['median_ms']:.0f} us"
    kernels = {}
    for one in said["all"]:
        kernels.setdefault(one["kernel"], []).append(one["us"])
    lines = [f"{len(said['all'])} launches, busy {said['busy_us']:.0f} us, a step takes {1e3 * got['median_ms']:.0f} us"]
    for kernel, us in sorted(kernels.items(), key=lambda k: -sum(k[1])):
        lines.append(f"    {len(us):5d} x {statistics.median(us):7.2f} us  {kernel}")
    return "\n".join(lines)


def rivals(model, a, left):
    """name -> Steps, with compiled code where there is time for it."""
    if not torch.cuda.is_available():
        return {}
    model = model.cuda()
    torch.backends.cuda.matmul.allow_tf32 = True
    made = {"eager": Steps(model, False)}
    if not a.no_compile and left() > 0:
        made["compiled"] = Steps(model, True)
    return made


def measure(a, name, folder, left, lines):
    model, path = make(name, a.layers, folder, a.facula)
    ways = ("highest", "high") if name == "gpt2" else ("default",)
    size = os.path.getsize(path if os.path.isfile(path) else os.path.join(path, "model.safetensors"))
    got = {f"facula {w}": [] for w in ways}
    for w in ways:
        facula_speed(a, path, w)  # kernels are compiled
        got[f"facula {w}"] = [facula_speed(a, path, w) for _ in range(a.rounds)]
        line = f"{name}: facula {w} {statistics.median(got[f'facula {w}']):.0f} tok/s"
        print(line + f"; the bytes allow {a.bandwidth * 1e12 / size:.0f}; {profile(a, name, path, w)}", flush=True)
    for rival, steps in rivals(model, a, left).items():
        try:
            steps.speed(8)
            got[rival] = [steps.speed(a.tokens) for _ in range(a.rounds)]
            print(f"{name}: transformers {rival} {statistics.median(got[rival]):.0f} tok/s", flush=True)
        except Exception as e:  # what a version of torch cannot compile is no fault of the others
            print(f"{name}: transformers {rival}: {str(e).splitlines()[0]}", flush=True)
    for w in ways:  # once more, so that both have had their turn first
        got[f"facula {w}"] += [facula_speed(a, path, w) for _ in range(a.rounds)]
        print(f"{name}: facula {w} again {statistics.median(got[f'facula {w}'][a.rounds:]):.0f} tok/s", flush=True)
    lines.append({"network": name, "bytes": size, **got})
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(lines, indent=1))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", default=["gpt2", "smollm2"])
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--tokens", type=int, default=128)
    p.add_argument("--layers", type=int, default=0, help="fewer layers, to try the script")
    p.add_argument("--bandwidth", type=float, default=4.3, help="TB/s of the card")
    p.add_argument("--no-compile", action="store_true")
    p.add_argument("--profile", metavar="FOLDER")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--budget", type=float, default=1e9, help="seconds after which nothing new is begun")
    a = p.parse_args()
    begin, lines = time.perf_counter(), []

    def left():
        return a.budget - (time.perf_counter() - begin)

    with tempfile.TemporaryDirectory() as folder:
        for name in a.names:
            if left() > 0:
                measure(a, name, folder, left, lines)
            else:
                print(f"{name}: not measured, the budget is used up")


if __name__ == "__main__":
    main()
