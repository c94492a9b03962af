#!/usr/bin/env python3
"""Writes tests/golden/nn_layers.txt: what PyTorch's layers give in f64, forward and backward, as digests.  tests/nn/test_nn_layers.c
builds the same layers.  All numbers that go in are formulas, see tests/support/nn_check.h; run it again only to add cases."""
import numpy as np
import torch
from torch import nn

M = np.uint64
lines = ["# Written by tests/golden/make/golden_nn_layers.py: case, then tensor, product with a, product with b, sum of magnitudes."]


def numbers(name, count):
    """number_of() of tests/support/nn_check.h"""
    h = 0xcbf29ce484222325
    for c in name.encode():
        h = (h ^ c) * 0x100000001b3 & (1 << 64) - 1
    with np.errstate(over="ignore"):
        x = M(h) + M(0x9e3779b97f4a7c15) * np.arange(1, count + 1, dtype=M)
        x = (x ^ (x >> M(30))) * M(0xbf58476d1ce4e5b9)
        x = (x ^ (x >> M(27))) * M(0x94d049bb133111eb)
        x = x ^ (x >> M(31))
    return (x >> M(11)).astype(np.float64) * 2.0**-52 - 1


def tensor(name, *shape):
    return torch.tensor(numbers(name, int(np.prod(shape))).reshape(shape))


def first_values(module, prefix=""):
    """first_value() of tests/support/nn_check.h for every parameter and running statistic"""
    with torch.no_grad():
        for name, p in [*module.named_parameters(), *module.named_buffers()]:
            full = prefix + name
            if not p.is_floating_point():
                continue
            x = numbers(full, p.numel()).reshape(p.shape)
            if p.dim() >= 2:
                x = x * np.sqrt(3 / (p.numel() / p.shape[0]))
            else:
                x = 1 + 0.2 * x if full.endswith(".weight") or full.endswith("running_var") else 0.2 * x
            p.copy_(torch.tensor(x))
    return module


def digest(t):
    x = t.detach().double().numpy().ravel()
    return f"{x @ numbers('a', x.size):.13g} {x @ numbers('b', x.size):.13g} {np.abs(x).sum():.13g}"


def case(name, module, inputs, call=None, prefix="m."):
    module = first_values(module.double(), prefix)
    x = {k: tensor(k, *shape).requires_grad_() for k, shape in inputs.items()}
    y = (call or (lambda m, **k: m(*k.values())))(module, **x)
    flat = []
    for part in y if isinstance(y, tuple) else (y,):
        flat += list(part) if isinstance(part, tuple) else [part]
    loss = sum((part * tensor(f"y{k}", *part.shape)).sum() for k, part in enumerate(flat))
    loss.backward()
    lines.append(f"case {name}")
    lines.extend(f"y{k} {digest(part)}" for k, part in enumerate(flat))
    lines.extend(f"d.{k} {digest(v.grad)}" for k, v in x.items())
    lines.extend(f"d.{prefix}{k} {digest(v.grad)}" for k, v in module.named_parameters())


