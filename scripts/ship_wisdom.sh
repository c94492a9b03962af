#!/bin/sh
# Puts what was measured on a device among what the library brings along: sh scripts/ship_wisdom.sh PARTS FILE...
# PARTS: of the device's key, those that matter, in its order, as in 'opencl, 132 units, sm_90': no card, no driver.  FILE: wisdom of
# facula tune.  Of its entries for devices with these parts, those go into src/backends/shipped.wisdom (SHIPPED names another file)
# whose choice was faster than that of estimates, by 3 % at least; of two for one problem the one of the higher version of its solver,
# else of the larger gain.  What is measured again takes the place of what shipped for that problem, or leaves it empty; entries of
# other problems and devices stay.
[ $# -ge 2 ] || { echo "usage: ship_wisdom.sh PARTS FILE..." >&2; exit 2; }
parts=$1 shipped=${SHIPPED:-$(dirname "$0")/../src/backends/shipped.wisdom}
shift
others=$(mktemp) && own=$(mktemp) || exit 1
trap 'rm -f "$others" "$own"' EXIT
awk -v parts="$parts" -v shipped="$shipped" -v others="$others" '
function fits(key,    want, have, n, m, i, j) {
    n = split(parts, want, ", "); m = split(key, have, ", ")
    if (want[1] != have[1]) return 0
    for (i = j = 1; i <= n; i++) {
        while (j <= m && have[j] != want[i]) j++
        if (j++ > m) return 0
    }
    return 1
}
function refuse(why) { print "ship_wisdom.sh: " FILENAME ": " why >"/dev/stderr"; bad = 1; exit 1 }
FNR == 1 && $0 != "facula wisdom 1" { refuse("not wisdom") }
FNR == 1 { ours = 0; next }
/^device / {
    key = substr($0, 8)
    ours = FILENAME == shipped ? key == parts : fits(key)
    if (ours && FILENAME != shipped) fitting++
    if (!ours && FILENAME == shipped) printf "\n%s\n", $0 >others
    next
}
!ours { if (NF && FILENAME == shipped) print >others; next }
NF < 5 || /^#/ { next }
{ problem = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ [^ ]+ /, "", problem) }
FILENAME != shipped && problem in old { delete old[problem]; delete line[problem] }
$3 < 0.97 * $4 {
    gain = $4 / $3
    if (problem in line && ($2 + 0 < version[problem] || ($2 + 0 == version[problem] && gain <= best[problem]))) next
    line[problem] = $0; version[problem] = $2 + 0; best[problem] = gain
    if (FILENAME == shipped) old[problem]
}
END {
    if (bad) exit 1
    if (!fitting) { print "ship_wisdom.sh: none of the files knows a device with the parts " parts >"/dev/stderr"; exit 1 }
    for (problem in line) print line[problem]
}' "$shipped" "$@" >"$own" || exit 1
{ echo "facula wisdom 1"; cat "$others"; [ -s "$own" ] && { printf '\ndevice %s\n' "$parts"; LC_ALL=C sort -k 5 "$own"; }; } >"$shipped.new" &&
    mv "$shipped.new" "$shipped" && echo "$(grep -c . "$own") entries of $parts in $shipped"
