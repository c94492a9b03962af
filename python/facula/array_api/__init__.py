"""The array API standard (https://data-apis.org/array-api, 2024.12) over facula's tensors.

Arrays are `facula.Tensor`s, so gradients, devices and lazy computing work as everywhere.  There are
no complex dtypes, hence no `fft`; `linalg` is computed by NumPy on the host.

    >>> import facula as fac
    >>> xp = fac.ones(2).__array_namespace__()
    >>> xp.mean(xp.asarray([1.0, 2.0, 6.0]))
    tensor(3.)
"""
import math as _math

from .. import _facula
from ..dtypes import (bool_ as bool, float32, float64, int8, int16, int32, int64, uint8, uint16,  # noqa: A004
                      uint32, uint64)
from . import linalg
from .creation import (arange, asarray, empty, empty_like, eye, from_dlpack, full, full_like, linspace, meshgrid, ones,
                       ones_like, tril, triu, zeros, zeros_like)
from .elementwise import (abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitwise_and,  # noqa: A004
                          bitwise_invert, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor, ceil, clip,
                          conj, copysign, cos, cosh, divide, equal, exp, expm1, floor, floor_divide, greater,
                          greater_equal, hypot, imag, isfinite, isinf, isnan, less, less_equal, log, log1p, log2, log10,
                          logaddexp, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, multiply,
                          negative, nextafter, not_equal, positive, pow, real, reciprocal, remainder, round, sign,
                          signbit, sin, sinh, sqrt, square, subtract, tan, tanh, trunc)
from .info import (__array_namespace_info__, astype, can_cast, finfo, iinfo, isdtype, result_type)
from .linalg import matmul, matrix_transpose, tensordot, vecdot
from .reduce import (all, any, argmax, argmin, count_nonzero, cumulative_prod, cumulative_sum, diff, max,  # noqa: A004
                     mean, min, prod, std, sum, var)
from .shapes import (broadcast_arrays, broadcast_shapes, broadcast_to, concat, expand_dims, flip, moveaxis, permute_dims,
                     repeat, reshape, roll, squeeze, stack, tile, unstack)
from .sorting import (argsort, nonzero, searchsorted, sort, take, take_along_axis, unique_all, unique_counts,
                      unique_inverse, unique_values, where)

__array_api_version__ = "2024.12"
__version__: str = _facula.version()
e, inf, nan, pi, newaxis = _math.e, _math.inf, _math.nan, _math.pi, None
