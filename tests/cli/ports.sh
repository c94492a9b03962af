#!/bin/sh
# Models of many inputs and outputs, and nodes of many operands: every verb takes them, as decoders with a cache have two tensors a
# layer.  usage: ports.sh FACULA
. "$(dirname "$0")/expect.sh"

# wide N: N inputs, joined, doubled, and cut into N outputs
wide() {
    seq 1 "$1" | sed 's/.*/input x& f32[2,3]/'
    echo "c = concat($(seq -s ', ' 1 "$1" | sed 's/[0-9][0-9]*/x&/g'))"
    echo 'd = add(c, c)'
    echo "$(seq -s ', ' 1 "$1" | sed 's/[0-9][0-9]*/y&/g') = split(d) parts=$1"
    seq 1 "$1" | sed 's/.*/output y& = y&/'
}
wide 70 >m.txt
wide 300 >wide.txt
expect 0 'nodes' "$facula" export m.txt -o m.onnx

for m in m.txt m.onnx wide.txt; do
    rm -rf outs
    expect 0 'y70 f32[2x3] -> outs/y70.npy' "$facula" run $m --random --output-dir outs
    checks=$((checks + 1))
    [ "$(ls outs | wc -l)" -ge 70 ] || wrong "$m: not every output was written"
    expect 0 'median' "$facula" bench $m --runs 1 --verify
    expect 0 'runs/s by 2 callers' "$facula" bench $m --callers 2 --seconds 0.01
    expect 0 'tensors of 1 run' "$facula" activations $m --random
    expect 0 'the model and what the steps do of it' "$facula" profile $m --seconds 0.01
    expect 0 'same' "$facula" verify $m $m
    expect 4 'no difference found' "$facula" verify $m $m --mode data
    expect 0 'the same: 3 nodes' "$facula" diff $m $m
    expect 0 'parameters' "$facula" summary $m
    expect 0 'nodes' "$facula" edit $m -o out.onnx --simplify --reorder
    expect 0 'nodes' "$facula" edit $m -o half.onnx --dtype f16 --keep-ports
done
expect 0 'entries in w.txt' "$facula" tune m.txt --seconds 0.1 --wisdom w.txt
echo '2 default infer 0.01' >asked
expect 0 '"median_ms"' sh -c "'$facula' bench m.txt --serve <asked"

# inputs by name, and sizes of more of them than there are bits in a word
seq 1 70 | sed 's/.*/--input x&=outs\/y1.npy/' >given
# shellcheck disable=SC2046
expect 0 'y70 f32[2x3]' "$facula" run m.txt $(cat given)
seq 1 70 | sed 's/.*/--shape x&=4x3/' >given
# shellcheck disable=SC2046
expect 0 'y70 f32[4x3]' "$facula" run m.txt --random $(cat given)
expect 1 'x70 is given twice' "$facula" run m.txt --input x70=outs/y1.npy --input x70=outs/y2.npy; one_line
finish
