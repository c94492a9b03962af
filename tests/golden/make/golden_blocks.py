#!/usr/bin/env python3
"""Golden values of weights in blocks, made by the package gguf: pip install gguf; python tests/golden/make/golden_blocks.py

Prints rows of tests/tensor/test_gguf.c: for each type the FNV-1a hash of the f32 bits of 64 blocks of bytes
from a linear congruential generator (scales are made small and finite), and of blocks rounded from
numbers of the same generator.
"""
import numpy as np
from gguf import GGMLQuantizationType as Q, quants

TYPES = {"Q4_0": (18, [0]), "Q4_1": (20, [0, 2]), "Q5_0": (22, [0]), "Q5_1": (24, [0, 2]), "Q8_0": (34, [0]),
         "IQ4_NL": (18, [0]), "Q2_K": (84, [80, 82]), "Q3_K": (110, [108]), "Q4_K": (144, [0, 2]),
         "Q5_K": (176, [0, 2]), "Q6_K": (210, [208]), "IQ4_XS": (136, [0])}
BLOCKS = 64


class Generator:
    def __init__(self, seed):
        self.x = seed

    def next(self):
        self.x = (self.x * 1103515245 + 12345) & 0xffffffff
        return self.x >> 16 & 0xff


def blocks(size, halves):
    g = Generator(7)
    raw = bytearray(g.next() for _ in range(BLOCKS * size))
    for b in range(BLOCKS):
        for h in halves:                    # exponents of f16 between 8 and 15
            at = b * size + h + 1
            raw[at] = raw[at] & 0x9f | 0x20
    return np.frombuffer(bytes(raw), np.uint8).reshape(BLOCKS, size)


def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = (h ^ b) * 0x100000001b3 & 0xffffffffffffffff
    return h


def main():
    g = Generator(3)
    numbers = np.array([(g.next() - 128 + g.next() / 256) / 32 for _ in range(32 * BLOCKS)], np.float32)
    for name, (size, halves) in TYPES.items():
        kind = getattr(Q, name)
        decoded = quants.dequantize(blocks(size, halves), kind).astype(np.float32)
        try:
            rounded = fnv(quants.quantize(numbers.reshape(-1, 32), kind).tobytes())
        except (NotImplementedError, quants.QuantError):
            rounded = 0
        print(f"    {{ FAC_{name}, {size}, {{ {', '.join(map(str, halves + [-1] * (2 - len(halves))))} }}, "
              f"0x{fnv(decoded.tobytes()):016x}, 0x{rounded:016x} }},")


if __name__ == "__main__":
    main()
