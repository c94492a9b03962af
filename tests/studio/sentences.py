"""Reviews that are made up, in the files that SST-2 has: one of two words decides, "not" turns it round."""
import os
import random

GOOD = "good great funny moving clever fresh warm brilliant".split()
BAD = "bad dull awful clumsy tired shallow cold boring".split()
THINGS = "film plot cast music ending story camera pace".split()


def sentence(r):
    good, negated = r.random() < 0.5, r.random() < 0.3
    word = r.choice(GOOD if good != negated else BAD)
    return f"the {r.choice(THINGS)} is {'not ' if negated else ''}{r.choice(['', 'very ', 'rather '])}{word} , they said", int(good)


def write(folder, train=600, dev=100):
    os.makedirs(folder, exist_ok=True)
    for name, count, seed in (("train", train, 1), ("dev", dev, 2)):
        r = random.Random(seed)
        with open(os.path.join(folder, name + ".tsv"), "w", encoding="utf-8") as f:
            f.writelines(f"{text}\t{label}\n" for text, label in (sentence(r) for _ in range(count)))
