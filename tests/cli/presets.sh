#!/bin/sh
# How photos are prepared and what classes are called: who says so, and that every verb tells.
# usage: presets.sh FACULA
. "$(dirname "$0")/expect.sh"

# photo FILE RED GREEN BLUE: 8 x 8 pixels of one colour
photo() {
    pixel=$(printf '\\%03o\\%03o\\%03o' "$2" "$3" "$4")
    { printf 'P6\n8 8\n255\n'; for i in $(seq 64); do printf "$pixel"; done; } >"$1"
}
photo red.ppm 250 10 20
photo blue.ppm 10 20 250

# the scores are the channels' means: what the preset does is seen in the class
printf 'input x f32[N,3,8,8]\n%%0 = mean(x, i64{2,3})\noutput y = %%0\n' >mean.txt
"$facula" export mean.txt -o model.onnx >/dev/null || wrong "export"

# nothing says: it is a guess, and the answer says how to say it
expect 0 'preset imagenet (guessed)' "$facula" run model.onnx red.ppm
holds out '--preset' '--set-preset' '     0  class 0'
expect 0 'size=9,crop=8,interpolation=bilinear,order=rgb' "$facula" run model.onnx red.ppm --json
holds out '"from":	"guess"'
expect 0 '"from":	"guess"' "$facula" run model.onnx red.ppm --json
holds out '"labels":	"none"'

# an option, in full
expect 0 'preset size=8x8,interpolation=bilinear,order=bgr,range=0..255 (by --preset)' \
    "$facula" run model.onnx red.ppm --preset 'size=8x8,order=bgr,range=0..255'
holds out '     2  class 2'
expect 0 'changed by options' "$facula" run model.onnx red.ppm --preset raw --bgr
holds out '     2  class 2' 'order=bgr'
expect 0 '"changed":	true' "$facula" run model.onnx red.ppm --preset raw --mean 1 --json
expect 2 '--preset: order is rgb, bgr or grey, not "gbr"' \
    "$facula" run model.onnx red.ppm --preset raw,order=gbr; one_line
expect 2 '--crop: "8,order=bgr" is not a value' \
    "$facula" run model.onnx red.ppm --crop 8,order=bgr; one_line
expect 2 '--std: std is one or three numbers other than 0' \
    "$facula" run model.onnx red.ppm --std 0; one_line

# metadata
printf 'red\ngreen\nblue\n' >names
expect 0 '3 names of classes' \
    "$facula" edit model.onnx --set-preset 'raw,order=bgr' --set-labels names -o said.onnx
expect 0 "(of the model's metadata)" "$facula" run said.onnx red.ppm
holds out '     2  blue'
expect 0 '"from":	"metadata"' "$facula" run said.onnx red.ppm --json
holds out '"labels":	"metadata"' '"label":	"blue"' '"name":	null'
expect 0 '     0  blue' \
    "$facula" run said.onnx blue.ppm --preset raw,order=bgr --labels /dev/stdin <<END
blue
green
red
END
expect 0 'facula.preset = size=keep,interpolation=bilinear,order=bgr,range=0..255' \
    "$facula" edit said.onnx --show-meta
expect 0 'of the model' "$facula" activations said.onnx red.ppm
expect 0 '"from":	"metadata"' "$facula" activations said.onnx red.ppm --json
expect 4 'of the model' "$facula" verify said.onnx model.onnx --mode data --inputs red.ppm
expect 4 '"from":	"metadata"' \
    "$facula" verify said.onnx model.onnx --mode data --inputs red.ppm --json
expect 1 'there is no preset "nope"' \
    "$facula" edit model.onnx --set-preset nope -o no.onnx; one_line
: >nothing
expect 1 'has no names' "$facula" edit model.onnx --set-labels nothing -o no.onnx; one_line
yes 'a name of a class' | head -n 60000 >many
expect 1 'too many for metadata' "$facula" edit model.onnx --set-labels many -o no.onnx; one_line
check test ! -e no.onnx
expect 0 '' "$facula" edit model.onnx --meta facula.preset=nonsense -o bad.onnx
expect 1 'metadata facula.preset: there is no preset "nonsense"' \
    "$facula" run bad.onnx red.ppm; one_line
