#!/usr/bin/env python3
"""Writes tests/golden/optim.h: parameters after ten steps of each of torch's optimizers, with groups, clipping and moving
averages, learning rates of its schedules, and its losses with their gradients, all in f64, for tests/train/test_optim.c and
tests/ops/test_loss.c; and tests/golden/batch_norm.h for tests/train/test_train_models.c.  The numbers are checked in; the argument is another
folder."""
import sys
import numpy as np
import torch
import torch.nn.functional as F

torch.manual_seed(3)
rng = np.random.default_rng(5)
out = ["/* Written by tests/golden/make/golden_optim.py: torch's numbers. */", "#ifndef GOLDEN_OPTIM_H", "#define GOLDEN_OPTIM_H"]


def array(name, values, kind="double"):
    numbers = [repr(float(v)) if kind == "double" else str(int(v)) for v in np.asarray(values).ravel()]
    out.append(f"static const {kind} {name}[] = {{")
    for i in range(0, len(numbers), 5):
        out.append("    " + ", ".join(numbers[i:i + 5]) + ",")
    out.append("};")


# loss = sum (a w - y)^2 over w[2,3] and v[3], whose gradients differ in size
w0, v0 = rng.uniform(-1, 1, (2, 3)), rng.uniform(-1, 1, 3)
a, y = rng.uniform(-2, 2, (2, 3)), rng.uniform(-1, 1, (2, 3))
for name, values in (("golden_w", w0), ("golden_v", v0), ("golden_a", a), ("golden_y", y)):
    array(name, values)
CASES = [  # C options, torch's, clip
    ("sgd", ".weight_decay = 0", torch.optim.SGD, {}, 0),
    ("sgd", ".momentum = 0.9, .weight_decay = 0.1", torch.optim.SGD, dict(momentum=0.9, weight_decay=0.1), 0),
    ("sgd", ".momentum = 0.9, .dampening = 0.3", torch.optim.SGD, dict(momentum=0.9, dampening=0.3), 0),
    ("sgd", ".momentum = 0.8, .nesterov = true", torch.optim.SGD, dict(momentum=0.8, nesterov=True), 0),
    ("sgd", ".momentum = 0.9, .clip_norm = 0.5", torch.optim.SGD, dict(momentum=0.9), 0.5),
    ("adam", ".weight_decay = 0", torch.optim.Adam, {}, 0),
    ("adam", ".beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1", torch.optim.Adam,
     dict(betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1), 0),
    ("adamw", ".weight_decay = 0", torch.optim.AdamW, {}, 0),
    ("adamw", ".weight_decay = 0.3", torch.optim.AdamW, dict(weight_decay=0.3), 0),
    ("rmsprop", ".weight_decay = 0", torch.optim.RMSprop, {}, 0),
    ("rmsprop", ".centered = true, .momentum = 0.5, .alpha = 0.9", torch.optim.RMSprop,
     dict(centered=True, momentum=0.5, alpha=0.9), 0),
    ("adagrad", ".weight_decay = 0", torch.optim.Adagrad, {}, 0),
    ("adagrad", ".lr_decay = 0.1, .initial = 0.2, .weight_decay = 0.1", torch.optim.Adagrad,
     dict(lr_decay=0.1, initial_accumulator_value=0.2, weight_decay=0.1), 0),
]
LR = 0.05
rows = []
for k, (name, options, make, opts, clip) in enumerate(CASES):
    w, v = (torch.tensor(t, requires_grad=True) for t in (w0, v0))
    optimizer = make([w, v], lr=LR, **opts)
    for _ in range(10):
        optimizer.zero_grad()
        loss = ((torch.tensor(a) * w * v - torch.tensor(y)) ** 2).sum()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_([w, v], clip)
        optimizer.step()
    array(f"golden_after_{k}", np.concatenate([w.detach().numpy().ravel(), v.detach().numpy()]))
    rows.append(f'    {{ "{name}", {{ {options} }}, golden_after_{k} }},')
out.append("static const struct { const char *name; fac_optim_opts opts; const double *after; } golden_cases[] = {")
out += rows + ["};"]


def schedule(name, make, steps=20):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    s, rates = make(optimizer), []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        s.step() if len(rates) < steps else None
    array(name, rates)


