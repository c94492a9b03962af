"""What a cell of bench/facula_torch/torch_device.py does on a device: the networks, their inputs, a step, and how long steps take.  Nothing
of facula is needed here, so bench/facula_torch/torch_rival.py does the same in a process of its own.

A result is held until the device is done, since device ocl computes only what is held.
"""
import copy
import time

import torch
import torch.nn.functional as F

MODELS = ("resnet50", "vgg16", "mobilenet_v2", "vit_b_16", "gpt2")
NUMBERS = ("f32", "tf32", "bf16")
TOKENS = 128
WARM = 12           # runs until nothing is planned anew, at most


def gpt2(tiny):
    import transformers
    size = {"n_layer": 2, "n_head": 2, "n_embd": 32, "vocab_size": 101, "bos_token_id": None, "eos_token_id": None} if tiny else {}
    config = transformers.GPT2Config(attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, use_cache=False, **size)
    return transformers.GPT2LMHeadModel(config)


def small(name):
    """The same layers in a size that a laptop runs at once."""
    from torchvision import models
    if name == "resnet50":
        return models.ResNet(models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10)
    if name == "vgg16":
        layers = models.vgg.make_layers([8, 8, "M", 16, "M", 16, "M"])
        return torch.nn.Sequential(layers, torch.nn.Flatten(), torch.nn.Linear(1024, 32), torch.nn.ReLU(True), torch.nn.Linear(32, 10))
    if name == "mobilenet_v2":
        return models.MobileNetV2(num_classes=10, width_mult=0.25)
    return models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10)


def still(net):
    """Without what draws random numbers, which differ between devices, and without heads of zeros."""
    for m in net.modules():
        if isinstance(m, torch.nn.Linear) and not m.weight.any():
            torch.nn.init.normal_(m.weight, std=0.02)
        if isinstance(m, torch.nn.Dropout) or "StochasticDepth" in type(m).__name__:
            m.p = 0.0
    return net


def network(name, classes=1000, tiny=False):
    if name == "gpt2":
        return gpt2(tiny)
    if tiny and name in MODELS:
        return still(small(name))
    import torchvision
    how = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return still(getattr(torchvision.models, name)(weights=None, num_classes=classes, **how))


def wait(device):
    getattr(torch, device).synchronize()


def numbers(how):
    """Both devices compute f32 as the cell says."""
    exact = how == "f32"
    torch.set_float32_matmul_precision("highest" if exact else "high")
    torch.backends.cudnn.allow_tf32 = not exact


class Work:
    """A network on a device and what a cell does with it; called, it does it once and gives the result.  Two inputs take
    turns: what is computed of an input that never changes could be kept."""

    def __init__(self, name, plain, device, batch, train, how, tiny):
        self.text, self.device, self.train = name == "gpt2", device, train
        self.net = copy.deepcopy(plain).to(device).train(train)
        g = torch.Generator().manual_seed(1)
        size, classes = (32 if name == "vit_b_16" else 64, 10) if tiny else (224, 1000)
        tokens, words = (16, 101) if tiny else (TOKENS, 50257)
        def drawn():
            return torch.randint(words, (batch, tokens), generator=g) if self.text else torch.randn(batch, 3, size, size, generator=g)
        self.inputs, self.calls = [drawn().to(device) for _ in range(2)], 0
        self.y = torch.randint(classes, (batch,), generator=g).to(device)
        self.bf16 = how == "bf16"
        self.opt = torch.optim.SGD(self.net.parameters(), lr=1e-3, momentum=0.9) if train else None

    def forward(self):
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.bf16):
            if self.text and self.train:
                return self.net(self.x, labels=self.x).loss
            return self.net(self.x, logits_to_keep=1).logits[:, -1] if self.text else self.net(self.x)

    def __call__(self):
        self.x = self.inputs[self.calls % 2]
        self.calls += 1
        if not self.train:
            with torch.no_grad():
                return self.forward()
        self.opt.zero_grad()
        loss = self.forward() if self.text else F.cross_entropy(self.forward().float(), self.y)
        loss.backward()
        self.opt.step()
        return loss


def once(work):
    t = time.perf_counter()
    held = work()
    wait(work.device)
    return time.perf_counter() - t, held


def warm_up(work, planned=lambda: 0):
    """Runs it until nothing is planned or compiled anew; the first result and what it took."""
    began, before, still_same, first = time.time(), -1, 0, None
    for _ in range(WARM):
        _, held = once(work)
        if first is None:
            first = held.detach().float().cpu()
        now = planned()
        still_same = still_same + 1 if now == before else 0
        before = now
        if still_same == 3:
            break
    return first, round(time.time() - began, 2)


def turn(work, seconds):
    """Times in seconds of a turn: three steps at least, a hundred at most."""
    took, began = [], time.time()
    while len(took) < 3 or time.time() - began < seconds and len(took) < 100:
        took.append(once(work)[0])
    return took
