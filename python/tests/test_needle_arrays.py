"""What homework 3 and 4 of CMU's 10-414 promise of arrays, images and sequences, over this engine's tensors, against NumPy.

The course's own tests are no part of this repository: the first ones look into the storage of a student's framework, the others ask for
classes of its own.  The properties that they check are these."""
import numpy as np
import pytest

import facula as fac

nn, F = fac.nn, fac.nn.functional


def pair(rng, *shape):
    a = rng.standard_normal(shape).astype("f4")
    return a, fac.tensor(a)


# ---- homework 3: arrays with strides ----

@pytest.mark.parametrize("order", [(0, 2, 1, 3), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_permuted_then_compact(order, rng):
    a, x = pair(rng, 2, 3, 4, 5)
    y = x.permute(*order)
    assert np.array_equal(y, a.transpose(order)) and np.array_equal(y.reshape(-1), a.transpose(order).reshape(-1))
    assert np.array_equal(y.permute(*np.argsort(order).tolist()), a)


@pytest.mark.parametrize("key", [np.s_[0], np.s_[1:3], np.s_[:, ::2], np.s_[1:3, 2:, ::3], np.s_[:, 1, 1:4:2], np.s_[-1, -3:-1], np.s_[2:1], np.s_[::-1, 1]])
def test_slices_are_read_and_written(key, rng):
    a, x = pair(rng, 4, 5, 6)
    assert np.array_equal(x[key], a[key])
    value = rng.standard_normal(a[key].shape).astype("f4")
    for v in (value, 7.5):
        b, y = a.copy(), x.clone()
        b[key], y[key] = v, fac.tensor(v)
        assert np.array_equal(y, b) and np.array_equal(x, a)
    b, y = a.copy(), x.clone()
    b[key] += 1
    y[key] += 1
    assert np.array_equal(y, b)


@pytest.mark.parametrize("shape,to", [((1, 3, 4), (6, 3, 4)), ((5, 1, 4), (2, 5, 3, 4)), ((1,), (3, 2)), ((), (2, 2))])
def test_broadcast_then_anything(shape, to, rng):
    a, x = pair(rng, *shape)
    wide, y = np.broadcast_to(a, to), x.broadcast_to(to)
    assert np.array_equal(y, wide) and np.allclose(y * 2 + y.permute(*range(len(to))[::-1]).permute(*range(len(to))[::-1]), wide * 3, atol=1e-6)
    assert np.allclose(y.reshape(-1)[::3].exp(), np.exp(wide.reshape(-1)[::3]), atol=1e-5)


@pytest.mark.parametrize("m,n,p", [(1, 1, 1), (8, 8, 8), (7, 11, 5), (16, 16, 33), (64, 64, 64), (73, 72, 71), (128, 65, 1), (1, 200, 130)])
def test_products_of_any_size(m, n, p, rng):
    a, x = pair(rng, m, n)
    b, y = pair(rng, n, p)
    assert np.allclose(x @ y, a @ b, atol=1e-4) and np.allclose(y.T @ x.T, (a @ b).T, atol=1e-4)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 2)])
@pytest.mark.parametrize("how", ["sum", "amax", "amin", "mean", "prod"])
def test_reductions_of_views(how, axis, rng):
    a, x = pair(rng, 3, 6, 4)
    a, x = a.transpose(2, 0, 1)[1:], x.permute(2, 0, 1)[1:]
    want = {"amax": np.max, "amin": np.min}.get(how) or getattr(np, how)
    for keep in (False, True):
        assert np.allclose(getattr(x, how)(axis, keep), want(a, axis=axis, keepdims=keep), atol=1e-5)


# ---- homework 4: stacks, dilation, images in NHWC ----

def gradients_agree(of, *shapes, rng):
    xs = [fac.tensor(rng.standard_normal(s), requires_grad=True) for s in shapes]
    assert fac.autograd.gradcheck(of, xs)


def dilated(x, dims, by):
    for d in dims:
        d %= x.ndim
        zeros = fac.zeros(*x.shape[:d + 1], by, *x.shape[d + 1:], dtype=x.dtype)
        x = fac.cat([x.unsqueeze(d + 1), zeros], d + 1).reshape(*x.shape[:d], -1, *x.shape[d + 1:])
    return x


