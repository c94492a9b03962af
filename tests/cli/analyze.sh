#!/bin/sh
# Reading and rewriting models from outside: summary, inspect, tile, verify.  usage: analyze.sh FACULA
. "$(dirname "$0")/expect.sh"

# ---- summary ----
expect 2 'which model?' "$facula" summary
expect 1 'the zoo has no "lanet"' "$facula" summary zoo:lanet
expect 2 'there is no "mine"' "$facula" summary zoo:lenet --columns kind,mine
expect 2 'there is no "tensorboard"' "$facula" summary zoo:lenet --convention tensorboard
expect 0 'parameters     61,706' "$facula" summary zoo:lenet
expect 0 'conv1' "$facula" summary zoo:lenet --depth 1 --columns in,out,kernel,params,trainable,share,weights,intensity
expect 0 '13328640' "$facula" summary zoo:lenet --batch 32 --convention fvcore --json
expect 0 '"params":	61706' "$facula" summary zoo:lenet --json
expect 0 'ptflops-modules' "$facula" summary zoo:lenet --convention all

expect 0 '├─Conv2d: 1-1' "$facula" summary zoo:lenet --table
expect 0 'Params size (bytes): 246,824' "$facula" summary zoo:lenet --table
expect 0 'Linear (fc3): 1-11' "$facula" summary zoo:lenet --table --names
expect 2 'goes with --table' "$facula" summary zoo:lenet --names
expect 0 '0        Dropout                 1x9216' "$facula" summary zoo:alexnet
expect 0 '"classifier.3"' "$facula" summary zoo:alexnet --json
expect 0 'Inception           1x256x28x28' "$facula" summary zoo:googlenet --depth 1
expect 0 'inception3a        yes' "$facula" summary zoo:googlenet --depth 1 --columns trainable

expect 0 '6,624,904' "$facula" summary 'zoo:googlenet?transform_input'
expect 0 'googlenet?transform_input' "$facula" zoo
expect 1 'the zoo has no "googlenet?upside_down"' "$facula" summary 'zoo:googlenet?upside_down'

# ---- inspect ----
expect 0 'conv2d' "$facula" inspect zoo:lenet
expect 0 'kernel 5x5 x2' "$facula" inspect zoo:lenet --sort macs --top 3
expect 2 '--sort is by' "$facula" inspect zoo:lenet --sort colour
expect 0 '"peak_bytes"' "$facula" inspect zoo:lenet --json
expect 0 'pad 2,2,2,2 x1, default x1; channels 1..6 -> 6..16' "$facula" inspect zoo:lenet
expect 0 'and 12 more' "$facula" inspect zoo:lenet --top 0

# where values lie: no two that overlap are alive at the same step, and the arena ends where the last one does
expect 0 'the arena, byte by byte' "$facula" inspect zoo:squeezenet1_1 --plan
"$facula" inspect zoo:squeezenet1_1 --json >plan.json
check awk '
    /"offset":/ { gsub(",", ""); from[n] = $2 }
    /"bytes":/ && n in from { gsub(",", ""); to[n] = from[n] + $2 }
    /"first_step":/ { gsub(",", ""); first[n] = $2 }
    /"last_step":/ { gsub(",", ""); last[n++] = $2 }
    /"arena_bytes":/ { gsub(",", ""); arena = $2 }
    END {
        for (i = 0; i < n; i++) {
            if (to[i] > end) end = to[i]
            for (k = 0; k < i; k++)
                if (from[i] < to[k] && from[k] < to[i] && first[i] <= last[k] && first[k] <= last[i]) bad = 1
        }
        exit !(n > 20 && end == arena && !bad)
    }' n=0 plan.json

# ---- sizes of inputs, of every kind of model ----
"$facula" export zoo:lenet -o lenet.onnx >/dev/null
"$facula" show zoo:lenet >lenet.txt
for model in zoo:lenet lenet.onnx lenet.txt; do
    expect 0 '"macs":	833040' "$facula" summary $model --shape x=2x1x28x28 --json
    expect 0 '"macs":	833040' "$facula" summary $model --shape 2x1x28x28 --json
    expect 0 'x f32[2x1x28x28]' "$facula" inspect $model --shape x=2x1x28x28
    expect 1 'x has 3 channels' "$facula" summary $model --shape x=1x3x28x28
    one_line
    expect 1 'y' "$facula" summary $model --shape y=1x1x28x28
    one_line
    expect 2 '--shape needs' "$facula" summary $model --shape x=axb
    one_line
done
expect 2 'from 1 to' "$facula" summary zoo:lenet --batch 0

# ---- one language for layers ----
for word in conv1 'conv*' op:conv2d kind:Conv2d conv1,conv2; do
    expect 0 'conv1' "$facula" inspect lenet.onnx --at "$word"
    expect 0 'conv1' "$facula" activations lenet.onnx --random --at "$word"
    expect 0 'conv1' "$facula" profile zoo:lenet --seconds 0.001 --at "$word"
    expect 0 'conv1' "$facula" tile lenet.onnx --max-m 4 --only "$word"
    expect 0 'kept their types' "$facula" edit lenet.onnx --dtype f16 --keep "$word" --dry-run
