#!/bin/sh
# sound.sh FACULA LISTEN: sounds of our own making, trained on, run, plotted and listened to.
listen=$2
. "$(dirname "$0")/expect.sh"

# Tones of two pitches as raw 16 bits, with a WAV header: le VALUE BYTES
le() {
    n=$1 k=$2
    while [ "$k" -gt 0 ]; do
        printf "\\$(printf %03o $((n % 256)))"
        n=$((n / 256)) k=$((k - 1))
    done
}
# wav SAMPLES PERIOD: a square wave of this period at 8000 Hz
wav() {
    printf RIFF; le $((36 + 2 * $1)) 4; printf 'WAVEfmt '; le 16 4; le 1 2; le 1 2; le 8000 4; le 16000 4; le 2 2; le 16 2
    printf data; le $((2 * $1)) 4
    awk -v n="$1" -v p="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", i % p < p / 2 ? "\\000\\040" : "\\000\\340" }' | xargs -0 printf
}

for class in low high; do
    mkdir -p birds/$class
    for k in 1 2 3 4 5 6; do
        if [ $class = low ]; then period=$((60 + k)); else period=$((8 + k % 3)); fi
        wav 4000 $period >birds/$class/$k.wav
    done
done

expect 0 'test accuracy' "$facula" train sound-folder --data birds --rate 8000 --seconds 0.5 --mels 24 --epochs 8 --batch 4 --augment none --out run --quiet
expect 1 'waveforms take shift, gain, noise and mixup' "$facula" train sound-folder --data birds --rate 8000 --seconds 0.5 --mels 24 --epochs 1 --augment flip
expect 0 'high' "$facula" run run/model.onnx birds/high/2.wav
expect 0 'low' "$facula" run run/model.onnx birds/low/2.wav birds/high/3.wav
expect 0 '"sounds"' "$facula" run run/model.onnx birds/low/2.wav --json
expect 0 'low.svg' "$facula" plot birds/low/1.wav -o low.svg
holds low.svg kHz dB
expect 0 'kHz' "$facula" plot birds/low/1.wav
expect 0 'high' sh -c "'$facula' listen run/model.onnx - --threshold 0 <birds/high/1.wav"
expect 0 'high' sh -c "(printf RF64; tail -c +5 birds/high/1.wav) | '$facula' listen run/model.onnx - --threshold 0"
expect 0 'low' sh -c "tail -c +45 birds/low/1.wav | '$facula' listen run/model.onnx - --threshold 0 --all --json"
# what comes after the data is not heard; what stands before them is passed over, however long
hear() {
    "$facula" listen run/model.onnx - --threshold 0 --all --json <"$1" 2>&1 | sed 's/,"ms".*//'
}
(cat birds/low/1.wav; printf 'LIST'; le 4000 4; head -c 4000 /dev/urandom) >after.wav
(head -c 12 birds/low/1.wav; printf 'id3 '; le 9001 4; head -c 9002 /dev/urandom; tail -c +13 birds/low/1.wav) >before.wav
hear birds/low/1.wav >plain.txt
grep -q low plain.txt || wrong "listen hears nothing"
for file in after before; do
    hear $file.wav >$file.txt
    cmp -s plain.txt $file.txt || wrong "$file.wav is heard otherwise: $(cat $file.txt)"
done

# windows are averaged; folders and tables are heard, too
expect 0 'average' "$facula" run run/model.onnx birds/high/2.wav --json
printf 'birds/high/1.wav,high\nbirds/low/1.wav,low,0.1,0.4\n' >few.csv
expect 0 'high' "$facula" predict run few.csv birds/high
grep -c wav out | grep -qx 8 || wrong "predict: a line for each sound"
expect 0 '"windows"' "$facula" predict run birds/low/1.wav --json
expect 0 'recordings 100.00 % (2 of 2), windows averaged' "$facula" evaluate run --data few.csv
expect 0 '"recording_accuracy"' "$facula" evaluate run/model.onnx sound-folder --data birds --json
sed s/low/middle/2 few.csv >odd.csv
expect 1 'none of the model' "$facula" evaluate run --data odd.csv

