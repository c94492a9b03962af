#!/bin/sh
# docs/studio.png: the playground while it learns the spiral, in headless Chromium.
# usage: studio_png.sh FACULA [TO.png]
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
PYTHONDONTWRITEBYTECODE=1 python3 "$here/tests/studio/pages.py" "$1" "${2:-$here/docs/studio.png}"
