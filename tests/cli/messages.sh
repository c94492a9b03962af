#!/bin/sh
# Files given for something else: the message says what they are and what to do.  usage: messages.sh FACULA
. "$(dirname "$0")/expect.sh"
# no ACTION WORDS COMMAND...: it fails with one line
no() {
    words=$1
    shift
    expect 1 "$words" "$facula" "$@"; one_line
}
"$facula" export zoo:lenet -o lenet.onnx >/dev/null
printf 'GIF89a\1\0\1\0\200\0\0\0\0\0\377\377\377!' >a.gif
printf 'RIFF\44\0\0\0WEBPVP8 ' >a.webp
printf 'II*\0\10\0\0\0' >a.tif
cp a.gif fake.png
printf 'P5 28 28 255\n' >photo.pgm && head -c 784 /dev/zero >>photo.pgm
cp photo.pgm photo.dat
printf 'PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\14\0\0\0net/data.pkl' >net.pth
printf 'PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\21\0\0\0net/constants.pkl' >script.pt
printf '\20\0\0\0\0\0\0\0{"a":{}}        ' >net.safetensors
printf '\34\0\0\0TFL3' >net.tflite
mkdir -p photos/train/a photos/train/b photos/val/a photos/val/b empty
for folder in photos/train/a photos/train/b photos/val/a photos/val/b; do cp photo.pgm $folder; done
"$facula" train toy:xor --epochs 1 --quiet --out runs/1 >/dev/null 2>&1

# photos
for picture in 'a.gif is a GIF picture' 'a.webp is a WebP picture' 'a.tif is a TIFF picture'; do
    no "$picture; facula reads PNG, JPEG, BMP and PNM: convert it" run lenet.onnx "${picture%% *}"
done
no 'fake.png: a GIF picture; facula reads PNG' run lenet.onnx fake.png
expect 5 'a.gif is a GIF picture' "$facula" verify lenet.onnx lenet.onnx --mode data --inputs a.gif
no 'a.gif is a GIF picture' activations lenet.onnx a.gif
expect 0 'class' "$facula" run lenet.onnx photo.dat
no 'missing.gif: No such file' run lenet.onnx missing.gif

# texts of language models
printf '%s' '{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},"pre_tokenizer":{"type":"ByteLevel"}}' \
    >tokenizer.json
# one layer of width 4, as llama2.c writes it: 3 tokens, zeros
{ printf '\004\000\000\000\004\000\000\000\001\000\000\000\001\000\000\000\001\000\000\000\003\000\000\000\020\000\000\000'
  head -c $(((3 * 4 + 4 + 4 * 16 + 4 + 3 * 16 + 4 + 16 * 4) * 4)) /dev/zero; } >model.bin
printf 'ab\377' >bytes.txt && : >none.txt
no 'bytes.txt: the text is not UTF-8' tokenize tokenizer.json --file bytes.txt
no 'bytes.txt: the text is not UTF-8' generate model.bin --tokenizer tokenizer.json --file bytes.txt
no 'bytes.txt: the text is not UTF-8' perplexity model.bin bytes.txt --tokenizer tokenizer.json
no 'none.txt: a text of 0 tokens: at least 2' perplexity model.bin none.txt --tokenizer tokenizer.json
expect 2 'which model' "$facula" embed '' text
head -c 500 model.bin >cut.bin
no 'cut.bin: ' generate cut.bin ab --tokenizer tokenizer.json

# models
no 'a.gif is a GIF picture, no model; a model is an ONNX file, zoo:NAME' run a.gif
no 'photo.pgm is a PNM picture, no model' summary photo.pgm
no 'net.pth is a PyTorch file: weights without their network; give them with --weights' run net.pth --random
no 'a language model runs with `facula generate`' summary net.pth
no 'net.safetensors is a .safetensors file: weights without their network' inspect net.safetensors
no 'script.pt is a TorchScript model: convert it to ONNX' bench script.pt
no 'net.tflite is a TensorFlow Lite model: convert it to ONNX' export net.tflite -o x.onnx
no 'runs/1 is the folder of a training: its model is runs/1/model.onnx' run runs/1 --random
no 'its model is runs/1/model.onnx' run runs/1/ --random
no 'photos is a folder of photos; a model is' summary photos
no 'empty is a folder; a model is' summary empty
no 'missing.onnx: No such file' summary missing.onnx

# inputs and weights
no 'lenet.onnx is an ONNX model, and the model was given already' run lenet.onnx lenet.onnx
no 'photos/train/a is a folder of photos: give the photos in it' run lenet.onnx photos/train/a
no 'net.pth is a PyTorch file, which holds weights (--weights)' run lenet.onnx net.pth
no 'a.gif: no weights, but a GIF picture' run zoo:lenet --random --weights a.gif
no 'lenet.onnx: no weights, but an ONNX model' run zoo:lenet --random --weights lenet.onnx

# folders of photos, indices that are too large
no 'in photos/train are 2 folders: is that the data set?' train image-folder --data photos
no 'empty: holds 0 folders' train image-folder --data empty
printf 'input x f32[3,4]\nconst l i64{0,5,3}\nloss = softmax_cross_entropy(x, l) !\noutput y = loss\n' >loss.txt
no 'loss.gather_elements' run loss.txt --random
printf 'input x f32[4]\ninput at i64[3]\ny = gather(x, at)\noutput y = y\n' >gather.txt
no 'at holds random integers from 0 to 9 here: give what the model expects with --input at=FILE' run gather.txt --random --seed 3
printf 'input x f32[2]\ny = top_k(x, i64{5})\noutput y = y\n' >topk.txt
no 'k is 5, but axis 0 has no more than 2 elements' run topk.txt --random

# names of photos stand beside their answers
cp photo.pgm other.pgm
expect 0 'photo.pgm' "$facula" run lenet.onnx photo.pgm other.pgm
holds out 'other.pgm'
finish
