"""Functions of tensors with PyTorch's names and arguments, made of the library's operators."""
from .create import *  # noqa: F403
from .create import Dims, _shape_args, as_tensor, axes_of, axis_of, floats, ints
from .arrange import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .elementwise import abs, pow, round  # noqa: A004
from .formulas import *  # noqa: F403
from .orders import *  # noqa: F403
from .places import *  # noqa: F403
from .products import *  # noqa: F403
from .reduce import *  # noqa: F403
from .reduce import all, any, max, min, sum  # noqa: A004
from .shapes import *  # noqa: F403
from .signals import *  # noqa: F403
from .spelled import take_both as _take_both

_take_both(globals())
