#!/bin/sh
# Every command of docs/LAB.md, in its order, in one folder; then the examples on ONNX files.  usage: lab.sh FACULA LAB.md HOOKS WALK_GRAPH SPLIT_GEMM
lab=$2 hooks=$3 walk_graph=$4 split_gemm=$5
. "$(dirname "$0")/expect.sh"
PATH=$(dirname "$facula"):$PATH
export PATH

awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$lab" >commands
check test "$(wc -l <commands)" -gt 12
while IFS= read -r command; do
    checks=$((checks + 1))
    sh -c "$command" >out 2>err || { wrong "$command"; sed 's/^/  | /' err | head -5; }
done <commands

# what the page promises
expect 0 'the same bits' facula verify gemm.onnx tiles.onnx
expect 0 'Params size (bytes): 26,499,616' facula summary zoo:googlenet --table
expect 0 '1,513,907,448' facula summary zoo:googlenet --convention all
expect 0 'Forward/backward pass size (MB): 51.63' facula summary zoo:googlenet --table

# the examples take ONNX files too
expect 0 '2 tensors' "$hooks" model.onnx
expect 0 'weight   conv1.weight' "$walk_graph" model.onnx
expect 0 'the same network' "$split_gemm" model.onnx 16

finish
