#!/usr/bin/env python3
"""Small random language models, made by the model builder of onnxruntime-genai, decode as ONNX Runtime does.

    python scripts/peers/check_genai.py build/facula [FAMILY...] [--precision fp32|int4] [--tokens 20]

Needs onnxruntime-genai (its builder only), onnx, onnxruntime, torch and transformers.  Each of both feeds its own tokens and caches,
which grow, have room for more from the beginning, or hold the last rows only (sliding windows).  Tokens must be equal; logits may
differ by 1e-4 of the largest, with int4, where activations are rounded to 8 bits, by 5e-2.
"""
import argparse
import logging
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS, HEAD, WINDOW = 256, 32, 16
SIZES = dict(vocab_size=WORDS, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0, initializer_range=0.2)
FAMILIES = {"Llama": {}, "Qwen2": {}, "Qwen3": dict(head_dim=HEAD), "Mistral": dict(sliding_window=WINDOW),
            "Gemma2": dict(head_dim=HEAD, sliding_window=WINDOW), "Phi3": {}, "Phi": {}, "Granite": {}, "Olmo": {}, "SmolLM3": {}}
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


def make(family, folder):
    """A checkpoint as Hugging Face has it."""
    torch.manual_seed(0)
    config = getattr(transformers, family + "Config")(**SIZES, **FAMILIES[family])
    getattr(transformers, family + "ForCausalLM")(config).eval().save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"<{k}>": k for k in range(WORDS)}, unk_token="<0>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<0>", bos_token="<1>", eos_token="<2>",
                                         pad_token="<0>").save_pretrained(folder)


def decode(ports, results, run, room, slide, tokens):
    """Tokens chosen greedily after a prompt, their logits, and the caches at the end."""
    prompt = np.random.default_rng(3).integers(3, WORDS, (1, 7))
    pasts = [p for p in ports if p.name.startswith("past")]
    caches = {p.name: np.zeros((1, p.shape[1], slide if "sliding" in str(p.shape[2]) else room, HEAD), TYPES[p.type]) for p in pasts}
    new, chosen, logits, seen = prompt, [], [], 0
    for _ in range(tokens):
        seen += new.shape[1]
        given = {"input_ids": new.astype(np.int64), "attention_mask": np.ones((1, seen), np.int64),
                 "position_ids": np.arange(seen - new.shape[1], seen)[None], **caches}
        made = dict(zip(results, run({p.name: given[p.name] for p in ports})))
        logits.append(made["logits"][:, -1].astype(np.float64))
        new = logits[-1].argmax(-1)[:, None]
        chosen.append(int(new[0, 0]))
        caches = {p.name: made[p.name.replace("past_key_values", "present")] for p in pasts}
    return chosen, np.stack(logits), caches


def run_facula(facula, path, folder, given, results):
    command = [facula, "run", path, "--output-dir", os.path.join(folder, "out")]
    for k, (name, x) in enumerate(given.items()):
        np.save(os.path.join(folder, f"in{k}.npy"), x)
        command.append(f"--input={name}={folder}/in{k}.npy")
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode: raise RuntimeError(ran.stderr.strip())
    return [np.load(os.path.join(folder, "out", f"{r}.npy")) for r in results]


def compare(facula, path, folder, tokens, tolerance):
    """What is wrong, for every kind of cache."""
    session = onnxruntime.InferenceSession(path)
    ports, results = session.get_inputs(), [o.name for o in session.get_outputs()]
    wrong = []
    for room, slide in ((0, WINDOW), (64, WINDOW + 4), (0, 40)):
        want = decode(ports, results, lambda given: session.run(results, given), room, slide, tokens)
        have = decode(ports, results, lambda given: run_facula(facula, path, folder, given, results), room, slide, tokens)
        off = np.abs(have[1] - want[1]).max() / np.abs(want[1]).max()
        if have[0] != want[0]: wrong.append(f"other tokens with room for {room} and {slide}")
        if not off < tolerance: wrong.append(f"logits differ by {off:.1e} of the largest")
        for name, x in want[2].items():
            if have[2][name].shape != x.shape: wrong.append(f"{name} is {have[2][name].shape}, not {x.shape}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("facula")
    p.add_argument("families", nargs="*", help="default: all")
    p.add_argument("--precision", default="fp32", choices=["fp32", "int4"])
    p.add_argument("--tokens", type=int, default=20)
    a = p.parse_args()
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    onnxruntime.set_default_logger_severity(4)
    failed = made = 0
    for family in a.families or FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            checkpoint, out = os.path.join(folder, "checkpoint"), os.path.join(folder, "model")
            make(family, checkpoint)
            built = subprocess.run([sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", checkpoint, "-o", out, "-p",
                                    a.precision, "-e", "cpu"], capture_output=True, text=True)
            if built.returncode:
                print(f"skipped {family}: its builder fails: {built.stderr.strip().splitlines()[-1]}")
                continue
            made += 1
            try:
                wrong = compare(a.facula, str(pathlib.Path(out) / "model.onnx"), folder, a.tokens, 1e-4 if a.precision == "fp32" else 5e-2)
            except RuntimeError as e:
                wrong = [str(e)]
            failed += bool(wrong)
            for line in wrong: print(f"FAILED {family}: {line}")
    print(f"{made - failed} of {made} models decode {a.tokens} tokens as ONNX Runtime does ({a.precision})")
    return failed > 0 or not made


sys.exit(main())
