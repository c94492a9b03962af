#!/bin/sh
# Makes a folder with fuzzers and tests of random problems that runs on another x86-64 Linux, where
# no compiler is:
#     sh tests/carry/make.sh DIR FUZZ_BUILD BUILD PROGRAM...
# FUZZ_BUILD    made with -DFACULA_FUZZ=ON -DFACULA_INSIDE=ON -DCMAKE_C_COMPILER=clang
# BUILD         made with -DFACULA_TESTS=ON -DFACULA_INSIDE=ON
# PROGRAM       a path: tests that draw random numbers and need no other file
# With FACULA_INSIDE the code is there once; -DFACULA_CAIRO=OFF leaves twenty libraries out.
# Then copy DIR, and there: sh all.sh SECONDS FROM TO JOBS
[ $# -ge 4 ] || { sed -n '2,10s/^# //p' "$0" >&2; exit 2; }
set -eu
here=$(dirname "$0")/..
dir=$1 fuzz=$2 build=$3
shift 3
rm -rf "$dir"
mkdir -p "$dir/fuzz/tests/fuzz" "$dir/build/tests" "$dir/lib/fuzz" "$dir/lib/build" "$dir/tests/fuzz"
cp "$here/many_seeds.sh" "$here/fuzz_all.sh" "$here/lsan.supp" "$dir/tests"
cp "$here/carry/all.sh" "$dir"
cp -R "$here/fuzz/corpus" "$dir/tests/fuzz"
for f in "$fuzz"/tests/fuzz/fuzz_* "$fuzz"/tests/fuzz/replay_*; do
    [ -f "$f" ] && [ -x "$f" ] || continue
    cp "$f" "$dir/fuzz/tests/fuzz"
done
cp "$@" "$dir/build/tests"

# what ldd names, but for the C library, which goes with the other machine's loader
libraries() {   # FOLDER PROGRAM...
    to=$1
    shift
    ldd "$@" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
        grep -v -E '/(ld-linux|lib(c|m|pthread|dl|rt|resolv|util))[-.]' |
        while read -r f; do cp -L "$f" "$to"; done
}
libraries "$dir/lib/fuzz" "$dir"/fuzz/tests/fuzz/*
libraries "$dir/lib/build" "$dir"/build/tests/*
find "$dir" -type f \( -name '*.so*' -o -name 'fuzz_*' -o -name 'replay_*' -o -name 'test_*' \) \
    -exec strip --strip-debug {} + 2>/dev/null || true
du -sh "$dir"
