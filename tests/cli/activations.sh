#!/bin/sh
# activations: the table, what is chosen and how it is sorted, several runs, pictures, .npz, JSON.
# usage: activations.sh path/to/facula
. "$(dirname "$0")/expect.sh"

expect 0 'not zero' "$facula" activations zoo:lenet --random --seed 3
holds out conv1 relu input 'zeros' 'tensors of 1 run,'
cp out all
expect 0 'linear' "$facula" activations zoo:lenet --random --seed 3 --at 'fc*' --quantiles --bits 8
holds out 'SQNR dB' '99.9 %'
check test "$(grep -c conv out)" -eq 0
expect 0 'relu' "$facula" activations zoo:lenet --random --sort zeros --top 3
check test "$(sed -n '2,/^$/p' out | grep -c .)" -eq 3
expect 1 'is called nowhere' "$facula" activations zoo:lenet --random --at nowhere
one_line
expect 2 '--sort is by' "$facula" activations zoo:lenet --random --sort colour
expect 2 'from 2 to 16' "$facula" activations zoo:lenet --random --bits 1
expect 2 'which model?' "$facula" activations
expect 1 'is not given' "$facula" activations zoo:lenet

# letters only where the terminal shows no more
LC_ALL=C expect 0 'conv1' "$facula" activations zoo:lenet --random
check test "$(LC_ALL=C tr -d '\000-\177' <out | wc -c)" -eq 0
LC_ALL=C.UTF-8 expect 0 '█' "$facula" activations zoo:lenet --random

# the tensors, read back as inputs: the same statistics again
expect 0 'pictures in maps' "$facula" activations zoo:lenet --random --seed 3 --npz all.npz --pictures maps --at x --at 'conv1*'
check test -s all.npz
check test "$(ls maps/*.png | wc -l)" -eq 2
expect 0 'input' "$facula" activations zoo:lenet all.npz:x --seed 3
sed 's/  *$//' all >a
sed 's/  *$//' out >b
check cmp -s a b

# photos go through the preprocessing of run; two of them are two runs, of four times as many numbers as tensors
printf 'P6 4 4 255\n' >x.ppm
head -c 48 /dev/zero | tr '\000' 'A' >>x.ppm
cp x.ppm y.ppm
expect 0 '"runs":	2' "$facula" activations zoo:lenet x.ppm y.ppm --json --bits 4
holds out '"schema_version"' '"sparsity"' '"dead_channels"' '"quantiles"' '"histogram"' '"least_error"' '"count":	1568'
expect 0 'input' "$facula" activations zoo:lenet x.ppm y.ppm --npz two.npz --at x
expect 0 'input' "$facula" activations zoo:lenet two.npz:1/x --at x
expect 1 'x.txt' "$facula" activations zoo:lenet x.txt

# what somebody should look at
printf 'input x f32[1,2,4,8]\n%%0 = log(x)\n%%1 = relu(%%0)\noutput y = %%1\n' >log.txt
expect 0 'NaN or infinite: log' "$facula" activations log.txt --random
holds out ' of 64)'
printf 'input x f32[1,2,4,8]\n%%0 = abs(x)\n%%1 = neg(%%0)\n%%2 = relu(%%1)\noutput y = %%2\n' >dead.txt
expect 0 'nothing but zeros in channels of relu' "$facula" activations dead.txt --random
holds out '(2 of 2)'

# channels last: as the transposes say, and as the caller says; 3 pictures of 4 x 5 side by side, or 4 of 5 x 3
printf 'input x f32[1,4,5,3]\nparam w f32[8,3,1,1]\n%%0 = transpose(x) perm=0,3,1,2\n%%1 = conv2d(%%0, w)\noutput y = %%1\n' >last.txt
expect 0 '"channel_axis":	3' "$facula" activations last.txt --random --at x --json
holds out '"channels":	3'
expect 0 '"channel_axis":	1' "$facula" activations last.txt --random --at x --json --channels first
holds out '"channels":	4'
expect 2 '--channels is first or last' "$facula" activations last.txt --random --channels middle
expect 0 'in found' "$facula" activations last.txt --random --at x --pictures found
expect 0 'in first' "$facula" activations last.txt --random --at x --pictures first --channels first
check test "$(head -c 24 found/x.png | od -An -tu1 | tr -d '\n')" != "$(head -c 24 first/x.png | od -An -tu1 | tr -d '\n')"

# inside of a loop: all iterations as one, one of them, and each as a tensor of its own
printf 'input x f32[2,8]\n%%0 = loop(i64(3), -, x) carried=1 {(i64[], bool[], f32[2,8]) t0 = mul(x2, 0.5); x1, t0} !again\noutput y = %%0\n' >loop.txt
expect 0 '"count":	48' "$facula" activations loop.txt --random --at 'again.mul*' --json
expect 0 '"count":	16' "$facula" activations loop.txt --random --at 'again.2.mul*' --json
expect 1 'is called again.3' "$facula" activations loop.txt --random --at 'again.3.mul*'
one_line
expect 0 '3 tensors in' "$facula" activations loop.txt --random --npz each.npz --at 'again.mul*'
mul=$(awk '$1 ~ /^again\.mul/ { print substr($1, 7) }' out)
expect 0 'input' "$facula" activations loop.txt "each.npz:again.1.$mul" --at x

finish
