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


@pytest.mark.parametrize("kind", ["cut safetensors", "text", "empty", "cut pickle", "model"])
def test_what_is_no_checkpoint_is_named(tmp_path, kind):
    path, net = tmp_path / "check.pt", nn.Linear(3, 2)
    fac.save({"epoch": 3, "model": net.state_dict()} if kind == "cut pickle" else net.state_dict(), path)
    whole = path.read_bytes()
    if kind == "model":
        fac.trace(net, (1, 3)).save(path)
    else:
        path.write_bytes({"text": b"not a checkpoint", "empty": b""}.get(kind, whole[:len(whole) // 2]))
    with pytest.raises(fac.FormatError, match="check.pt"):
        fac.load_saved(path)


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


# ---- graphs of calls ----

class Branch(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


@pytest.mark.parametrize("function", [Branch(), lambda x: x * x.max().item(), lambda x: x.sort()[0], lambda x: x + fac.tensor(x.sum().tolist())],
                         ids=["branch", "item", "sort", "tolist"])
def test_what_is_read_while_a_graph_is_made_is_a_warning(function):
    with pytest.warns(UserWarning, match="fixed to this example"):
        fac.trace(function, fac.ones(3))


def test_copies_stay_part_of_a_graph():
    for function in (lambda x: x.clone() + 1, lambda x: x.detach() + 1, lambda x: (x * 1).detach().clone() + 1, lambda x: x.data + 1):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graph = fac.trace(function, fac.ones(3))
        assert np.array_equal(fac.load(graph).run(np.full(3, 5, "f4")), [6, 6, 6])
    assert np.array_equal(fac.load(fac.trace(lambda x: x, fac.ones(3))).run(np.full(3, 5, "f4")), [5, 5, 5])


# ---- modules and optimizers ----

def test_parameters_are_replaced_by_parameters():
    net = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="'weight' is a parameter of Linear"):
        net.weight = fac.ones(2, 2)
    net.weight = nn.Parameter(fac.ones(2, 2))
    net.bias = None
    assert net(fac.ones(1, 2)).tolist() == [[2, 2]] and [n for n, _ in net.named_parameters()] == ["weight"]
    net.weight.data = np.full((2, 2), 3, "f4")
    assert net(fac.ones(1, 2)).tolist() == [[6, 6]]


@pytest.mark.parametrize("options", [{"lr": -1}, {"lr": 0.1, "weight_decay": -1}, {"lr": float("nan")}])
def test_options_of_optimizers(options):
    with pytest.raises(ValueError, match="0 or more"):
        fac.optim.SGD(nn.Linear(1, 1).parameters(), **options)
    with pytest.raises(ValueError, match="0 or more"):
        fac.optim.Adam([{"params": [nn.Parameter(fac.ones(1))], **options}])


def test_a_schedule_needs_an_optimizer():
    with pytest.raises(TypeError, match="not Linear"):
        fac.optim.lr_scheduler.StepLR(nn.Linear(1, 1), 3)


# ---- data ----

class Squares(fac.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        if not 0 <= i < 10:
            raise IndexError(i)
        return {"x": np.full(2, i, "f4"), "y": i * i, "name": f"n{i}"}


@pytest.mark.parametrize("workers", [0, 3])
def test_own_data_sets(workers):
    loader = fac.data.DataLoader(Squares(), batch_size=4, num_workers=workers, pin_memory=True)
    for _ in range(2):
        batches = list(loader)
        assert [b["x"].shape for b in batches] == [(4, 2), (4, 2), (2, 2)] and batches[1]["y"].tolist() == [16, 25, 36, 49]
        assert batches[2]["name"] == ["n8", "n9"]
    assert len(list(Squares().batches(3, drop_last=True))) == 3
    with pytest.raises(NotImplementedError, match="Own has no __getitem__"):
        type("Own", (fac.data.Dataset,), {})()[0]


def test_a_worker_that_fails_says_why():
    class Broken(Squares):
        def __getitem__(self, i):
            raise OSError("no such photo")
    with pytest.raises(OSError, match="no such photo"):
        list(fac.data.DataLoader(Broken(), num_workers=2))


def test_parts_of_data_sets():
    parts = fac.data.random_split(Squares(), [7, 3])
    assert [len(p) for p in parts] == [7, 3] and sorted(p[i]["y"] for p in parts for i in range(len(p))) == [i * i for i in range(10)]
    assert [len(p) for p in fac.data.random_split(Squares(), [0.5, 0.25, 0.25])] == [6, 2, 2]
    with pytest.raises(ValueError, match="do not make 10"):
        fac.data.random_split(Squares(), [7, 2])
    both = fac.data.ConcatDataset([Squares(), fac.data.Subset(Squares(), [4, 2])])
    assert len(both) == 12 and both[10]["y"] == 16 and both[-1]["y"] == 4 and both[3]["y"] == 9
    with pytest.raises(IndexError):
        both[12]


# ---- derivatives of functions ----

def test_derivatives_are_those_of_torch(rng):
    torch = pytest.importorskip("torch")
    a, b, v = rng.standard_normal((3, 3)).astype("f4")
    for name, of, args in (("jacobian", lambda x: x ** 2 * x.sum(), ()), ("hessian", lambda x: (x ** 3).sum() * x[0], ()), ("vjp", lambda x: x ** 2, (v,)),
                           ("hvp", lambda x: (x ** 3).sum() * x[0], (v,))):
        ours = getattr(fac.autograd.functional, name)(of, fac.tensor(a), *map(fac.tensor, args))
        theirs = getattr(torch.autograd.functional, name)(of, torch.tensor(a), *map(torch.tensor, args))
        for y, z in zip(*[(r if isinstance(r, tuple) else (r,)) for r in (ours, theirs)]):
            assert np.allclose(y, z, atol=1e-4), name
    ours = fac.autograd.functional.hessian(lambda x, y: (x * y * y).sum(), (fac.tensor(a), fac.tensor(b)))
    theirs = torch.autograd.functional.hessian(lambda x, y: (x * y * y).sum(), (torch.tensor(a), torch.tensor(b)))
    assert all(np.allclose(ours[i][j], theirs[i][j], atol=1e-5) for i in range(2) for j in range(2))
    assert fac.autograd.functional.jacobian(lambda x, y: x * 2, (fac.tensor(a), fac.tensor(b)))[1].abs().sum().item() == 0


def test_more_differences_than_elements_are_none():
    assert fac.ones(3, 4).diff(10 ** 30, 0).shape == (0, 4)
    with pytest.raises(ValueError, match="-1 times"):
        fac.ones(3).diff(-1)