# ---- groups, clipping by value, moving averages: w and v as above, ten steps of SGD or AdamW ----
def train(name, make, clip_value=0, decay=0, warm=False):
    w, v = (torch.tensor(t, requires_grad=True) for t in (w0, v0))
    optimizer, ema = make(w, v), [w.detach().clone(), v.detach().clone()]
    for t in range(10):
        optimizer.zero_grad()
        ((torch.tensor(a) * w * v - torch.tensor(y)) ** 2).sum().backward()
        if clip_value:
            torch.nn.utils.clip_grad_value_([w, v], clip_value)
        optimizer.step()
        keep = min(decay, (1 + t) / (10 + t)) if warm else decay
        ema = torch.optim.swa_utils.get_ema_avg_fn(keep)(ema[0], w, 0), torch.optim.swa_utils.get_ema_avg_fn(keep)(ema[1], v, 0)
        ema = [e.detach() for e in ema]
    now = ema if decay else [w, v]
    array(name, np.concatenate([t.detach().numpy().ravel() for t in now]))


train("golden_groups", lambda w, v: torch.optim.AdamW([dict(params=[w], lr=LR * 0.1), dict(params=[v], weight_decay=0)], lr=LR,
                                                      weight_decay=0.3))
train("golden_clip_value", lambda w, v: torch.optim.SGD([w, v], lr=LR, momentum=0.9), clip_value=0.2)
train("golden_ema", lambda w, v: torch.optim.SGD([w, v], lr=LR), decay=0.8)
train("golden_ema_warm", lambda w, v: torch.optim.SGD([w, v], lr=LR), decay=0.3, warm=True)

S = torch.optim.lr_scheduler
schedule("golden_step", lambda o: S.StepLR(o, 6))
schedule("golden_exponential", lambda o: S.ExponentialLR(o, 0.9))
schedule("golden_cosine", lambda o: S.CosineAnnealingLR(o, 20, 0.01))
schedule("golden_one_cycle", lambda o: S.OneCycleLR(o, 0.1, total_steps=20, cycle_momentum=False))

schedule("golden_linear", lambda o: S.LinearLR(o, 1, 0.1, 15), 120)
schedule("golden_polynomial", lambda o: S.PolynomialLR(o, 100, 0.9), 120)
schedule("golden_restarts", lambda o: S.CosineAnnealingWarmRestarts(o, 10, 2, 0.01), 120)
schedule("golden_restarts_even", lambda o: S.CosineAnnealingWarmRestarts(o, 25), 120)
schedule("golden_long_cosine", lambda o: S.CosineAnnealingLR(o, 120, 0.001), 120)
schedule("golden_long_one_cycle", lambda o: S.OneCycleLR(o, 0.1, total_steps=120, cycle_momentum=False), 120)

# plateaus: a metric that falls, stalls and jumps, and the rates after each epoch
metric = np.abs(np.exp(-np.arange(120) / 25) + np.random.default_rng(11).normal(0, 0.05, 120) + 0.3)
array("golden_metric", metric)
PLATEAUS = [  # C fields, torch's
    (".patience = 3", dict(patience=3)),
    (".gamma = 0.5, .patience = 2, .cooldown = 4, .low = 1e-3", dict(factor=0.5, patience=2, cooldown=4, min_lr=1e-3)),
    (".gamma = 0.7, .patience = -1, .threshold = 0.02, .absolute = true",
     dict(factor=0.7, patience=0, threshold=0.02, threshold_mode="abs")),
    (".gamma = 0.8, .patience = 1, .threshold = -1, .rising = true", dict(mode="max", factor=0.8, patience=1, threshold=0)),
    (".gamma = 0.9, .patience = 4, .threshold = 0.1, .rising = true, .absolute = true",
     dict(mode="max", factor=0.9, patience=4, threshold=0.1, threshold_mode="abs")),
]
rows = []
for k, (fields, options) in enumerate(PLATEAUS):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    s, rates = S.ReduceLROnPlateau(optimizer, **options), []
    for m in metric:
        s.step(float(m))
        rates.append(optimizer.param_groups[0]["lr"])
    array(f"golden_plateau_{k}", rates)
    rows.append(f"    {{ {{ .kind = FAC_SCHEDULE_PLATEAU, .lr = 0.1, {fields} }}, golden_plateau_{k} }},")
