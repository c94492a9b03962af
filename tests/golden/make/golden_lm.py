#!/usr/bin/env python3
"""Logits of small language models by transformers, for tests: python tests/golden/make/golden_lm.py > tests/golden/lm.h

    pip install torch transformers

Weights follow from a formula that tests/lm/test_lm_families.c has, too, by the order of names.
"""
import numpy as np
import torch
import transformers as tf

VOCABULARY, WIDTH, LAYERS, HEADS, HIDDEN, CONTEXT, TOKENS = 23, 16, 2, 2, 24, 40, 12
PHI = dict(vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
           num_key_value_heads=1, intermediate_size=HIDDEN, max_position_embeddings=CONTEXT, pad_token_id=0,
           sliding_window=None, attn_implementation="eager")
FACTORS = dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.3, 1.6],
               long_factor=[1.0, 2.5, 4.0, 7.0])


def phi3(original):
    return tf.Phi3ForCausalLM(tf.Phi3Config(**PHI, original_max_position_embeddings=original, rope_parameters=FACTORS))


MODELS = {
    "gpt_neo": lambda: tf.GPTNeoForCausalLM(tf.GPTNeoConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_layers=LAYERS, num_heads=HEADS, max_position_embeddings=CONTEXT,
        attention_types=[[["global", "local"], LAYERS // 2]], window_size=4, bos_token_id=0, eos_token_id=0)),
    "phi3_long": lambda: phi3(8),
    "phi3_short": lambda: phi3(32),
}


def numbers(n, which, norm):
    i = np.arange(n, dtype=np.uint64)
    bits = (i * np.uint64(2654435761) + np.uint64(which * 97531)) % np.uint64(1 << 32)
    bits = bits ^ (bits >> np.uint64(15))
    x = (bits * np.uint64(2246822519) % np.uint64(1 << 32) >> np.uint64(8)).astype(np.float64) / (1 << 24) - 0.5
    return (x * (0.6 if norm else 0.8) + norm).astype(np.float32)


def main():
    ids = torch.tensor([[(k * k * 5 + 3 * k + 1) % VOCABULARY for k in range(TOKENS)]])
    print("/* clang-format off */\n/* By tests/golden/make/golden_lm.py, transformers", tf.__version__, "*/")
    for name, make in MODELS.items():
        model = make().eval()
        seen = {k: v for k, v in model.named_parameters()}
        with torch.no_grad():
            for which, (key, p) in enumerate(sorted(seen.items())):
                norm = p.ndim == 1 and key.endswith("weight")
                p.copy_(torch.from_numpy(numbers(p.numel(), which, float(norm)).reshape(p.shape)))
            row = model(ids).logits[0, -1].double().numpy()
        print(f"static const float {name}[] = {{")
        for k in range(0, VOCABULARY, 6):
            print("    " + ", ".join(f"{x:.8g}f" for x in row[k:k + 6]) + ",")
        print("};")
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
