#!/bin/sh
# diff: exit codes, lines, what is told and what is not, JSON.
# usage: diff.sh path/to/facula
. "$(dirname "$0")/expect.sh"

expect 0 'the same: ' "$facula" diff zoo:lenet zoo:lenet
check test "$(wc -l <out)" -eq 1
expect 1 'different: ' "$facula" diff zoo:lenet zoo:alexnet
holds out '+ node' '- node' '+ parameter' 'nodes added'

# one attribute, by the text of the model
expect 0 '' "$facula" show zoo:lenet
cp out a.txt
sed 's/relu/tanh/' a.txt >b.txt
expect 0 'the same' "$facula" diff a.txt a.txt --names --order
expect 1 '+ node' "$facula" diff a.txt b.txt
holds out 'tanh' '- node'
expect 1 '"same":	false' "$facula" diff a.txt b.txt --json
holds out '"schema_version":	1' '"kind":	"added"' '"changes"' '"renamed"'

# names and order alone are told, and count when they shall
sed 's/fc3\.weight/head.weight/g' a.txt >c.txt
expect 0 'the same but for: 1 input, output or parameter renamed' "$facula" diff a.txt c.txt
expect 1 'fc3.weight -> head.weight' "$facula" diff a.txt c.txt --names

# what a file makes of a model: Gemm for linear, and nothing around it
expect 0 '' "$facula" export zoo:lenet -o lenet.onnx
expect 0 'the same: ' "$facula" diff lenet.onnx lenet.onnx --names --order
expect 1 '3 nodes added, 3 nodes removed' "$facula" diff zoo:lenet lenet.onnx --structure

expect 2 'which two models?' "$facula" diff zoo:lenet
expect 2 'nobody.onnx' "$facula" diff zoo:lenet nobody.onnx
one_line
expect 2 'from 0 to' "$facula" diff a.txt b.txt --top -1

finish
