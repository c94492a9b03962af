"""Scalars: numbers that know how they were made."""
import itertools

from . import operators


def central_difference(f, *vals, arg=0, epsilon=1e-6):
    up, down = list(vals), list(vals)
    up[arg] = up[arg] + epsilon
    down[arg] = down[arg] - epsilon
    return (f(*up) - f(*down)) / (2 * epsilon)


class Context:
    def __init__(self, no_grad=False, saved_values=()):
        self.no_grad, self.saved_values = no_grad, saved_values

    def save_for_backward(self, *values):
        if not self.no_grad:
            self.saved_values = values

    @property
    def saved_tensors(self):
        return self.saved_values


class ScalarHistory:
    def __init__(self, last_fn=None, ctx=None, inputs=()):
        self.last_fn, self.ctx, self.inputs = last_fn, ctx, inputs


_ids = itertools.count()


class Scalar:
    def __init__(self, v, back=None, name=None):
        self.unique_id = next(_ids)
        self.data = float(v)
        self.history = ScalarHistory() if back is None else back
        self.derivative = None
        self.name = name or str(self.unique_id)

    def __repr__(self):
        return f"Scalar({self.data})"

    def __hash__(self):
        return hash(self.unique_id)

    def __bool__(self):
        return bool(self.data)

    def __add__(self, b):
        return Add.apply(self, b)

    def __radd__(self, b):
        return Add.apply(b, self)

    def __mul__(self, b):
        return Mul.apply(self, b)

    def __rmul__(self, b):
        return Mul.apply(b, self)

    def __sub__(self, b):
        return Add.apply(self, -b)

    def __rsub__(self, b):
        return Add.apply(b, -self)

    def __truediv__(self, b):
        return Mul.apply(self, Inv.apply(b))

    def __rtruediv__(self, b):
        return Mul.apply(b, Inv.apply(self))

    def __neg__(self):
        return Neg.apply(self)

    def __lt__(self, b):
        return LT.apply(self, b)

    def __gt__(self, b):
        return LT.apply(b, self)

    def __eq__(self, b):
        return EQ.apply(self, b)

    def log(self):
        return Log.apply(self)

    def exp(self):
        return Exp.apply(self)

    def sigmoid(self):
        return Sigmoid.apply(self)

    def relu(self):
        return ReLU.apply(self)

    def accumulate_derivative(self, x):
        assert self.is_leaf(), "only leaves have derivatives"
        self.derivative = (self.derivative or 0.0) + x

    def is_leaf(self):
        return self.history is not None and self.history.last_fn is None

    def is_constant(self):
        return self.history is None

    @property
    def parents(self):
        return self.history.inputs

    def chain_rule(self, d_output):
        h = self.history
        return list(zip(h.inputs, h.last_fn._backward(h.ctx, d_output)))

    def backward(self, d_output=1.0):
        backpropagate(self, d_output)

    def requires_grad_(self, flag=True):
        self.history = ScalarHistory() if flag else None


def topological_sort(variable):
    order, seen, stack = [], set(), [(variable, False)]
    while stack:
        v, done = stack.pop()
        if done:
            order.append(v)
        elif not v.is_constant() and v.unique_id not in seen:
            seen.add(v.unique_id)
            stack.append((v, True))
            if not v.is_leaf():
                stack.extend((p, False) for p in v.parents)
    return order[::-1]


def backpropagate(variable, deriv):
    d = {variable.unique_id: deriv}
    for v in topological_sort(variable):
        own = d.get(v.unique_id, 0.0)
        if v.is_leaf():
            v.accumulate_derivative(own)
            continue
        for parent, part in v.chain_rule(own):
            if not parent.is_constant():
                d[parent.unique_id] = d.get(parent.unique_id, 0.0) + part


class ScalarFunction:
    @classmethod
    def _backward(cls, ctx, d):
        got = cls.backward(ctx, d)
        return got if isinstance(got, tuple) else (got,)

    @classmethod
    def apply(cls, *vals):
        inputs = [v if isinstance(v, Scalar) else Scalar(v) for v in vals]
        ctx = Context(False)
        y = cls.forward(ctx, *[v.data for v in inputs])
        assert isinstance(y, (int, float)), f"forward gave {type(y)}, a number was expected"
        return Scalar(y, ScalarHistory(cls, ctx, inputs))


def _function(name, forward, backward):
    def run(ctx, *xs):
        ctx.save_for_backward(*xs)
        return float(forward(*xs))

    def back(ctx, d):
        return backward(d, *ctx.saved_values)
    return type(name, (ScalarFunction,), {"forward": staticmethod(run), "backward": staticmethod(back)})


def _sigmoid_back(d, a):
    s = operators.sigmoid(a)
    return d * s * (1 - s)


Add = _function("Add", operators.add, lambda d, a, b: (d, d))
Mul = _function("Mul", operators.mul, lambda d, a, b: (d * b, d * a))
Log = _function("Log", operators.log, lambda d, a: operators.log_back(a, d))
Inv = _function("Inv", operators.inv, lambda d, a: operators.inv_back(a, d))
Neg = _function("Neg", operators.neg, lambda d, a: -d)
Exp = _function("Exp", operators.exp, lambda d, a: d * operators.exp(a))
ReLU = _function("ReLU", operators.relu, lambda d, a: operators.relu_back(a, d))
Sigmoid = _function("Sigmoid", operators.sigmoid, _sigmoid_back)
LT = _function("LT", operators.lt, lambda d, a, b: (0.0, 0.0))
EQ = _function("EQ", operators.eq, lambda d, a, b: (0.0, 0.0))


def derivative_check(f, *scalars):
    f(*scalars).backward()
    for i, x in enumerate(scalars):
        check = central_difference(lambda *v: f(*[Scalar(k) for k in v]).data, *[s.data for s in scalars], arg=i)
        got = x.derivative or 0.0
        assert abs(got - check) <= 1e-2 + 1e-2 * abs(check), f"derivative {got}, differences give {check}"
