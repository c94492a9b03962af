#!/bin/sh
# facula quantize from outside: schemes, samples, what stays floats, and what is refused.
# usage: quantize.sh FACULA
. "$(dirname "$0")/expect.sh"

"$facula" export zoo:lenet --seed 3 -o lenet.onnx >/dev/null
mkdir photos arrays empty classes classes/a
for n in 0 1 2; do { printf 'P6\n28 28\n255\n'; head -c 2352 /dev/urandom; } >photos/$n.ppm; done
"$facula" run zoo:lenet --random --seed 4 --output logits=y.npy >/dev/null
"$facula" run 'zoo:lenet' --random --seed 5 --shape x=5x1x28x28 >/dev/null 2>&1

# ---- schemes ----
expect 0 '5 of 5 layers' "$facula" quantize lenet.onnx --scheme int8:static --data photos -o s.onnx
check grep -q '3 samples' out
expect 0 'qlinear_conv' "$facula" profile s.onnx --seconds 0.001
expect 0 '5 of 5 layers' "$facula" quantize lenet.onnx --scheme int8:dynamic -o d.onnx
expect 0 'matmul_integer' "$facula" show d.onnx
expect 0 '3 of 5 layers' "$facula" quantize lenet.onnx --scheme int4:block32 -o f.onnx
expect 0 'matmul_nbits' "$facula" show f.onnx
for f in s d f; do
    expect 0 'logits' "$facula" run $f.onnx --random --seed 3
    check [ "$(wc -c <$f.onnx)" -lt "$(($(wc -c <lenet.onnx) / 2))" ]
done
for how in minmax percentile entropy; do
    expect 0 'samples' "$facula" quantize lenet.onnx --scheme int8:static --data photos -o c.onnx \
        --calibrate $how --activations i8 --per-tensor --reduce-range
done
expect 0 '"result_sqnr"' "$facula" quantize lenet.onnx --scheme int8:static --random -o s.onnx --json

# ---- levels that are learned ----
expect 0 '3 of 5 layers' "$facula" quantize lenet.onnx --scheme lq:w2a2 --data photos -o l.onnx
expect 0 'where' "$facula" show l.onnx
expect 0 '3 of 5 layers' "$facula" quantize lenet.onnx --scheme lq:w1a2 --data photos -o l.fac
expect 0 'w1a2' "$facula" summary l.fac --columns bits
expect 0 '"binary_macs"' "$facula" summary l.fac --json
expect 0 '3 of 5 layers, weights of 2 as bytes' "$facula" quantize lenet.onnx --scheme lq:w1a2 --data photos --rest int8 -o l8.fac
check [ "$(wc -c <l8.fac)" -lt "$(wc -c <l.fac)" ]
expect 0 '' "$facula" quantize lenet.onnx --scheme lq:w1a2 --data photos --rest int8 -o l8.onnx
expect 0 'DequantizeLinear' "$facula" inspect l8.onnx --onnx
"$facula" bench l8.fac --against l8.onnx --seconds 0.001 >against
check [ "$(awk '$2 == 8' against | wc -l)" = 2 ]
check awk '$2 == 8 && $(NF - 3) $(NF - 2) != $(NF - 1) $NF { exit 1 }' against
# what few bits left as floats becomes bytes; they stay as they are
expect 0 '2 of 5 layers' "$facula" quantize l.onnx --scheme int8:static --data photos -o b.fac
"$facula" pack l.onnx -o lp.fac >/dev/null
check [ "$(wc -c <b.fac)" -lt "$(wc -c <lp.fac)" ]
check [ "$("$facula" quantize l.onnx --scheme int8:static --data photos -o b.onnx --json | grep -c '"few_bits":.*true')" = 3 ]
"$facula" show b.fac >shown
check [ "$(grep -c ' = unpack_basis' shown)" = 3 ]
check [ "$(grep -c ' = quantize_linear' shown)" -ge 2 ]
expect 0 'b.onnx' "$facula" quantize l.fac --scheme int8:static --data photos -o b.onnx
expect 1 'nothing to pack' "$facula" quantize lenet.onnx --scheme int8:static --data photos -o none.fac
check [ ! -e none.fac ]
# layers without a scope in their names, as many ONNX files have them
printf 'input x f32[1,40,9,9]\nparam w f32[40,40,3,3]\nparam v f32[40,40,3,3]\nparam u f32[40,40,3,3]
first = conv2d(x, w) pad=1,1,1,1\nr = relu(first)\nsecond = conv2d(r, v) pad=1,1,1,1\ns = relu(second)
third = conv2d(s, u) pad=1,1,1,1\noutput y = third\n' >flat.txt
"$facula" export flat.txt -o flat.onnx >/dev/null
expect 0 '1 of 3 layers' "$facula" quantize flat.onnx --scheme lq:w1a2 --random -o flat.fac
sed 's/relu/tanh/' flat.txt >below.txt
expect 0 'inputs of 1 layer stay floats' "$facula" quantize below.txt --scheme lq:w1a2 --random -o below.fac
expect 0 '"float_input"' "$facula" quantize below.txt --scheme lq:w1a2 --random -o below.fac --json
"$facula" bench flat.fac --against flat.onnx --seconds 0.001 >against
check grep -q '^conv2d_2 .* 1 .* 1.96 kB .* 57.6 kB' against
expect 0 '3 of 5 layers' "$facula" quantize lenet.onnx --scheme lq:w1a2 --data photos --even -o le.fac
expect 2 'go with scheme lq' "$facula" quantize lenet.onnx --scheme int8:static --data photos --even -o le.onnx
expect 2 'inputs of 2 to 4 bits' "$facula" quantize lenet.onnx --scheme lq:w1a1 --data photos --even -o le.fac
expect 2 'inputs of 2 to 4 bits' "$facula" quantize lenet.onnx --scheme lq:w2a32 --data photos --even -o le.fac
expect 2 'int8 or float' "$facula" quantize lenet.onnx --scheme lq:w1a2 --data photos --rest int4 -o l8.fac
expect 2 'go with scheme lq' "$facula" quantize lenet.onnx --scheme int8:static --data photos --rest int8 -o l8.onnx
expect 2 'is not for language models' "$facula" quantize lenet.onnx --scheme q8_0 --rest bogus -o l8.gguf
expect 0 'which level' "$facula" quantize lenet.onnx --scheme lq:w2a2 --data photos -o l.fac --histograms h.svg
check grep -q '>thresholds<' h.svg
check test "$(grep -o 'weights, 2 bits' h.svg | wc -l)" = 3
check test "$(grep -o 'inputs, 2 bits' h.svg | wc -l)" = 3
expect 0 '"taken"' "$facula" quantize lenet.onnx --scheme lq:w2a2 --data photos -o l.fac --histograms h.svg --json
expect 2 '--histograms goes with' "$facula" quantize lenet.onnx --scheme int8:static --data photos -o s.onnx \
    --histograms h.svg
