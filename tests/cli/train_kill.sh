#!/bin/sh
# Trainings that are interrupted: sh train_kill.sh FACULA.  Killed at random moments and resumed they end with the same weights,
# byte by byte; Ctrl-C saves and says how to go on; a full disk, a folder that cannot be written and a loss that is no number are
# reported and leave the last checkpoint whole; a resume with another batch size is refused.  FACULA_SEED=N for other moments.
facula=$1
dir=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$dir" 2> /dev/null; rm -rf "$dir"' EXIT
seed=${FACULA_SEED:-$$}
echo "FACULA_SEED=$seed"
fails=0
bad() { echo "FAILED: $*"; fails=$((fails + 1)); }
says() { grep -q "$1" "$dir/err" || bad "$2: does not say \"$1\": $(cat "$dir/err")"; }
wait_for() {            # until a file holds so many lines, at most two minutes
    tries=0
    while [ "$(cat "$1" 2> /dev/null | wc -l)" -lt "$2" ] && [ $tries -lt 2400 ]; do sleep 0.05; tries=$((tries + 1)); done
}

# 80 pictures of 28 x 28 in two classes, in the format of MNIST
be() { printf "$(printf '\\%03o\\%03o\\%03o\\%03o' 0 0 $(($1 / 256)) $(($1 % 256)))"; }
pictures() {            # name, how many
    { be 2051; be "$2"; be 28; be 28
      i=0
      while [ $i -lt "$2" ]; do
          head -c 392 /dev/zero | tr '\0' "\\$(printf '%03o' $((100 + i % 2 * 100)))"
          head -c 392 /dev/zero | tr '\0' "\\$(printf '%03o' $((20 + i)))"
          i=$((i + 1))
      done; } > "$dir/data/$1-images-idx3-ubyte"
    { be 2049; be "$2"
      i=0
      while [ $i -lt "$2" ]; do printf "\\$(printf '%03o' $((i % 2)))"; i=$((i + 1)); done; } > "$dir/data/$1-labels-idx1-ubyte"
}
mkdir "$dir/data"
pictures train 72
pictures t10k 16

# every part of the state: moments, averages, accumulation in the middle of which it may die, the memory of a plateau
settings="mnist --data $dir/data --model mlp --batch 16 --epochs 100 --threads 1 --seed 3 --optimizer adamw --lr 0.002
    --schedule plateau --patience 2 --accumulate 3 --ema 0.9 --clip 1 --json"
train() { "$facula" train $settings "$@"; }
train --out "$dir/whole" > "$dir/log" 2> "$dir/err" || bad "a training that is left alone: $(cat "$dir/err")"

random=$seed
deaths=0
round=0
while [ ! -f "$dir/killed/model.safetensors" ] && [ $round -lt 60 ]; do
    round=$((round + 1))
    if [ -f "$dir/killed/checkpoint.safetensors" ] && [ -f "$dir/killed/run.json" ]; then
        "$facula" train --resume "$dir/killed" --threads 1 --json > /dev/null 2>> "$dir/resumes" &
    else
        "$facula" train $settings --out "$dir/killed" > /dev/null 2>> "$dir/resumes" &      # a function would be the one killed
    fi
    random=$(((random * 1103515245 + 12345) % 2147483648))
    [ $round -gt 12 ] && { wait $!; continue; }         # enough
    sleep 0.$(printf '%03d' $((random / 65536 % 250)))
    kill -9 $! 2> /dev/null && deaths=$((deaths + 1))
    wait $! 2> /dev/null
done
[ $deaths -gt 0 ] || bad "it was never killed"
cmp "$dir/whole/model.safetensors" "$dir/killed/model.safetensors" || bad "weights after $deaths deaths are other ones"
cmp "$dir/whole/checkpoint.safetensors" "$dir/killed/checkpoint.safetensors" || bad "another checkpoint after $deaths deaths"

# Ctrl-C and SIGTERM: saved, said how to go on, and gone on
for number in 2 15; do
    [ $number -eq 2 ] && signal=INT || signal=TERM
    out="$dir/stopped $signal"
    : > "$dir/log"              # what an earlier training wrote must not be taken for the lines of this one
    "$facula" train mnist --data "$dir/data" --model mlp --batch 16 --epochs 100000 --threads 1 --schedule constant --json \
        --out "$out" > "$dir/log" 2> "$dir/err" &
    wait_for "$dir/log" 2
    kill -$signal $!
    wait $!
    code=$?
    [ $code -eq $((128 + number)) ] || bad "exit code $code after SIG$signal"
    says "stopped after" "SIG$signal"
    says "train --resume" "SIG$signal"
    [ -f "$out/model.safetensors" ] && bad "a stopped training leaves no finished model"
    "$facula" train --resume "$out" --epochs 1 --threads 1 --json > /dev/null 2> "$dir/err" \
        || bad "resumed after SIG$signal: $(cat "$dir/err")"
done

# no room for a checkpoint: the old one stays
train --out "$dir/full" --epochs 1 > "$dir/log" 2> "$dir/err" || bad "one epoch: $(cat "$dir/err")"
cp "$dir/full/checkpoint.safetensors" "$dir/before"
(ulimit -f 100; trap '' XFSZ; "$facula" train --resume "$dir/full" --epochs 3 --threads 1 > /dev/null 2> "$dir/err") \
    && bad "a full disk is no error"
says "checkpoint.safetensors" "a full disk"
cmp "$dir/before" "$dir/full/checkpoint.safetensors" || bad "a full disk damages the old checkpoint"
[ "$(ls "$dir/full" | grep -c tmp)" -eq 0 ] || bad "a full disk leaves $(ls "$dir/full")"
"$facula" train --resume "$dir/full" --epochs 3 --threads 1 --json > /dev/null 2> "$dir/err" \
    || bad "after a full disk: $(cat "$dir/err")"

# a folder that cannot be written
if [ "$(id -u)" -ne 0 ]; then
    mkdir "$dir/locked"
    chmod a-w "$dir/locked"
    train --out "$dir/locked" > /dev/null 2> "$dir/err" && bad "a folder that cannot be written is no error"
    says "locked" "a folder that cannot be written"
fi
train --out "$dir/data/train-images-idx3-ubyte" > /dev/null 2> "$dir/err" && bad "a file is no folder"
says "train-images-idx3-ubyte" "a file for a folder"

# other batches than those that the steps counted; the record of the training stays
cp "$dir/whole/run.json" "$dir/before"
"$facula" train --resume "$dir/whole" --batch 8 > /dev/null 2> "$dir/err" && bad "another batch size is no error"
says "begun with 16 samples in a batch and cannot go on with 8" "another batch size"
cmp "$dir/before" "$dir/whole/run.json" || bad "a refused resume changes the record"

# a loss that is no number stops with the step
"$facula" train mnist --data "$dir/data" --model mlp --batch 16 --epochs 50 --threads 1 --optimizer sgd --lr 1e30 \
    --schedule constant --out "$dir/nan" > /dev/null 2> "$dir/err" && bad "a loss that is no number is no error"
says "the loss of step [0-9]* is" "a loss that is no number"
[ -f "$dir/nan/checkpoint.safetensors" ] || bad "no checkpoint before a loss that is no number"

[ $fails -eq 0 ] && echo "train_kill: ok ($deaths deaths)"
exit $fails
