"""DLPack, both ways, with NumPy and PyTorch: the same memory."""
import numpy as np
import pytest

import facula as fac


def test_with_numpy():
    t = fac.tensor([[1.0, 2.0], [3.0, 4.0]])
    a = np.from_dlpack(t)
    assert a.tolist() == t.tolist()
    b = np.arange(6, dtype="i4").reshape(2, 3)
    s = fac.from_dlpack(b)
    assert s.dtype is fac.int32 and np.shares_memory(s.numpy(), b)
    c = s.detach()
    del s
    assert c.tolist() == b.tolist()


def test_a_capsule_is_taken_once():
    capsule = fac.tensor([1.0]).__dlpack__()
    assert fac.from_dlpack(capsule).tolist() == [1]
    with pytest.raises(TypeError):
        fac.from_dlpack(capsule)
    with pytest.raises(BufferError):
        fac.tensor([1.0], requires_grad=True).__dlpack__()
    assert fac.tensor([1.0]).__dlpack_device__() == (1, 0)


def test_with_torch():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool):
        a = torch.tensor([[1, 0, 2], [0, 1, 3]]).to(dtype)
        t = fac.from_dlpack(a)
        back = torch.from_dlpack(t)
        assert back.dtype == dtype and torch.equal(back, a) and back.data_ptr() == a.data_ptr()
    strided = torch.arange(12.0).reshape(3, 4).t()
    assert fac.from_dlpack(strided).tolist() == strided.tolist()