out.append("static const struct { fac_schedule schedule; const double *rates; } golden_plateaus[] = {")
out += rows + ["};"]

# ---- tests/golden/batch_norm.h: what follows up to the losses ----
before = out
out = [out[0], "#ifndef GOLDEN_BATCH_NORM_H", "#define GOLDEN_BATCH_NORM_H"]

# a network with batch norm: x[6,3,2,2] -> batch norm -> linear to 2, cross entropy, three steps of SGD
bx, by = rng.uniform(-1, 3, (6, 3, 2, 2)), np.array([0, 1, 1, 0, 1, 0])
bw = rng.uniform(-0.3, 0.3, (2, 12))
bn, fc = torch.nn.BatchNorm2d(3).double(), torch.nn.Linear(12, 2).double()
with torch.no_grad():
    fc.weight.copy_(torch.tensor(bw))
    fc.bias.zero_()
optimizer = torch.optim.SGD([*bn.parameters(), *fc.parameters()], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    F.cross_entropy(fc(bn(torch.tensor(bx)).flatten(1)), torch.tensor(by)).backward()
    optimizer.step()
array("golden_bn_x", bx)
array("golden_bn_labels", by, "int64_t")
array("golden_bn_w", bw)
array("golden_bn_after", np.concatenate([t.detach().numpy().ravel() for t in (
    bn.weight, bn.bias, bn.running_mean, bn.running_var, fc.weight, fc.bias)]))

folder = sys.argv[1] if len(sys.argv) > 1 else "tests/golden"
open(f"{folder}/batch_norm.h", "w").write("\n".join(out + ["#endif"]) + "\n")
out = before

# ---- losses: value, gradient of the first operand ----
x = rng.uniform(-3, 3, (4, 5))
t = rng.uniform(0, 1, (4, 5))
t[0, 0] = 0
labels = np.array([3, 0, 4, 1])
ignored = np.array([3, -100, 4, 1])
X, T, L, I = torch.tensor(x), torch.tensor(t), torch.tensor(labels), torch.tensor(ignored)
array("golden_x", x)
array("golden_t", t)
array("golden_labels", labels, "int64_t")
array("golden_ignored", ignored, "int64_t")
LOSSES = {
    "cross_entropy": lambda z, r: F.cross_entropy(z, L, reduction=r),
    "cross_entropy_smooth": lambda z, r: F.cross_entropy(z, I, reduction=r, label_smoothing=0.1),
    "cross_entropy_ignore": lambda z, r: F.cross_entropy(z, L, reduction=r, ignore_index=4),
    "nll": lambda z, r: F.nll_loss(z, L, reduction=r),
    "mse": lambda z, r: F.mse_loss(z, T, reduction=r),
    "l1": lambda z, r: F.l1_loss(z, T, reduction=r),
    "smooth_l1": lambda z, r: F.smooth_l1_loss(z, T, reduction=r, beta=0.7),
    "bce": lambda z, r: F.binary_cross_entropy_with_logits(z, T, reduction=r),
    "kl_div": lambda z, r: F.kl_div(z, T, reduction=r),
}
rows = []
for name, f in LOSSES.items():
    for r in ("mean", "sum", "none"):
        z = X.clone().requires_grad_()
        value = f(z, r)
        weights = torch.arange(1, value.numel() + 1, dtype=torch.float64).reshape(value.shape)
        (value * weights).sum().backward()          # "none": sum of (i + 1) loss_i, so that every element has its own gradient
        array(f"golden_{name}_{r}", value.detach().numpy())
        array(f"golden_{name}_{r}_dx", z.grad.numpy())
        rows.append(f'    {{ "{name}", FAC_REDUCE_{r.upper()}, {value.numel()}, golden_{name}_{r}, golden_{name}_{r}_dx }},')
out.append("static const struct { const char *name; fac_reduction reduction; int n; const double *value, *dx; } "
           "golden_losses[] = {")
out += rows + ["};", "#endif"]
open(f"{folder}/optim.h", "w").write("\n".join(out) + "\n")
