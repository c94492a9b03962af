"""Kim's CNN tells good reviews from bad ones and draws its curves: sentiment.py [DATA] [OUT.svg] [EPOCHS] [SENTENCES]

DATA is a folder with train.tsv and dev.tsv, a sentence, a tab and 0 or 1 a line (SST-2 in this form), or "made": sentences that
are made here, which negate ("is not good") and turn ("but").
"""
import os
import random
import sys
from collections import Counter

import numpy as np

import facula as fac

nn = fac.nn
GOOD = "good great funny moving clever fresh honest warm brilliant charming sharp gripping".split()
BAD = "bad dull awful clumsy tired shallow cold lifeless boring noisy silly flat".split()
THINGS = "film plot cast music ending story script camera humour pace".split()
DEGREES = ["", "", "very ", "rather ", "truly "]
Sentences = list[tuple[list[str], int]]


def clause(r: random.Random, good: bool) -> str:
    negated = r.random() < 0.3
    word = r.choice(GOOD if good != negated else BAD)
    return f"the {r.choice(THINGS)} is {'not ' if negated else ''}{r.choice(DEGREES)}{word}"


def made(count: int, seed: int) -> Sentences:
    """The last clause decides: "the plot is dull , but the cast is great" is good."""
    r = random.Random(seed)
    out = []
    for _ in range(count):
        label, words = r.random() < 0.5, ""
        for _ in range(r.randint(0, 2)):
            turns = r.random() < 0.5
            words += clause(r, label != turns) + (" , but " if turns else " , and ")
        out.append(((words + clause(r, label)).split(), int(label)))
    return out


def read(path: str) -> Sentences:
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").rsplit("\t", 1) for line in file]
    return [(text.split(), int(label)) for text, label in rows if label in ("0", "1")]


class Words:
    """Words to numbers: 0 fills up, 1 is a word that was seen once or never."""

    def __init__(self, sentences: Sentences) -> None:
        counts = Counter(w for words, _ in sentences for w in words)
        self.number = {w: i + 2 for i, (w, n) in enumerate(counts.most_common()) if n > 1}

    def __len__(self) -> int:
        return len(self.number) + 2

    def data(self, sentences: Sentences, length: int) -> fac.data.ArrayDataset:
        x = np.zeros((len(sentences), length), np.int64)
        for row, (words, _) in zip(x, sentences):
            numbers = [self.number.get(w, 1) for w in words[:length]]
            row[:len(numbers)] = numbers
        return fac.data.ArrayDataset(x, np.array([label for _, label in sentences]), 2, ["bad", "good"])


class KimCNN(nn.Module):
    """Filters over 3, 4 and 5 words, the largest answer of each, one layer (Kim 2014)."""

    def __init__(self, words: int, size: int = 100, filters: int = 100) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, size)
        self.filters = nn.ModuleList([nn.Conv1d(size, filters, k, padding=k // 2) for k in (3, 4, 5)])
        self.drop, self.out = nn.Dropout(0.5), nn.Linear(3 * filters, 2)

    def forward(self, x: fac.Tensor) -> fac.Tensor:
        rows = self.embed(x).transpose(1, 2)
        best = [f(rows).relu().amax(2) for f in self.filters]
        return self.out(self.drop(fac.cat(best, 1)))


def main() -> None:
    data, out, epochs, count = (sys.argv[1:] + ["made", "sentiment.svg", "4", "4000"][len(sys.argv) - 1:])[:4]
    if data == "made":
        train, test = made(int(count), 1), made(500, 2)
    else:
        train, test = read(os.path.join(data, "train.tsv"))[:int(count)], read(os.path.join(data, "dev.tsv"))
    fac.manual_seed(1)
    words, length = Words(train), max(len(s) for s, _ in train)
    net = KimCNN(len(words))
    trainer = fac.Trainer(net, fac.optim.Adam(net.parameters(), lr=1e-3))
    print(f"{len(train)} sentences of at most {length} words, {len(words)} words known")
    print(trainer.fit(words.data(train, length), words.data(test, length), epochs=int(epochs), batch_size=50))
    with open(out, "w") as file:
        file.write(trainer.history.svg())
    net.eval()
    for sentence in ("the plot is dull , but the cast is great", "the film is not very funny"):
        scores = net(words.data([(sentence.split(), 0)], length)[:][0])[0].softmax(0)
        print(f"{float(scores[1]):.0%} good: {sentence}")


main()
