#!/bin/sh
# Models out of models from outside.  usage: edit.sh FACULA
rules=$(cd "$(dirname "$0")/../../examples/rules" && pwd)
. "$(dirname "$0")/expect.sh"

# ---- what each step says ----
expect 0 'remove          relu1: 1 node removed (11 layers, 12 before)' "$facula" edit zoo:lenet --remove relu1 --dry-run
expect 0 '1 reader now behind it' "$facula" edit zoo:lenet --insert 'clip(_, 0, 6)@%2->pool1' --dry-run
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
expect 0 '1 inputs, 1 outputs' "$facula" edit zoo:lenet --part 'x->%6' --rename %6=features -o front.onnx
expect 0 '1 inputs, 1 outputs' "$facula" edit zoo:lenet --part '%6->logits' -o back.onnx
printf 'input a f32[N,16,5,5]\nb = flatten(a) axis=1\noutput flat = b\n' >flat.txt
expect 0 '1 inputs, 1 outputs' "$facula" edit front.onnx --append flat.txt -o joined.onnx
expect 0 'output flat' "$facula" show joined.onnx
expect 1 'there is no value "%99" to end at' "$facula" edit zoo:lenet --part 'x->%99' --dry-run
expect 1 'is no FROM,...->TO' "$facula" edit zoo:lenet --part x --dry-run
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
finish
