#!/bin/sh
# Runs every test that draws random numbers with one seed after another, one program at a time, at
# low priority:
#     sh tests/many_seeds.sh BUILD [--seconds S | --seeds N] [--first F] [PROGRAM...]
# --seconds S   each program gets so many seconds (10), and one run at least
# --seeds N     seeds F to F + N - 1
# --first F     the first seed (1)
# PROGRAM       a path; without: all in BUILD/tests.  FACULA_SEED=N PROGRAM repeats what failed.
# BUILD/many_seeds/NAME has a line for each seed, and what has one is not run again: the same
# command goes on where it was interrupted.  A program that was built since begins again.
usage() { sed -n '2,11s/^# //p' "$0" >&2; exit 2; }
build=$1 seconds=10 seeds=0 first=1
[ -d "$build/tests" ] || usage
shift
while [ $# -gt 1 ]; do
    case $1 in
    --seconds) seconds=$2 ;;
    --seeds) seeds=$2 ;;
    --first) first=$2 ;;
    *) break ;;
    esac
    shift 2
done
case $seconds$seeds$first in *[!0-9]*) usage ;; esac
case $1 in -*) usage ;; esac
[ $# -gt 0 ] || set -- "$build"/tests/test_* "$build"/tests/fuzz/replay_*
corpus=$(dirname "$0")/fuzz/corpus
records=$build/many_seeds
mkdir -p "$records"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
trap 'exit 130' INT TERM
export FACULA_SEED FACULA_WISDOM= POCL_WORK_GROUP_SPECIALIZATION=0
failed=0

run() {         # one line to the record: the seed, and what went wrong
    nice -n 19 timeout 1200 "$program" $inputs >"$out" 2>&1
    rc=$?
    [ $rc -ne 130 ] || exit 130
    if [ $rc -eq 0 ]; then
        echo "$FACULA_SEED ok" >>"$record"
        return
    fi
    why=$(grep -a -i 'error' "$out" | grep -a -v 'error: *$' | head -n 1)
    echo "$FACULA_SEED failed: ${why:-exit status $rc: $(tail -n 1 "$out")}" >>"$record"
}

for program; do
    [ -f "$program" ] && [ -x "$program" ] && grep -q FACULA_SEED= "$program" || continue
    name=${program##*/} inputs=""
    record=$records/$name
    [ ! -d "$corpus/${name#replay_}" ] || inputs=$corpus/${name#replay_}
    [ "$record" -nt "$program" ] || : >"$record"
    FACULA_SEED=$first until=$(($(date +%s) + seconds))
    while :; do
        grep -q "^$FACULA_SEED " "$record" || run
        FACULA_SEED=$((FACULA_SEED + 1))
        if [ $seeds -gt 0 ]; then [ $FACULA_SEED -lt $((first + seeds)) ] || break
        else [ "$(date +%s)" -lt $until ] || break; fi
    done
    fell=$(grep -c ' failed: ' "$record")
    grep ' failed: ' "$record" | while read -r seed why; do
        echo "FACULA_SEED=$seed $program $inputs $why"
    done
    echo "$name: $(grep -c . "$record") seeds, $fell failed"
    failed=$((failed + fell))
done
exit $((failed > 0))
