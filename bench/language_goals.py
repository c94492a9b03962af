#!/usr/bin/env python3
"""Goals of language models that need a quiet machine, by the clock, the programs in turns, in one command:

    python3 bench/language_goals.py build/facula --smollm SmolLM2-135M-Instruct.Q4_1.gguf --vocabulary FOLDER --text FILE.txt
                                    [--threads 2] [--rounds 3] [--only smollm,gpt2,slots] [--llama PYTHON]

smollm: a prompt of 512 tokens and an answer, against llama.cpp (llama-cpp-python built here), and the share of what the bytes
of the weights and caches allow at the bandwidth measured.  gpt2: GPT-2 124M in f32 with random weights, against transformers and ONNX
Runtime (exported with past inputs and outputs); FOLDER has vocab.json and merges.txt.  slots: eight answers of the server at
once against one.  Each line has the medians and the medians of the paired ratios; the goal stands beside.  --layers makes a
smaller GPT-2, to try the script.  Needs torch and transformers for gpt2, onnxruntime, llama_cpp, which may be another
Python's (--llama); what is not there is left out.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

PROMPT, TOKENS = 512, 64
CACHED = 2 * 30 * 3 * 64 * 4  # bytes of SmolLM2's keys and values of a token: layers, heads, numbers of a head, f32

LLAMA = """
import sys, time
import numpy as np
import llama_cpp
path, threads, tokens, text, prompt = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
m = llama_cpp.Llama(path, n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False, n_batch=512)
ids = m.tokenize(open(text, encoding="utf-8").read().encode(), add_bos=False)[:prompt]
m.eval(ids[:8]); m.reset()
begin = time.perf_counter(); m.eval(ids); first = time.perf_counter()
for _ in range(tokens):
    m.eval([int(np.ctypeslib.as_array(m._ctx.get_logits(), shape=(m.n_vocab(),)).argmax())])
print(first - begin, time.perf_counter() - first)
"""


def facula(a, model, prompt_file):
    """Tokens a second: of the prompt, of the answer; the programs beside it have loaded and planned before, too."""
    said = subprocess.run([a.facula, "generate", model, "--file", prompt_file, "--temp", "0", "--ignore-eos", "-n", str(TOKENS),
                           "--threads", str(a.threads), "--ctx-size", str(a.context), "--json"],
                          capture_output=True, text=True, check=True).stdout
    got = json.loads(said)
    return (got["prompt_tokens"] / (got["prompt_seconds"] - got["prompt_plan_seconds"]),
            got["tokens"] / (got["seconds"] - got["plan_seconds"]))


def prompt_of(a, model, tokens, folder):
    """A file with so many tokens of the text, or a few less."""
    text = pathlib.Path(a.text).read_text(encoding="utf-8")
    low, high = 1, 12 * tokens
    path = str(pathlib.Path(folder, "prompt.txt"))
    while low < high:
        middle = (low + high + 1) // 2
        pathlib.Path(path).write_text(text[:middle], encoding="utf-8")
        n = int(subprocess.run([a.facula, "tokenize", model, "--file", path, "--count"], capture_output=True, text=True,
                               check=True).stdout)
        low, high = (middle, high) if n <= tokens else (low, middle - 1)
    pathlib.Path(path).write_text(text[:low], encoding="utf-8")
    return path


def say(what, goals, sides):
    """sides: name -> [(prompt, answer) of each round]; goals: of each ratio."""
    for name, rounds in sides.items():
        prompt, answer = (statistics.median(r[k] for r in rounds) for k in (0, 1))
        line = f"{what}, {name:13s} prompt {prompt:8.1f} tok/s   answer {answer:7.1f} tok/s"
        if name != "facula":
            ratios = [statistics.median(x[k] / y[k] for x, y in zip(sides["facula"], rounds)) for k in (0, 1)]
            line += f"   facula {ratios[0]:.2f} and {ratios[1]:.2f} times as fast, goal {goals[name]}"
        print(line, flush=True)


def bandwidth(threads):
    import numpy as np
    x = np.ones(1 << 26, np.float32)
    parts = np.array_split(x, threads)
    best = 0
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for _ in range(7):
            begin = time.perf_counter()
            list(pool.map(lambda p: p.max(), parts))
            best = max(best, x.nbytes / (time.perf_counter() - begin))
    return best


def allowed(a, name, weights, cached, answers, goal=""):
    """The floor of an answer: each token reads all weights, and the caches' bytes of all tokens before it."""
    most = bandwidth(a.threads) / (weights + cached * (PROMPT + TOKENS / 2))
    print(f"{name}: the bytes of weights and caches allow {most:.1f} tok/s; {100 * statistics.median(r[1] for r in answers) / most:.0f} %{goal}")


def smollm(a, folder):
    prompt = prompt_of(a, a.smollm, PROMPT, folder)
    sides = {"facula": []}
    if subprocess.run([a.llama, "-c", "import llama_cpp"], capture_output=True).returncode:
        print("llama_cpp is not there")
    else:
        sides["llama.cpp"] = []
    for _ in range(a.rounds):
        sides["facula"].append(facula(a, a.smollm, prompt))
        if "llama.cpp" in sides:
            out = subprocess.run([a.llama, "-c", LLAMA, a.smollm, str(a.threads), str(TOKENS), prompt, str(PROMPT)],
                                 capture_output=True, text=True, check=True).stdout.split()
            sides["llama.cpp"].append((PROMPT / float(out[0]), TOKENS / float(out[1])))
    say("SmolLM2", {"llama.cpp": 1}, sides)
    allowed(a, "SmolLM2", os.path.getsize(a.smollm), CACHED, sides["facula"], ", goal 70")


