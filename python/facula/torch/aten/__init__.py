"""The aten table; see table.py."""
from . import activations, create, elementwise, indexing, losses, norms, optim, pools, products, reduce, resize, shapes, unary
from .table import Row, rows

__all__ = ["Row", "rows", "activations", "create", "elementwise", "indexing", "losses", "norms", "optim", "pools", "products", "reduce",
           "resize", "shapes", "unary"]
