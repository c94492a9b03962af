"""Windows, areas, choices and matrices, Fourier transforms and frames beside PyTorch's, with their gradients.  Complex numbers are pairs."""
import numpy as np
import pytest

import facula as fac

torch = pytest.importorskip("torch")


def beside(function, *arrays):
    both = []
    for package in (torch, fac):
        xs = [package.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
        y = function(package, *xs)
        if y.requires_grad:
            (y * y).sum().backward()
        both.append([y.detach().numpy(), *[x.grad.numpy() for x in xs if x.grad is not None]])
    assert len(both[0]) == len(both[1])
    for theirs, ours in zip(*both):
        assert theirs.shape == ours.shape and theirs.dtype == ours.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["hann_window", "hamming_window", "blackman_window", "bartlett_window"])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 16])
def test_windows(name, periodic, n):
    beside(lambda package: getattr(package, name)(n, periodic))


def test_numbers_evenly_apart_in_powers():
    beside(lambda package: package.logspace(-2, 3, 6))
    beside(lambda package: package.logspace(0, 4, 5, 2.0))


@pytest.mark.parametrize("name", ["trapezoid", "trapz", "cumulative_trapezoid"])
def test_areas(rng, name):
    y, x = rng.standard_normal((3, 5)).astype("f4"), np.sort(rng.standard_normal(5)).astype("f4")
    beside(lambda package, y: getattr(package, name)(y), y)
    beside(lambda package, y: getattr(package, name)(y, dx=0.5, dim=0), y)
    beside(lambda package, y, x: getattr(package, name)(y, x), y, x)
    beside(lambda package, y, x: getattr(package, name)(y, x, dim=1), y, np.stack([x, 2 * x, x * x]))
    beside(lambda package, y, x: getattr(package, name)(y, x, dim=0), y, x[:3])
    with pytest.raises(fac.ShapeError, match="5 values at 4 places"):
        getattr(fac, name)(fac.tensor(y), fac.tensor(x[:4]))


def test_choices(rng):
    x = rng.standard_normal(5).astype("f4")
    for r in (1, 2, 3, 6):
        beside(lambda package, x, r=r: package.combinations(x, r), x)
    beside(lambda package, x: package.combinations(x, with_replacement=True), x)
    assert fac.combinations(fac.tensor(x), 0).shape == (0,)
    with pytest.raises(fac.ShapeError, match="a vector"):
        fac.combinations(fac.ones(2, 2))


def test_divisors():
    a, b = np.array([12, 0, -8, 7, 0]), np.array([18, 5, 12, 1, 0])
    for name in ("gcd", "lcm"):
        beside(lambda package, a, b, name=name: getattr(package, name)(a, b), a, b)
        beside(lambda package, a, b, name=name: getattr(a, name)(b), a.astype("i4"), b)
        with pytest.raises(fac.DtypeError, match="integers"):
            getattr(fac, name)(fac.ones(2), fac.ones(2))


def test_matrices(rng):
    x = rng.standard_normal((2, 3, 3)).astype("f4") + 3 * np.eye(3, dtype="f4")
    beside(lambda package, x: package.det(x), x)
    beside(lambda package, x: package.inverse(x), x)
    for name in ("det", "inverse"):
        with pytest.raises(fac.ShapeError, match="square"):
            getattr(fac, name)(fac.ones(2, 3))


def test_sums_of_powers_and_shorter_parts(rng):
    a, b = rng.standard_normal((2, 4, 3)).astype("f4")
    beside(lambda package, a, b: package.logaddexp2(a, b), a, b)
    for p in (1, 2, 3.5):
        beside(lambda package, a, p=p: package.renorm(a, p, 0, 1.5), a)
        beside(lambda package, a, p=p: a.renorm(p, 1, 0.7), a)


COMPLEX = {"fft", "ifft", "irfft", "hfft", "fft2", "ifft2", "irfft2", "fftn", "ifftn", "irfftn"}      # take pairs
PAIRS = {"fft", "ifft", "rfft", "ihfft", "fft2", "ifft2", "rfft2", "fftn", "ifftn", "rfftn"}           # give pairs


def both(name, a, *args, near=1e-11, **kwargs):
    results = []
    for package in (torch, fac):
        x = package.tensor(a, requires_grad=True)
        ours = package is fac
        y = getattr(package.fft, name)(x if ours or name not in COMPLEX else torch.view_as_complex(x), *args, **kwargs)
        y = torch.view_as_real(y.resolve_conj()) if not ours and name in PAIRS else y
        package.sin(y * 0.7).sum().backward()
        results.append((y.detach().numpy(), x.grad.numpy()))
    for theirs, ours in zip(*results):
        assert theirs.shape == ours.shape and theirs.dtype == ours.dtype
        np.testing.assert_allclose(ours, theirs, rtol=near, atol=near * np.sqrt(a.size))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_lines(rng, name, norm):
    for shape in ((5,), (8,), (3, 6, 4)):
        a = rng.standard_normal((*shape, 2) if name in COMPLEX else shape)
        both(name, a, norm=norm)
        for n in (1, 4, 7, 12):
            both(name, a, n, norm=norm)
        both(name, a, 6, 0, norm)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"])
def test_pictures(rng, name):
    a = rng.standard_normal((3, 4, 6, 2) if name in COMPLEX else (3, 4, 6))
    both(name, a)
    both(name, a, norm="ortho")
    both(name, a, (5, 4))
    both(name, a, (5, -1), (0, 2))
    both(name, a, None, (2, 1))


