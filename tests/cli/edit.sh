#!/bin/sh
# Models out of models from outside.  usage: edit.sh FACULA
rules=$(cd "$(dirname "$0")/../../examples/rules" && pwd)
. "$(dirname "$0")/expect.sh"

# ---- what each step says ----
expect 0 'remove          relu1: 1 node removed (11 layers, 12 before)' "$facula" edit zoo:lenet --remove relu1 --dry-run
expect 0 '1 reader now after it' "$facula" edit zoo:lenet --insert 'clip(_, 0, 6)@%2->pool1' --dry-run
expect 0 '4 nodes replaced' "$facula" edit zoo:lenet --replace op:relu=gelu --dry-run
expect 0 '1 node set' "$facula" edit zoo:lenet --set 'conv1 stride=1,1' --dry-run
expect 1 'linear: w takes 400 features, x has 256' "$facula" edit zoo:lenet --set 'conv1 pad=1,1,1,1' --dry-run
expect 0 'x is now 5x1x28x28' "$facula" edit zoo:lenet --input-shape x=5x1x28x28 --dry-run
expect 0 'N is now 3' "$facula" edit zoo:lenet --bind N=3 --dry-run
expect 0 '2 outputs' "$facula" edit zoo:lenet --add-output %8=features --dry-run
expect 0 '1 output' "$facula" edit zoo:lenet --add-output %8=features --remove-output logits --dry-run
expect 0 '4 tensors are f16, 3 nodes kept their types' "$facula" edit zoo:lenet --dtype f16 --keep op:linear --keep-ports --dry-run
check [ ! -e x.onnx ]

# ---- in the order given ----
expect 0 'opset 17' "$facula" edit zoo:lenet --rename x=image --rename image=photo --opset 17 -o named.onnx
expect 0 'input photo f32[N,1,28,28]' "$facula" show named.onnx
expect 1 'there is no value "image"' "$facula" edit zoo:lenet --rename image=photo --rename x=image -o x.onnx
one_line
check [ ! -e x.onnx ]

# a later opset stays: what it has may have no other spelling
expect 0 'opset 20' "$facula" edit zoo:lenet --replace op:relu=gelu --opset 20 -o later.onnx
expect 0 'opset 20' "$facula" edit later.onnx --simplify -o later2.onnx
expect 0 'opset 18' "$facula" edit later.onnx --opset 18 -o earlier.onnx

# ---- proof ----
expect 0 'same: the same bits' "$facula" edit zoo:lenet --insert identity@%2 --remove op:identity --verify -o same.onnx
expect 1 'different' "$facula" edit zoo:lenet --replace op:relu=tanh --verify -o other.onnx
check [ ! -e other.onnx ]
expect 0 '"verified":	"same"' "$facula" edit zoo:lenet --simplify --verify --json

# ---- rules ----
expect 0 'conv_bn 20 (48 layers, 68 before)' "$facula" edit zoo:resnet18 --rules "$rules/conv_bn.rules" --bake -o folded.onnx
expect 0 '140 nodes computed' "$facula" edit zoo:resnet18 --rules "$rules/conv_bn.rules" --bake --dry-run
printf 'rule a\nmatch\n  y = relu(x\nreplace\n  y = x\nend\n' >bad.rules
expect 1 "bad.rules:3:13: ',' is missing" "$facula" edit zoo:lenet --rules bad.rules --dry-run
one_line
expect 1 'cannot be read' "$facula" edit zoo:lenet --rules nowhere.rules --dry-run

# ---- weights ----
expect 0 'opset 18' "$facula" export zoo:lenet --seed 3 -o lenet.onnx
expect 0 '5 tensors stripped' "$facula" edit lenet.onnx --strip 128 -o bare.onnx
check [ "$(wc -c <bare.onnx)" -lt 8000 ]
expect 0 '10 of 10 tensors have found their place' "$facula" edit bare.onnx --restore lenet.onnx -o whole.onnx
expect 0 'the same bits' "$facula" verify lenet.onnx whole.onnx
expect 1 'none of these tensors' "$facula" edit zoo:mobilenet_v2 --restore lenet.onnx --dry-run
expect 1 '"conv1.weight" is f32[64,3,7,7], the new one f32[6,1,5,5]' "$facula" edit zoo:resnet18 --restore lenet.onnx --dry-run
expect 1 'q.npy: No such file' "$facula" edit lenet.onnx --tensor q=q.npy --dry-run

# ---- parts and several models ----
expect 0 '1 input, 1 output' "$facula" edit zoo:lenet --part 'x->%6' --rename %6=features -o front.onnx
expect 0 '1 input, 1 output' "$facula" edit zoo:lenet --part '%6->logits' -o back.onnx
printf 'input a f32[N,16,5,5]\nb = flatten(a) axis=1\noutput flat = b\n' >flat.txt
expect 0 '1 input, 1 output' "$facula" edit front.onnx --append flat.txt -o joined.onnx
expect 0 'output flat' "$facula" show joined.onnx
expect 1 'there is no value "%99" to end at' "$facula" edit zoo:lenet --part 'x->%99' --dry-run
expect 1 'is not FROM,...->TO' "$facula" edit zoo:lenet --part x --dry-run
printf 'input a f32[N,6,28,28]\nb = abs(a)\noutput c = b\n' >abs.txt
expect 0 'the part is now that of abs.txt' "$facula" edit zoo:lenet --replace-part '%1->%2=abs.txt' -o abs.onnx
expect 0 'abs(' "$facula" show abs.onnx

