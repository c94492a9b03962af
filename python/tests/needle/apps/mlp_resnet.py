"""What students write in apps/mlp_resnet.py of homework 2."""
import needle as ndl
import needle.nn as nn
import numpy as np


def ResidualBlock(dim, hidden_dim, norm=nn.BatchNorm1d, drop_prob=0.1):
    inner = nn.Sequential(nn.Linear(dim, hidden_dim), norm(hidden_dim), nn.ReLU(), nn.Dropout(drop_prob), nn.Linear(hidden_dim, dim), norm(dim))
    return nn.Sequential(nn.Residual(inner), nn.ReLU())


def MLPResNet(dim, hidden_dim=100, num_blocks=3, num_classes=10, norm=nn.BatchNorm1d, drop_prob=0.1):
    first = [nn.Flatten(), nn.Linear(dim, hidden_dim), nn.ReLU()]
    blocks = [ResidualBlock(hidden_dim, hidden_dim // 2, norm, drop_prob) for _ in range(num_blocks)]
    return nn.Sequential(*first, *blocks, nn.Linear(hidden_dim, num_classes))


def epoch(dataloader, model, opt=None):
    np.random.seed(4)
    wrong, losses, count = 0, [], 0
    model.train() if opt else model.eval()
    for x, y in dataloader:
        scores = model(x)
        loss = nn.SoftmaxLoss()(scores, y)
        if opt:
            opt.reset_grad()
            loss.backward()
            opt.step()
        wrong += int((scores.numpy().argmax(1) != y.numpy()).sum())
        losses.append(float(loss.numpy()))
        count += len(y.numpy())
    return wrong / count, np.mean(losses)


def train_mnist(batch_size=100, epochs=10, optimizer=ndl.optim.Adam, lr=0.001, weight_decay=0.001, hidden_dim=100, data_dir="data"):
    np.random.seed(4)
    loaders = [ndl.data.DataLoader(ndl.data.MNISTDataset(f"{data_dir}/{n}-images-idx3-ubyte.gz", f"{data_dir}/{n}-labels-idx1-ubyte.gz"),
                                   batch_size, shuffle=n == "train") for n in ("train", "t10k")]
    model = MLPResNet(784, hidden_dim)
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(epochs):
        train = epoch(loaders[0], model, opt)
    return (*train, *epoch(loaders[1], model))
