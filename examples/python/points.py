"""Learns the six data sets of MiniTorch's course and draws the curves: points.py [OUT.svg] [EPOCHS]"""
import sys

import facula as fac

NAMES = "simple diag split xor circle spiral".split()


def learn(name: str, epochs: int) -> fac.train.History:
    fac.manual_seed(1)
    net = fac.nn.Sequential(fac.nn.Linear(2, 24), fac.nn.Tanh(), fac.nn.Linear(24, 24), fac.nn.Tanh(), fac.nn.Linear(24, 2))
    data = fac.data.points(name, 200, seed=1)
    return fac.Trainer(net, fac.optim.Adam(net.parameters(), lr=0.01)).fit(data, epochs=epochs, batch_size=20, quiet=True)


def main() -> None:
    out, epochs = (sys.argv[1:] + ["points.svg", "60"][len(sys.argv) - 1:])[:2]
    lines = {}
    for name in NAMES:
        history = learn(name, int(epochs))
        lines[name] = history["accuracy"]
        print(f"{name:8} loss {history['loss'][-1]:.4f}  accuracy {history['accuracy'][-1]:.1%}")
    with open(out, "w") as file:
        file.write(fac.plot.curves({f"accuracy {name}": ys for name, ys in lines.items()}, 900, 400))


main()
