#!/bin/sh
# Runs what make.sh put here, and says in at most a hundred lines what came of it:
#     sh all.sh SECONDS FROM TO JOBS [LIMIT]
# SECONDS       each fuzzer runs for so long, from new seeds (0: none runs)
# FROM TO       each test of random problems runs with these seeds (TO below FROM: none runs)
# JOBS          so many at once
# LIMIT         the tests end so many seconds after the fuzzers (none)
# summary.txt holds what is printed; failed/ the outputs and inputs that belong to failures.
# Not 0: something failed.
here=$(cd "$(dirname "$0")" && pwd)
case $# in 4 | 5) ;; *) sed -n '2,9s/^# //p' "$0" >&2; exit 2 ;; esac
cd "$here" || exit 2
rm -rf summary.txt failed fuzz/fuzz build/many_seeds
mkdir -p failed
# no device is looked for, and what a machine keeps of its own has no say
export OCL_ICD_VENDORS=/nonexistent FACULA_WISDOM= FACULA_CACHE= \
    LSAN_OPTIONS=suppressions=$here/tests/lsan.supp:print_suppressions=0
rc=0 log=$(mktemp)
trap 'rm -f "$log"' EXIT

if [ "$1" -gt 0 ]; then
    LD_LIBRARY_PATH=$here/lib/fuzz sh tests/fuzz_all.sh fuzz --seconds "$1" --jobs "$4" \
        >"$log" 2>&1 || rc=1
    grep -v '^    ' "$log" | cut -c 1-200 >>summary.txt
    sed -n 's/^\([a-z]*\): FAILED.*/\1/p' "$log" | while read -r name; do
        cp fuzz/fuzz/"$name".log fuzz/fuzz/"$name"-* failed 2>/dev/null
    done
fi
seeds=$(($3 - $2 + 1))
if [ $seeds -gt 0 ]; then
    LD_LIBRARY_PATH=$here/lib/build sh tests/many_seeds.sh build --seeds $seeds --first "$2" \
        --jobs "$4" ${5:+--limit "$5"} >"$log" 2>&1 || rc=1
    grep -E '^FACULA_SEED|did not end' "$log" | cut -c 1-200 | head -n 30 >>summary.txt
    awk '/ seeds, [0-9]+ failed$/ { runs += $2; fell += $4; n++
             if ($4) bad = bad $1 $4 " " }
         END { printf "%d programs: %d runs, %d failed %s\n", n, runs, fell, bad }' "$log" \
        >>summary.txt
    awk '/ seeds, [0-9]+ failed$/ { printf "%s%s", $1, $2 (++n % 8 ? "  " : "\n") }
         END { if (n % 8) print "" }' "$log" >>summary.txt
    cp build/many_seeds/*.log failed 2>/dev/null
fi
head -n 100 summary.txt
exit $rc
