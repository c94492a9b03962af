"""Optimizers and schedules of learning rates, with PyTorch's names, formulas and defaults."""
from .base import Optimizer
from .more import ASGD, LBFGS, Adadelta, Adafactor, Adamax, NAdam, RAdam, Rprop
from .schedules import lr_scheduler
from . import swa_utils as swa_utils
from .usual import SGD, Adagrad, Adam, AdamW, Lion, RMSprop
