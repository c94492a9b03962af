#!/bin/sh
# Lays out C sources by clang-format-14 and .clang-format: format.sh [FILE...], without files all of them.
# Tables that scripts made are left as they are.
set -eu
cd "$(dirname "$0")/.."
made='^(tests/golden/|src/text/normal_tables\.h|src/base/unicode/unicode_tables\.h|src/data/image/imagenet_names\.c|src/onnx/defaults\.[ch])'
if [ $# = 0 ]; then
    git ls-files 'src/*.[ch]' 'cli/*.[ch]' 'include/*.h' 'tests/*.[ch]' 'bench/*.[ch]' 'examples/*.[ch]' 'python/src/*.[ch]'
else
    printf '%s\n' "$@"
fi | grep -vE "$made" | xargs -n 50 -P "$(nproc)" "${CLANG_FORMAT:-clang-format-14}" -i
