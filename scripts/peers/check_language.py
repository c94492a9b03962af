#!/usr/bin/env python3
"""Language models against transformers: python scripts/peers/check_language.py build/libfacula.so

    pip install torch transformers

For each family a small model with random weights (norms and biases, too) is saved as a folder and
read by facula: logits of 70 tokens, fed at once and in chunks of 1, 3, 8 and 64, must be those of
transformers to 1e-5 of the largest; GPT-2's greedy text must be the same 64 tokens.
"""
import ctypes
import sys
import tempfile

import numpy as np
import torch
import transformers as tf

N = 70
SMALL = dict(vocab_size=311, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=80,
             max_position_embeddings=128)
WINDOWS = dict(sliding_window=7, attn_implementation="eager")
CONTEXTS = {"phi3 short": 96}     # tokens that facula is asked for, where they decide something


def phi3_longrope(original):
    factors = dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.05, 1.1, 1.2, 1.4, 1.8],
                   long_factor=[1.0, 1.5, 2.0, 4.0, 8.0, 16.0])
    return tf.Phi3Config(**SMALL, num_key_value_heads=2, pad_token_id=0, original_max_position_embeddings=original,
                         rope_parameters=factors)


FAMILIES = {
    "llama": lambda: tf.LlamaForCausalLM(tf.LlamaConfig(**SMALL, num_key_value_heads=2)),
    "llama 3": lambda: tf.LlamaForCausalLM(tf.LlamaConfig(
        **SMALL, num_key_value_heads=2, tie_word_embeddings=True,
        rope_scaling=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                          original_max_position_embeddings=64))),
    "mistral": lambda: tf.MistralForCausalLM(tf.MistralConfig(**SMALL, **WINDOWS, num_key_value_heads=2)),
    "qwen2": lambda: tf.Qwen2ForCausalLM(tf.Qwen2Config(**SMALL, num_key_value_heads=2)),
    "qwen3": lambda: tf.Qwen3ForCausalLM(tf.Qwen3Config(**SMALL, num_key_value_heads=2, head_dim=20)),
    "phi3": lambda: tf.Phi3ForCausalLM(tf.Phi3Config(**SMALL, num_key_value_heads=2, pad_token_id=0)),
    "phi3 long": lambda: tf.Phi3ForCausalLM(phi3_longrope(16)),
    "phi3 short": lambda: tf.Phi3ForCausalLM(phi3_longrope(96)),
    "gpt_neo": lambda: tf.GPTNeoForCausalLM(tf.GPTNeoConfig(
        vocab_size=311, hidden_size=48, num_layers=4, num_heads=4, max_position_embeddings=128, window_size=7,
        attention_types=[[["global", "local"], 2]])),
    "gpt2": lambda: tf.GPT2LMHeadModel(tf.GPT2Config(vocab_size=311, n_positions=128, n_embd=48, n_layer=3, n_head=4)),
    "gpt_neox": lambda: tf.GPTNeoXForCausalLM(tf.GPTNeoXConfig(**SMALL, rotary_pct=0.5)),
    "gpt_neox serial": lambda: tf.GPTNeoXForCausalLM(tf.GPTNeoXConfig(**SMALL, rotary_pct=0.5, use_parallel_residual=False)),
    "gemma2": lambda: tf.Gemma2ForCausalLM(tf.Gemma2Config(**SMALL, **WINDOWS, num_key_value_heads=2, head_dim=16,
                                                           query_pre_attn_scalar=24)),
    "gemma3": lambda: tf.Gemma3ForCausalLM(tf.Gemma3TextConfig(**{**SMALL, "num_hidden_layers": 7}, **WINDOWS,
                                                               num_key_value_heads=2, head_dim=16)),
}


class Opts(ctypes.Structure):
    _fields_ = [("context", ctypes.c_int64), ("slots", ctypes.c_int), ("precision", ctypes.c_int)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 508)]


class Facula:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.fac_session_logits.restype = ctypes.POINTER(ctypes.c_float)
        self.error = Error()
        self.device = ctypes.c_void_p()
        self.call("fac_device_open", b"cpu", None, ctypes.byref(self.device))

    def call(self, name, *args):
        if getattr(self.lib, name)(*args, ctypes.byref(self.error)):
            raise RuntimeError(f"{name}: {self.error.text.decode()}")

    def model(self, path, context=0):
        m, s = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("fac_lm_load", path.encode(), self.device, ctypes.byref(Opts(context)), ctypes.byref(m))
        self.call("fac_session_new", m, ctypes.byref(s))
        return m, s

    def feed(self, s, ids, vocabulary):
        a = (ctypes.c_int32 * len(ids))(*ids)
        self.call("fac_session_feed", s, 0, a, ctypes.c_int64(len(ids)))
        self.call("fac_session_step", s)
        return np.ctypeslib.as_array(self.lib.fac_session_logits(s, 0), (vocabulary,)).copy()


def randomize(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim == 1:
                p.copy_(torch.randn_like(p) * 0.3 + (1 if "norm" in name or "ln" in name else 0))
            else:
                p.copy_(torch.randn_like(p) * 0.15)
    return model.eval()


def check(facula, name, make):
    torch.manual_seed(1)
    model = randomize(make())
    ids = torch.randint(0, 311, (1, N))
    with torch.no_grad():
        want = model(ids).logits[0].double().numpy()
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        for chunk in (1, 3, 8, 64, N):
            m, s = facula.model(folder, CONTEXTS.get(name, 0))
            for at in range(0, N, chunk):
                part = ids[0, at:at + chunk].tolist()
                got = facula.feed(s, part, 311)
                row = want[at + len(part) - 1]
                worst = max(worst, float(np.abs(got - row).max() / np.abs(row).max()))
            facula.lib.fac_session_free(s)
            facula.lib.fac_lm_free(m)
        same = greedy(facula, model, folder) if name == "gpt2" else True
    print(f"{name:16} largest difference {worst:.1e}{'' if same else '  other tokens'}", flush=True)
    return worst <= 1e-5 and same


def greedy(facula, model, folder):
    ids = torch.tensor([[5, 17, 200]])
    want = model.generate(ids, max_new_tokens=64, do_sample=False, pad_token_id=0, eos_token_id=None)[0].tolist()
    m, s = facula.model(folder)
    got, new = ids[0].tolist(), ids[0].tolist()
    for _ in range(64):
        new = [int(facula.feed(s, new, 311).argmax())]
        got += new
    facula.lib.fac_session_free(s)
    facula.lib.fac_lm_free(m)
    return got == want


def main():
    facula = Facula(sys.argv[1])
    bad = 0
    for name, make in FAMILIES.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        try:
            bad += not check(facula, name, make)
        except Exception as e:      # one family must not hide the others
            print(f"{name:16} {type(e).__name__}: {e}", flush=True)
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
