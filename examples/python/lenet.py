"""LeNet learns MNIST and draws its curves: lenet.py FOLDER [OUT.svg] [EPOCHS] [IMAGES]"""
import sys

import facula as fac


def main() -> None:
    folder, out, epochs, count = (sys.argv[1:] + ["data", "lenet.svg", "3", "60000"][len(sys.argv) - 1:])[:4]
    fac.manual_seed(1)
    nn = fac.nn
    net = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    train, test = fac.data.mnist(folder).subset(range(int(count))), fac.data.mnist(folder, train=False)
    history = fac.Trainer(net, fac.optim.Adam(net.parameters(), lr=1e-3)).fit(train, test, epochs=int(epochs), batch_size=64)
    print(history)
    with open(out, "w") as file:
        file.write(history.svg())
    net.export(out.rsplit(".", 1)[0] + ".onnx")


main()
