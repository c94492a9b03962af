"""The aten table; see table.py."""
from . import create, elementwise, indexing, layers, optim, products, reduce, shapes
from .table import Row, rows

__all__ = ["Row", "rows", "create", "elementwise", "indexing", "layers", "optim", "products", "reduce", "shapes"]
