#!/bin/sh
# Builds the library and the tests of its kernels for aarch64 (NEON) and runs them under qemu.
# usage: check_aarch64.sh BUILD [TEST...]     needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user, cmake
# Debian's arm64 packages of what the build links with are unpacked into BUILD/root; the system is not touched.
set -eu
build=$1
shift
source=$(cd "$(dirname "$0")/.." && pwd)
# which allocations fail and where concats write has nothing to do with the processor, and takes long here
kernels=$(cd "$source/tests/cpu" && ls test_cpu_*.c | sed 's/\.c$//' | grep -v -x -e test_cpu_memory -e test_cpu_move -e test_cpu_concat)
tests=${*:-"$kernels test_linear_blocks test_matmul_nbits test_threads test_cores test_tensor test_tensor_windows test_convert test_ops test_op_table test_ops_empty test_program test_program_calls
    test_pass_attention test_passes_conv test_norm_epilogue test_golden_nn"}
mkdir -p "$build/apt/lists/partial" "$build/apt/archives/partial" "$build/root"
build=$(cd "$build" && pwd)

if [ ! -e "$build/root/unpacked" ]; then
    apt() {
        apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
            -o Dir::State="$build/apt" -o Dir::State::status=/dev/null -o Dir::State::lists="$build/apt/lists" \
            -o Dir::Cache="$build/apt" -o APT::Sandbox::User=root "$@"
    }
    apt update && (cd "$build/apt" && apt download libcmocka-dev libcmocka0 libnanopb-dev libcjson-dev libcjson1 zlib1g-dev zlib1g) ||
        { echo "aarch64: skipped, no arm64 packages from Debian here"; exit 0; }
    for deb in "$build"/apt/*.deb; do dpkg-deb -x "$deb" "$build/root"; done
    touch "$build/root/unpacked"
fi

lib=$build/root/usr/lib/aarch64-linux-gnu
export PKG_CONFIG_LIBDIR="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$build/root"
cmake -S "$source" -B "$build" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_FIND_ROOT_PATH="$build/root" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER \
    -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DOPENCL_INCLUDE= \
    -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$lib" -DCMAKE_C_FLAGS="-Werror" ${CMAKE_OPTIONS:-}
have=""
for t in $tests; do [ -z "$(find "$source/tests" -name "$t.c")" ] || have="$have $t"; done
cmake --build "$build" -j "$(nproc)" --target $have

export FACULA_WISDOM="" QEMU_LD_PREFIX=/usr/aarch64-linux-gnu QEMU_SET_ENV="LD_LIBRARY_PATH=$lib" build
printf '%s\n' $have | xargs -P "$(nproc)" -I{} sh -c 'if timeout 900 qemu-aarch64 "$build/tests/{}" >"$build/{}.log" 2>&1
    then echo "ok      {}"; else echo "FAILED  {}"; tail -n 40 "$build/{}.log"; exit 1; fi'
