#!/usr/bin/env python3
"""Writes tests/golden/zoo.h: what torchvision computes with weights that tests/nn/test_zoo.c can make as well.

    python3 tests/golden/make/golden_zoo.py > tests/golden/zoo.h            (PyTorch, torchvision)

Every number is a hash of its tensor's name and of its place, so that no weights need to be stored: see weight().
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torchvision

MODELS = ["alexnet", "squeezenet1_0", "squeezenet1_1", "googlenet", "resnet18", "resnet34", "resnet50", "mobilenet_v2", "vgg16"]
TOO_LARGE = {"vgg16"}       # half a gigabyte: only names and shapes


def uniform(name, n):
    """FNV-1a of the name, then MurmurHash3's finalizer of name + place; 0..1."""
    h = 0x811C9DC5
    for byte in name.encode():
        h = (h ^ byte) * 0x01000193 & 0xFFFFFFFF
    x = (np.arange(n, dtype=np.uint64) * 2654435761 + h & 0xFFFFFFFF).astype(np.uint32)
    x ^= x >> 16
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> 13
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> 16
    return x.astype(np.float64) / 2 ** 32


def weight(name, shape):
    """Weights that keep the scale of activations (He et al. 2015), variances and scales around 1, the rest around 0."""
    u = uniform(name, int(np.prod(shape)))
    if len(shape) > 1:
        x = (2 * u - 1) * np.sqrt(6 / np.prod(shape[1:]))
    elif name.endswith("running_var") or name.endswith("weight"):
        x = 0.75 + u / 2
    else:
        x = (2 * u - 1) / 8
    return torch.from_numpy(x.astype(np.float32).reshape(shape))


class Lenet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = torch.nn.Linear(400, 120), torch.nn.Linear(120, 84), torch.nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class EfficientnetLite0(torch.nn.Module):
    """By the names of the PyPI package; padding as TensorFlow's "same"."""

    class Block(torch.nn.Module):
        def __init__(self, wide_in, out, expand, kernel, stride):
            super().__init__()
            wide = wide_in * expand
            self.stride, self.add = stride, stride == 1 and wide_in == out
            if expand > 1:
                self._expand_conv = torch.nn.Conv2d(wide_in, wide, 1, bias=False)
                self._bn0 = torch.nn.BatchNorm2d(wide, eps=1e-3)
            self._depthwise_conv = torch.nn.Conv2d(wide, wide, kernel, stride, groups=wide, bias=False)
            self._bn1 = torch.nn.BatchNorm2d(wide, eps=1e-3)
            self._project_conv = torch.nn.Conv2d(wide, out, 1, bias=False)
            self._bn2 = torch.nn.BatchNorm2d(out, eps=1e-3)

        def forward(self, x):
            y = F.relu6(self._bn0(self._expand_conv(x))) if hasattr(self, "_expand_conv") else x
            y = F.relu6(self._bn1(self._depthwise_conv(EfficientnetLite0.same(y, self._depthwise_conv))))
            y = self._bn2(self._project_conv(y))
            return x + y if self.add else y

    def __init__(self):
        super().__init__()
        self._conv_stem = torch.nn.Conv2d(3, 32, 3, 2, bias=False)
        self._bn0 = torch.nn.BatchNorm2d(32, eps=1e-3)
        blocks, wide = [], 32
        for expand, out, repeat, kernel, stride in ((1, 16, 1, 3, 1), (6, 24, 2, 3, 2), (6, 40, 2, 5, 2), (6, 80, 3, 3, 2),
                                                    (6, 112, 3, 5, 1), (6, 192, 4, 5, 2), (6, 320, 1, 3, 1)):
            for k in range(repeat):
                blocks.append(self.Block(wide, out, expand, kernel, stride if k == 0 else 1))
                wide = out
        self._blocks = torch.nn.ModuleList(blocks)
        self._conv_head = torch.nn.Conv2d(320, 1280, 1, bias=False)
        self._bn1 = torch.nn.BatchNorm2d(1280, eps=1e-3)
        self._fc = torch.nn.Linear(1280, 1000)

    @staticmethod
    def same(x, conv):
        kernel, stride, size = conv.kernel_size[0], conv.stride[0], x.shape[-1]
        total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        return F.pad(x, (total // 2, total - total // 2, total // 2, total - total // 2))

    def forward(self, x):
        x = F.relu6(self._bn0(self._conv_stem(self.same(x, self._conv_stem))))
        for block in self._blocks:
            x = block(x)
        return self._fc(F.relu6(self._bn1(self._conv_head(x))).mean((2, 3)))


def model(name):
    if name == "lenet":
        return Lenet()
    if name == "efficientnet_lite0":
        return EfficientnetLite0()
    if name == "googlenet":
        return torchvision.models.googlenet(weights=None, aux_logits=False, init_weights=False, transform_input=False)
    return getattr(torchvision.models, name)(weights=None)


def fill(net):
    """The weights of this file into a network; names in the order of the state dict."""
    state = {k: weight(k, tuple(v.shape)) for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}
    net.load_state_dict(state, strict=False)
    return net.eval(), state


def names_sum(state):
    """Sum of FNV-1a (64 bit) of "name 64,3,7,7" over all tensors, so the order does not matter."""
    total = 0
    for name, value in state.items():
        h = 0xCBF29CE484222325
        for byte in f"{name} {','.join(map(str, value.shape))}".encode():
            h = (h ^ byte) * 0x100000001B3 & (1 << 64) - 1
        total = total + h & (1 << 64) - 1
    return total


def main():
    print("/* Networks with weights made by a formula.  Made by tests/golden/make/golden_zoo.py with PyTorch "
          f"{torch.__version__.split('+')[0]}, torchvision {torchvision.__version__.split('+')[0]}:\n * do not edit. */")
    print("#include <stddef.h>\n#include <stdint.h>\n")
    print("enum { GOLDEN_LOGITS = 10 };\n")
    print("static const struct golden_zoo {\n    const char *name;\n"
          "    int64_t parameters;         /* without running statistics */\n"
          "    int tensors;\n    uint64_t names;             /* sum of FNV-1a of \"name 64,3,7,7\" */\n"
          "    double largest;             /* of all logits; 0: not computed */\n"
          "    double logits[GOLDEN_LOGITS];       /* the first ones of image 1 of 2 */\n} golden_zoo[] = {")
    for name in ["lenet", *MODELS, "efficientnet_lite0"]:
        net, state = fill(model(name))
        parameters = sum(p.numel() for p in net.parameters())
        values, largest = [], 0
        if name not in TOO_LARGE:
            shape = (2, 1, 28, 28) if name == "lenet" else (2, 3, 224, 224)
            x = torch.from_numpy((2 * uniform("x", int(np.prod(shape))) - 1).astype(np.float32).reshape(shape))
            with torch.no_grad():
                y = net.double()(x.double())
            values, largest = y[1, :10].tolist(), y.abs().max().item()
        print(f'    {{ "{name}", {parameters}, {len(state)}, 0x{names_sum(state):016x}, {largest:.9g}, {{')
        for k in range(0, len(values), 5):
            print("      " + ", ".join(f"{v:.9g}" for v in values[k:k + 5]) + ("," if k == 0 else ""))
        print("    } }," if values else "      0\n    } },")
    print("};")


if __name__ == "__main__":
    sys.exit(main())
