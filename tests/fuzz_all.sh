#!/bin/sh
# Runs fuzzers from new seeds, several at once; a line for each, and not 0 where one failed:
#     sh tests/fuzz_all.sh BUILD [--seconds S] [--jobs J] [--seed N] [NAME...]
# BUILD         made with -DFACULA_FUZZ=ON -DCMAKE_C_COMPILER=clang
# --seconds S   each fuzzer runs for so long (60)
# --jobs J      so many at once (as there are cores)
# --seed N      where random numbers begin (0: elsewhere each time)
# NAME          onnx, graph, ...; without: all
# BUILD/fuzz/NAME has the inputs found, NAME.log what the fuzzer said, NAME-crash-... what failed;
# BUILD/tests/fuzz/fuzz_NAME FILE repeats that.
usage() { sed -n '2,11s/^# //p' "$0" >&2; exit 2; }

one() {         # NAME
    program=$BUILD/tests/fuzz/fuzz_$1 at=$BUILD/fuzz/$1
    mkdir -p "$at"
    "$BUILD/tests/fuzz/replay_$1" --write "$at" >"$at.log" 2>&1 ||
        { echo "$1: FAILED: its seeds cannot be written"; return 1; }
    [ ! -d "$CORPUS/$1" ] || cp "$CORPUS/$1"/* "$at"
    nice -n 10 "$program" -seed="$SEED" -max_total_time="$SECONDS_EACH" -rss_limit_mb=3000 \
        -timeout=60 -print_final_stats=1 -artifact_prefix="$at-" "$at" >"$at.log" 2>&1
    rc=$?
    ran=$(sed -n 's/^stat::number_of_executed_units: *//p' "$at.log")
    seed=$(sed -n 's/^INFO: Seed: *//p' "$at.log")
    if [ $rc -eq 0 ]; then
        echo "$1: ${ran:-?} inputs from seed ${seed:-?}, ok"
        return 0
    fi
    why=$(grep -a -m 1 -E 'SUMMARY|ERROR|runtime error|error while loading' "$at.log")
    echo "$1: FAILED after ${ran:-?} inputs from seed ${seed:-?}: ${why:-exit status $rc}"
    sed -n 's/.*Test unit written to /    /p' "$at.log"
    return 1
}

if [ "$1" = --one ]; then       # how this script calls itself
    one "$2"
    exit
fi
BUILD=$1 SECONDS_EACH=60 SEED=0 jobs=$(nproc 2>/dev/null || echo 1)
[ -d "$BUILD/tests/fuzz" ] || usage
shift
while [ $# -gt 1 ]; do
    case $1 in
    --seconds) SECONDS_EACH=$2 ;;
    --jobs) jobs=$2 ;;
    --seed) SEED=$2 ;;
    *) break ;;
    esac
    shift 2
done
case $SECONDS_EACH$jobs$SEED in *[!0-9]*) usage ;; esac
case $1 in -*) usage ;; esac
if [ $# -eq 0 ]; then
    for program in "$BUILD"/tests/fuzz/fuzz_*; do
        if [ -f "$program" ] && [ -x "$program" ]; then set -- "$@" "${program##*/fuzz_}"; fi
    done
fi
[ $# -gt 0 ] || { echo "no fuzzers in $BUILD/tests/fuzz: was it made with FACULA_FUZZ?" >&2; exit 2; }
CORPUS=$(dirname "$0")/fuzz/corpus
export BUILD SECONDS_EACH SEED CORPUS
printf '%s\n' "$@" | xargs -P "$jobs" -n 1 sh "$0" --one || exit 1
