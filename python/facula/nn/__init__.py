"""Networks, with PyTorch's names: layers, activations, losses, containers."""
from . import functional, init, picture
from .activation import *  # noqa: F403
from .activation import (CELU, ELU, GELU, GLU, SELU, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, LogSigmoid, LogSoftmax, Mish, PReLU,
                         ReLU, ReLU6, Sigmoid, SiLU, Softmax, Softmin, Softplus, Softsign, Tanh, Tanhshrink, Threshold)
from .layers import *  # noqa: F403
from .losses import (BCELoss, BCEWithLogitsLoss, CosineSimilarity, CrossEntropyLoss, HingeEmbeddingLoss, HuberLoss, KLDivLoss, L1Loss,
                     MSELoss, NLLLoss, SmoothL1Loss)
from .containers import ModuleDict, ModuleList, ParameterList, Sequential
from .module import Module, Parameter
from .recurrent import GRU, LSTM, RNN, MultiheadAttention, TransformerEncoder, TransformerEncoderLayer
from .utils import clip_grad_norm_, clip_grad_value_
