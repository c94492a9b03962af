#!/usr/bin/env python3
"""Compares beam search with transformers on small random models: the same texts with the same scores.

    python3 scripts/peers/check_beams.py FACULA

Needs torch, transformers and tokenizers.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

LETTERS = "abcdefghijklmnopqrstuvwxyz"
END = "<|endoftext|>"


def tokenizer(folder):
    vocabulary = {END: 0, **{c: k + 1 for k, c in enumerate(LETTERS)}}
    t = Tokenizer(models.BPE(vocabulary, []))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([END])
    t.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": END}))
    return len(vocabulary)


def build(name, n, seed):
    torch.manual_seed(seed)
    if name == "gpt2":
        model = GPT2LMHeadModel(GPT2Config(vocab_size=n, n_embd=32, n_layer=2, n_head=2, n_positions=64,
                                           bos_token_id=0, eos_token_id=0))
    else:
        model = LlamaForCausalLM(LlamaConfig(vocab_size=n, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                             num_attention_heads=2, max_position_embeddings=64, bos_token_id=0,
                                             eos_token_id=0))
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim > 1:
                p.mul_(8)               # far from ties
    return model.eval()


def main():
    wrong = 0
    runs = 0
    for seed in range(6):
        for name in ("gpt2", "llama"):
            with tempfile.TemporaryDirectory() as place:
                folder = pathlib.Path(place)
                n = tokenizer(folder)
                model = build(name, n, seed)
                model.save_pretrained(folder)
                for beams, penalty, new in ((2, 1.0, 12), (4, 0.0, 20), (5, 2.0, 15)):
                    prompt = LETTERS[seed] + "cab"
                    ids = torch.tensor([[LETTERS.index(c) + 1 for c in prompt]])
                    with torch.no_grad():
                        y = model.generate(ids, num_beams=beams, num_return_sequences=beams, max_new_tokens=new,
                                           length_penalty=penalty, do_sample=False, early_stopping=False,
                                           return_dict_in_generate=True, output_scores=True, pad_token_id=0)
                    want = ["".join(LETTERS[k - 1] for k in row[4:].tolist() if k) for row in y.sequences]
                    out = subprocess.run([sys.argv[1], "generate", place, prompt, "--beams", str(beams), "-n", str(new),
                                          "--length-penalty", str(penalty), "--json"], capture_output=True, text=True, check=True)
                    have = json.loads(out.stdout)["beams"]
                    runs += 1
                    close = all(abs(a["score"] - b) < 1e-4 for a, b in zip(have, y.sequences_scores.tolist()))
                    if [b["text"] for b in have] != want or not close:
                        wrong += 1
                        print(f"{name} seed {seed} beams {beams} penalty {penalty}:")
                        print("  transformers", want, y.sequences_scores.tolist())
                        print("  facula      ", [(b["text"], b["score"]) for b in have])
    print(f"{runs} searches, {wrong} differ")
    return 1 if wrong else 0


sys.exit(main())
