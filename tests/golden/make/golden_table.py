#!/usr/bin/env python3
"""The tables that torchinfo prints, and the counts of ptflops and fvcore, for ten networks: tests/golden/tables/.

    python3 tests/golden/make/golden_table.py           # needs torch, torchvision, torchinfo, ptflops, fvcore

tests/report/test_tables.c compares fac_analysis_table with them, line by line.  A file is torchinfo's text and then a line for each other
counter: "ptflops N", "ptflops-modules N", "ptflops-aten N", "fvcore N".
"""
import pathlib
import warnings

import fvcore.nn
import ptflops
import torch
import torchinfo
import torchvision as tv

NETWORKS = ["alexnet", "vgg16", "resnet18", "resnet34", "resnet50", "squeezenet1_0", "squeezenet1_1", "mobilenet_v2",
            "googlenet", "lenet"]
OUT = pathlib.Path(__file__).parent.parent / "tables"


class LeNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.conv1, self.relu1, self.pool1 = nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)
        self.conv2, self.relu2, self.pool2 = nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)
        self.fc1, self.relu3 = nn.Linear(400, 120), nn.ReLU()
        self.fc2, self.relu4, self.fc3 = nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)

    def forward(self, x):
        x = self.pool2(self.relu2(self.conv2(self.pool1(self.relu1(self.conv1(x))))))
        return self.fc3(self.relu4(self.fc2(self.relu3(self.fc1(torch.flatten(x, 1))))))


def build(name):
    if name == "lenet":
        return LeNet().eval(), (1, 28, 28)
    options = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    return getattr(tv.models, name)(weights=None, **options).eval(), (3, 224, 224)


def flops(model, size, **options):
    macs, _ = ptflops.get_model_complexity_info(model, size, as_strings=False, print_per_layer_stat=False, **options)
    return int(macs)


def counts(model, size):
    yield "ptflops", flops(model, size, backend="pytorch")
    yield "ptflops-modules", flops(model, size, backend="pytorch", backend_specific_config={"count_functional": False})
    yield "ptflops-aten", flops(model, size, backend="aten")
    analysis = fvcore.nn.FlopCountAnalysis(model, torch.zeros(1, *size)).unsupported_ops_warnings(False)
    yield "fvcore", int(analysis.uncalled_modules_warnings(False).total())


def main():
    warnings.simplefilter("ignore")
    OUT.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        model, size = build(name)
        text = str(torchinfo.summary(model, (1, *size), verbose=0, depth=4)) + "\n"
        text += "".join("%s %d\n" % pair for pair in counts(model, size))
        (OUT / (name + ".txt")).write_text(text)
        print(name)


if __name__ == "__main__":
    main()
