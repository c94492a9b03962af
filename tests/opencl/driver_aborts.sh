#!/bin/sh
# driver_aborts.sh FACULA TESTS PROGRAMS: a driver that ends the process that opens it (PoCL does where there is no /sys) fails no
# test and no command that only looks for devices.  TESTS: the folder of the sources; PROGRAMS: that of what was built of them.
facula=$1 sources=$2 programs=$3
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
failed=0 run=0
bad() { echo "FAILED: $*"; failed=$((failed + 1)); }

echo '#include <stdlib.h>
__attribute__((constructor)) static void end(void) { abort(); }' | cc -shared -fPIC -x c -o "$dir/ends.so" - || exit 77
echo "$dir/ends.so" >"$dir/ends.icd"
export OCL_ICD_VENDORS="$dir" OCL_ICD_FILENAMES="" FACULA_CACHE="$dir/cache"

"$facula" devices >"$dir/devices" || bad "facula devices: exit $?"
grep -q '^opencl .*ends the process' "$dir/devices" || { cat "$dir/devices"; echo "skipped: no OpenCL"; exit 77; }

# every test that may open such a device: its source, or a header that it includes, speaks of it
headers=$(grep -l opencl "$sources"/*/*.h | sed 's,.*/,,; s/\./\\./' | paste -sd '|' -)
for source in $(grep -lE "\"opencl|\"($headers)\"" "$sources"/*/test_*.c); do
    program=$programs/$(basename "$source" .c)
    [ -x "$program" ] || continue
    run=$((run + 1))
    "$program" >"$dir/out" 2>&1
    code=$?
    [ $code -eq 0 ] || [ $code -eq 77 ] || { bad "$program: exit $code"; tail -n 5 "$dir/out"; }
done
echo "$run programs, $failed failures"
[ "$failed" -eq 0 ]
