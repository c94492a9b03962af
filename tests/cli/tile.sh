#!/bin/sh
# Tiles from outside: targets, modes, advice, errors.  usage: tile.sh FACULA TARGETS
. "$(dirname "$0")/expect.sh"
targets=$2

for f in "$targets"/*.json; do
    expect 0 'time by these rates' "$facula" tile zoo:lenet --target "$f"
    expect 0 '"bound"' "$facula" tile zoo:lenet --target "$f" --best --json
done
for mode in unroll function loop; do
    expect 0 'became' "$facula" tile zoo:lenet --max-m 16 --max-n 64 --max-k 32 --mode $mode -o $mode.onnx
    expect 0 'the same bits' "$facula" verify zoo:lenet $mode.onnx --rounds 1
done
expect 0 'are legal' "$facula" tile loop.onnx --max-m 64 --max-n 64 --max-k 64 --conv taps
expect 2 '--mode is unroll, function, loop or schedule' "$facula" tile zoo:lenet --max-m 4 --mode roll
expect 2 '--conv is patches or taps' "$facula" tile zoo:lenet --max-m 4 --conv fft
expect 2 'leave out -o' "$facula" tile zoo:lenet --max-m 4 --mode schedule -o x.onnx
expect 1 'loops add up along K as a chain' "$facula" tile zoo:lenet --max-m 4 --mode loop --sum tree
expect 1 'needs a target with rates' "$facula" tile zoo:lenet --max-m 4 --best
expect 0 'fc1' "$facula" tile zoo:lenet --max-m 4 --only fc1
expect 1 'no product called "fc"' "$facula" tile zoo:lenet --max-m 4 --only fc
expect 0 'max_m' "$facula" help tile

# refuse 'words of the message' 'contents of a target file'
refuse() {
    printf '%s' "$2" >bad.json
    expect 1 "$1" "$facula" tile zoo:lenet --max-m 4 --target bad.json
}
refuse 'there is no "max_q"' '{ "max_q": 32 }'
refuse '"max_m" must be a whole number' '{ "max_m": 0 }'
refuse '"max_k" must be a whole number' '{ "max_k": 1.5 }'
refuse '"align_n" must be a whole number' '{ "align_n": "4" }'
refuse '"sram_bytes" must be a number above 0' '{ "sram_bytes": -1 }'
refuse '"double_buffer" must be true or false' '{ "double_buffer": 1 }'
refuse '"name" must be a text' '{ "name": 3 }'
refuse '"accumulator" must be a type' '{ "accumulator": "f12" }'
refuse 'there is no type "f12"' '{ "dtypes": ["f12"] }'
refuse 'the bytes of f32' '{ "dtypes": { "f32": 0 } }'
refuse '"dtypes" must be a list' '{ "dtypes": 4 }'
refuse '"dtypes" must be more than nothing' '{ "dtypes": [] }'
refuse '"max_m" is there twice' '{ "max_m": 4, "max_m": 4 }'
refuse 'needs "clock_hz"' '{ "macs_per_cycle": 4 }'
refuse 'give only one of them' '{ "clock_hz": 1, "macs_per_cycle": 4, "macs_per_second": 4 }'
refuse 'nothing up to 4 is a multiple of 16' '{ "max_m": 8, "align_m": 16 }'
refuse 'not a JSON object' '[ 1 ]'
refuse 'not a JSON object' '{ "max_m": 8 } 1'
expect 1 'cannot be read' "$facula" tile zoo:lenet --target nobody.json

# a tile of data is one slice with two axes, and tiles share equal ones
printf 'input a f32[128,128]\ninput b f32[128,128]\ninput c f32[128]\n%%0 = gemm(a, b, c)\noutput y = %%0\n' >one.txt
"$facula" tile one.txt --max-m 64 --max-n 64 --max-k 64 -o one.onnx >/dev/null
expect 0 'Slice                     ai.onnx                   18       10' "$facula" inspect one.onnx --onnx
expect 0 'the same bits' "$facula" verify one.txt one.onnx

finish
