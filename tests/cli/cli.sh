#!/bin/sh
# The command from outside: exit codes, messages, JSON keys, files.  usage: cli.sh FACULA
. "$(dirname "$0")/expect.sh"

# ---- usage ----
expect 2 'usage: facula VERB' "$facula"
expect 0 'conformance' "$facula" --help
expect 2 'no verb "walk"' "$facula" walk; one_line
expect 0 '--threads N' "$facula" help run
expect 0 'efficientnet-lite0' "$facula" help run
expect 2 'no option --wings' "$facula" run --wings; one_line
expect 2 'needs an integer' "$facula" bench zoo:lenet --batch many; one_line
expect 2 '--weights needs FILE' "$facula" run zoo:lenet --weights; one_line
expect 2 'which model?' "$facula" run; one_line
expect 2 'which folders?' "$facula" conformance; one_line
expect 2 'a size such as' "$facula" run zoo:lenet --random --memory-limit lots

# ---- what there is ----
expect 0 'cpu' "$facula" devices
expect 0 'ops' "$facula" version
expect 0 'zoo:resnet50' "$facula" zoo
expect 0 'conv2d' "$facula" op
expect 0 'onnx    Softmax' "$facula" op softmax
expect 1 'no op "flux"' "$facula" op flux; one_line
expect 0 'integer, default 0: the first normalized dim' "$facula" op layer_norm
expect 1 'no device "gpu"' "$facula" bench zoo:lenet --device gpu; one_line

# ---- run ----
expect 1 'is not given' "$facula" run zoo:lenet; one_line
expect 0 'random weights' "$facula" run zoo:lenet --random
expect 0 '"outputs":' "$facula" run zoo:lenet --random --json
for key in '"top":' '"name":' '"dtype":' '"shape":' '"file":' '"ms":'; do
    expect 0 "$key" "$facula" run zoo:lenet --random --json
done
for verb in run show version help; do
    expect 0 'usage: facula' "$facula" $verb --help
    check [ ! -s err ]
done
expect 0 'logits' "$facula" run zoo:lenet --random --output-dir outs
[ -s outs/logits.npy ] || { echo "FAILED: outs/logits.npy was not written"; bad=$((bad + 1)); }
expect 0 'logits.pb' "$facula" run zoo:lenet --random --output logits=logits.pb
expect 1 'no output "nope"' "$facula" run zoo:lenet --random --output nope=x.npy; one_line
expect 1 'no input "nope"' "$facula" run zoo:lenet --input nope=outs/logits.npy; one_line
expect 1 'x has 4 dims' "$facula" run zoo:lenet --input x=outs/logits.npy; one_line
expect 1 'No such file' "$facula" run zoo:lenet --random --output logits=no/such/folder.npy
expect 1 'the zoo has no "lenin"' "$facula" run zoo:lenin; one_line
# the same seed and number of threads, the same bits; a saved input gives the saved output again
"$facula" run zoo:lenet --random --seed 5 --output logits=a.npy >/dev/null && "$facula" run zoo:lenet --random --seed 5 --output logits=b.npy >/dev/null
checks=$((checks + 1))
cmp -s a.npy b.npy || { echo "FAILED: two runs of one seed differ"; bad=$((bad + 1)); }

# ---- photos ----
printf 'P6\n28 28\n255\n' >photo.ppm
head -c 2352 /dev/zero >>photo.ppm
expect 0 '%' "$facula" run zoo:lenet photo.ppm
expect 0 '"photos":' "$facula" run zoo:lenet photo.ppm photo.ppm --json
expect 2 '--preset: there is no preset "nope"' \
    "$facula" run zoo:lenet photo.ppm --preset nope; one_line
expect 0 'multiply-adds' "$facula" run zoo:lenet photo.ppm --picture --stats
head -c 100 photo.ppm >short.ppm
expect 1 'short.ppm' "$facula" run zoo:lenet short.ppm; one_line

