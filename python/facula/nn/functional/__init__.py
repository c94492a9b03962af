"""Functions of networks with PyTorch's names: convolutions, pools, norms, activations, losses."""
from ...functional import log_softmax, one_hot, pad, sigmoid, softmax, tanh
from .common import Size, many
from .products import bilinear, conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, linear
from .pools import (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d,
    avg_pool1d, avg_pool2d, avg_pool3d, lp_pool1d, lp_pool2d, lp_pool3d, max_pool1d, max_pool2d, max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d)
from .norms import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, normalize, rms_norm
from .activations import (alpha_dropout, celu, celu_, dropout, dropout1d, dropout2d, dropout3d, elu, elu_, feature_alpha_dropout, gelu, glu, gumbel_softmax, hardshrink, hardsigmoid, hardswish,
    hardtanh, hardtanh_, leaky_relu, leaky_relu_, logsigmoid, mish, prelu, relu, relu_, relu6, rrelu, rrelu_, selu, selu_, silu, softmin, softplus, softshrink,
    softsign, tanhshrink, threshold, threshold_)
from .bags import embedding_bag
from .ctc import ctc_loss
from .images import affine_grid, channel_shuffle, embedding, fold, grid_sample, interpolate, pixel_shuffle, pixel_unshuffle, unfold
from .attention import matmul_scores, scaled_dot_product_attention
from .losses import (binary_cross_entropy, binary_cross_entropy_with_logits, cosine_similarity, cross_entropy,
    hinge_embedding_loss, huber_loss, kl_div, l1_loss, mse_loss, nll_loss, smooth_l1_loss)
from .margins import (cosine_embedding_loss, gaussian_nll_loss, margin_ranking_loss, multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss,
    pairwise_distance, poisson_nll_loss, soft_margin_loss, triplet_margin_loss,
    triplet_margin_with_distance_loss)
