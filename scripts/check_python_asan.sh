#!/bin/sh
# Random calls of the Python package with wrong arguments under AddressSanitizer and UBSan: no error, no leak of ours, one
# exception each.  usage: check_python_asan.sh [CALLS [SEED [BUILD]]]; default 100000 calls, seed 1.
# Without BUILD everything is built with the sanitizers, in build-asan: 20 minutes on two cores.  With the folder of a build that
# has FACULA_PYTHON the extension alone is, over that build's library: the sanitizer sees all memory, but not each access of the
# library's.  PYTHON names the interpreter, which needs NumPy.
set -e
cd "$(dirname "$0")/.."
calls=${1:-100000} seed=${2:-1} build=$3 python=${PYTHON:-python3}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
if [ -z "$build" ]; then
    build=build-asan
    cmake -S . -B $build -DFACULA_SANITIZE=address,undefined -DFACULA_PYTHON=ON -DFACULA_TESTS=OFF >/dev/null
    cmake --build $build --target facula_python facula_python_files -j "$(nproc)" >/dev/null
    cp -r $build/python/facula "$out/facula"
else
    cp -r "$build/python/facula" "$out/facula"
    include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    libraries=$(pkg-config --libs libpng zlib cairo libcjson libturbojpeg 2>/dev/null || echo -lpng -lz -lcairo -lcjson -lturbojpeg)
    cc -shared -fPIC -fsanitize=address,undefined -fno-omit-frame-pointer -O1 -g1 -std=gnu11 -DPy_LIMITED_API=0x030B0000 -D_GNU_SOURCE \
        -isystem "$include" -Iinclude -I"$build/gen" python/src/*.c "$build/libfacula.a" -o "$out/facula/_facula.abi3.so" \
        -lprotobuf-nanopb $libraries -lm -lpthread -ldl
fi
preload="$(cc -print-file-name=libasan.so) $(cc -print-file-name=libubsan.so)"
log=$out/log
status=0
# PYTHONMALLOC: objects of Python's are blocks of their own.  malloc_fail: sizes that no machine has are an error to be told.
env LD_PRELOAD="$preload" PYTHONMALLOC=malloc PYTHONPATH="$out" OPENBLAS_NUM_THREADS=1 LSAN_OPTIONS=exitcode=0 \
    ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:max_allocation_size_mb=8192:fast_unwind_on_malloc=0:malloc_context_size=8 \
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
    "$python" python/tests/wrong_calls.py "$calls" "$seed" >"$out/said" 2>"$log" || status=$?
cat "$out/said"
if grep -q 'ERROR: AddressSanitizer\|runtime error' "$log" || [ $status -ne 0 ]; then
    grep -m 40 -A 40 'ERROR: AddressSanitizer\|runtime error' "$log" || tail -40 "$log"
    echo "check_python_asan: FAILED (seed $seed, exit $status)"
    exit 1
fi
# Of all leaks those count whose memory our code asked for: CPython and NumPy keep some until the end.
awk '/leak of/ { if (ours) { print block; n++ } block = ""; ours = 0; frame = 0 }
     { block = block $0 "\n" }
     /^ *#[0-9]/ && $0 !~ /interceptor|libasan|memory\.c/ { if (++frame == 1 && /_facula/) ours = 1 }
     END { if (ours) { print block; n++ } exit n > 0 }' "$log" >"$out/leaks" || {
    head -60 "$out/leaks"
    echo "check_python_asan: FAILED: leaks of ours (seed $seed)"
    exit 1
}
echo "check_python_asan: $calls calls, seed $seed: no error, no leak of ours"
