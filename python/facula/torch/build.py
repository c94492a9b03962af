"""The device's shim: C++ that is compiled once for the PyTorch that is installed, and kept."""
from __future__ import annotations

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import torch

HERE = pathlib.Path(__file__).resolve().parent
FILES = ("device", "memory", "schema", "shapes", "checks", "masks", "grown", "record", "host", "segment_json",
         "run_plan", "later", "rescue", "places", "flush", "ops", "views", "precision", "attention", "autocast", "embedding_bag")


class BuildError(RuntimeError):
    """The shim could not be compiled: says what is missing."""


def cache_folder() -> pathlib.Path:
    """Where it is kept: FACULA_TORCH_CACHE, else the user's cache."""
    own = os.environ.get("FACULA_TORCH_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(own) if own else pathlib.Path(base) / "facula" / "torch"


def _headers() -> pathlib.Path:
    """The library's headers: in the package, or in the source tree."""
    for folder in (HERE.parent / "include", HERE.parents[2] / "include"):
        if (folder / "facula" / "program.h").exists():
            return folder
    raise BuildError(f"the headers of facula are not beside {HERE.parent}: install the package again")


def _flags() -> list[str]:
    root = pathlib.Path(torch.__file__).parent
    abi = int(getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True))
    return ["-std=c++20", "-O2", "-fPIC", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-I{_headers()}", f"-I{root / 'include'}",
            f"-I{root / 'include' / 'torch' / 'csrc' / 'api' / 'include'}"]


def _sources() -> list[pathlib.Path]:
    return sorted(p for p in (HERE / "shim").iterdir() if p.suffix in (".cpp", ".h"))


def path() -> pathlib.Path:
    """Of the library for this PyTorch and these sources."""
    digest = hashlib.sha256(torch.__version__.encode())
    for p in _sources():
        digest.update(p.read_bytes())
    return cache_folder() / f"torch-{torch.__version__}" / f"libfacula_torch-{digest.hexdigest()[:12]}.so"


def _compiler() -> str:
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    raise BuildError("device 'ocl' needs a C++20 compiler once, and there is none (Debian: apt install g++;"
                     " or set CXX). torch.compile(backend='facula') works without.")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"the shim for PyTorch {torch.__version__} does not compile:\n{' '.join(command)}\n{done.stderr[-3000:]}")


def _headers_of_torch() -> str:
    """What the sources include of torch, each once: it is most of what a compiler reads, so it reads it once for all files."""
    lines: list[str] = []
    for p in _sources():
        lines += re.findall(r"^#include <(?:ATen|c10|torch)/.*>$", p.read_text(), re.M)
    return "\n".join(dict.fromkeys(lines)) + "\n"


def build(quiet: bool = False, force: bool = False) -> pathlib.Path:
    """Compiles the shim unless it is there; gives its path."""
    to = path()
    if to.exists() and not force:
        return to
    cxx, flags = _compiler(), _flags()
    if not quiet:
        print(f"facula: building device 'ocl' for PyTorch {torch.__version__} (once, about half a minute)", file=sys.stderr)
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        common = os.path.join(folder, "common.h")
        pathlib.Path(common).write_text(_headers_of_torch())
        _run([cxx, *flags, "-x", "c++-header", common, "-o", common + ".gch"])
        flags += ["-include", common]

        def one(name: str) -> str:
            out = os.path.join(folder, name + ".o")
            _run([cxx, *flags, "-c", str(HERE / "shim" / (name + ".cpp")), "-o", out])
            return out
        with ThreadPoolExecutor(min(len(FILES), os.cpu_count() or 1)) as pool:
            objects = list(pool.map(one, FILES))
        lib = pathlib.Path(torch.__file__).parent / "lib"
        made = os.path.join(str(to.parent), f".{os.getpid()}.so")
        _run([cxx, "-shared", *objects, "-o", made, f"-L{lib}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}"])
        os.replace(made, to)
    return to
