#!/bin/sh
# The OpenCL device from outside: sh opencl.sh FACULA.  What it says of itself and where there is none; answers and trainings like
# the cpu's, a training that moves from one to the other; the second start compiles nothing.  77, which means skipped, where no
# device can be used.
facula=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export FACULA_CACHE="$dir/cache"
fails=0
bad() { echo "FAILED: $*"; fails=$((fails + 1)); }

"$facula" devices > "$dir/devices" || bad "devices"
grep -q '^opencl:0' "$dir/devices" || { cat "$dir/devices"; exit 77; }
for fact in platform driver memory 'compute units' 'doubles: '; do grep -q "$fact" "$dir/devices" || bad "devices does not tell: $fact"; done

# without a driver; a loader that knows its drivers by other means still has them
if ! OCL_ICD_VENDORS="$dir" "$facula" devices | grep -q '^opencl:0'; then
    OCL_ICD_VENDORS="$dir" "$facula" run zoo:lenet --random --device opencl 2> "$dir/none" && bad "a device without a driver"
    grep -q pocl-opencl-icd "$dir/none" || bad "it does not say what to install: $(cat "$dir/none")"
fi

# a driver that is installed, but that the loader does not know
mkdir "$dir/lib"
if echo 'int facula_test;' | cc -shared -fPIC -x c -o "$dir/lib/libnvidia-opencl.so.1" - 2> /dev/null && ! grep -q NVIDIA "$dir/devices"; then
    LD_LIBRARY_PATH="$dir/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$facula" devices > "$dir/hint"
    grep -q 'echo libnvidia-opencl.so.1 > /etc/OpenCL/vendors/' "$dir/hint" || bad "no hint at a driver that is not registered"
    grep -q 'not registered' "$dir/devices" && bad "a hint at a driver that is not there"
    LD_LIBRARY_PATH="$dir/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$facula" devices --json | grep -A 1 '"unregistered"' | grep -q libnvidia ||
        bad "no unregistered driver for machines"
fi

# devices that are not there: one line that names it
for name in opencl:99 opencl:-1 'opencl:no such' openclx ''; do
    "$facula" run zoo:lenet --random --device "$name" 2> "$dir/bad" && bad "device $name"
    [ "$(wc -l < "$dir/bad")" -eq 1 ] && grep -qF "$name" "$dir/bad" && grep -qE 'there are: 0 \(|it has: cpu' "$dir/bad" ||
        bad "device $name: $(cat "$dir/bad")"
done

same() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; exit !(d <= t && -d <= t) }'; }
loss() { tail -n 1 "$1" | sed 's/.*"test_loss":\([-0-9.e]*\).*/\1/'; }

"$facula" run zoo:lenet --random --seed 3 --device opencl --output "logits=$dir/a.npy" --verbose > /dev/null 2> "$dir/verbose" || bad "run"
grep -q 'steps on opencl:0' "$dir/verbose" || bad "run --verbose: $(cat "$dir/verbose")"
"$facula" bench zoo:lenet --device opencl --runs 2 --memory --profile --verify > "$dir/bench" || bad "bench: $(cat "$dir/bench")"
for what in 'parameters and results' 'taken from the driver' 'solver'; do grep -q "$what" "$dir/bench" || bad "bench does not tell: $what"; done

# no more of the device than one is given
"$facula" run zoo:lenet --random --device opencl --memory-limit 100k > /dev/null 2> "$dir/limit" && bad "a limit of memory"
[ "$(wc -l < "$dir/limit")" -eq 1 ] && grep -q 'of the limit of 100000 are held (held for tensors' "$dir/limit" || bad "limit: $(cat "$dir/limit")"
"$facula" run zoo:lenet --random --device opencl --memory-limit 2M > /dev/null || bad "a limit that is kept"

# a training on the device, and one that moves at half its time, either way
half() { "$facula" train toy:xor --threads 1 --epochs 20 --schedule constant --device "$1" --out "$dir/from-$1" --json > /dev/null &&
    "$facula" train --resume "$dir/from-$1" --epochs 40 --threads 1 --device "$2" --json > "$dir/from-$1.log"; }
for device in cpu opencl; do
    "$facula" train toy:xor --threads 1 --epochs 40 --schedule constant --device $device --out "$dir/$device" --json > "$dir/$device.log" ||
        bad "train on $device"
done
half cpu opencl || bad "a training of the cpu goes on on opencl"
half opencl cpu || bad "a training of opencl goes on on the cpu"
for other in opencl from-cpu from-opencl; do
    same "$(loss "$dir/cpu.log")" "$(loss "$dir/$other.log")" 1e-5 || bad "losses $(loss "$dir/cpu.log") and, $other, $(loss "$dir/$other.log")"
done

# what was compiled is found: a second start writes nothing new
"$facula" run zoo:lenet --random --device opencl > /dev/null || bad "the first start"
before=$(find "$FACULA_CACHE" -name '*.bin' | wc -l)
"$facula" run zoo:lenet --random --device opencl > /dev/null || bad "the second start"
after=$(find "$FACULA_CACHE" -name '*.bin' | wc -l)
[ "$after" -eq "$before" ] && [ "$after" -gt 0 ] || bad "the cache had $before programs, then $after"

# what is damaged is made again, and where nothing can be kept all works without
"$facula" run zoo:lenet --random --seed 3 --device opencl --output "logits=$dir/b.npy" > /dev/null || bad "a warm start"
for entry in "$FACULA_CACHE"/*.bin; do
    head -c 100 "$entry" > "$dir/torn"
    cp "$dir/torn" "$entry"
done
"$facula" run zoo:lenet --random --seed 3 --device opencl --output "logits=$dir/c.npy" > /dev/null || bad "a start with damaged entries"
[ "$(find "$FACULA_CACHE" -name '*.bin' -size -101c | wc -l)" -lt "$after" ] || bad "damaged entries stay"
FACULA_CACHE=/dev/null/none "$facula" run zoo:lenet --random --seed 3 --device opencl --output "logits=$dir/d.npy" > /dev/null ||
    bad "a start without a cache"
for other in b c d; do cmp "$dir/a.npy" "$dir/$other.npy" || bad "logits differ: $other"; done

"$facula" op --support > "$dir/support" || bad "op --support"
grep -q '^relu  *[0-9]* of [0-9]*  *[1-9][0-9]* of ' "$dir/support" || bad "op --support: $(grep ^relu "$dir/support")"

[ $fails -eq 0 ] && echo "all well"
exit $fails