def main():
    case("conv1d", nn.Conv1d(4, 6, 3, 2, 1, groups=2), {"x": (2, 4, 9)})
    case("conv2d", nn.Conv2d(3, 4, 3, padding=2, dilation=2, bias=False), {"x": (2, 3, 6, 7)})
    case("conv3d", nn.Conv3d(2, 3, 2, 2, 1), {"x": (1, 2, 4, 5, 4)})
    case("conv_transpose1d", nn.ConvTranspose1d(4, 2, 3, 2, 1, 1, groups=2), {"x": (2, 4, 5)})
    case("conv_transpose2d", nn.ConvTranspose2d(3, 4, 4, 2, 1), {"x": (2, 3, 4, 3)})
    case("conv_transpose3d", nn.ConvTranspose3d(2, 2, 2, 2, bias=False), {"x": (1, 2, 2, 3, 2)})
    case("linear", nn.Linear(5, 4), {"x": (2, 3, 5)})
    case("linear_no_bias", nn.Linear(5, 4, bias=False), {"x": (3, 5)})
    case("batch_norm", nn.BatchNorm1d(3, 1e-3).eval(), {"x": (2, 3, 4)})
    case("layer_norm", nn.LayerNorm((4, 5)), {"x": (2, 3, 4, 5)})
    case("layer_norm_no_bias", nn.LayerNorm(6, 0.1, bias=False), {"x": (3, 6)})
    case("rms_norm", nn.RMSNorm(6, 1e-5), {"x": (3, 6)})
    case("group_norm", nn.GroupNorm(3, 6), {"x": (2, 6, 3, 2)})
    case("instance_norm", nn.InstanceNorm2d(3), {"x": (2, 3, 4, 3)})
    case("instance_norm_affine", nn.InstanceNorm1d(3, affine=True), {"x": (2, 3, 5)})
    case("prelu", nn.PReLU(3), {"x": (2, 3, 4)})
    case("prelu_one", nn.PReLU(), {"x": (2, 3)})
    ids = torch.tensor([[1, 4, 4], [0, 6, 2]])
    case("embedding", nn.Embedding(7, 3, padding_idx=4), {}, lambda m: m(ids))

    case("rnn", nn.RNN(3, 5), {"x": (4, 2, 3)})
    case("rnn_relu", nn.RNN(3, 3, 2, nonlinearity="relu", batch_first=True, bidirectional=True),
         {"x": (2, 4, 3), "h0": (4, 2, 3)})
    case("gru", nn.GRU(3, 5), {"x": (4, 2, 3)})
    case("gru_deep", nn.GRU(3, 2, 2, batch_first=True, bidirectional=True), {"x": (3, 4, 3), "h0": (4, 3, 2)})
    case("lstm", nn.LSTM(3, 5), {"x": (4, 2, 3)})
    case("lstm_no_bias", nn.LSTM(3, 2, bias=False), {"x": (3, 2, 3)})
    case("lstm_deep", nn.LSTM(3, 2, 2, bidirectional=True), {"x": (4, 3, 3), "h0": (4, 3, 2), "c0": (4, 3, 2)},
         lambda m, x, h0, c0: m(x, (h0, c0)))

    def packed(m, x):
        rnn = nn.utils.rnn
        y, state = m(rnn.pack_padded_sequence(x, [5, 3, 1], batch_first=True))
        return rnn.pad_packed_sequence(y, batch_first=True)[0], state
    case("lstm_packed", nn.LSTM(3, 2, 2, batch_first=True, bidirectional=True), {"x": (3, 5, 3)}, packed)

    def padding(lengths, most):                       # torch: true is left out
        return torch.arange(most)[None] >= torch.tensor(lengths)[:, None]

    def causal(size):
        return torch.ones(size, size, dtype=torch.bool).triu(1)

    A = nn.MultiheadAttention
    case("attention_self", A(6, 2), {"x": (4, 2, 6)}, lambda m, x: m(x, x, x)[0])
    case("attention_causal", A(6, 3, batch_first=True), {"x": (2, 4, 6)},
         lambda m, x: m(x, x, x, key_padding_mask=padding([4, 3], 4), attn_mask=causal(4))[0])
    case("attention_cross", A(6, 2), {"x": (3, 2, 6), "k": (5, 2, 6), "mask": (3, 5)},
         lambda m, x, k, mask: m(x, k, k, attn_mask=mask)[0])
    allowed = torch.tensor([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1], [1, 0, 1, 0, 1]], dtype=torch.bool)
    case("attention_sizes", A(6, 2, bias=False, kdim=4, vdim=3), {"x": (3, 2, 6), "k": (5, 2, 4), "v": (5, 2, 3)},
         lambda m, x, k, v: m(x, k, v, attn_mask=~allowed)[0])

    case("encoder", nn.TransformerEncoderLayer(6, 2, 8, 0.0), {"x": (4, 2, 6)})
    case("encoder_gpt", nn.TransformerEncoderLayer(6, 2, 8, 0.0, "gelu", batch_first=True, norm_first=True, bias=False),
         {"x": (2, 4, 6)}, lambda m, x: m(x, src_mask=causal(4)))
    case("decoder", nn.TransformerDecoderLayer(6, 2, 8, 0.0), {"x": (4, 2, 6), "memory": (3, 2, 6)},
         lambda m, x, memory: m(x, memory, tgt_mask=causal(4), memory_key_padding_mask=padding([2, 3], 3)))

    class Sequential(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.ReLU())
            self.m = nn.Sequential()
            for k, part in (("0", nn.BatchNorm2d(3).eval()), ("1", nn.Flatten()), ("fc", nn.Linear(48, 4)), ("3", nn.Tanh())):
                self.m.add_module(k, part)

        def forward(self, x):
            return self.m(x + self.block(x))
    case("sequential", Sequential(), {"x": (2, 3, 4, 4)}, prefix="")

    with open("tests/golden/nn_layers.txt", "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
