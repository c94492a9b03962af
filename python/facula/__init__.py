"""facula: load, run, inspect, build and train neural networks on an engine in C.

    >>> import facula as fac
    >>> x = fac.tensor([[1., 2.], [3., 4.]], requires_grad=True)
    >>> (x @ x).sum().backward()
    >>> x.grad
    tensor([[ 7., 11.],
            [ 9., 13.]])
"""
from . import _facula
from ._facula import (ArgumentError, Device, DeviceError, DtypeError, Error, FileError, FormatError, Graph, InternalError,
                      OutOfMemoryError, ShapeError, Tensor, UnsupportedError, cache_info, set_num_threads)
from .dtypes import (bfloat16, bool_, dtype, float16, float32, float64, get_default_dtype, int8, int16, int32, int64, promote_types,
                     result_type, set_default_dtype, uint8, uint16, uint32, uint64)
from . import autograd, derivatives, functional, methods, ops, promote, random
from .autograd import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .functional import *  # noqa: F403
from .functional import abs, all, any, max, min, pow, round, sum  # noqa: A004
from .random import (Generator, bernoulli, manual_seed, multinomial, normal, rand, rand_like, randint, randn, randn_like, randperm,
                     seed)
from .promote import set_printoptions
from . import array_api, data, export, fft, files, linalg, model, nn, optim, playground, plot, tables, tools, train, zoo
from .files import load as load_saved, load_weights, save
from .edit import edit
from .export import trace  # type: ignore[assignment]
from .linalg import logdet, matrix_exp, pinv as pinverse, slogdet
from .lazy import flush, is_lazy, lazy, lazy_stats, set_lazy
from .model import Model, load
from .nn import Module, Parameter
from .playground import Studio, studio
from .quantize import Quantized, dequantize, pack, quantize, unpack  # type: ignore[assignment]
from .train import Trainer
from .tools import activations, devices, diff, inspect, profile, report, summary, tile, verify  # type: ignore[assignment]

float = float32  # noqa: A001
double, half, long = float64, float16, int64
device = Device
setattr(autograd, "functional", derivatives)
__version__: str = _facula.version()

# helpers of other files, which completion does not offer
_inside = frozenset("""Any Dims Sequence annotations arange_like arrange axes_of axis_of builtins changing create derivatives dtypes
elementwise equal_to export files find floats formulas functools fused gelu_exact in_place ints isnan_ itertools math methods model np orders
places playground products promote reduce shapes signals sliding spelled tables tools train""".split())


def __dir__() -> list[str]:
    return sorted(name for name in globals() if name not in _inside and (name[0] != "_" or name[:2] == "__"))
