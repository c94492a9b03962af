"""Every example of docs/python is run, and gives what the page says."""
import doctest
import pathlib

import pytest

import facula as fac

try:                                # the engine of torch counts devices at the first backward() of a process
    import facula.torch  # noqa: F401
except ImportError:
    pass

pages = sorted((pathlib.Path(__file__).parents[2] / "docs" / "python").glob("*.md"))


@pytest.mark.parametrize("page", pages, ids=[p.name for p in pages])
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.name == "torch.md":
        pytest.importorskip("torch")
    text = page.read_text().replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert test.examples
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


def test_docstrings(monkeypatch):
    for module in (fac, fac.ops, fac.functional):
        examples = [t for t in doctest.DocTestFinder().find(module) if t.examples]
        for t in examples:
            said = []
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            t.globs["fac"] = fac
            runner.run(t, out=said.append)
            assert not runner.failures, "".join(said)
