#!/usr/bin/env python3
"""Tokenizers against their originals: python scripts/peers/check_tokenizers.py build/libfacula.so TEXT... [--merges FOLDER] [--json FILE]

    pip install sentencepiece gguf tokenizers

SentencePiece learns BPE and Unigram models from the files TEXT; what facula reads from a GGUF file with their
pieces must cut random Unicode strings as SentencePiece does.  FOLDER has vocab.json and merges.txt of GPT-2,
which Hugging Face's tokenizers read, too: with the pieces of GPT-2, and as tokenizer.json with those of SmolLM,
Llama 3 and Qwen 2.  --json compares whole files tokenizer.json.
"""
import argparse
import ctypes
import math
import os
import random
import sys
import tempfile

import gguf
import sentencepiece as spm
import tokenizers

STRINGS = 2000


class Facula:
    def __init__(self, library, path):
        class Error(ctypes.Structure):
            _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 508)]
        self.lib = ctypes.CDLL(library)
        self.lib.fac_tokenizer_encode.restype = ctypes.c_int64
        self.lib.fac_tokenizer_decode.restype = ctypes.c_size_t
        self.t, error = ctypes.c_void_p(), Error()
        if self.lib.fac_tokenizer_load(path.encode(), ctypes.byref(self.t), ctypes.byref(error)):
            sys.exit(error.text.decode())

    def encode(self, text):
        s = text.encode()
        ids = (ctypes.c_int32 * (4 * len(s) + 16))()
        n = self.lib.fac_tokenizer_encode(self.t, s, ctypes.c_size_t(len(s)), 0, ids, ctypes.c_int64(len(ids)))
        return list(ids[:n])


def strings(text, seed):
    """Cuts of the text, words of other alphabets, single characters of all planes, runs of spaces."""
    r = random.Random(seed)
    others = ["naïve café", "東京都", "Привет мир", "🙂👩‍👩‍👧", "١٢٣", "é", "\u00a0", "don't", "'S", "12345", "\t", "\n\n"]
    for _ in range(STRINGS):
        parts = []
        for _ in range(r.randrange(1, 6)):
            at = r.randrange(len(text))
            kind = r.randrange(5)
            if kind == 0:
                parts.append(r.choice(others))
            elif kind == 1:
                parts.append(chr(r.choice([r.randrange(32, 0x300), r.randrange(0x4e00, 0x9fff), r.randrange(0x1f300, 0x1f640)])))
            else:
                parts.append(text[at:at + r.randrange(40)])
            parts.append(" " * r.randrange(3))
        yield "".join(parts)


def compare(name, facula, encode, text, same=lambda a, b: a == b):
    wrong = 0
    for s in strings(text, 1):
        a, b = facula.encode(s), encode(s)
        differ = not same(a, b)
        wrong += differ
        if differ and wrong <= 3:
            print(f"       {s!r}: {a} instead of {b}")
    print("FAILED" if wrong else "ok    ", f"{name}: {wrong} of {STRINGS} strings differ")
    return wrong


def write_gguf(model, path, kind):
    w = gguf.GGUFWriter(path, "llama")
    pieces = [model.id_to_piece(k) for k in range(model.get_piece_size())]
    types = [2 if model.is_unknown(k) else 3 if model.is_control(k) else 6 if model.is_byte(k) else 1
             for k in range(len(pieces))]
    w.add_tokenizer_model(kind)
    w.add_token_list([p.encode() for p in pieces])
    w.add_token_scores([model.get_score(k) for k in range(len(pieces))])
    w.add_token_types(types)
    w.add_unk_token_id(model.unk_id())
    w.add_bos_token_id(model.bos_id())
    w.add_eos_token_id(model.eos_id())
    w.add_add_space_prefix(True)
    w.add_bool("tokenizer.ggml.remove_extra_whitespaces", False)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def unigram(model):
    """The pieces of SentencePiece's model in Hugging Face's tokenizer."""
    pieces = [(model.id_to_piece(k), model.get_score(k)) for k in range(model.get_piece_size())]
    t = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, model.unk_id(), byte_fallback=True))
    spaces = [tokenizers.normalizers.Prepend("▁"), tokenizers.normalizers.Replace(" ", "▁")]
    t.normalizer = tokenizers.normalizers.Sequence(spaces)
    return t