done
expect 1 'no layer "conv9"' "$facula" inspect lenet.onnx --at conv9
expect 1 'no step does "conv9"' "$facula" profile zoo:lenet --seconds 0.001 --at conv9
expect 1 'conv9' "$facula" activations lenet.onnx --random --at conv9
expect 1 'no product called "conv9"' "$facula" tile lenet.onnx --max-m 4 --only conv9
# settings that are valid only together: 5 x 5 with other pads and strides, and back
expect 1 'inner sizes differ' "$facula" edit lenet.onnx --set 'pool1.max_pool2d stride=1,1' --dry-run
expect 0 '1 node set' "$facula" edit lenet.onnx --set 'pool1.max_pool2d kernel=4,4 stride=4,4' \
    --set 'conv2.conv2d pad=3,3,3,3 stride=1,1' --set 'pool2.max_pool2d kernel=2,2 stride=2,2 pad=1,1,0,0' --dry-run

# ---- the operators of a file as it spells them ----
expect 1 'is for ONNX files' "$facula" inspect zoo:lenet --onnx
expect 2 'goes with --onnx' "$facula" inspect lenet.onnx --verbose
expect 0 'kernel_shape           5,5 x2' "$facula" inspect lenet.onnx --onnx
expect 0 'auto_pad               NOTSET (default)' "$facula" inspect lenet.onnx --onnx --verbose
expect 0 '"shape":	["N", 6, 28, 28]' "$facula" inspect lenet.onnx --onnx --json
# one operator that is not known: the same file with another name in the place of Tanh or Relu
LC_ALL=C sed 's/Relu/Rexu/g' lenet.onnx >unknown.onnx
expect 1 'Rexu' "$facula" run unknown.onnx --random
expect 0 'Rexu  ' "$facula" inspect unknown.onnx --onnx
expect 0 'unknown' "$facula" inspect unknown.onnx --onnx --verbose
expect 0 '"unknown":' "$facula" inspect unknown.onnx --onnx --json
expect 0 'Rexu' "$facula" summary unknown.onnx
expect 0 'Rexu' "$facula" inspect unknown.onnx
head -c 100 lenet.onnx >short.onnx
expect 1 'short.onnx' "$facula" inspect short.onnx --onnx
one_line

# ---- tile ----
expect 2 'no limit' "$facula" tile zoo:lenet
expect 1 'not "4x4"' "$facula" tile --gemm 4x4 --max-m 2
expect 0 '24' "$facula" tile --gemm 100x130x200 --max-m 64 --max-n 64 --max-k 64
expect 0 'became' "$facula" tile zoo:lenet --max-m 16 --max-n 16 --max-k 16 -o tiled.onnx
expect 0 'became' "$facula" tile zoo:lenet --max-m 16 --max-n 16 --max-k 16 --pad --sum tree -o padded.onnx
expect 0 '"tile_k":	16' "$facula" tile zoo:lenet --max-k 16 --mode schedule
echo '{ "max_m": 32, "max_n": 32, "max_k": 32, "macs_per_second": 1e12 }' >unit.json
expect 0 'time by these rates' "$facula" tile zoo:lenet --target unit.json
echo '{ "max_q": 32 }' >bad.json
expect 1 'there is no "max_q"' "$facula" tile zoo:lenet --target bad.json
echo 'max_m: 32' >bad.json
expect 1 'not a JSON object' "$facula" tile zoo:lenet --target bad.json
expect 1 'no product called "conv9"' "$facula" tile zoo:lenet --max-m 4 --only conv9

# ---- verify ----
expect 0 'the same bits' "$facula" verify zoo:lenet tiled.onnx
expect 4 'within the bounds of each segment' "$facula" verify zoo:lenet padded.onnx --mode bound
expect 4 'within the tolerance' "$facula" verify tiled.onnx padded.onnx --mode data --seed 3 --json
"$facula" export zoo:lenet --seed 5 -o other.onnx >/dev/null
expect 1 'different' "$facula" verify zoo:lenet other.onnx
expect 1 'input 0' "$facula" verify zoo:lenet zoo:resnet18
expect 2 'which two models?' "$facula" verify zoo:lenet
expect 2 '--mode is full' "$facula" verify zoo:lenet tiled.onnx --mode hope

# ---- edit ----
expect 2 'where to?' "$facula" edit zoo:lenet
expect 0 'opset 18' "$facula" edit zoo:lenet --rename x=image --dtype f16 --batch 2 --simplify -o small.onnx
expect 0 'image f16[2x1x28x28]' "$facula" inspect small.onnx
expect 0 'nodes' "$facula" edit zoo:lenet --reorder -o ordered.onnx
expect 0 'the same bits' "$facula" verify zoo:lenet ordered.onnx
expect 1 'no value "nobody"' "$facula" edit zoo:lenet --output nobody -o x.onnx
expect 1 'no type "f12"' "$facula" edit zoo:lenet --dtype f12 -o x.onnx

finish
