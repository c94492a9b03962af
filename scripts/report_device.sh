#!/bin/sh
# What this computer's OpenCL device is and does, for a report to the project: sh scripts/report_device.sh [DEVICE] > report.txt
# DEVICE as in `facula devices` (default: opencl).  Measures for some minutes; tuned choices go into DEVICE.wisdom beside it, which
# `facula --wisdom` reads; those that estimates miss stand at the end of the report, as the project would ship them.  At last it says
# on the terminal what to send where.  FACULA names the command (default: build/facula), MOST how many candidates of a problem are
# tried (default: 24, those of the least estimates; 0: all).
device=${1:-opencl} facula=${FACULA:-build/facula} most=${MOST:-24}
wisdom=$(printf %s "$device" | tr ':/ ' '___').wisdom
say() { printf '\n## %s\n\n' "$1"; shift; "$@" 2>&1; }
"$facula" version || { echo "report_device.sh: $facula does not run; make it first (make), or say where it is: FACULA=..." >&2; exit 1; }
say "devices" "$facula" devices
say "peaks" "$facula" peaks --device "$device"
for problem in 'matmul(f32[2048,2048], f32[2048,2048])' 'conv2d(f32[16,64,56,56], f32[64,64,3,3], f32[64]) pad=1,1,1,1 {relu}' \
        'conv2d(f32[16,256,56,56], f32[64,256,1,1], f32[64]) {relu}' 'conv2d(f32[16,96,56,56], f32[96,1,3,3], f32[96]) pad=1,1,1,1 groups=96' \
        'add(f32[4096,4096], f32[4096,4096])'; do
    say "$problem" "$facula" bench "$problem" --device "$device" --verify --seconds 0.5
done
for network in resnet18 mobilenet_v2; do
    for batch in 1 16; do
        say "$network, batch $batch, as estimated" "$facula" bench "zoo:$network" --device "$device" --batch "$batch" --seconds 1
        say "tuning" "$facula" tune "zoo:$network" --device "$device" --batch "$batch" --wisdom "$wisdom" --most "$most"
        say "$network, batch $batch, tuned" "$facula" profile "zoo:$network" --device "$device" --batch "$batch" --wisdom "$wisdom" --top 20
    done
done
say "resnet18, a training step of batch 16" "$facula" bench zoo:resnet18 --train --device "$device" --batch 16 --seconds 1
say "tuning" "$facula" tune zoo:resnet18 --train --device "$device" --batch 16 --wisdom "$wisdom" --most "$most"
say "resnet18, a training step of batch 16, tuned" "$facula" bench zoo:resnet18 --train --device "$device" --batch 16 --wisdom "$wisdom" --seconds 1
say "wisdom that estimates miss" "$facula" tune --export --faster --device "$device" --wisdom "$wisdom" -o "$wisdom.faster"
cat "$wisdom.faster"
echo "report_device.sh: done.  Please send this report as an issue of the project; all that was measured is in $wisdom" >&2
