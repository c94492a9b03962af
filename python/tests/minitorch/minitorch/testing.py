"""Functions that floats, scalars and tensors compute alike."""
from . import operators


class MathTest:
    """Of floats."""

    relu, log, exp, sigmoid, inv = (staticmethod(getattr(operators, n)) for n in ("relu", "log", "exp", "sigmoid", "inv"))

    @classmethod
    def _one(cls):
        r, lo, ex, si, inv = cls.relu, cls.log, cls.exp, cls.sigmoid, cls.inv
        return {
            "addConstant": lambda a: 5 + a, "complex": lambda a: lo(si(r(r(a * 10 + 7) * 6 + 5) * 10)) / 50, "cube": lambda a: a * a * a,
            "div": lambda a: a / 5, "exp": lambda a: ex(a - 200), "explog": lambda a: lo(a + 100000) + ex(a - 200),
            "inv": lambda a: inv(a + 103.7), "log": lambda a: lo(a + 100000), "multConstant": lambda a: 5 * a, "neg": lambda a: -a,
            "relu": lambda a: r(a + 5.5), "sig": lambda a: si(a), "square": lambda a: a * a, "subConstant": lambda a: a - 5}

    @classmethod
    def _two(cls):
        return {"add2": lambda a, b: a + b, "div2": lambda a, b: a / (b + 105.5), "eq2": lambda a, b: cls.eq(a, b + 5.5),
                "gt2": lambda a, b: cls.lt(b, a + 1.2), "lt2": lambda a, b: cls.lt(a + 1.2, b), "mul2": lambda a, b: a * b}

    eq, lt = staticmethod(operators.eq), staticmethod(operators.lt)

    @classmethod
    def _red(cls):
        return {"mean_full_red": lambda xs: operators.sum(xs) / len(xs), "mean_red": lambda xs: operators.sum(xs) / len(xs),
                "sum_red": lambda xs: operators.sum(xs)}

    @classmethod
    def _tests(cls):
        return tuple(sorted(d.items()) for d in (cls._one(), cls._two(), cls._red()))

    @classmethod
    def _comp_testing(cls):
        pairs = zip(MathTest._tests(), cls._tests())
        return tuple([(name, base, own) for (name, base), (_, own) in zip(a, b)] for a, b in pairs)


class MathTestVariable(MathTest):
    """Of what has methods."""

    relu, log, exp, sigmoid = (staticmethod(lambda x, n=n: getattr(x, n)()) for n in ("relu", "log", "exp", "sigmoid"))
    inv = staticmethod(lambda x: 1.0 / x)
    eq, lt = staticmethod(lambda a, b: a == b), staticmethod(lambda a, b: a < b)

    @classmethod
    def _red(cls):
        return {"mean_full_red": lambda x: x.mean(), "mean_red": lambda x: x.mean(0), "sum_red": lambda x: x.sum(0)}
