#!/usr/bin/env python3
"""Brightness, contrast, saturation and hue of one image, from torchvision: writes tests/golden/augment.h.  Needs torchvision."""
import pathlib
import torch
import torchvision.transforms.v2.functional as F

torch.manual_seed(9)
x = torch.randint(0, 256, (3, 3, 4)).float()
y = F.adjust_brightness(x / 255, 1.2)
y = F.adjust_contrast(y, 0.7)
y = F.adjust_saturation(y, 1.5)
y = F.adjust_hue(y, 0.1)


def row(v):
    return "{ " + ", ".join("%.7g" % e for e in v.flatten().tolist()) + " }"


text = """/* Written by tests/golden/make/golden_augment.py: 3 x 3 x 4 before and after brightness 1.2, contrast 0.7, saturation 1.5, hue 0.1. */
static const float golden_before[36] = %s;
static const float golden_after[36] = %s;
""" % (row(x), row(y * 255))
(pathlib.Path(__file__).parent.parent / "augment.h").write_text(text)