def sentencepiece(library, text_file, text, kind, folder):
    spm.SentencePieceTrainer.train(input=text_file, model_prefix=f"{folder}/{kind}", vocab_size=1000, model_type=kind,
                                   byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                                   minloglevel=2)
    model = spm.SentencePieceProcessor(model_file=f"{folder}/{kind}.model")
    path = f"{folder}/{kind}.gguf"
    write_gguf(model, path, "llama" if kind == "bpe" else "t5")
    facula = Facula(library, path)
    if kind == "bpe":
        return compare(f"SentencePiece, {kind}", facula, model.encode, text)

    # Two cuts may have the same sum of scores.  SentencePiece adds in f32, so that rounding chooses between them;
    # Hugging Face's tokenizers and facula add in f64 and choose the same one.
    def equally_likely(a, b):
        return a == b or math.isclose(*(math.fsum(map(model.get_score, ids)) for ids in (a, b)), rel_tol=1e-12)
    hugging_face = unigram(model)
    return (compare("Hugging Face, unigram", facula, lambda s: hugging_face.encode(s).ids, text) +
            compare(f"SentencePiece, {kind}", facula, model.encode, text, equally_likely))


def merges(library, folder, text):
    t = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(f"{folder}/vocab.json", f"{folder}/merges.txt"))
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return compare("vocab.json and merges.txt", Facula(library, folder), lambda s: t.encode(s).ids, text)


LETTERS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def cuts():
    """How pieces are cut before they are merged, by the model that does so."""
    pre = tokenizers.pre_tokenizers

    def by(pattern):
        split = pre.Split(tokenizers.Regex(pattern), "isolated", invert=False)
        return pre.Sequence([split, pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    return {"SmolLM": pre.Sequence([pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)]),
            "Llama 3": by(LETTERS % "{1,3}"), "Qwen 2": by(LETTERS % "")}


def whole(library, path, text):
    t = tokenizers.Tokenizer.from_file(path)
    t.no_truncation()
    t.no_padding()
    return compare(path, Facula(library, path), lambda s: t.encode(s, add_special_tokens=False).ids, text)


def pieces(library, folder, text):
    wrong = 0
    for name, cut in cuts().items():
        t = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(f"{folder}/vocab.json", f"{folder}/merges.txt"))
        t.pre_tokenizer, t.decoder = cut, tokenizers.decoders.ByteLevel()
        with tempfile.TemporaryDirectory() as place:
            path = f"{place}/tokenizer.json"
            t.save(path)
            wrong += compare(f"pieces of {name}", Facula(library, path), lambda s: t.encode(s).ids, text)
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__.split(":")[0])
    p.add_argument("library", type=os.path.abspath)
    p.add_argument("texts", nargs="+", metavar="TEXT")
    p.add_argument("--merges", metavar="FOLDER")
    p.add_argument("--json", metavar="FILE", action="append", default=[])
    args = p.parse_args()
    text = "\n".join(open(path, encoding="utf-8").read() for path in args.texts)
    with tempfile.TemporaryDirectory() as folder:
        text_file = f"{folder}/text"
        with open(text_file, "w", encoding="utf-8") as f:
            f.write(text)
        wrong = sum(sentencepiece(args.library, text_file, text, kind, folder) for kind in ("bpe", "unigram"))
    if args.merges:
        wrong += merges(args.library, args.merges, text) + pieces(args.library, args.merges, text)
    wrong += sum(whole(args.library, path, text) for path in args.json)
    sys.exit(wrong > 0)


main()
