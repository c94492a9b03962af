#!/bin/sh
# Options with numbers: every one of every verb refuses what it cannot use, and what was given is not taken for what was not.
# usage: options.sh FACULA
. "$(dirname "$0")/expect.sh"

# What 0 means something for; everything else refuses it.
zero='--top --warmup --weight-decay --show --seed --rtol --atol --ema --momentum --label-smoothing --predict --top-k --port --keep --noise --test-part --dropout --length-penalty'
# refuses VERB OPTION VALUE
refuses() {
    expect 2 "$2 needs a" "$facula" "$1" "$2=$3"; one_line
    holds err "not \"$3\""
}
found=0
for verb in $("$facula" help | awk '$1 == "usage:" { next } /^  [a-z]/ { print $1 }'); do
    for option in $("$facula" help "$verb" | awk '/^  --/ && $2 ~ /^([NXSMK]|SHARE)$/ { print $1 }'); do
        case $verb$option in edit--batch|edit--strip|*--scale) continue ;; esac        # steps in their order; fractions
        found=$((found + 1))
        for value in nan inf -1e999 99999999999999999999999 2x ''; do
            case $option$value in --lr9*|--seconds9*|--timeout9*|--clip*9*|--rtol9*|--atol9*|--weight-decay9*|--length-penalty9*) continue ;; esac
            refuses "$verb" "$option" "$value"
        done
        case " $zero " in *" $option "*) [ "$verb" = predict ] || continue ;; esac
        refuses "$verb" "$option" 0
        refuses "$verb" "$option" -3
    done
done
checks=$((checks + 1))
[ $found -gt 60 ] || wrong "only $found options were found in the help"
expect 2 'from 1 to 256, not "1000"' "$facula" run zoo:lenet --random --threads 1000; one_line

# under LeakSanitizer: nothing is lost, not even what a dead place of the stack still points to
echo x >bad.onnx
for verb in summary inspect show run; do
    expect 1 'bad.onnx' env "LSAN_OPTIONS=${LSAN_OPTIONS:-}:use_stacks=0:use_registers=0" "$facula" $verb bad.onnx; one_line
done

# 0 is a number: no rows, no classes
expect 0 'and 12 more' "$facula" inspect zoo:lenet --top 0
expect 0 'logits f32[1x10]' "$facula" run zoo:lenet --random --top 0
expect 0 'median' "$facula" bench zoo:lenet --runs 1
holds out '(1 run)'
expect 0 'medians' "$facula" bench zoo:lenet --against zoo:lenet --seconds 0.01
"$facula" run zoo:lenet --random --top 0 --json | tr -d ' \n\t' >out
holds out '"top":[]'
printf 'input x f32[1,3]\n%%1 = add(x, 1e-7)\noutput y = %%1\n' >near.txt
printf 'input x f32[1,3]\n%%1 = identity(x)\noutput y = %%1\n' >same.txt
expect 4 'no difference' "$facula" verify near.txt same.txt --mode data --atol 1e-3
expect 1 'different' "$facula" verify near.txt same.txt --mode data --rtol 0 --atol 0
# adamw's own decay is 0.01: with 0 it is Adam
decay() { "$facula" train toy:xor --epochs 3 --seed 1 --threads 1 --json "$@" 2>/dev/null | grep -o '"train_loss":[^,]*' | tail -n 1; }
checks=$((checks + 2))
[ "$(decay --optimizer adamw --lr 0.01 --weight-decay 0)" = "$(decay --optimizer adam --lr 0.01)" ] || wrong 'adamw --weight-decay 0'
[ "$(decay --optimizer adamw --lr 0.01)" != "$(decay --optimizer adam --lr 0.01)" ] || wrong 'adamw decays by itself'

# what would do nothing is refused, whatever the model
alone() {
    expect 2 "$1" "$facula" generate none.gguf text $2; one_line
}
alone '--length-penalty needs --beams' '--length-penalty 0.5'
alone '--repeat-last-n needs --repeat-penalty' '--repeat-last-n 9'
alone '--keep needs --context-shift' '--keep 3'
alone '--guesses needs --lookup or --draft' '--guesses 3'
expect 1 'none.gguf' "$facula" generate none.gguf text --temp 0 --seed 3
"$facula" generate none.gguf text 2>&1 | grep -q tokenizer && wrong 'a file that is not there needs no other tokenizer'
checks=$((checks + 1))
alone '--temp 0 cannot go with --top-k' '--top-k 3 --temp 0'
for draw in --temp --top-k --top-p --min-p --seed --repeat-penalty --presence-penalty --frequency-penalty; do
    alone "--beams cannot go with $draw" "--beams 2 $draw 1"
done
for none in '--stats' '--stop x' '--context-shift' '--lookup 3' '--json-schema {}'; do
    alone 'cannot go with grammars, guesses' "--beams 2 $none"
done
# ... or with this data set, optimizer or schedule
idle() {
    expect 2 "$1 is for $2, not for " "$facula" train $3; one_line
}
for option in --rate --mels --sound-memory --low --high; do
    idle $option sounds "toy:xor $option 1000"
