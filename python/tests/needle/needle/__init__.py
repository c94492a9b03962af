"""A package shaped as needle, the framework that students of CMU's 10-414 build in homework 1 and 2, over facula: tensors,
gradients, layers, optimizers.  It stands on the path of the tests only."""
from . import autograd, data, init, nn, ops, optim  # noqa: F401
from .autograd import Device, Tensor, cpu  # noqa: F401
from .ops import *  # noqa: F401,F403
