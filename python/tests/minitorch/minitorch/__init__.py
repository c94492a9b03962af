"""The surface of MiniTorch (https://minitorch.github.io), a course on machine learning engineering,
over facula: what its tests use.  The quirks of the course live here, not in facula."""
from typing import Any, Sequence

from . import operators
from .module import Module, Parameter
from .nn import (SGD, Conv1dFun, Conv2dFun, Graph, Max, argmax, avgpool2d, conv1d, conv2d, datasets, dropout, logsoftmax, max, maxpool2d,
                 softmax, tile)
from .scalar import (Context, Scalar, ScalarFunction, ScalarHistory, backpropagate, central_difference, derivative_check,
                     topological_sort)
from .tensor import (MAX_DIMS, CudaOps, FastOps, IndexingError, SimpleBackend, SimpleOps, Tensor, TensorBackend, TensorData,
                     broadcast_index, grad_central_difference, grad_check, index_to_position, mm_practice, prod, rand, shape_broadcast,
                     strides_from_shape, sum_practice, tensor, to_index, zeros)
from .testing import MathTest, MathTestVariable

UserIndex = UserShape = Sequence[int]
UserStrides = Sequence[int]
Any = Any
