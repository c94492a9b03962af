#!/bin/sh
# Runs every test that draws random numbers with one seed after another: sh many_seeds.sh BUILD [SECONDS [FIRST [PROGRAM...]]]
# Each program gets so many seconds (10), and one run at least; FACULA_SEED=N PROGRAM repeats what failed.
build=$1 seconds=${2:-10} first=${3:-1}
[ -d "$build/tests" ] || { echo "usage: many_seeds.sh BUILD [SECONDS [FIRST [PROGRAM...]]]" >&2; exit 2; }
[ $# -gt 3 ] && shift 3 || set -- "$build"/tests/test_* "$build"/tests/fuzz/replay_*
corpus=$(dirname "$0")/fuzz/corpus
out=$(mktemp)
trap 'rm -f "$out"' EXIT
export FACULA_SEED FACULA_WISDOM=
failed=0
for program; do
    [ -f "$program" ] && [ -x "$program" ] && grep -q FACULA_SEED= "$program" || continue
    name=${program##*/} inputs="" runs=0
    [ ! -d "$corpus/${name#replay_}" ] || inputs=$corpus/${name#replay_}
    FACULA_SEED=$first until=$(($(date +%s) + seconds))
    while [ $runs -eq 0 ] || [ "$(date +%s)" -lt $until ]; do
        if ! "$program" $inputs >"$out" 2>&1; then
            echo "FAILED: FACULA_SEED=$FACULA_SEED $program $inputs"
            grep -a -i -m 6 error "$out"
            failed=$((failed + 1))
        fi
        runs=$((runs + 1)) FACULA_SEED=$((FACULA_SEED + 1))
    done
    echo "$name: $runs seeds"
done
exit $((failed > 0))
