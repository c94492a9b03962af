"""First values, drawn as the course draws them."""
import math

from .autograd import Tensor, cpu


def rand(*shape, low=0.0, high=1.0, device=None, dtype="float32", requires_grad=False):
    return Tensor(cpu().rand(*shape) * (high - low) + low, dtype=dtype, requires_grad=requires_grad)


def randn(*shape, mean=0.0, std=1.0, device=None, dtype="float32", requires_grad=False):
    return Tensor(cpu().randn(*shape) * std + mean, dtype=dtype, requires_grad=requires_grad)


def constant(*shape, c=1.0, device=None, dtype="float32", requires_grad=False):
    return Tensor(cpu().ones(*shape, dtype=dtype) * c, dtype=dtype, requires_grad=requires_grad)


def ones(*shape, **options):
    return constant(*shape, c=1.0, **options)


def zeros(*shape, **options):
    return constant(*shape, c=0.0, **options)


def randb(*shape, p=0.5, device=None, dtype="bool", requires_grad=False):
    return Tensor(cpu().rand(*shape) <= p, dtype=dtype, requires_grad=requires_grad)


def one_hot(n, i, device=None, dtype="float32", requires_grad=False):
    return Tensor(cpu().one_hot(n, i.numpy().astype("int32"), dtype), requires_grad=requires_grad)


def xavier_uniform(fan_in, fan_out, gain=1.0, **options):
    a = gain * math.sqrt(6 / (fan_in + fan_out))
    return rand(fan_in, fan_out, low=-a, high=a, **options)


def xavier_normal(fan_in, fan_out, gain=1.0, **options):
    return randn(fan_in, fan_out, std=gain * math.sqrt(2 / (fan_in + fan_out)), **options)


def kaiming_uniform(fan_in, fan_out, shape=None, nonlinearity="relu", **options):
    a = math.sqrt(6 / fan_in)
    return rand(*(shape or (fan_in, fan_out)), low=-a, high=a, **options)


def zeros_like(x, **options):
    return zeros(*x.shape, **options)


def kaiming_normal(fan_in, fan_out, nonlinearity="relu", **options):
    return randn(fan_in, fan_out, std=math.sqrt(2 / fan_in), **options)
