#!/usr/bin/env python3
"""A GPT-2 as an ONNX decoder with past inputs and outputs, one pair a layer: 36 layers make 73 inputs and
73 outputs.  `facula run` reads the prompt, then token by token with the keys and values that it gave
before; greedy tokens and logits are those of transformers.

    python3 scripts/peers/check_gpt2_onnx.py FACULA [LAYERS [DECODE_ONNX]]

DECODE_ONNX is examples/decode_onnx.c, which does the same from C.

Needs torch and transformers.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.cache_utils import DynamicCache

WIDTH, HEADS, VOCABULARY = 32, 4, 97


class Decoder(torch.nn.Module):
    def __init__(self, model, layers):
        super().__init__()
        self.model = model
        self.layers = layers

    def forward(self, ids, *past):
        cache = DynamicCache()
        for k in range(self.layers):
            cache.update(past[2 * k], past[2 * k + 1], k)
        at = past[0].shape[2]
        position = torch.arange(at, at + ids.shape[1]).unsqueeze(0)
        y = self.model(ids, past_key_values=cache, position_ids=position, use_cache=True)
        kept = []
        for layer in y.past_key_values.layers:
            kept += [layer.keys, layer.values]
        return (y.logits, *kept)


def export(model, layers, path):
    past = [torch.zeros(1, HEADS, 3, WIDTH // HEADS) for _ in range(2 * layers)]
    names = [f"past_{k // 2}_{'value' if k % 2 else 'key'}" for k in range(2 * layers)]
    present = [n.replace("past", "present") for n in names]
    axes = {"ids": {1: "n"}, "logits": {1: "n"}, **{n: {2: "past"} for n in names}, **{n: {2: "all"} for n in present}}
    torch.onnx.export(Decoder(model, layers), (torch.tensor([[1, 2]]), *past), path, input_names=["ids", *names],
                      output_names=["logits", *present], dynamic_axes=axes, opset_version=17, dynamo=False)
    return names, present


def run(facula, path, folder, values, outputs):
    arguments = []
    for name, x in values.items():
        np.save(folder / f"{name}.npy", x)
        arguments.append(f"--input={name}={folder / name}.npy")
    done = subprocess.run([facula, "run", path, *arguments, "--output-dir", str(folder / "out")], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"facula run: {done.stderr}")
    return {n: np.load(folder / "out" / f"{n}.npy") for n in outputs}


def main():
    facula = sys.argv[1]
    layers = int(sys.argv[2]) if len(sys.argv) > 2 else 36
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_embd=WIDTH, n_layer=layers, n_head=HEADS, n_positions=64,
                                       attn_implementation="eager")).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim > 1:
                p.mul_(4)
    prompt = [5, 17, 3, 60]
    with torch.no_grad():
        want = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=8, pad_token_id=0,
                              eos_token_id=VOCABULARY + 1)[0].tolist()
        logits = model(torch.tensor([want])).logits[0].numpy()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        path = str(folder / "gpt2.onnx")
        names, present = export(model, layers, path)
        past = {n: np.zeros((1, HEADS, 0, WIDTH // HEADS), np.float32) for n in names}
        ids, new, worst = list(prompt), list(prompt), 0.0
        for step in range(8):
            out = run(facula, path, folder, {"ids": np.array([new], np.int64), **past}, ["logits", *present])
            rows = logits[len(ids) - len(new):len(ids)]
            worst = max(worst, float(np.abs(out["logits"][0] - rows).max() / np.abs(rows).max()))
            new = [int(out["logits"][0, -1].argmax())]
            ids += new
            past = {a: out[b] for a, b in zip(names, present)}
        if len(sys.argv) > 3:
            out = subprocess.run([sys.argv[3], path, "8", *map(str, prompt)], capture_output=True, text=True, check=True)
            same = prompt + [int(x) for x in out.stdout.split()] == want
            print(f"from C: tokens {'the same' if same else 'DIFFERENT'}")
            if not same:
                return 1
    good = ids == want and worst < 1e-4
    print(f"{1 + 2 * layers} inputs and outputs, 8 steps: tokens {'the same' if ids == want else 'DIFFERENT'}, "
          f"logits differ by {worst:.1e} of the largest")
    return 0 if good else 1


sys.exit(main())