expect 1 'saved as .svg or .png' "$facula" quantize lenet.onnx --scheme lq:w2a2 --data photos -o l.fac \
    --histograms h.jpg
expect 0 'all of them' "$facula" quantize lenet.onnx --scheme lq:w2a2 --data photos --sweep -o sweep.svg
check grep -q '<svg' sweep.svg
expect 0 'lq:w1a32' "$facula" quantize lenet.onnx --scheme lq:w2a32 --data photos --sweep --keep fc1
check test "$(grep -c fc1 out)" = 0
expect 1 'no such layer' "$facula" quantize lenet.onnx --scheme lq:w2a2 --data photos --sweep --keep fc9
expect 2 '--sweep goes with' "$facula" quantize lenet.onnx --scheme int8:static --data photos --sweep
expect 2 'no scheme "lq:w5a2"' "$facula" quantize lenet.onnx --scheme lq:w5a2 --data photos -o x.onnx
expect 2 '8 bits' "$facula" quantize lenet.onnx --scheme lq:w2a2 --data photos --per-tensor -o x.onnx
expect 1 'nothing to pack' "$facula" quantize lenet.onnx --scheme int8:dynamic -o x.fac
expect 2 '--data DIR is missing' "$facula" quantize lenet.onnx --scheme lq:w2a2 -o x.onnx

# ---- layers that stay floats ----
expect 0 '3 of 5 layers' "$facula" quantize lenet.onnx --scheme int8:static --data photos -o k.onnx \
    --keep op:conv2d
expect 0 'conv2d' "$facula" profile k.onnx --seconds 0.001
expect 1 'no such layer' "$facula" quantize lenet.onnx --scheme int8:static --data photos -o k.onnx \
    --keep nobody

# ---- labels ----
"$facula" train toy:xor --epochs 60 --seed 1 --out xor >/dev/null 2>&1
expect 0 'accuracy' "$facula" quantize xor --scheme int8:static -o x.onnx
check grep -q 'answers are the same' out
expect 0 '"accuracy_before"' "$facula" quantize xor --scheme int8:dynamic -o x.onnx --json

# ---- what is refused, and nothing that is left ----
rm -f ./?.onnx
expect 2 'which model?' "$facula" quantize --scheme int8:static -o x.onnx
expect 2 '--scheme is missing' "$facula" quantize lenet.onnx -o x.onnx
expect 2 'no scheme "int9"' "$facula" quantize lenet.onnx --scheme int9 -o x.onnx
expect 2 '--data DIR is missing' "$facula" quantize lenet.onnx --scheme int8:static -o x.onnx
expect 2 'minmax, percentile or entropy' "$facula" quantize lenet.onnx --scheme int8:static \
    --data photos --calibrate most -o x.onnx
expect 2 'u8 or i8' "$facula" quantize lenet.onnx --scheme int8:static --data photos -o x.onnx \
    --activations u4
expect 1 'holds no photos' "$facula" quantize lenet.onnx --scheme int8:static --data empty -o x.onnx
expect 1 'image-folder' "$facula" quantize lenet.onnx --scheme int8:static --data classes -o x.onnx
expect 1 'cannot be read' "$facula" quantize lenet.onnx --scheme int8:static --data none -o x.onnx
printf 'input x f32[3]\n%%1 = relu(x)\noutput y = %%1\n' >relu.txt
expect 1 'nothing to quantize' "$facula" quantize relu.txt --scheme int8:dynamic -o x.onnx
cp y.npy arrays/
expect 1 'y.npy' "$facula" quantize lenet.onnx --scheme int8:static --data arrays -o x.onnx
expect 1 'none/x.onnx' "$facula" quantize lenet.onnx --scheme int8:dynamic -o none/x.onnx
check [ "$(find . -name '?.onnx' | wc -l)" -eq 0 ]

finish
