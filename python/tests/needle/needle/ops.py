"""The course's ops: each is one facula call."""
import facula as fac

from .autograd import Op, Tensor, TensorTuple


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


def permute(a, axes):
    return Op(lambda x: fac.permute(x, axes))(a)


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


def tanh(a):
    return Op(fac.tanh)(a)


def sigmoid(a):
    return Op(fac.sigmoid)(a)


def stack(tensors, axis=0):
    return Op(lambda *xs: fac.stack(xs, axis))(*tensors)


def split(a, axis):
    """The slices along an axis, without it."""
    def part(k):
        return Op(lambda x: fac.select(x, axis, k))(a)
    return TensorTuple(part(k) for k in range(a.shape[axis]))


def flip(a, axes):
    return Op(lambda x: fac.flip(x, axes))(a)


def dilate(a, axes, dilation):
    """So many zeros after each slice along the axes."""
    def one(x, axis):
        wide = fac.unsqueeze(x, axis + 1)
        zeros = fac.zeros_like(wide)
        wide = fac.cat([wide] + [zeros] * dilation, axis + 1)
        return wide.reshape([*x.shape[:axis], x.shape[axis] * (dilation + 1), *x.shape[axis + 1:]])

    def all_of(x):
        for axis in axes:
            x = one(x, axis)
        return x
    return Op(all_of)(a)


def conv(a, b, stride=1, padding=0):
    """Images with channels last; filters (height, width, in, out)."""
    def run(x, w):
        y = fac.nn.functional.conv2d(fac.permute(x.to(w.dtype), (0, 3, 1, 2)), fac.permute(w, (3, 2, 0, 1)), stride=stride, padding=padding)
        return fac.permute(y, (0, 2, 3, 1))
    return Op(run)(a, b)


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