expect 0 'by --preset' "$facula" run bad.onnx red.ppm --preset raw
# names that do not fit are left out when they came with the model, and an error when they were
# asked for
printf 'one\ntwo\n' >two
"$facula" edit model.onnx --set-labels two -o two.onnx >/dev/null
expect 0 'facula.labels: 2 names do not fit 3 scores' "$facula" run two.onnx red.ppm
holds out 'class 0'
expect 1 'two: 2 names, the model gives 3 scores' "$facula" run model.onnx red.ppm --labels two
# what moves a cursor stays out of the answer
printf 'red\033[2J\ngreen\nblue\n' >hostile
"$facula" edit model.onnx --set-labels hostile -o hostile.onnx >/dev/null
expect 0 'red?[2J' "$facula" run hostile.onnx red.ppm

# files beside the model; metadata goes first
side() {
    rm -rf side
    mkdir -p side/onnx
    cp model.onnx side/m.onnx
    cp model.onnx side/onnx/m.onnx
}
side
echo '{"preset": "raw,order=bgr", "labels": ["r", "g", "b"]}' >side/m.json
expect 0 '(of side/m.json)' "$facula" run side/m.onnx red.ppm
holds out '     2  b'
expect 0 '"file":	"side/m.json"' "$facula" run side/m.onnx red.ppm --json
holds out '"from":	"sidecar"' '"labels":	"sidecar"'
cp said.onnx side/m.onnx
expect 0 "(of the model's metadata)" "$facula" run side/m.onnx red.ppm
side
# as Hugging Face says it, beside the model or above its folder onnx/
cat >side/preprocessor_config.json <<END
{ "do_resize": true, "size": {"shortest_edge": 10}, "do_center_crop": true, "crop_size": {"height": 8, "width": 8},
  "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true, "image_mean": [0.5, 0.25, 0.5],
  "image_std": [0.5, 0.5, 0.25], "resample": 3, "image_processor_type": "CLIPImageProcessor" }
END
echo '{ "id2label": {"2": "bleu", "0": "rouge", "1": "vert"} }' >side/config.json
for model in side/m.onnx side/onnx/m.onnx; do
    expect 0 'preset size=10,crop=8,interpolation=bicubic,order=rgb,range=0..1,mean=0.5,0.25,0.5,std=0.5,0.5,0.25 (of side/pre' \
        "$facula" run $model red.ppm
    holds out '     0  rouge'
done
# hf JSON SPEC: what a file means
hf() {
    echo "$1" >side/preprocessor_config.json
    expect "${3:-0}" "$2" "$facula" run side/m.onnx red.ppm
}
hf '{"image_mean": [0.5], "image_std": 0.5, "size": 8}' \
    'preset size=8x8,interpolation=bilinear,order=rgb,range=0..1,mean=0.5,std=0.5'
hf '{"do_rescale": false, "do_normalize": false, "size": 8}' 'range=0..255 ('
hf '{"do_normalize": false, "size": 12, "do_center_crop": true, "crop_size": 8}' \
    'preset size=12,crop=8,'
hf '{"do_normalize": false, "size": {"shortest_edge": 8}, "crop_pct": 0.5}' 'preset size=16,crop=8,'
hf '{"do_normalize": false, "do_flip_channel_order": true, "resample": 0}' \
    'interpolation=nearest,order=bgr'
hf '{"image_mean": 0.5, "image_std": [1, 0, 1]}' 'image_std asks for what' 1
hf '{"image_mean": 1e999}' 'image_mean asks for what' 1
hf '{"do_normalize": false, "size": {"shortest_edge": 8}, "crop_pct": 1e-300}' \
    'crop_pct asks for what' 1