# ---- metadata ----
expect 0 'author added' "$facula" edit lenet.onnx --meta author=me --doc 'a note' --producer mine --name net -o noted.onnx
expect 0 'author = me' "$facula" edit noted.onnx --show-meta && check grep -qF 'onnx:doc_string = a note' out && check grep -qF 'onnx:producer_name = mine' out
expect 0 'author deleted' "$facula" edit noted.onnx --delete-meta author -o less.onnx
expect 1 'there is no metadata "author"' "$facula" edit less.onnx --delete-meta author --dry-run
expect 0 '"onnx:graph_name":	"net"' "$facula" edit less.onnx --show-meta --json

# ---- usage ----
expect 2 'where to?' "$facula" edit zoo:lenet
expect 1 'is no OLD=NEW' "$facula" edit zoo:lenet --rename x --dry-run
expect 1 'is no NODE ATTRIBUTE=VALUE' "$facula" edit zoo:lenet --set conv1 --dry-run
expect 1 'there is no node "nobody"' "$facula" edit zoo:lenet --remove nobody --dry-run
expect 1 '--remove pool1' "$facula" edit zoo:lenet --remove pool1 --dry-run
expect 2 '--remove needs NODE' "$facula" edit zoo:lenet --remove
expect 2 '--bake takes no value' "$facula" edit zoo:lenet --bake=3
# weights beside entries of types that we have not: those that are wanted must be there, others are passed over
# safetensors JSON BYTES: a file whose data are zeros
safetensors() {
    printf "\\$(printf %03o ${#1})\\0\\0\\0\\0\\0\\0\\0%s" "$1"
    head -c "$2" /dev/zero
}
bias='{"dtype":"F32","shape":[6],"data_offsets":[0,24]}' half='{"dtype":"F6_E2M3","shape":[6],"data_offsets":[24,30]}'
safetensors "{\"conv1.bias\":$bias,\"scale\":$half}" 30 >beside.safetensors
safetensors "{\"other\":$bias,\"conv1.bias\":$half}" 30 >wanted.safetensors
expect 0 '1 of 1 tensor has found its place' "$facula" edit lenet.onnx --restore beside.safetensors -o restored.onnx
expect 1 'wanted.safetensors: conv1.bias cannot be read: element type "F6_E2M3"' \
    "$facula" edit lenet.onnx --restore wanted.safetensors -o none.onnx
check test ! -e none.onnx
expect 1 'conv1.bias has element type "F6_E2M3"' "$facula" run zoo:lenet --random --weights wanted.safetensors
# ---- floats that a type cannot say, sizes that stay open, branches that sizes decide ----
cat >mask.txt <<'T'
input x f32[4,6]
const m f32{-3e38,-3e38,-3e38,-3e38,-3e38,-3e38}
w = add(x, m)
y = softmax(w) axis=-1
output y = y
T
expect 0 '6 numbers became the largest of f16' "$facula" edit mask.txt -o half.onnx --dtype f16 --keep-ports
expect 0 '0.166626 0.166626' "$facula" run half.onnx --random
expect 0 "$(printf '"overflowed":\t6')" "$facula" edit mask.txt -o half.onnx --dtype f16 --json
printf 'input x f32[N,6]\na = squeeze(x)\ny = relu(a)\noutput y = y\n' >open.txt
for step in --simplify --reorder '--dtype f32'; do
    # shellcheck disable=SC2086
    expect 0 'opset' "$facula" edit open.txt -o step.onnx $step
    expect 0 'y f32[6]' "$facula" run step.onnx --random --shape x=1x6
    expect 0 'y f32[3x6]' "$facula" run step.onnx --random --shape x=3x6
done
cat >ranks.txt <<'T'
input x f32[N,6]
s = shape(x)
n = gather(s, i64(0))
c = equal(n, i64(1))
y = if(c, x) {t0 = squeeze(x1, i64{0}); t0} {x1}
output y = y
T
expect 0 'y f32[6]' "$facula" run ranks.txt --random --shape x=1x6
expect 0 'y f32[3x6]' "$facula" run ranks.txt --random --shape x=3x6
expect 0 'these sizes decide which branch of y is taken' "$facula" summary ranks.txt
expect 0 "$(printf '"decided":\t"y"')" "$facula" summary ranks.txt --json
expect 0 'y f32[3x6]' sh -c "'$facula' export ranks.txt -o ranks.onnx && '$facula' run ranks.onnx --random --shape x=3x6"
finish
