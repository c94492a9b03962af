#!/bin/sh
# An option that would do nothing is refused, with words that say why.  The same holds for one
# argument too many, an empty name of a file, and numbers such as " 3" and 0x10.
# usage: idle.sh FACULA
. "$(dirname "$0")/expect.sh"

# refused WORDS ARGUMENTS...: wrong usage, in one line
refused() {
    words=$1
    shift
    expect 2 "$words" "$facula" "$@"
    one_line
}
printf 'input x f32[1,3,4,4]\n%%1 = relu(x)\noutput y = %%1\n' >m.txt
printf 'P6 4 4 255\n' >p.ppm
head -c 48 /dev/zero | tr '\0' '\100' >>p.ppm
"$facula" run m.txt p.ppm --output y=x.npy >/dev/null || wrong 'no tensor was made'

# options of photos without a photo, in every verb that has them
for option in '--preset imagenet' '--preset =' '--size x' '--crop *' '--mean a=b' '--std .' \
    '--scale 0' '--bgr' '--layout none' '--interpolation 1'; do
    name=${option%% *} value=${option#* }
    [ "$value" = --bgr ] && set -- || set -- "$value"
    none="$name is for photos, and no input is one"
    refused "$none" run m.txt x.npy "$name" "$@"
    refused "$none" run m.txt --random "$name" "$@"
    refused "$none" activations m.txt --input x=x.npy "$name" "$@"
    refused "$none" verify m.txt m.txt --inputs x.npy "$name" "$@"
    refused "$none" quantize m.txt --scheme int8:static --random -o q.onnx "$name" "$@"
done
refused '--picture is for photos' run m.txt x.npy --picture
expect 0 'y f32' "$facula" run m.txt p.ppm --scale 1
expect 0 'y f32' "$facula" run m.txt --input x=p.ppm --bgr
expect 2 '--crop' "$facula" run m.txt p.ppm --crop '*'

# options of a device where none works
for option in '--device cpu' '--threads 1' '--isa portable' '--wisdom x' --cache-packed; do
    refused 'goes with --after' show m.txt $option
    refused 'goes with --profile or --peaks' report m.txt -o r.html $option
done
expect 0 'relu' "$facula" show m.txt --after sweep --threads 1
expect 1 'this build has' "$facula" run m.txt --random --isa sse; one_line
holds err portable

# options of other steps, sets and kinds of models
refused '--keep and --keep-ports go with --dtype' edit m.txt -o e.onnx --keep x
refused '--keep and --keep-ports go with --dtype' edit m.txt -o e.onnx --keep-ports
expect 1 'names no attribute' "$facula" edit m.txt -o e.onnx --set 'op:relu '; one_line
expect 0 'simplify        1 layer, 1 before' "$facula" edit m.txt --dry-run --simplify
refused 'there is no step' edit m.txt --dry-run
refused 'there is no step' edit m.txt -o e.onnx --dry-run
refused '--data is for sets of files' train toy:xor --data .
expect 1 'has no such parameter' "$facula" train toy:xor --epochs 1 --freeze conv9.*; one_line
expect 0 'test accuracy' "$facula" train toy:xor --epochs 1 --freeze '*.b*' --quiet
"$facula" train toy:xor --epochs 1 --out run --quiet >/dev/null
refused '--data is for sets of files' evaluate run --data /dev/null
refused '--weights is for zoo:NAME' evaluate run --weights x
for option in '--data .' '--set mnist' '--samples 3' '--calibrate minmax' '--keep x' '--opset 14' \
    '--input x=x.npy' '--shape 1' --random '--seed 2' '--mean 1' '--device cpu' '--threads 1' \
    '--wisdom x' --per-tensor --even --sweep '--link-root .'; do
    refused "${option%% *} is not for language models" quantize lm --scheme q8_0 -o q.gguf $option
done
refused '-o is for --merge and --export' tune m.txt -o w.txt
refused '--inputs is for problems' bench m.txt --inputs
refused 'there is no ""' summary m.txt --columns ''
for verb in 'run m.txt --random' 'evaluate run' 'predict run 0,0' 'train toy:xor' 'show m.txt'; do
    refused 'there is no such folder' $verb --link-root m.txt
done

# one argument too many is named, and one that is empty is none
for verb in show summary inspect export bench profile reduce edit pack serve chat; do
    refused '"more" is one argument too many' $verb m.txt more
    expect 2 'which model' "$facula" $verb ''; one_line
done
refused '"more" is one argument too many' report m.txt more -o r.html
refused '"more" is one argument too many' quantize m.txt more --scheme int8:dynamic -o q.onnx
refused '"more" is one argument too many' verify m.txt m.txt more
refused '"more" is one argument too many' diff m.txt m.txt more
refused '"more" is one argument too many' evaluate run toy:xor more
refused '"more" is one argument too many' train toy:xor more
refused '"more" is one argument too many' op relu more
refused '"more" is one argument too many' help run more
refused '"more" is one argument too many' tune --list more
refused '"more" is one argument too many' studio m.txt more
refused 'which two models?' verify m.txt ''
refused 'which two models?' diff '' m.txt

# names of files and folders
for option in 'run m.txt --output-dir' 'run m.txt --labels' 'export m.txt -o' 'run m.txt --weights' \
    'train toy:xor --out' 'evaluate run --against' 'show m.txt --link-root'; do
    refused ', not ""' $option ''
done
expect 0 'y f32' "$facula" run m.txt x.npy --wisdom ''
expect 1 'x.npy is a NumPy array, no model' "$facula" edit m.txt -o e.onnx --append x.npy; one_line
printf 'nothing\n' >wrong.txt
expect 1 'wrong.txt: line 1:' "$facula" run wrong.txt --random; one_line

# a text that was cut off before its outputs gives nothing, in any verb
printf 'input x f32[1,3,4,4]\n%%1 = relu(x)\n' >cut.txt
for verb in 'run cut.txt --random' 'run cut.txt --random --top 3' 'show cut.txt' 'summary cut.txt' \
    'inspect cut.txt' 'bench cut.txt --runs 1' 'profile cut.txt' 'activations cut.txt --random' \
    'export cut.txt -o c.onnx' 'edit cut.txt -o c.onnx' 'edit m.txt -o c.onnx --append cut.txt' \
    'tile cut.txt --max-m 2' 'report cut.txt -o c.html' 'train toy:xor --model cut.txt' \
    'quantize cut.txt --scheme int8:dynamic -o c.onnx' 'reduce cut.txt --check true -o c.onnx'; do
    expect 1 'cut.txt: the graph has no outputs' "$facula" $verb; one_line
done
expect 5 'cut.txt: the graph has no outputs' "$facula" verify cut.txt cut.txt; one_line

# numbers
for text in ' 3' '0x10' '0X1'; do
    refused "not \"$text\"" run m.txt --random --top "$text"
    refused "not \"$text\"" train toy:xor --lr "$text"
done
for text in nan inf 1e30 9223372036854775808 0x10 ' 3' -1 0 2GG ''; do
    refused '--memory-limit needs a size' summary m.txt --memory-limit "$text"
done
for verb in 'perplexity lm text' 'generate lm' 'serve lm'; do
    refused '--ctx-size needs an integer' $verb --ctx-size 0
done
finish
