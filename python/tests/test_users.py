"""What users of PyTorch and of ONNX Runtime do, right and wrong: one clear error where it cannot be meant."""
import warnings

import numpy as np
import pytest

import facula as fac

nn, F = fac.nn, fac.nn.functional


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("labels", [[0, 3], [-1, 0], [1, 2 ** 40]])
def test_labels_are_some_of_the_classes(labels, lazy):
    with fac.lazy(lazy):
        x, y = fac.ones(2, 3, requires_grad=True) * 2, fac.tensor(labels)
        wrong = next(v for v in labels if not 0 <= v < 3)
        for loss in (lambda: F.cross_entropy(x, y), lambda: F.cross_entropy(x, y, weight=fac.ones(3)), lambda: F.nll_loss(x, y)):
            with pytest.raises(IndexError, match=f"label {wrong} of 3 classes"):
                loss()
    assert F.cross_entropy(fac.ones(2, 3), fac.tensor([-100, 2])).item() > 0
    assert F.cross_entropy(fac.ones(2, 3), fac.tensor([7, 2]), ignore_index=7).item() > 0


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_a_column_against_a_row_is_a_warning(name):
    with pytest.warns(UserWarning, match=r"shapes \(3, 1\) and \(3,\) differ"):
        getattr(F, name)(fac.ones(3, 1), fac.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(F, name)(fac.ones(3), fac.ones(3))


@pytest.mark.parametrize("name", ["binary_cross_entropy", "binary_cross_entropy_with_logits"])
def test_of_probabilities_it_is_an_error(name):
    with pytest.raises(fac.ShapeError, match=r"shapes \(3, 1\) and \(3,\) differ"):
        getattr(F, name)(fac.ones(3, 1) * 0.5, fac.ones(3))


def test_arrays_are_no_tensors():
    with pytest.raises(TypeError, match="fac.tensor makes one"):
        nn.Conv2d(1, 1, 3)(np.ones((1, 1, 5, 5), "f4"))


def test_checkpoints(tmp_path):
    """Model, optimizer and numbers in one file, as with torch.save."""
    net = nn.Linear(3, 2)
    opt = fac.optim.Adam(net.parameters())
    net.loss(fac.ones(4, 3), fac.tensor([0, 1, 0, 1])).backward()
    opt.step()
    fac.save({"epoch": 3, "model": net.state_dict(), "optimizer": opt.state_dict()}, tmp_path / "check.pt")
    with pytest.raises(fac.FormatError, match="load_saved"):
        fac.load_weights(tmp_path / "check.pt")
    got = fac.load_saved(tmp_path / "check.pt")
    other = nn.Linear(3, 2)
    other.load_state_dict(got["model"])
    again = fac.optim.Adam(other.parameters())
    again.load_state_dict(got["optimizer"])
    for n, o in ((net, opt), (other, again)):
        o.zero_grad()
        n.loss(fac.ones(4, 3), fac.tensor([0, 1, 0, 1])).backward()
        o.step()
    assert got["epoch"] == 3 and fac.equal(net.weight, other.weight)


def test_print_options():
    try:
        fac.set_printoptions(precision=2, threshold=4, edgeitems=1)
        assert repr(fac.tensor([1 / 3, 2 / 3])) == "tensor([0.33, 0.67])"
        assert repr(fac.arange(9)) == "tensor([0, ..., 8])"
    finally:
        fac.set_printoptions()
    assert repr(fac.tensor([1 / 3])) == "tensor([0.33333334])"


def test_ports_as_of_onnx_runtime(tmp_path):
    net = nn.Linear(3, 2)
    net.export(tmp_path / "m.onnx", (1, 3))
    m = fac.load(tmp_path / "m.onnx")
    assert [p.type for p in (*m.get_inputs(), *m.get_outputs())] == ["tensor(float)"] * 2