hf '{"do_normalize": false, "size": {"height": 8, "width": 1e300}}' 'size asks for what' 1
hf '{"do_normalize": false, "resample": 1}' 'resample asks for what facula cannot do' 1
hf '{"image_mean": ["a"]}' 'image_mean asks for what' 1
hf '{"image_mean": [1, 2]}' 'image_mean asks for what' 1
hf '{"do_normalize": false, "size": {"longest_edge": 8}}' 'size asks for what' 1
hf '{"do_normalize": false, "do_center_crop": true}' 'crop_size asks for what' 1
hf 'nonsense' 'is not JSON' 1
expect 0 'by --preset' "$facula" run side/m.onnx red.ppm --preset raw
hf '{"something": "else"}' '(guessed)'
rm side/preprocessor_config.json
echo '{ "pretrained_cfg": {"input_size": [3, 8, 8], "crop_pct": 0.8, "interpolation": "bicubic", "mean": [0.5, 0.5, 0.5], "std": [1, 1, 1]},
        "label_names": ["x", "y", "z"] }' >side/config.json
expect 0 'preset size=10,crop=8,interpolation=bicubic,order=rgb,range=0..1,mean=0.5 (of side/config.json)' \
    "$facula" run side/m.onnx red.ppm
holds out '  x'
for names in '"labels": {"0": "a", "2": "b"}' '"labels": [1, 2, 3]' '"id2label": {"x": "a"}' '"labels": []'; do
    echo "{ $names }" >side/config.json
    expect 1 'not a list of class names' "$facula" run side/m.onnx red.ppm; one_line
done

# the zoo
printf 'P6\n28 28\n255\n' >digit.ppm
head -c 2352 /dev/zero >>digit.ppm
expect 0 'preset mnist-unit (of the zoo)' "$facula" run zoo:lenet digit.ppm
"$facula" export zoo:lenet -o lenet.onnx >/dev/null
expect 0 "preset mnist-unit (of the model's metadata)" "$facula" run lenet.onnx digit.ppm
"$facula" export zoo:squeezenet1_1 -o squeezenet.onnx >/dev/null
expect 0 '"labels":	"metadata"' "$facula" run squeezenet.onnx red.ppm --json

# a training: what it did with its images stands in model.onnx, so that nothing has to be said
for i in 0 1 2 3 4 5 6 7 8 9; do
    mkdir -p set/scarlet set/navy
    photo set/scarlet/$i.ppm $((200 + i)) 20 $((3 * i))
    photo set/navy/$i.ppm 10 $((2 * i)) $((180 + i))
done
check "$facula" train image-folder --data set --size 8x8 --model cnn --threads 1 --epochs 10 --batch 6 --quiet --augment none \
    --out made >log 2>&1
expect 0 "  scarlet" "$facula" run made/model.onnx red.ppm --top 1
holds out "(of the model's metadata)" 'preset size=8x8,'
expect 0 '  navy' "$facula" run made/model.onnx blue.ppm --top 1
"$facula" predict made red.ppm --top 1 >answer
"$facula" run made/model.onnx red.ppm --top 1 >same
check test "$(sed -n 's/^scarlet \(.*\) %.*/\1/p' answer)" = "$(sed -n '1s/^ *\([0-9.]*\) %.*/\1/p' same)"
holds answer 'preset size=8x8,' '(of the training)'
expect 0 '"from":"training"' "$facula" predict made red.ppm --json
expect 0 '(of the training)' "$facula" evaluate made
expect 0 "(of the model's metadata)" "$facula" evaluate made/model.onnx image-folder --data set
holds out 'accuracy 100.00 %'
expect 0 '"from":	"metadata"' "$facula" evaluate made/model.onnx image-folder --data set --json
expect 0 'by --preset' \
    "$facula" evaluate made/model.onnx image-folder --data set --preset imagenet,order=bgr
holds out 'accuracy 0.00 %'
"$facula" edit made/model.onnx --delete-meta facula.preset -o silent.onnx >/dev/null
expect 0 '(of the data set)' "$facula" evaluate silent.onnx image-folder --data set
# trained again on other classes, it says the other ones
mv set/navy set/teal
check "$facula" train image-folder --data set --size 8x8 --model made/model.onnx --threads 1 --epochs 1 --batch 6 --quiet \
    --augment none --out again >log 2>&1
expect 0 'facula.labels = scarlet
teal' "$facula" edit again/model.onnx --show-meta
finish
