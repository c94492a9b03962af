#!/bin/sh
# facula export from outside: what it writes runs the same, and a failure leaves nothing behind.  usage: export.sh FACULA
. "$(dirname "$0")/expect.sh"

# ---- a network, its file, and that file again ----
expect 0 'opset 18, 12 nodes, 61.7 k parameters' "$facula" export zoo:lenet --seed 3 -o lenet.onnx
check grep -q 'random weights' out
expect 0 '"nodes"' "$facula" export lenet.onnx -o again.onnx --json
for key in '"file"' '"opset"' '"tensors"' '"parameters"' '"bytes"' '"data_bytes"' '"random"'; do
    expect 0 "$key" "$facula" export lenet.onnx -o again.onnx --json
done
expect 0 'logits' "$facula" run zoo:lenet --random --seed 3 --output logits=a.npy
expect 0 'logits' "$facula" run lenet.onnx --random --seed 3 --output logits=b.npy
expect 0 'logits' "$facula" run again.onnx --random --seed 3 --output logits=c.npy
check cmp a.npy b.npy
check cmp a.npy c.npy

# ---- options ----
expect 0 'f32[4,1,28,28]' sh -c "'$facula' export zoo:lenet --batch 4 -o four.onnx && '$facula' show four.onnx"
expect 0 'f32[N,1,28,28]' "$facula" show lenet.onnx
expect 0 'opset 13' "$facula" export zoo:lenet --opset 13 -o old.onnx
"$facula" show lenet.onnx >lenet.txt
expect 0 'lenet2.onnx' "$facula" export lenet.txt -o lenet2.onnx
expect 0 'opset 23' "$facula" export --problem 'rms_norm(f32[2,8], f32[8]) axis=-1' --opset 23 -o one.onnx
expect 0 'Gelu 20' "$facula" op --onnx

# ---- errors, and nothing that is left ----
rm -f ./*.onnx
expect 2 'which model?' "$facula" export -o x.onnx
expect 2 'where to?' "$facula" export zoo:lenet
expect 1 'no "nobody"' "$facula" export zoo:nobody -o x.onnx
expect 2 'from 13 to 26' "$facula" export zoo:lenet --opset 99 -o x.onnx
expect 1 'not open' "$facula" export --problem 'relu(f32[2,3])' --batch 5 -o x.onnx
expect 1 'max_pool2d_grad' "$facula" export --problem 'max_pool2d_grad(f32[1,1,4,4], f32[1,1,2,2]) kernel=2,2' -o x.onnx
expect 1 'none/x.onnx' "$facula" export zoo:lenet -o none/x.onnx
[ -w /dev/full ] && expect 1 '/dev/full' "$facula" export zoo:lenet -o /dev/full
check [ "$(find . -name '*onnx*' | wc -l)" -eq 0 ]

finish
