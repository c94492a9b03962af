"""Functions of numbers."""
import math


def mul(x, y):
    return x * y


def id(x):
    return x


def add(x, y):
    return x + y


def neg(x):
    return -float(x)


def lt(x, y):
    return 1.0 if x < y else 0.0


def eq(x, y):
    return 1.0 if x == y else 0.0


def max(x, y):
    return x if x > y else y


def is_close(x, y):
    return abs(x - y) < 1e-2


def sigmoid(x):
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


def relu(x):
    return x if x > 0 else 0.0


EPS = 1e-6


def log(x):
    return math.log(x + EPS)


def exp(x):
    return math.exp(x)


def log_back(x, d):
    return d / (x + EPS)


def inv(x):
    return 1.0 / x


def inv_back(x, d):
    return -d / (x * x)


def relu_back(x, d):
    return d if x > 0 else 0.0


def map(fn):
    return lambda xs: [fn(x) for x in xs]


def zipWith(fn):
    return lambda xs, ys: [fn(x, y) for x, y in zip(xs, ys)]


def reduce(fn, start):
    def function(xs):
        value = start
        for x in xs:
            value = fn(value, x)
        return value
    return function


def negList(xs):
    return map(neg)(xs)


def addLists(xs, ys):
    return zipWith(add)(xs, ys)


def sum(xs):
    return reduce(add, 0.0)(xs)


def prod(xs):
    return reduce(mul, 1.0)(xs)