# ---- show reads back ----
expect 0 'conv2d(' "$facula" show zoo:lenet
expect 0 'conv2d(' "$facula" show zoo:lenet --after epilogue
expect 2 'no pass "fusing", but settle, simplify' "$facula" show zoo:lenet --after fusing
"$facula" show zoo:lenet >lenet.txt && "$facula" show lenet.txt >again.txt
checks=$((checks + 1))
cmp -s lenet.txt again.txt || { echo "FAILED: the text of a graph does not read back as itself"; bad=$((bad + 1)); }

# ---- bench ----
printf '1 default infer 0.01\n2 high infer 0.01\n1 nonsense infer 0\nx\n' >asked.txt
expect 0 '"median_ms":' "$facula" bench zoo:lenet --serve <asked.txt
problem='conv2d(f32[2,16,9,7], f32[16,16,3,3], f32[16]) pad=1,1,1,1 {relu}'
expect 0 'ok' "$facula" bench "$problem" --runs 3 --verify
for key in median_ms min_ms max_ms runs gflops peak_bytes; do
    expect 0 "\"$key\":" "$facula" bench "$problem" --runs 3 --json
done
for solver in conv2d/direct conv2d/gemm ref; do
    expect 0 'ok' "$facula" bench "$problem" --runs 2 --verify --solver $solver
done
for problem in 'matmul_nbits(f32[2,64], u8[5,2,16], f32[5,2], u8[5,1]) k=64 n=5 accuracy=4' \
    'linear(f32[2,64], q4_0[5,64])' 'linear(f32[2,512], q3_k[5,512])'; do
    expect 0 'ok' "$facula" bench "$problem" --runs 2 --verify
    check grep -q 'reference [^ ]*[1-9]' out # weights are drawn, so that results are not 0
    expect 0 'ok' "$facula" bench "$problem" --runs 2 --verify --precision highest
done
problem='conv2d(f32[2,16,9,7], f32[16,16,3,3], f32[16]) pad=1,1,1,1 {relu}'
expect 1 'makes no offer' "$facula" bench "$problem" --solver conv2d/depthwise; one_line
expect 1 'cpu has no solver "conv2d/nobody"' "$facula" bench "$problem" --solver conv2d/nobody; one_line
expect 1 'conv2d' "$facula" bench 'conv2d(f32[2,3,4,4], f32[8,5,3,3])'; one_line
expect 1 '' "$facula" bench 'conv2d(f32[2,3'; one_line
expect 0 'images/s' "$facula" bench zoo:lenet --batch 3 --runs 3 --profile
expect 0 'images/s' "$facula" bench zoo:lenet --train --batch 3 --runs 3 --profile
expect 2 'whole model' "$facula" bench zoo:lenet --train --verify; one_line
expect 0 'by 3 callers at once' "$facula" bench zoo:lenet --callers 3 --seconds 0.01
expect 0 'by 2 callers at once' "$facula" bench zoo:lenet --callers 2 --threads 2 --seconds 0.01
expect 2 'does not go with' "$facula" bench zoo:lenet --callers 2 --runs 3; one_line
expect 2 '1 to 256' "$facula" bench zoo:lenet --callers 300; one_line
# sanitizers map more memory than any limit
"$facula" version | grep -q sanitizer || expect 1 'memory' "$facula" bench 'relu(f32[40000,40000])' --runs 1 --memory-limit 500M

# ---- files that are not what they should be ----
: >empty.onnx
expect 1 'empty.onnx' "$facula" run empty.onnx; one_line
expect 1 'no.onnx' "$facula" run no.onnx; one_line
expect 1 'is a folder' "$facula" run . ; one_line
echo garbage >garbage.onnx
expect 1 'garbage.onnx' "$facula" run garbage.onnx; one_line
expect 1 'garbage.onnx' "$facula" run zoo:lenet --weights garbage.onnx; one_line
expect 1 'no model.onnx' "$facula" conformance outs; one_line

finish
