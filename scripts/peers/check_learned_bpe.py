#!/usr/bin/env python3
"""Compares the byte-level BPE that facula learns with that of Hugging Face's `tokenizers`: the same
merges in the same order, and the same ids of texts.

    python3 scripts/peers/check_learned_bpe.py FACULA TEXT.txt [TOKENS]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers


def ours(facula, text, tokens, folder):
    command = [facula, "train", "text", "--data", text, "--model", "gpt:1x1x8", "--steps", "1",
               "--tokenizer", f"bpe:{tokens}", "--out", folder, "--test-batches", "1", "--batch", "1", "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return pathlib.Path(folder, "tokenizer.json")


def theirs(text, tokens):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=tokens, min_frequency=2, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    # in one piece, as facula cuts it: a file would be read line by line
    t.train_from_iterator([pathlib.Path(text).read_text()], trainer)
    return t


def main():
    facula, text = sys.argv[1:3]
    tokens = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    want = theirs(text, tokens)
    with tempfile.TemporaryDirectory() as folder:
        file = ours(facula, text, tokens, folder)
        have = Tokenizer.from_file(str(file))
        a = json.loads(file.read_text())["model"]
    b = json.loads(want.to_str())["model"]
    same = [tuple(x) for x in a["merges"]] == [tuple(x) if isinstance(x, list) else tuple(x.split(" ")) for x in b["merges"]]
    sample = pathlib.Path(text).read_text()[:20000]
    ids = have.encode(sample).ids == want.encode(sample).ids
    print(f"{len(a['merges'])} merges, {len(b['merges'])} of tokenizers: {'the same' if same else 'DIFFERENT'}; "
          f"vocabularies {'the same' if a['vocab'] == b['vocab'] else 'DIFFERENT'}; ids {'the same' if ids else 'DIFFERENT'}")
    return 0 if same and ids and a["vocab"] == b["vocab"] else 1


sys.exit(main())
