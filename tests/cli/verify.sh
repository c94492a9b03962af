#!/bin/sh
# verify: verdicts and exit codes in every mode, what differs first, given inputs, photos, JSON.
# usage: verify.sh path/to/facula
. "$(dirname "$0")/expect.sh"

check "$facula" tile zoo:lenet --max-m 8 --max-n 8 --max-k 8 -o tiled.onnx >/dev/null
expect 0 'the same bits' "$facula" verify zoo:lenet tiled.onnx
expect 4 'within the bounds of each segment' "$facula" verify zoo:lenet tiled.onnx --mode bound --verbose
holds out ' = '
expect 4 'within both bounds' "$facula" verify zoo:lenet tiled.onnx --mode bound --whole --rounds 1
expect 4 'no difference found' "$facula" verify zoo:lenet tiled.onnx --mode data --rounds 2
expect 0 'the same bits' "$facula" verify zoo:lenet tiled.onnx --mode exact

# floats of 16 bits: rounding the weights explains it, a small tolerance does not
check "$facula" edit zoo:lenet --dtype f16 -o half.onnx >/dev/null
expect 4 'within' "$facula" verify zoo:lenet half.onnx --mode bound --rounds 1
expect 1 'elements differ' "$facula" verify zoo:lenet half.onnx --mode data --rtol 1e-9 --atol 1e-9

# a norm by its parts; another epsilon; a function whose rounding nobody knows
cat >norm.txt <<'END'
input x f32[4,32]
a = mul(x, 3)
y = layer_norm(a, -, -) axis=-1 epsilon=1e-5
output out = y
END
cat >parts.txt <<'END'
input x f32[4,32]
a = mul(x, 3)
m = mean(a, i64{-1}) keep
d = sub(a, m)
q = mul(d, d)
v = mean(q, i64{-1}) keep
w = add(v, 1e-5)
r = sqrt(w)
y = div(d, r)
output out = y
END
expect 4 'within' "$facula" verify norm.txt parts.txt --mode bound
expect 0 'the same bits' "$facula" verify norm.txt parts.txt
sed 's/1e-5/2e-2/' parts.txt >other.txt
expect 1 'elements differ' "$facula" verify norm.txt other.txt --mode bound
sed 's/sqrt(w)/tan(w)/' parts.txt >tan.txt
expect 3 'the rounding error of tan is not known' "$facula" verify tan.txt tan.txt --mode bound

# another function
cat >a.txt <<'END'
input x f32[N,4]
input z f32[N,1]
s = add(x, z)
p = mul(x, z)
output first = s
output second = p
END
sed 's/^output second = p/q = clip(p, -2, 2)\noutput second = q/' a.txt >b.txt
python3 - <<'END' 2>/dev/null && have=1 || have=0
import struct
def save(name, shape, numbers):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    head += " " * (117 - len(head)) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + struct.pack("<%df" % len(numbers), *numbers))
save("x.npy", (2, 4), [1, 2, 3, 4, 0, 1, 2, 9])
save("z.npy", (2, 1), [1, 1])
END
if [ $have = 1 ]; then
    expect 1 'output second: 3 of 8 elements differ' "$facula" verify a.txt b.txt --mode data --inputs x.npy --inputs z.npy
    expect 1 'output second: 3 of 8 elements differ' "$facula" verify a.txt b.txt --mode data --inputs z=z.npy --inputs x=x.npy --json
    holds out '"differing"' '"verdict"' 'different' '"segments"' '"last_equal"'
    expect 5 'input z is not given' "$facula" verify a.txt b.txt --mode data --inputs x.npy
    one_line
    expect 5 'one input too many' "$facula" verify a.txt b.txt --mode data --inputs x.npy --inputs z.npy --inputs x.npy
fi
expect 1 'on inputs of sizes from' "$facula" verify a.txt b.txt --mode data --seed 1 --batch 2
expect 4 'no difference found' "$facula" verify a.txt b.txt --mode data --seed 1 --rounds 1 --json
holds out '"not_reached"' 'never got a number below -2'
sed 's/add(x, z)/sub(x, z)/' a.txt >c.txt
expect 1 'output first' "$facula" verify a.txt c.txt
expect 1 'another type or size' "$facula" verify zoo:lenet zoo:squeezenet1_1
expect 2 'which two models?' "$facula" verify a.txt
expect 2 'goes with --mode' "$facula" verify a.txt b.txt --mode exact --inputs x.npy
expect 5 'no_such_file' "$facula" verify a.txt no_such_file.onnx

# one product, one op: their weights are drawn, so that a bias more shows
check "$facula" tile --gemm 20x24x28 --max-m 8 --max-n 8 --max-k 8 --seed 3 -o gemm.onnx >/dev/null
check "$facula" export --problem 'matmul(f32[20,28], f32[28,24])' --seed 3 -o whole.onnx >/dev/null
expect 0 'the same bits' "$facula" verify whole.onnx gemm.onnx
check "$facula" tile --gemm 20x24x28 --max-m 8 --max-n 8 --max-k 8 --seed 4 -o gemm.onnx >/dev/null
expect 1 'different' "$facula" verify whole.onnx gemm.onnx
check "$facula" export --problem 'linear(f32[2,5], f32[3,5], f32[3])' -o bias.onnx >/dev/null
check "$facula" export --problem 'linear(f32[2,5], f32[3,5])' -o plain.onnx >/dev/null
expect 1 'different' "$facula" verify bias.onnx plain.onnx

# zeros prove nothing: a product with a bias is not one without
cat >zeros.txt <<'END'
input x f32[2,4]
param w f32[3,4]
param b f32[3]
y = linear(x, w, b)
output out = y
END
sed 's/, b)/, -)/' zeros.txt >less.txt
expect 3 'nothing was shown' "$facula" verify zeros.txt less.txt
finish
