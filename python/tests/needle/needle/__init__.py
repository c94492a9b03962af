"""A package shaped as needle, the framework that students of CMU's 10-414 build in homework 1 to 4, over facula: arrays, tensors,
gradients, layers, optimizers.  It stands on the path of the tests only."""
from . import autograd, backend_ndarray, data, init, nn, ops, optim  # noqa: F401
from .autograd import Device, Tensor, TensorTuple, cpu, cuda  # noqa: F401
from .ops import *  # noqa: F401,F403
