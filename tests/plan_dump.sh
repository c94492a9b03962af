#!/bin/sh
# Plans and kernel texts are the same each time, on devices of every kind, and hold what they should: plan_dump.sh PROGRAM
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for d in opencl sm_80 sm_90; do
    "$program" "$work/a" $d resnet18 || { echo "skipped: there is no OpenCL device"; exit 77; }
done
for d in portable avx2 avx512; do "$program" "$work/a" cpu:$d resnet18; done
for d in opencl sm_80 sm_90; do "$program" "$work/b" $d resnet18; done
for d in portable avx2 avx512; do "$program" "$work/b" cpu:$d resnet18; done
diff -r "$work/a" "$work/b"
fail() { echo "FAILED: $1"; exit 1; }
count=$(grep -l '^== resnet18 training batch 8' "$work"/a/*.txt | wc -l)
[ "$count" = 16 ] || fail "$count files with a training"
holds() { grep -q "$2" "$work/a/$1.txt" || fail "$1 has no $2"; }
holds sm_90.tf32 '^run conv/wgmma'
holds sm_80.tf32 '^run conv/tile'
holds avx512.f32 '^run conv2d/winograd'
if grep -q wgmma "$work/a/sm_80.tf32.txt"; then fail "wgmma on sm_80"; fi
head -qn 1 "$work"/a/kernels/*.cl | grep -q '^// .*-D' || fail "kernels have no options"
# a launch that a plan makes later still knows its operand: here, that rows begin at multiples of 16 bytes
cat > "$work/attention.graph" <<'END'
input q f32[16,12,1024,64]
input k f32[16,12,1024,64]
input v f32[16,12,1024,64]
y = attention(q, k, v) scale=0.125
output y = y
END
"$program" "$work/d" sm_90 "$work/attention.graph"
packs=$(grep -l '^kernel void pack' "$work"/d/kernels/*.cl) || fail "no pack for attention"
for f in $packs; do grep -q '^#define ALIGNED' "$f" || fail "$f does not know its operand"; done
# a change is seen
"$program" "$work/c" sm_90 resnet50
if cmp -s "$work/a/sm_90.tf32.txt" "$work/c/sm_90.tf32.txt"; then fail "two networks have one plan"; fi
echo "plans: the same"
