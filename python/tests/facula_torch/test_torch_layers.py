"""ocl_conv2d, ocl_matmul and layers that are swapped: the course's forty convolutions and eight model checks, gradients, errors."""
from __future__ import annotations

import copy
import os

import pytest
import torch
import torch.nn.functional as F

import facula
import facula.torch as ft
from facula.torch import ocl_conv2d, ocl_matmul, swap, unswap

HAS_OPENCL = any(d["name"].startswith("opencl") for d in facula.devices())
EVERYWHERE = os.environ.get("FACULA_ALL") == "1"

# N, C, H, W -> outputs, kernel, stride, padding, dilation
CASES = [
    (1, 1, 224, 224, 1, 3, 1, 1, 1), (1, 3, 224, 224, 3, 3, 1, 1, 1), (1, 3, 224, 224, 3, 9, 1, 1, 1), (3, 3, 512, 512, 3, 3, 1, 1, 1),
    (3, 3, 512, 512, 3, 5, 1, 1, 1), (3, 3, 512, 512, 5, 3, 1, 1, 1), (1, 4, 32, 32, 4, 3, 1, 1, 1), (1, 4, 32, 32, 1, 3, 1, 1, 1),
    (1, 4, 32, 32, 4, 3, 1, 1, 1), (1, 4, 32, 32, 4, 3, 1, 1, 1),
    (1, 1, 224, 224, 1, 3, 2, 1, 1), (1, 1, 224, 224, 1, 3, 3, 1, 1), (1, 1, 224, 224, 1, 3, (3, 2), 1, 1), (3, 3, 512, 512, 3, 5, 2, 1, 1),
    (3, 3, 512, 512, 3, 5, (3, 4), 1, 1), (3, 3, 512, 512, 3, 5, 5, 1, 1), (3, 3, 512, 512, 3, 5, 5, 1, 1), (1, 4, 32, 32, 4, 3, 2, 1, 1),
    (1, 4, 32, 32, 4, 3, 1, 1, 1), (1, 4, 32, 32, 4, 3, 1, 1, 1),
    (1, 1, 224, 224, 1, 3, 1, 1, 2), (1, 1, 224, 224, 1, 4, 1, 1, 2), (1, 1, 224, 224, 1, 3, 1, 1, (3, 1)), (5, 3, 512, 512, 3, 5, 1, 1, (1, 3)),
    (3, 3, 512, 512, 3, 5, 1, 1, (2, 3)), (3, 3, 512, 512, 3, 3, 1, 1, 4), (4, 3, 512, 512, 3, 5, 1, 1, 3), (1, 4, 32, 32, 4, 3, 1, 1, 2),
    (1, 4, 32, 32, 4, 3, 1, 1, 3), (1, 4, 32, 32, 4, 3, 1, 1, 2),
    (1, 1, 224, 224, 1, 3, 2, 1, 2), (1, 1, 224, 224, 1, 4, 3, 1, 2), (2, 1, 224, 224, 1, 3, 3, 1, 3), (5, 3, 512, 512, 3, 5, 3, 1, 3),
    (1, 7, 500, 707, 6, 11, (4, 8), 4, (4, 3)), (1, 7, 200, 200, 3, 5, (3, 2), 4, (3, 5)), (3, 12, 224, 224, 24, 5, 4, 4, 4),
    (3, 12, 224, 224, 24, 5, (4, 3), 4, (3, 4)), (3, 4, 224, 224, 13, 8, (4, 3), 4, (3, 4)), (3, 4, 224, 224, 13, 3, 5, 4, (1, 2))]


def case(k):
    n, c, h, w, out, size, stride, pad, dilation = CASES[k]
    torch.manual_seed(k)
    x, weight, bias = torch.rand(n, c, h, w) - 0.5, torch.randn(out, c, size, size) / (c * size * size) ** 0.5, torch.randn(out)
    return (x, weight, bias), {"stride": stride, "padding": pad, "dilation": dilation}


@pytest.mark.parametrize("k", range(40))
def test_forty_convolutions(k):
    given, how = case(k)
    torch.testing.assert_close(ocl_conv2d(*given, **how), F.conv2d(*given, **how), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not HAS_OPENCL, reason="no OpenCL device")
