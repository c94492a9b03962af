"""The aten table; see table.py."""
from . import (activations, create, distances, elementwise, grids, indexing, losses, norms, optim, order, places, pools, products, random,
               reduce, resize, shapes, special, unary, windows)
from .table import Row, rows

__all__ = ["Row", "rows", "activations", "create", "distances", "elementwise", "grids", "indexing", "losses", "norms", "optim", "order",
           "places", "pools", "products", "random", "reduce", "resize", "shapes", "special", "unary", "windows"]
