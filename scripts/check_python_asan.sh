#!/bin/sh
# The Python package under AddressSanitizer and UBSan: no error, no leak of ours.
# usage: check_python_asan.sh [calls [COUNT [SEED]]]     random calls with wrong arguments, one exception each; 100000, seed 1
#        check_python_asan.sh tests [FILE...]            files of python/tests (all), each in a process of its own
# Everything is built with the sanitizers, in build-asan: 20 minutes on two cores.  With BUILD, the folder of a build that has
# FACULA_PYTHON, the extension alone is, over that build's library: the sanitizer sees all memory, but not each access of the
# library's.  PYTHON names the interpreter, which needs NumPy, and for tests pytest.  OpenCL's drivers are left out: they keep
# memory until the end, and their compilers take long under a sanitizer.
set -e
cd "$(dirname "$0")/.."
what=${1:-calls} python=${PYTHON:-python3} build=$BUILD
[ $# -eq 0 ] || shift
case $what in calls | tests) ;; *) sed -n '2,4p' "$0" | cut -c 3- >&2; exit 2 ;; esac
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
mkdir "$out/none"
preload="$(cc -print-file-name=libasan.so) $(cc -print-file-name=libubsan.so)"

# watched COMMAND...: with the sanitizers; what every process reports goes to files $out/report.*.
# PYTHONMALLOC: objects of Python's are blocks of their own.  malloc_fail: sizes that no machine has are an error to be told.
watched() {
    env LD_PRELOAD="$preload" PYTHONMALLOC=malloc PYTHONPATH="$out" OPENBLAS_NUM_THREADS=1 OCL_ICD_VENDORS="$out/none" LSAN_OPTIONS=exitcode=0 \
        ASAN_OPTIONS=log_path="$out/report":detect_leaks=1:allocator_may_return_null=1:max_allocation_size_mb=8192:fast_unwind_on_malloc=0:malloc_context_size=8 \
        UBSAN_OPTIONS=log_path="$out/report":print_stacktrace=1:halt_on_error=1 "$@"
}

# clean NAME STATUS: says so and fails where there was an error, or a leak whose memory our code asked for: CPython and NumPy keep
# some until the end
clean() {
    cat "$out"/report.* >"$out/reports" 2>/dev/null || : >"$out/reports"
    rm -f "$out"/report.*
    if grep -m 1 -A 40 'ERROR: AddressSanitizer\|runtime error' "$out/reports" || [ "$2" -ne 0 ]; then
        echo "check_python_asan: $1: FAILED (exit $2)"
        return 1
    fi
    awk '/leak of/ { if (ours) { print block; n++ } block = ""; ours = 0; frame = 0 }
         { block = block $0 "\n" }
         /^ *#[0-9]/ && $0 !~ /interceptor|libasan|memory\.c/ { if (++frame == 1 && /_facula/) ours = 1 }
         END { if (ours) { print block; n++ } exit n > 0 }' "$out/reports" >"$out/leaks" || {
        head -60 "$out/leaks"
        echo "check_python_asan: $1: FAILED: leaks of ours"
        return 1
    }
}

failed=0 status=0
if [ "$what" = calls ]; then
    calls=${1:-100000} seed=${2:-1}
    watched "$python" python/tests/wrong_calls.py "$calls" "$seed" || status=$?
    clean "$calls calls, seed $seed" $status || exit 1
    echo "check_python_asan: $calls calls, seed $seed: no error, no leak of ours"
    exit 0
fi
[ $# -gt 0 ] || set -- python/tests/test_*.py
for file; do
    status=0
    watched "$python" -m pytest -q -p no:cacheprovider "$file" >"$out/said" 2>&1 || status=$?
    [ $status -ne 5 ] || status=0       # nothing to run here
    [ $status -eq 0 ] || grep -m 12 '^FAILED\|^ERROR\|^E  ' "$out/said" || tail -n 20 "$out/said"
    clean "$file" $status && echo "$file: $(tail -n 1 "$out/said")" || failed=$((failed + 1))
done
[ $failed -eq 0 ] || { echo "check_python_asan: FAILED: $failed files"; exit 1; }
echo "check_python_asan: no error, no leak of ours"
