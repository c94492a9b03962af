#!/bin/sh
# Does this tree plan as an older one did?  Builds both, dumps the plans of all zoo networks (nodes, solvers, variants,
# estimates, layouts, addresses) and the texts of their OpenCL kernels for six devices, and compares.
#   sh scripts/compare_plans.sh REVISION [NETWORK...]
# Kernel texts are compared without comments and white space.  Exit code 1: something differs, and it is listed.
# Builds stay in build-plans/ for the next call.
set -eu
[ $# -ge 1 ] || { echo "usage: compare_plans.sh REVISION [NETWORK...]" >&2; exit 2; }
cd "$(dirname "$0")/.."
revision=$(git rev-parse --verify "$1^{commit}")
shift
work=$PWD/build-plans
mkdir -p "$work"

# dump SOURCE BUILD FOLDER NETWORKS...
dump() {
    source=$1 build=$2 folder=$3
    shift 3
    cmake -S "$source" -B "$build" -DFACULA_TESTS=ON >"$build.log" 2>&1 &&
        cmake --build "$build" -j "$(nproc)" --target plan_dump >>"$build.log" 2>&1 ||
        { tail -n 20 "$build.log"; exit 2; }
    rm -rf "$folder"
    for device in cpu:portable cpu:avx2 cpu:avx512 opencl sm_80 sm_90; do
        "$build/tests/plan_dump" "$folder" $device "$@"
    done
    for f in "$folder"/kernels/*.cl; do         # comments, white space and where a string is cut are no part of a kernel
        sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$f" | cpp -fpreprocessed -P -w - | tr -d ' \t\n' | sed 's/""//g' | sha256sum
    done | sort -u >"$folder/kernels.txt"
}

git worktree remove --force "$work/old" 2>/dev/null || rm -rf "$work/old"
git worktree add -q --detach "$work/old" "$revision"
trap 'git worktree remove --force "$work/old"' EXIT
dump "$work/old" "$work/build-old" "$work/dump-old" "$@"
dump . "$work/build-new" "$work/dump-new" "$@"
code=0
for f in "$work"/dump-old/*.txt; do
    name=${f##*/}
    if cmp -s "$f" "$work/dump-new/$name"; then continue; fi
    echo "$name: $(diff "$f" "$work/dump-new/$name" | grep -c '^[<>]') lines differ, the first:"
    diff "$f" "$work/dump-new/$name" | head -n 6 || true
    code=1
done
[ $code = 1 ] || echo "plans of $(ls "$work"/dump-new/*.txt | wc -l) files and $(wc -l <"$work/dump-new/kernels.txt") kernels: the same"
exit $code
