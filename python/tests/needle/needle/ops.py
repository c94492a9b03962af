"""The course's ops: each is one facula call."""
import facula as fac

from .autograd import Op, Tensor


def _axes(x, axes):
    return tuple(range(x.ndim)) if axes is None else axes


def add(a, b):
    return Op(lambda x, y: x + y)(a, b)


def add_scalar(a, scalar):
    return Op(lambda x: x + scalar)(a)


def multiply(a, b):
    return Op(lambda x, y: x * y)(a, b)


def mul_scalar(a, scalar):
    return Op(lambda x: x * scalar)(a)


def power(a, b):
    return Op(lambda x, y: x ** y)(a, b)


def power_scalar(a, scalar):
    return Op(lambda x: x ** scalar)(a)


def divide(a, b):
    return Op(lambda x, y: x / y)(a, b)


def divide_scalar(a, scalar):
    return Op(lambda x: x / scalar)(a)


def negate(a):
    return Op(lambda x: -x)(a)


def matmul(a, b):
    return Op(lambda x, y: x @ y)(a, b)


def transpose(a, axes=None):
    return Op(lambda x: x.transpose(*(axes or (-1, -2))))(a)


def reshape(a, shape):
    return Op(lambda x: x.reshape(shape))(a)


def broadcast_to(a, shape):
    return Op(lambda x: fac.broadcast_to(x, shape))(a)


def summation(a, axes=None):
    return Op(lambda x: x.sum(_axes(x, axes)) if x.ndim else x)(a)


def log(a):
    return Op(fac.log)(a)


def exp(a):
    return Op(fac.exp)(a)


def relu(a):
    return Op(fac.relu)(a)


def logsoftmax(a):
    return Op(lambda x: fac.log_softmax(x, 1))(a)


def logsumexp(a, axes=None):
    return Op(lambda x: fac.logsumexp(x, _axes(x, axes)))(a)


def _either(of_tensor, of_scalar):
    return lambda a, b: of_tensor(a, b) if isinstance(b, Tensor) else of_scalar(a, b)


Tensor.__add__ = Tensor.__radd__ = _either(add, add_scalar)
Tensor.__mul__ = Tensor.__rmul__ = _either(multiply, mul_scalar)
Tensor.__sub__ = lambda a, b: a + (negate(b) if isinstance(b, Tensor) else -b)
Tensor.__rsub__ = lambda a, b: negate(a) + b
Tensor.__truediv__ = _either(divide, divide_scalar)
Tensor.__pow__ = _either(power, power_scalar)
Tensor.__matmul__ = Tensor.matmul = matmul
Tensor.__neg__ = negate
Tensor.sum = summation
Tensor.broadcast_to = broadcast_to
Tensor.reshape = reshape
Tensor.transpose = transpose
