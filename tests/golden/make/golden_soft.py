#!/usr/bin/env python3
"""Cross entropy with probabilities for labels, from torch: writes tests/golden/soft.h.  Needs torch."""
import pathlib
import torch
import torch.nn.functional as F

torch.manual_seed(5)
x = torch.randn(4, 5, dtype=torch.float64) * 2
t = torch.rand(4, 5, dtype=torch.float64).softmax(1)


def row(v):
    return "{ " + ", ".join("%.15g" % e for e in v.flatten().tolist()) + " }"


out = ["/* Written by tests/golden/make/golden_soft.py. */", "static const double golden_x[] = %s;" % row(x),
       "static const double golden_t[] = %s;" % row(t),
       "static const struct { fac_reduction reduction; double smoothing; int n; double value[4], dx[20]; } golden_soft[] = {"]
for name, constant in (("mean", "FAC_REDUCE_MEAN"), ("sum", "FAC_REDUCE_SUM"), ("none", "FAC_REDUCE_NONE")):
    for smoothing in (0, 0.1):
        z = x.clone().requires_grad_()
        y = F.cross_entropy(z, t, reduction=name, label_smoothing=smoothing)
        (y * torch.arange(1, y.numel() + 1, dtype=torch.float64).reshape(y.shape)).sum().backward()
        out.append("    { %s, %g, %d, %s, %s }," % (constant, smoothing, y.numel(), row(y.detach()), row(z.grad)))
out.append("};")
(pathlib.Path(__file__).parent.parent / "soft.h").write_text("\n".join(out) + "\n")
