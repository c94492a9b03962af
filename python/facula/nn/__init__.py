"""Networks, with PyTorch's names: layers, activations, losses, containers."""
from . import functional, init, picture
from .activation import *  # noqa: F403
from .activation import (CELU, ELU, GELU, GLU, SELU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, LogSigmoid, LogSoftmax, Mish, PReLU,
                         ReLU, ReLU6, RReLU, Sigmoid, SiLU, Softmax, Softmax2d, Softmin, Softplus, Softshrink, Softsign, Tanh, Tanhshrink, Threshold)
from .layers import *  # noqa: F403
from .losses import (BCELoss, BCEWithLogitsLoss, CosineEmbeddingLoss, CosineSimilarity, CrossEntropyLoss, CTCLoss, GaussianNLLLoss,
                     HingeEmbeddingLoss, HuberLoss, KLDivLoss, L1Loss, MarginRankingLoss, MSELoss, MultiLabelMarginLoss, MultiLabelSoftMarginLoss,
                     MultiMarginLoss, NLLLoss, PairwiseDistance, PoissonNLLLoss, SmoothL1Loss, SoftMarginLoss, TripletMarginLoss,
                     TripletMarginWithDistanceLoss)
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .module import Module, Parameter
from .cells import GRUCell, LSTMCell, RNNCell
from .recurrent import GRU, LSTM, RNN, MultiheadAttention, TransformerEncoder, TransformerEncoderLayer
from .transformer import Transformer, TransformerDecoder, TransformerDecoderLayer
from .utils import clip_grad_norm_, clip_grad_value_