done
idle --mask sounds 'toy:xor --mask 0'
idle --normalize sounds 'toy:xor --normalize bands'
for picture in '--mels 40' '--low 9' '--high 900' '--normalize clip' '--mask 0'; do
    idle "${picture% *}" 'sound-cnn and zoo:NAME' "sound-folder --data x --model y.onnx $picture"
done
expect 2 '--normalize is clip or bands' "$facula" train sound-folder --data x --normalize band; one_line
idle --seconds sounds 'toy:xor --seconds 2'
idle --hold-out sounds 'mnist --data . --hold-out x'
for option in --context --steps --test-batches; do idle $option 'the set text' "toy:xor $option 5"; done
idle --tokenizer 'the set text' 'toy:xor --tokenizer char'
idle --merge 'the set text' 'toy:xor --merge'
idle --points toys 'text --data x --points 3'
idle --augment 'images and sounds' 'text --data x --augment none'
idle --glove sentences 'spoken-digits --data x --glove y'
idle --test-part 'toys, sounds and texts' 'mnist --data . --test-part 0.5'
expect 2 'something must be for testing' "$facula" train text --data x --test-part 0; one_line
idle --size images 'sst2 --data . --size 3x3'
idle --momentum 'the optimizers sgd and rmsprop' 'toy:xor --momentum 0.9'
idle --nesterov 'the optimizer sgd' 'toy:xor --nesterov'
idle --beta2 'the optimizers adam, adamw and lion' 'toy:xor --optimizer sgd --beta2 0.9'
idle --patience 'the schedule plateau' 'toy:xor --patience 3'
idle --gamma 'the schedules step, plateau and exponential' 'toy:xor --gamma 0.5'
expect 0 'test accuracy' "$facula" train toy:xor --epochs 1 --optimizer sgd --momentum 0.9 --nesterov --schedule step --gamma 0.5 --quiet

# what divides is not 0
expect 2 '--std: std is one or three numbers' "$facula" run zoo:resnet18 a.png --std 0
expect 2 '--std: std is one or three numbers' "$facula" run zoo:resnet18 a.png --std 0.2,0,0.2
expect 2 '--mean: mean is one or three numbers' "$facula" run zoo:resnet18 a.png --mean nan
expect 2 '--scale: scale is a number other than 0' "$facula" run zoo:resnet18 a.png --scale 0

# --batch is for models whose batch is open
"$facula" export zoo:lenet --batch 2 -o two.onnx >/dev/null
for verb in bench profile tune inspect summary; do
    expect 1 '--batch 3: the batch is fixed, input x is f32[2x1x28x28]' \
        env FACULA_WISDOM=batch.txt "$facula" $verb two.onnx --batch 3; one_line
done
expect 1 'the batch is fixed' "$facula" report two.onnx -o page.html --batch 3
expect 5 'the batch is fixed' "$facula" verify two.onnx two.onnx --batch 3
expect 1 'the batch is fixed' "$facula" tile two.onnx --max-m 8 --batch 3
expect 1 'the batch is fixed' "$facula" edit two.onnx --batch 3 -o three.onnx
expect 0 'parameters' "$facula" summary two.onnx --batch 2
expect 0 'median' "$facula" bench two.onnx --shape x=3x1x28x28 --batch 3 --runs 1

printf 'input x f32[2,3]\n%%1 = relu(x)\noutput y = %%1\n' >table.txt
# names for all classes, or none
printf 'a\nb\nc\n' >three
expect 1 'three: 3 names, the model gives 10 scores' "$facula" run zoo:lenet --random --labels three; one_line
printf '0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n' >ten
expect 0 '%' "$facula" run zoo:lenet --random --labels ten
expect 1 '--labels is for a row of scores; the first output, y, is f32[2x3]' "$facula" run table.txt --labels three --random; one_line
# the folder of a training: made with those above it, never overwritten unasked, and missed when there is none
train() { "$facula" train toy:xor --epochs 2 --threads 1 --quiet "$@"; }
expect 0 'accuracy' train --out 'a/b c/1'
check test -s 'a/b c/1/model.safetensors'
cp 'a/b c/1/model.safetensors' before
expect 1 'holds a training, which --resume '\''a/b c/1'\'' goes on with and --overwrite replaces' train --out 'a/b c/1' --seed 5; one_line
check cmp -s before 'a/b c/1/model.safetensors'
expect 0 'accuracy' train --out 'a/b c/1' --seed 5 --overwrite
checks=$((checks + 1))
cmp -s before 'a/b c/1/model.safetensors' && wrong '--overwrite overwrites nothing'
expect 2 'goes on' train --resume 'a/b c/1' --overwrite; one_line
expect 2 'folder of --out' train --overwrite; one_line
expect 1 'it is a file' train --out before/1; one_line
train >out 2>err
holds err 'without --out DIR nothing of this training is kept' 'nothing of this training was kept'
train --out d >out 2>err
checks=$((checks + 1))
[ -s err ] && wrong "a training with --out says: $(cat err)"
finish
