#!/usr/bin/env python3
"""What relays bring (src/plan/relay.c): networks with them and without them, in turns, as one Markdown table.

    python bench/gpu_relay.py --facula build/facula [--batch 1] [--precision high,bf16] [--rounds 3] [NETWORK...]

Without: FACULA_WITHOUT=relay, each step a launch of its own.  Steps in relays are counted from a profile.  Medians of rounds; the
ratio, too, is the median of the rounds' ratios.  Needs a GPU whose groups can meet (`facula devices` tells).
"""
import argparse
import os
import statistics

from timing import facula_json

NETWORKS = ["resnet50", "resnet18", "mobilenet_v2", "efficientnet_lite0", "googlenet", "alexnet", "vgg16"]


def measured(a, name, precision, relays, verb="bench"):
    os.environ["FACULA_WITHOUT"] = "" if relays else "relay"
    options = ["--batch", str(a.batch), "--precision", precision]
    return facula_json(a.facula, verb, "zoo:" + name, a.device, a.seconds, *options)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", default=NETWORKS)
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--precision", default="high,highest,bf16")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.2, help="of each turn")
    a = p.parse_args()
    print("| network | precision | without relays ms | with ms | ratio | rounds | steps | in relays |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in a.names:
        for precision in a.precision.split(","):
            turns = [[measured(a, name, precision, relays)["median_ms"] for relays in (False, True)] for _ in range(a.rounds)]
            nodes = measured(a, name, precision, True, "profile")["nodes"]
            relayed = sum(n["solver"].endswith("/relay") for n in nodes)
            ratios = [without / with_them for without, with_them in turns]
            without, with_them = (statistics.median(t[k] for t in turns) for k in (0, 1))
            print(f"| {name} | {precision} | {without:.3f} | {with_them:.3f} | **{statistics.median(ratios):.2f}** | "
                  f"{' '.join(f'{r:.2f}' for r in ratios)} | {len(nodes)} | {relayed} |", flush=True)


if __name__ == "__main__":
    main()