def transformers_side(torch, model, ids):
    with torch.no_grad():
        begin = time.perf_counter()
        y = model(ids, use_cache=True)
        first = time.perf_counter()
        for _ in range(TOKENS):
            y = model(y.logits[:, -1:].argmax(-1), past_key_values=y.past_key_values, use_cache=True)
    return ids.shape[1] / (first - begin), TOKENS / (time.perf_counter() - first)


def ort_side(session, names, present, empty, ids):
    import numpy as np
    past, times, new = dict(empty), [], ids.numpy()
    for _ in range(TOKENS + 1):
        begin = time.perf_counter()
        out = session.run(["logits", *present], {"ids": new, **past})
        times.append(time.perf_counter() - begin)
        new, past = out[0][:, -1:].argmax(-1).astype(np.int64), dict(zip(names, out[1:]))
    return ids.shape[1] / times[0], TOKENS / sum(times[1:])


def exported(torch, model, config, path):
    """A decoder with past inputs and outputs, as scripts/peers/check_gpt2_onnx.py makes it."""
    from transformers.cache_utils import DynamicCache

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, *past):
            cache = DynamicCache()
            for k in range(config.n_layer):
                cache.update(past[2 * k], past[2 * k + 1], k)
            at = past[0].shape[2]
            y = self.model(ids, past_key_values=cache, position_ids=torch.arange(at, at + ids.shape[1])[None], use_cache=True)
            return (y.logits, *(t for layer in y.past_key_values.layers for t in (layer.keys, layer.values)))
    names = [f"past_{k}" for k in range(2 * config.n_layer)]
    present = [f"present_{k}" for k in range(2 * config.n_layer)]
    past = [torch.zeros(1, config.n_head, 3, config.n_embd // config.n_head) for _ in names]
    axes = {"ids": {1: "n"}, "logits": {1: "n"}, **{n: {2: "past"} for n in names}, **{n: {2: "all"} for n in present}}
    torch.onnx.export(Decoder(), (torch.tensor([[1, 2]]), *past), path, input_names=["ids", *names],
                      output_names=["logits", *present], dynamic_axes=axes, opset_version=17, dynamo=False)
    return names, present


def gpt2(a, folder):
    import numpy as np
    import shutil
    import torch
    import transformers
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=a.layers, attn_implementation="sdpa")
    model = transformers.GPT2LMHeadModel(config).eval()
    place = str(pathlib.Path(folder, "gpt2"))
    model.save_pretrained(place)
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(pathlib.Path(a.vocabulary, name), place)
    prompt = prompt_of(a, place, PROMPT, folder)
    ids = torch.randint(0, config.vocab_size, (1, PROMPT))
    sides, ort = {"facula": [], "transformers": []}, None
    try:
        import onnxruntime
        path = str(pathlib.Path(folder, "gpt2.onnx"))
        names, present = exported(torch, transformers.GPT2LMHeadModel.from_pretrained(place, attn_implementation="eager").eval(),
                                  config, path)
        how = onnxruntime.SessionOptions()
        how.intra_op_num_threads = a.threads
        session = onnxruntime.InferenceSession(path, how, providers=["CPUExecutionProvider"])
        empty = {n: np.zeros((1, config.n_head, 0, config.n_embd // config.n_head), np.float32) for n in names}
        ort = lambda: ort_side(session, names, present, empty, ids)  # noqa: E731
        sides["ONNX Runtime"] = []
    except ImportError:
        print("onnxruntime is not there")
    for _ in range(a.rounds):
        sides["facula"].append(facula(a, place, prompt))
        sides["transformers"].append(transformers_side(torch, model, ids))
        if ort:
            sides["ONNX Runtime"].append(ort())
    say("GPT-2", {"transformers": 2, "ONNX Runtime": 1.5}, sides)
    weights = sum(p.numel() * p.element_size() for n, p in model.named_parameters() if ".wpe." not in n)
    allowed(a, "GPT-2", weights, 2 * config.n_layer * config.n_embd * 4, sides["facula"])


def slots(a, folder):
    server = subprocess.Popen([a.facula, "serve", a.smollm, "--port", "0", "--slots", "8", "--threads", str(a.threads)],
                              stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().split(" at ")[-1].strip() + "/completions"

    def ask(k):
        body = {"prompt": f"Chapter {k}. It was a", "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True}
        asked = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return json.loads(urllib.request.urlopen(asked).read())["usage"]["completion_tokens"]

    def speed(n):
        begin = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            tokens = sum(pool.map(ask, range(n)))
        return tokens / (time.perf_counter() - begin)
    ask(0)
    rounds = [(speed(1), speed(8)) for _ in range(a.rounds)]
    server.terminate()
    server.wait()
    one, eight = (statistics.median(r[k] for r in rounds) for k in (0, 1))
    print(f"slots: one answer {one:.1f} tok/s, eight at once {eight:.1f} in sum: "
          f"{statistics.median(b / c for c, b in rounds):.2f} times, goal 3")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("facula")
    p.add_argument("--smollm", metavar="FILE.gguf")
    p.add_argument("--vocabulary", metavar="FOLDER")
    p.add_argument("--text", required=True)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--llama", metavar="PYTHON", default=sys.executable, help="the Python that has llama_cpp")
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--context", type=int, default=1024)
    p.add_argument("--only", default="smollm,gpt2,slots")
    a = p.parse_args()
    parts = a.only.split(",")
    for part, needs in (("smollm", a.smollm), ("gpt2", a.vocabulary), ("slots", a.smollm)):
        if part in parts and not needs:
            p.error(f"{part} needs {'--vocabulary' if part == 'gpt2' else '--smollm'}")
        if part in parts:
            with tempfile.TemporaryDirectory() as folder:
                {"smollm": smollm, "gpt2": gpt2, "slots": slots}[part](a, folder)


main()
