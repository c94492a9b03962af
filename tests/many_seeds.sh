#!/bin/sh
# Runs every test that draws random numbers with one seed after another, at low priority:
#     sh tests/many_seeds.sh BUILD [--seconds S | --seeds N] [--first F] [--jobs J] [--limit L]
#                            [PROGRAM...]
# --seconds S   each program gets so many seconds (10), and one run at least
# --seeds N     seeds F to F + N - 1, of all programs before the next one
# --first F     the first seed (1)
# --jobs J      so many at once (1), each on two cores
# --limit L     ends after so many seconds; what was not run is counted
# PROGRAM       a path; without: all in BUILD/tests.  FACULA_SEED=N PROGRAM repeats what failed.
# BUILD/many_seeds/NAME has a line for each seed, and what has one is not run again: the same
# command goes on where it was interrupted.  A program that was built since begins again.
# BUILD/many_seeds/NAME.SEED.log keeps what a failure printed.
usage() { sed -n '2,14s/^# //p' "$0" >&2; exit 2; }

unit() {        # PROGRAM SEED UNTIL: seeds from SEED on, until then; one at least
    program=$1 FACULA_SEED=$2 until=$3 inputs="" pin=""
    name=${program##*/}
    record=$RECORDS/$name
    [ ! -d "$CORPUS/${name#replay_}" ] || inputs=$CORPUS/${name#replay_}
    if [ "$CORES" -gt 1 ]; then
        pin="taskset -c $((${SLOT:-0} % CORES)),$(((${SLOT:-0} + 1) % CORES))"
    fi
    while :; do
        [ "$(date +%s)" -lt "$LIMIT" ] || return 255
        grep -q "^$FACULA_SEED " "$record" || run || return 255
        FACULA_SEED=$((FACULA_SEED + 1))
        [ "$(date +%s)" -lt "$until" ] || return 0
    done
}

run() {         # one line to the record: the seed, and what went wrong
    out=$record.$FACULA_SEED.log left=$((LIMIT - $(date +%s)))
    [ $left -lt 1200 ] || left=1200
    $pin nice -n 19 timeout $left "$program" $inputs >"$out" 2>&1
    rc=$?
    [ $rc -ne 130 ] || return 1
    if [ $rc -eq 124 ] && [ "$(date +%s)" -ge "$LIMIT" ]; then
        rm -f "$out"
        return 1
    fi
    if [ $rc -eq 0 ]; then
        echo "$FACULA_SEED ok" >>"$record"
        rm -f "$out"
        return 0
    fi
    why=$(grep -a -i 'error' "$out" | grep -a -v 'error: *$' | head -n 1)
    echo "$FACULA_SEED failed: ${why:-exit status $rc: $(tail -n 1 "$out")}" >>"$record"
}

export FACULA_SEED FACULA_WISDOM= POCL_WORK_GROUP_SPECIALIZATION=0
if [ "$1" = --unit ]; then      # how this script calls itself
    shift
    unit "$@"
    exit
fi

build=$1 seconds=10 seeds=0 first=1 jobs=1 limit=0
[ -d "$build/tests" ] || usage
shift
while [ $# -gt 1 ]; do
    case $1 in
    --seconds) seconds=$2 ;;
    --seeds) seeds=$2 ;;
    --first) first=$2 ;;
    --jobs) jobs=$2 ;;
    --limit) limit=$2 ;;
    *) break ;;
    esac
    shift 2
done
case $seconds$seeds$first$jobs$limit in *[!0-9]*) usage ;; esac
case $1 in -*) usage ;; esac
[ $# -gt 0 ] || set -- "$build"/tests/test_* "$build"/tests/fuzz/replay_*
RECORDS=$build/many_seeds CORPUS=$(dirname "$0")/fuzz/corpus CORES=$(nproc 2>/dev/null || echo 1)
LIMIT=$(($(date +%s) + (limit ? limit : 1000000000)))
if [ "$jobs" -eq 1 ] || ! command -v taskset >/dev/null; then CORES=1; fi
export RECORDS CORPUS CORES LIMIT
mkdir -p "$RECORDS"
plan=$(mktemp) chosen=$(mktemp)
trap 'rm -f "$plan" "$plan.log" "$chosen"' EXIT
trap 'exit 130' INT TERM

for program; do
    [ -f "$program" ] && [ -x "$program" ] && grep -q FACULA_SEED= "$program" || continue
    record=$RECORDS/${program##*/}
    [ "$record" -nt "$program" ] || : >"$record"
    echo "$program" >>"$chosen"
done
if [ "$seeds" -gt 0 ]; then
    awk -v first="$first" -v n="$seeds" '{ p[NR] = $0 } END {
        for (s = first; s < first + n; s++) for (k = 1; k <= NR; k++) print p[k], s, 0, 0 }' \
        "$chosen" >"$plan"
else
    awk -v first="$first" -v s="$seconds" '{ print $0, first, s, 1 }' "$chosen" >"$plan"
fi
xargs -P "$jobs" -n 4 --process-slot-var=SLOT sh -c \
    'sh "$0" --unit "$1" "$2" $(($3 ? $(date +%s) + $3 : 0))' "$0" <"$plan" 2>"$plan.log" ||
    [ "$limit" -gt 0 ] || { cat "$plan.log"; exit 130; }

failed=0 left=0
while read -r program; do
    name=${program##*/} inputs=""
    record=$RECORDS/$name
    [ ! -d "$CORPUS/${name#replay_}" ] || inputs=$CORPUS/${name#replay_}
    fell=$(grep -c ' failed: ' "$record")
    grep ' failed: ' "$record" | while read -r seed why; do
        echo "FACULA_SEED=$seed $program $inputs $why"
    done
    echo "$name: $(grep -c . "$record") seeds, $fell failed"
    failed=$((failed + fell))
    have=$(awk -v a="$first" -v n="$seeds" '$1 >= a && $1 < a + n' "$record" | wc -l)
    left=$((left + (seeds > have ? seeds - have : 0)))
done <"$chosen"
[ $left -eq 0 ] || echo "$left runs did not end within $limit seconds"
exit $((failed > 0))
