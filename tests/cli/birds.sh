#!/bin/sh
# birds.sh FACULA BIRDS: sounds of five patterns in noise, from files to a model that tells them
# apart; the same bits when the recordings do not stay in memory.
. "$(dirname "$0")/expect.sh"
birds=$2

check "$birds" birds 20 1 8000 1
check "$birds" others 4 2 8000 1
train() {
    "$facula" train sound-folder --data birds --rate 8000 --seconds 1 --mels 32 --batch 10 \
        --threads 1 --epochs 8 --test-part 0.2 --quiet "$@" >/dev/null 2>&1
}
check train --out memory
check train --out files --sound-memory 1 # of 3
cmp -s memory/model.safetensors files/model.safetensors ||
    wrong "recordings that are read again give other weights"
expect 0 '"recording_accuracy"' "$facula" evaluate memory/model.onnx sound-folder --data others --json
sed -n 's/.*"recording_accuracy":[^0-9]*\([0-9.]*\).*/\1/p' out |
    awk '{ exit !(NR == 1 && $1 >= 0.9) }' || wrong "birds that nobody knew: $(cat out)"
expect 0 'trill' "$facula" run memory/model.onnx others/trill/00.wav
finish
