"""What tests of facula.torch share: one seed, torch's settings, and that torch is there at all."""
import importlib.util
import sys

import pytest

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def torch_as_it_comes(request):
    """Each test begins with one seed and torch's settings; those that need the device are skipped without it."""
    import torch

    import facula.torch as ft
    if ft.ocl is None and request.node.get_closest_marker("ocl"):
        pytest.skip("the device's shim was not built")
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    torch.manual_seed(0)
    ft.explain(reset=True)
    yield
    ft.strict(False)
    torch.set_float32_matmul_precision("highest")
    if ft.ocl is not None:
        ft.ocl.set_eager(False)
        ft.ocl.set_precision(None)