@pytest.mark.parametrize("n", [129, 130, 509, 521, 1024, 1025, 4099, 6000, 8198, 16384])
def test_long_lines(rng, n):
    """They are made of shorter ones; 509, 521 and 4,099 are primes."""
    a = rng.standard_normal((n, 2))
    spectrum = np.fft.fft(a[:, 0] + 1j * a[:, 1])
    y = fac.fft.fft(fac.tensor(a))
    np.testing.assert_allclose(y.numpy(), np.stack([spectrum.real, spectrum.imag], -1), atol=1e-11 * n ** 0.5)
    np.testing.assert_allclose(fac.fft.ifft(y).numpy(), a, atol=1e-11)
    for name in ("fft", "ifft", "rfft", "irfft"):
        both(name, a if name in COMPLEX else a[:, 0].copy(), n, near=1e-10)


def test_pairs_and_frequencies(rng):
    a, b = rng.standard_normal((2, 3, 4))
    p = fac.fft.pairs(fac.tensor(a), fac.tensor(b))
    np.testing.assert_array_equal(fac.fft.real(p).numpy(), a)
    np.testing.assert_array_equal(fac.fft.imag(p).numpy(), b)
    np.testing.assert_array_equal(fac.fft.imag(fac.fft.pairs(fac.tensor(a))).numpy(), 0 * a)
    for n in (1, 5, 8):
        for name in ("fftfreq", "rfftfreq"):
            np.testing.assert_array_equal(getattr(fac.fft, name)(n, 0.5).numpy(), getattr(torch.fft, name)(n, 0.5).numpy())
        for name in ("fftshift", "ifftshift"):
            x = rng.standard_normal((n, 3, 2))
            np.testing.assert_array_equal(getattr(fac.fft, name)(fac.tensor(x), (0, 1)).numpy(), getattr(torch.fft, name)(torch.tensor(x), (0, 1)).numpy())


def spectra(package, x, *args, **kwargs):
    if package is fac:
        return fac.stft(x, *args, **kwargs)
    return torch.view_as_real(torch.stft(x, *args, return_complex=True, **kwargs))


def signal(package, x, *args, **kwargs):
    return package.istft(x if package is fac else torch.view_as_complex(x), *args, **kwargs)


@pytest.mark.filterwarnings("ignore:The length of signal")
@pytest.mark.parametrize("kwargs", [{}, {"hop_length": 3}, {"win_length": 11}, {"center": False}, {"pad_mode": "constant"}, {"normalized": True},
                                    {"onesided": False}, {"hop_length": 5, "win_length": 12, "normalized": True}])
@pytest.mark.parametrize("shape", [(50,), (3, 64)])
def test_frames(rng, kwargs, shape):
    window = np.hanning(kwargs.get("win_length", 16) + 2)[1:-1]
    a = rng.standard_normal(shape)
    rows = []
    for package in (torch, fac):
        x = package.tensor(a, requires_grad=True)
        y = spectra(package, x, 16, window=package.tensor(window), **kwargs)
        package.sin(y).sum().backward()
        rest = {k: v for k, v in kwargs.items() if k != "pad_mode"}
        s = y.detach().requires_grad_()
        lengths = (None, 40) if "win_length" in kwargs else (None, 40, shape[-1] + 9)      # short windows leave the end of the last frame out
        backs = [signal(package, s, 16, window=package.tensor(window), length=n, **rest) for n in lengths]
        sum(package.sin(b).sum() for b in backs).backward()
        rows.append([y.detach().numpy(), x.grad.numpy(), s.grad.numpy(), *(b.detach().numpy() for b in backs)])
    for theirs, ours in zip(*rows):
        assert theirs.shape == ours.shape and theirs.dtype == ours.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_there_and_back(rng):
    x = fac.tensor(rng.uniform(-1, 1, (2, 4000)).astype("f4"))
    w = fac.hann_window(256)
    y = fac.istft(fac.stft(x, 256, window=w), 256, window=w, length=4000)
    assert float((y - x).abs().max()) < 1e-6


def test_what_cannot_be():
    for name in sorted(COMPLEX):
        with pytest.raises(fac.ShapeError, match="pairs"):
            getattr(fac.fft, name)(fac.ones(4, 3))
    with pytest.raises(fac.DtypeError, match="floats"):
        fac.fft.rfft(fac.ones(4, dtype="int64"))
    with pytest.raises(ValueError, match="ortho"):
        fac.fft.rfft(fac.ones(4), norm="both")
    for call in (lambda: fac.fft.rfft(fac.ones(0)), lambda: fac.fft.irfft(fac.ones(1, 2)), lambda: fac.fft.fft2(fac.ones(4, 4, 2), (3,)),
                 lambda: fac.stft(fac.ones(7), 16), lambda: fac.stft(fac.ones(50), 16, window=fac.ones(12)), lambda: fac.istft(fac.ones(8, 5, 2), 16)):
        with pytest.raises(fac.ShapeError):
            call()
    with pytest.raises(fac.UnsupportedError, match="complex"):
        fac.stft(fac.ones(50), 16, return_complex=True)
    with pytest.raises(fac.UnsupportedError, match="complex"):
        fac.istft(fac.ones(9, 5, 2), 16, return_complex=True)
    with pytest.raises(fac.ArgumentError, match="without weight"):
        fac.istft(fac.ones(9, 5, 2), 16, window=fac.zeros(16))
    with pytest.raises(ValueError, match="one every 0"):
        fac.stft(fac.ones(50), 16, 0)
