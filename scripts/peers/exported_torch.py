"""Small networks of plain PyTorch for check_exporters.py: one idea each."""
import torch
import torch.nn.functional as F
from torch import nn

from exported_case import torch_cases


class Calls(nn.Module):
    """A function as a module."""
    def __init__(self, f, *parts):
        super().__init__()
        self.f, self.parts = f, nn.ModuleList(parts)

    def forward(self, **given):
        return self.f(*self.parts, *given.values())


def image(n=2, c=3, h=16, w=17):
    return lambda: dict(x=torch.rand(n, c, h, w) * 2 - 1)


def rows(n=2, length=7, width=16):
    return lambda: dict(x=torch.randn(n, length, width))


def unet(down, deep, up, out, x):
    a = F.relu(down(x))
    b = F.relu(deep(F.max_pool2d(a, 2)))
    return out(torch.cat([up(b), a], 1))


def grids(x):
    n, _, h, w = x.shape
    theta = torch.tensor([[0.9, 0.1, 0.05], [-0.1, 0.8, -0.1]]).repeat(n, 1, 1)
    return F.grid_sample(x, F.affine_grid(theta, [n, 3, h, w], align_corners=False),
                         align_corners=False)


def boxes(x):
    """The usual end of a detector: centres and sizes to corners, and the best scores."""
    c, s = x[..., :2], x[..., 2:4].abs()
    corners = torch.cat([c - s / 2, c + s / 2], -1)
    score, kind = x[..., 4:].sigmoid().max(-1)
    best, at = score.topk(4)
    return corners.gather(1, at.unsqueeze(-1).expand(-1, -1, 4)), best, kind.gather(1, at)


def scatter(x):
    y = torch.zeros(x.shape[0], 20, x.shape[2])
    y[:, 2:9] = x
    return y.index_add(1, torch.tensor([1, 3, 1]), x[:, :3]).cumsum(1)


def masks(x):
    n = x.shape[1]
    keep = torch.ones(n, n).tril().bool()
    return (x @ x.transpose(1, 2)).masked_fill(~keep, float("-inf")).softmax(-1)


def einsums(x):
    y = torch.einsum("bld,bmd->blm", x, x)
    return torch.einsum("blm,bmd->bd", y, x), torch.einsum("bld->dl", x)


def statistics(x):
    return x.std(1), x.var(-1, unbiased=False), x.norm(dim=1), x.logsumexp(-1), x.prod(1), \
        x.amax((0, 2)), torch.argsort(x, 1)


def states(lstm, gru, rnn, x):
    y, (h, c) = lstm(x)
    z, g = gru(y)
    return rnn(z)[0], h, c, g


def windows(x):
    """Windows of a picture as Swin cuts them, rolled, unfolded and folded again."""
    n, c, h, w = x.shape
    y = torch.roll(x, (1, 2), (2, 3)).view(n, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1)
    patches = F.unfold(x, 4, stride=4)
    return y.reshape(-1, 16, c), F.fold(patches * 2, (h, w), 4, stride=4)


def spectra(x):
    s = torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=False)
    return s.pow(2).sum(-1).clamp(min=1e-6).log()


def picks(x):
    at = torch.tensor([2, 0, 1])
    return x[:, at], x[..., ::2], x.flip(1), x[:, -3:].repeat_interleave(2, 1), \
        torch.where(x > 0, x, x.roll(1, 1)), x.unflatten(-1, (4, 4)).diagonal(dim1=-2, dim2=-1)


