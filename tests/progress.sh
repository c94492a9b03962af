#!/bin/sh
# scripts/progress.sh: what it says of builds that end well and badly.  usage: progress.sh SOURCE
source=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
wrong() { echo "FAILED: $*"; sed 's/^/  | /' "$dir/out"; bad=1; }
run() { sh "$source/scripts/progress.sh" "$dir/log" 'building it' sh -c "$1" >"$dir/out" 2>&1; }

run 'for p in 3 1 26 24 51 100; do printf "[%3d%%] Building C object x.c.o\n" $p; done; echo "[zzz%] odd"; echo plain >&2' ||
    wrong "a build that ends well"
[ "$(grep -c 'building it: [0-9]* %' "$dir/out")" -eq 4 ] || wrong "not a line each quarter"
grep -q '^building it: done in [0-9]* s$' "$dir/out" || wrong "does not say that it is done"
grep -q '^plain$' "$dir/log" || wrong "the log lacks what was written to stderr"
run 'i=0; while [ $i -lt 300 ]; do i=$((i + 1)); echo "[$i/300] Building"; done' || wrong "ninja"
grep -q 'building it: 75 %' "$dir/out" || wrong "ninja's numbers are not read"
run 'i=0; while [ $i -lt 90 ]; do i=$((i + 1)); echo "line $i"; done; exit 3' && wrong "a failure is taken for success"
grep -q '^building it failed; the end of ' "$dir/out" || wrong "does not say that it failed"
[ "$(grep -c '^line' "$dir/out")" -eq 40 ] && grep -q '^line 90$' "$dir/out" ||
    wrong "not the last 40 lines"
# not everywhere is there a terminal to be had
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    TERM=xterm script -qec "sh '$source/scripts/progress.sh' '$dir/log' 'building it' echo '[ 37%] x'" /dev/null >"$dir/out" </dev/null
    tr '\r' '\n' <"$dir/out" | grep -q '^building it: 37 %' || wrong "on a terminal"
    [ "$(grep -c . "$dir/out")" -eq 1 ] || wrong "more than one line on a terminal"
fi
[ $bad -eq 0 ] && echo ok
exit $bad