@pytest.mark.parametrize("k", range(40) if EVERYWHERE else [7, 12, 27, 36])
def test_convolutions_on_opencl(k):
    given, how = case(k)
    torch.testing.assert_close(ocl_conv2d(*given, **how, device="opencl"), F.conv2d(*given, **how), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("groups,padding,stride", [(1, 1, 1), (2, (1, 2), 2), (4, "same", 1), (1, "valid", 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_convolutions(groups, padding, stride, dtype):
    given = [torch.randn(2, 4, 9, 10, dtype=dtype), torch.randn(8, 4 // groups, 3, 2, dtype=dtype), torch.randn(8, dtype=dtype)]
    mine = [t.clone().requires_grad_() for t in given]
    theirs = [t.clone().requires_grad_() for t in given]
    how = {"stride": stride, "padding": padding, "groups": groups}
    y, z = ocl_conv2d(*mine, **how), F.conv2d(*theirs, **how)
    torch.testing.assert_close(y, z)
    (y * y).sum().backward(), (z * z).sum().backward()
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("a,b", [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((1, 4), (4, 1))])
def test_products_and_their_gradients(a, b):
    given = [torch.randn(a), torch.randn(b)]
    mine, theirs = [t.clone().requires_grad_() for t in given], [t.clone().requires_grad_() for t in given]
    y, z = ocl_matmul(*mine), torch.matmul(*theirs)
    torch.testing.assert_close(y, z, rtol=1e-5, atol=1e-5)
    y.sin().sum().backward(), z.sin().sum().backward()
    for p, q in zip(mine, theirs):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-5)


def test_strided_and_unbatched_operands():
    x, w = torch.randn(5, 6, 3).permute(2, 0, 1), torch.randn(4, 3, 3, 3).to(memory_format=torch.channels_last)
    torch.testing.assert_close(ocl_conv2d(x, w), F.conv2d(x, w), rtol=1e-5, atol=1e-5)
    a = torch.randn(6, 4)
    torch.testing.assert_close(ocl_matmul(a.t(), a), a.t() @ a, rtol=1e-5, atol=1e-5)


def test_wrong_calls_say_what_is_wrong():
    x, w = torch.randn(1, 3, 8, 8), torch.randn(4, 2, 3, 3)
    with pytest.raises(RuntimeError, match="expects 2 channels, input has 3"):
        ocl_conv2d(x, w)
    with pytest.raises(RuntimeError, match="the kernel reaches over"):
        ocl_conv2d(x, torch.randn(4, 3, 9, 9))
    with pytest.raises(RuntimeError, match=r"\[2, 3\] and \[4, 5\] cannot be multiplied"):
        ocl_matmul(torch.randn(2, 3), torch.randn(4, 5))


# ---- eight models: what each says must be what torch's own layers say; weights are random ----------------------------


def swapped(model):
    mine = copy.deepcopy(model)
    assert swap(mine) == sum(type(m) in (torch.nn.Conv2d, torch.nn.Linear) or type(m).__name__ == "Conv1D" for m in model.modules())
    return mine


def test_model_gpt2_generates_the_same_text():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(42)
    config = transformers.GPT2Config(n_layer=2, n_head=4, n_embd=64, vocab_size=500, n_positions=64, bos_token_id=0, eos_token_id=None)
    model = transformers.GPT2LMHeadModel(config).eval()
    ids = torch.randint(500, (1, 7))
    want = model.generate(ids, max_new_tokens=20, do_sample=False, pad_token_id=0)
    assert torch.equal(swapped(model).generate(ids, max_new_tokens=20, do_sample=False, pad_token_id=0), want)


@pytest.mark.parametrize("name,seed", [("resnet18", 1), ("resnet18", 2), ("resnet50", 3), ("resnet50", 4), ("resnet50", 5), ("resnet50", 6)])
def test_model_resnet_sees_the_same(name, seed):
    models = pytest.importorskip("torchvision").models
    torch.manual_seed(seed)
    model = getattr(models, name)(weights=None).eval()
    x = torch.randn(1, 3, 96, 96)
    with torch.no_grad():
        want, got = model(x), swapped(model)(x)
    assert got.argmax() == want.argmax()
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_model_of_spectrograms_hears_the_same():
    models = pytest.importorskip("torchvision").models
    torch.manual_seed(7)
    model = models.resnet50(weights=None, num_classes=132)
    model.conv1 = torch.nn.Conv2d(1, 64, 7, stride=2, padding=3, bias=False)
    model.eval()
    sound = torch.randn(16000 * 2)
    spectrum = torch.stft(sound, 256, 512, window=torch.hann_window(256), return_complex=True).abs().square().log1p()
    x = ((spectrum - spectrum.mean()) / spectrum.std())[None, None]
    with torch.no_grad():
        want, got = model(x), swapped(model)(x)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_swapped_layers_train_and_are_given_back():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"), torch.nn.ReLU(), torch.nn.Flatten(),
                                torch.nn.Linear(8 * 64, 4))
    mine = swapped(model)
    x, y = torch.randn(2, 3, 8, 8), torch.tensor([1, 3])
    for m in (model, mine):
        F.cross_entropy(m(x), y).backward()
    for p, q in zip(model.parameters(), mine.parameters()):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-5)
    unswap(mine)
    assert torch.equal(mine(x), model(x))


@pytest.mark.ocl
def test_tensors_of_the_device_stay_there():
    x, w = torch.randn(1, 2, 6, 6), torch.randn(3, 2, 3, 3)
    y = ocl_conv2d(x.to("ocl"), w.to("ocl"))
    assert y.device.type == "ocl"
    torch.testing.assert_close(y.cpu(), F.conv2d(x, w), rtol=1e-5, atol=1e-5)