def sizes(x):
    n, c, h, w = x.shape
    return F.interpolate(x, scale_factor=2), \
        F.interpolate(x, (h // 2, w + 3), mode="bilinear", align_corners=True), \
        F.interpolate(x, (9, 11), mode="bicubic", align_corners=False), \
        F.interpolate(x, scale_factor=1.5, mode="bilinear"), \
        F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2), F.adaptive_avg_pool2d(x, 4)


def pads(x):
    return [F.pad(x, (1, 2, 2, 1), mode=m) for m in ("reflect", "replicate", "circular")] + \
        [F.pad(x, (1, 0, -1, 2), value=0.5), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
         F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.lp_pool2d(x, 2, 3)]


def loops(x):
    for k in range(x.shape[1]):
        x = torch.where(x.mean() > 0, x - 0.1 * k, x + 0.2)
    return x


def activations(x):
    names = """relu6 elu selu celu gelu silu mish hardswish hardsigmoid softplus softsign tanhshrink
        hardshrink softshrink logsigmoid leaky_relu""".split()
    return [getattr(F, n)(x) for n in names] + [F.gelu(x, approximate="tanh"), F.glu(x, -1),
                                                x.erf(), x.atan(), x.sign() * x.abs().log1p()]


def integers(x):
    k = (x * 10).to(torch.int64)
    return k // 3, k % 4, torch.div(k, 3, rounding_mode="trunc"), k.clamp(-3, 3), \
        k.bitwise_and(7), (k > 2).sum(1), torch.bucketize(x, torch.linspace(-1, 1, 5)), \
        F.one_hot(k[:, 0].abs() % 5, 5)


def chosen(x):
    return x[x > 0.5], torch.nonzero(x > 0.9)


def cases():
    open_image = {"x": {0: "batch", 2: "height", 3: "width"}}
    open_rows = {"x": {0: "batch", 1: "length"}}
    conv, up = nn.Conv2d, nn.ConvTranspose2d
    lstm = lambda **more: nn.LSTM(16, 8, batch_first=True, **more)
    networks = {
        "unet": (lambda: Calls(unet, conv(3, 8, 3, padding=1), conv(8, 16, 3, padding=1),
                               up(16, 8, 2, 2), conv(16, 2, 1)), image(h=16, w=24),
                 image(1, h=8, w=16), open_image),
        "transposed": (lambda: nn.Sequential(up(3, 8, 3, 2, 1, 1), nn.InstanceNorm2d(8),
                                             nn.PReLU(8), up(8, 4, 4, 2, 1, groups=2, dilation=2)),
                       image(), None, None),
        "conv3d": (lambda: nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4),
                                         nn.ReLU(), nn.MaxPool3d(2), nn.AdaptiveAvgPool3d(1)),
                   lambda: dict(x=torch.randn(1, 2, 6, 8, 8)), None, None),
        "conv1d": (lambda: nn.Sequential(nn.Conv1d(16, 8, 3, 2, 1, dilation=2), nn.GroupNorm(2, 8),
                                         nn.SiLU(), nn.Conv1d(8, 8, 5, groups=8)),
                   rows(2, 16, 40), None, None),
        "lstm": (lambda: Calls(states, lstm(bidirectional=True), nn.GRU(16, 8, batch_first=True),
                               nn.RNN(8, 4, batch_first=True)), rows(), rows(1, 9), open_rows),
        "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(
            16, 4, 32, batch_first=True, norm_first=True, activation="gelu"), 2), rows(), None,
            None),
        "decoder": (lambda: Calls(lambda d, x: d(x, x.flip(1)), nn.TransformerDecoder(
            nn.TransformerDecoderLayer(16, 2, 24, batch_first=True), 1)), rows(), None, None),
        "embedding": (lambda: Calls(lambda e, b, x: (e(x).mean(1), b(x)), nn.Embedding(20, 8),
                                    nn.EmbeddingBag(20, 6, mode="mean")),
                      lambda: dict(x=torch.randint(0, 20, (3, 5))), None, None),
    }
    for name, (build, first, other, opened) in networks.items():
        yield from torch_cases("torch", name, lambda b=build: named(b()), first, other, opened)
    functions = [(grids, image(), None, None), (boxes, rows(2, 9, 12), None, None),
                 (scatter, rows(), rows(1), {"x": {0: "batch"}}),
                 (masks, rows(), rows(1, 5), open_rows), (einsums, rows(), rows(1, 5), open_rows),
                 (statistics, rows(), None, None), (windows, image(h=16, w=24), None, None),
                 (spectra, lambda: dict(x=torch.randn(2, 64)), None, None),
                 (picks, rows(2, 5), rows(3, 5), {"x": {0: "batch"}}),
                 (sizes, image(), None, None), (pads, image(), None, None),
                 (loops, rows(2, 3, 4), None, None), (activations, rows(), rows(1, 4), open_rows),
                 (integers, rows(), rows(1, 4), open_rows), (chosen, rows(), rows(1, 4), open_rows)]
    for f, first, other, opened in functions:
        yield from torch_cases("torch", f.__name__, lambda f=f: Calls(f), first, other, opened)


def named(module):
    """Modules of one positional tensor, called by name."""
    return module if isinstance(module, Calls) else Calls(lambda m, x: m(x), module)