@pytest.mark.parametrize("dims,by", [((0,), 1), ((1, 2), 1), ((0, -1), 2), ((0, 1, 2, 3), 3)])
def test_dilation(dims, by, rng):
    a, x = pair(rng, 2, 3, 2, 3)
    want = np.zeros([n * (by + 1) if k in [d % 4 for d in dims] else n for k, n in enumerate(a.shape)], "f4")
    key = tuple(slice(None, None, by + 1) if k in [d % 4 for d in dims] else slice(None) for k in range(4))
    want[key] = a
    y = dilated(x, dims, by)
    assert np.array_equal(y, want) and np.array_equal(y[key], a)
    gradients_agree(lambda t: dilated(t, dims, by) ** 2, (1, 2, 1, 2), rng=rng)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stack_split_and_flip(axis, rng):
    parts = [rng.standard_normal((2, 3)) for _ in range(4)]
    x = fac.stack([fac.tensor(p) for p in parts], axis)
    assert np.array_equal(x, np.stack(parts, axis)) and all(np.array_equal(a, b) for a, b in zip(x.unbind(axis), parts))
    assert np.array_equal(x.flip(axis), np.flip(np.stack(parts, axis), axis))
    gradients_agree(lambda a, b: fac.stack([a, b * a], axis).flip(axis) ** 2, (2, 3), (2, 3), rng=rng)
    gradients_agree(lambda a: sum(p * (k + 1) for k, p in enumerate(a.unbind(axis))) ** 2, (2, 3, 2), rng=rng)


def conv_by_hand(x, w, stride, pad):
    """x N,H,W,C  w K,K,C,O"""
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    k = w.shape[0]
    h, v = (x.shape[1] - k) // stride + 1, (x.shape[2] - k) // stride + 1
    y = np.zeros((x.shape[0], h, v, w.shape[3]))
    for i in range(h):
        for j in range(v):
            y[:, i, j] = np.tensordot(x[:, i * stride:i * stride + k, j * stride:j * stride + k], w, 3)
    return y


@pytest.mark.parametrize("size,channels,out,k,stride,pad", [(6, 1, 1, 3, 1, 0), (14, 8, 16, 3, 2, 1), (9, 3, 5, 5, 1, 2), (11, 2, 4, 7, 3, 3), (5, 3, 2, 1, 2, 0), (16, 4, 3, 4, 4, 0)])
def test_convolutions_of_images_with_channels_last(size, channels, out, k, stride, pad, rng):
    def conv(x, w):
        return F.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), None, stride, pad).permute(0, 2, 3, 1)
    a, x = pair(rng, 2, size, size, channels)
    b, w = pair(rng, k, k, channels, out)
    assert np.allclose(conv(x, w), conv_by_hand(a, b, stride, pad), atol=1e-3)
    gradients_agree(conv, (1, min(size, k + 2), min(size, k + 2), 2), (k, k, 2, 1), rng=rng)


# ---- homework 4: sequences ----

def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def steps_by_hand(kind, p, layer, a, h, c):
    ys = []
    wi, wh, bi, bh = (np.asarray(p[f"{n}_l{layer}"]) for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    for x in a:
        s = x @ wi.T + bi + h @ wh.T + bh
        if kind == "LSTM":
            i, f, g, o = np.split(s, 4, -1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            h = np.tanh(s) if kind == "tanh" else np.maximum(s, 0)
        ys.append(h)
    return np.stack(ys), h, c


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", ["tanh", "relu", "LSTM"])
@pytest.mark.parametrize("length,batch,width,hidden,layers", [(1, 1, 1, 1, 1), (13, 15, 11, 12, 2), (5, 1, 3, 4, 3)])
def test_recurrent_layers(kind, length, batch, width, hidden, layers, lazy, rng):
    net = nn.LSTM(width, hidden, layers) if kind == "LSTM" else nn.RNN(width, hidden, layers, nonlinearity=kind)
    a, x = pair(rng, length, batch, width)
    h0, h = pair(rng, layers, batch, hidden)
    c0, c = pair(rng, layers, batch, hidden)
    with fac.lazy(lazy):
        y, ends = net(x, (h, c) if kind == "LSTM" else h)
        y.sum().backward()
        state = {k: v.numpy() for k, v in net.state_dict().items()}
        row = a
        for k in range(layers):
            row, last, cell = steps_by_hand(kind, state, k, row, h0[k], c0[k])
            end = ends[0] if kind == "LSTM" else ends
            assert np.allclose(end.detach()[k], last, atol=1e-5) and (kind != "LSTM" or np.allclose(ends[1].detach()[k], cell, atol=1e-5))
        assert np.allclose(y.detach(), row, atol=1e-5)
        assert all(p.grad is not None and p.grad.shape == p.shape for p in net.parameters())


def test_a_language_model_learns_in_windows(rng):
    """Truncated backpropagation: states go from window to window without their history."""
    text = fac.tensor(np.arange(240) % 7).reshape(4, 60).T         # as batchify makes it: time, batch
    fac.manual_seed(0)
    table, net, out = nn.Embedding(7, 8), nn.LSTM(8, 16), nn.Linear(16, 7)
    parameters = [p for m in (table, net, out) for p in m.parameters()]
    opt, losses = fac.optim.Adam(parameters, 0.02), []
    for _ in range(12):
        state = None
        for at in range(0, 59, 10):
            x, t = text[at:min(at + 10, 59)], text[at + 1:min(at + 11, 60)]
            y, state = net(table(x), state)
            state = tuple(s.detach() for s in state)
            loss = F.cross_entropy(out(y).reshape(-1, 7), t.reshape(-1))
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    assert np.exp(losses[0]) > 5 and np.exp(losses[-1]) < 1.2