# a training goes on with the same bits, whatever is drawn: cuts, shifts, gain, noise, mixtures,
# masks, dropout
train() {
    "$facula" train sound-folder --data birds --rate 8000 --seconds 0.3 --mels 24 --batch 4 \
        --threads 1 --schedule constant --augment shift,gain,noise,mixup --mask 0.2 --quiet \
        --low 100 --high 3900 --normalize bands --model sound-cnn:8,16,16 \
        "$@" >/dev/null 2>&1
}
check train --epochs 4 --out whole
check train --epochs 2 --out parts
check "$facula" train --resume parts --epochs 4 --threads 1 --quiet
cmp -s whole/model.safetensors parts/model.safetensors || wrong "a resumed training has other bits"
check train --epochs 4 --out unmasked --mask 0
cmp -s whole/model.safetensors unmasked/model.safetensors && wrong "a mask changes nothing"
check train --epochs 4 --out table --data few.csv --test-part 0.5
check train --epochs 4 --out other --normalize clip
cmp -s whole/model.safetensors other/model.safetensors && wrong "--normalize changes nothing"
expect 1 'mels from 0 to 4001 Hz' "$facula" train sound-folder --data birds --rate 8000 --high 4001

for odd in '' 0 8, 8,,8 5000 8x 1,2,3,4,5,6,7,8,9; do
    expect 2 "1 to 8 widths of 1 to 4096, not \"$odd\"" "$facula" train sound-folder --data birds --model "sound-cnn:$odd"
done
for odd in sound-cnn28 sound-cnn,8 s; do
    expect 1 "$odd" "$facula" train sound-folder --data birds --model "$odd"
done

# pictures are kept where nothing random changes the sounds: the model still takes waveforms, and
# learns what it learns where they are made in each step
near() {
    "$facula" evaluate "$1" --json >a.json
    "$facula" evaluate "$2" --json >b.json
    cat a.json b.json | tr -d ',' | awk -v by="$3" '/"loss"/ { l[n++] = $2 }
        END { d = l[0] - l[1]; exit !(n == 2 && d <= by && -d <= by) }' ||
        wrong "$1 and $2 have other losses"
}
check train --seconds 0.5 --epochs 3 --augment none --out kept
check train --seconds 0.5 --epochs 3 --augment gain=0.0000001 --out made
near kept made 1e-4
check train --seconds 0.5 --epochs 1 --augment none --out part
check "$facula" train --resume part --epochs 3 --threads 1 --quiet >/dev/null
cmp -s kept/model.safetensors part/model.safetensors || wrong "a resumed training of kept pictures"
expect 0 'low' "$facula" run kept/model.onnx birds/low/2.wav
expect 0 'wave' "$facula" show kept/model.onnx

# devices learn the same
if "$facula" devices | grep -q '^opencl:0'; then
    for device in cpu opencl; do
        check train --epochs 1 --lr 0.001 --device $device --out on-$device
    done
    near on-cpu on-opencl 1e-5
fi

# the example hears what the command hears
expect 0 'high' env ASAN_OPTIONS=detect_leaks=0 "$listen" run/model.onnx birds/high/2.wav

# a model of one score that remembers: how loud it was
cat >loud.txt <<'END'
input x f32[N,800]
input state f32[1,1]
%1 = mul(x, x)
%2 = mean(%1, i64{1}) keep
%3 = add(%2, state)
%4 = mul(%3, f32{0.5})
%5 = mul(%4, f32{40})
%6 = tanh(%5)
output score = %6
output next = %4
END
check "$facula" edit loud.txt --meta facula.rate=8000 -o loud.onnx
(wav 4000 10; head -c 16000 /dev/zero) >then.wav
expect 0 'no class 0' sh -c "tail -c +45 then.wav | '$facula' listen loud.onnx -"
head -1 out | grep -q '0.10 s .* class 0' || wrong "listen: where a score begins"
expect 0 'class 0' "$facula" run loud.onnx birds/high/1.wav
expect 1 'without states' sh -c "'$facula' listen loud.onnx - --hop 0.1 <then.wav"

# what cannot be
expect 1 'longer than the file' sh -c "head -c 1000 birds/low/1.wav >cut.wav; '$facula' run run/model.onnx cut.wav"
expect 1 'not a sound' sh -c "echo hello >text.wav; '$facula' run run/model.onnx text.wav"
expect 1 'rate of its sound' sh -c "'$facula' edit run/model.onnx --delete-meta facula.rate -o mute.onnx >/dev/null 2>&1; '$facula' run mute.onnx birds/low/1.wav"
expect 1 'compressed' sh -c "printf 'OggS and more of it' | '$facula' listen run/model.onnx -"
expect 2 'which model' "$facula" listen
expect 1 'sounds of' "$facula" train sound-folder --data run --epochs 1
finish
