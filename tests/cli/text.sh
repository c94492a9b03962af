#!/bin/sh
# facula train on texts and facula predict from outside: sh text.sh FACULA
facula=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fails=0
bad() { echo "FAILED: $*"; fails=$((fails + 1)); }

# sentences that one of two words decides
sentences() {
    awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) {
        good = i * 7 % 5 < 2
        printf "the %s of part %d is %s , they said", i % 3 ? "film" : "story", i % 11, good ? "great" : "awful"
        for (k = 0; k < i % 4; k++) printf " once more"
        printf "\t%d\n", good } }'
}
mkdir "$dir/data"
sentences 160 > "$dir/data/train.tsv"
sentences 40 > "$dir/data/dev.tsv"
last=$("$facula" train sst2 --data "$dir/data" --threads 1 --epochs 6 --batch 10 --out "$dir/run" --json | tail -n 1)
case $last in *'"test_accuracy":1,'*) ;; *) bad "accuracy: $last" ;; esac
head -n 1 "$dir/run/vocab.txt" | grep -q '^facula-vocab 1 word lower$' || bad "vocab.txt: $(head -n 1 "$dir/run/vocab.txt")"
[ "$(sed -n 2,5p "$dir/run/vocab.txt" | tr '\n' ' ')" = "<pad> <unk> more once " ] || bad "words: $(sed -n 2,5p "$dir/run/vocab.txt")"

says() {
    want=$1 got=$2
    case $got in *"$want"*) ;; *) bad "\"$got\" is not like \"$want\"" ;; esac
}
says "positive " "$("$facula" predict "$dir/run" "The story is GREAT, they said.")"
says "negative " "$("$facula" predict "$dir/run" "the film is awful")"
says '"class":"negative"' "$("$facula" predict "$dir/run" --json --top 1 "awful")"
printf 'this is great\n\nthis is awful\r\n' | "$facula" predict "$dir/run" --json > "$dir/lines" || bad "lines of the standard input"
[ "$(wc -l < "$dir/lines")" -eq 2 ] || bad "two answers: $(cat "$dir/lines")"
says '"input":"this is awful"' "$(tail -n 1 "$dir/lines")"
"$facula" predict "$dir/run" "words never seen" "" > /dev/null || bad "an unknown and an empty text"
"$facula" train --resume "$dir/run" --threads 1 --json > /dev/null || bad "a training of texts that is over is resumed"

# vectors from a file: their dims are the model's
printf 'great 1 0 0 0.5\nawful -1 0 0 0.5\nnowhere 1 1 1 1\n' > "$dir/glove.txt"
"$facula" train sst2 --data "$dir/data" --threads 1 --epochs 1 --glove "$dir/glove.txt" --out "$dir/pre" --json > /dev/null 2> "$dir/err"
says "4 dims for 2 of " "$(cat "$dir/err")"
rm "$dir/glove.txt"
"$facula" predict "$dir/pre" "great" > /dev/null || bad "a model with vectors from a file that is gone"

"$facula" train sst2 --data "$dir/data" --threads 1 --epochs 1 --model text-lstm --out "$dir/lstm" --json > /dev/null || bad "text-lstm"
"$facula" predict "$dir/lstm" "great" > /dev/null || bad "predict of text-lstm"

# numbers and photos
"$facula" train toy:diag --threads 1 --epochs 100 --out "$dir/toy" --json > /dev/null
says "1 " "$("$facula" predict "$dir/toy" 0.05,0.1)"
says "0 " "$("$facula" predict "$dir/toy" "0.9 0.9")"
photo() { { printf 'P6 8 8 255\n'; head -c 192 /dev/zero | tr '\0' "$1"; } > "$2"; }
mkdir -p "$dir/photos/dark" "$dir/photos/light"
for i in 1 2 3 4 5 6 7 8 9; do
    photo "\\02$((i % 8))" "$dir/photos/dark/$i.ppm"
    photo "\\33$((i % 8))" "$dir/photos/light/$i.ppm"
done
"$facula" train image-folder --data "$dir/photos" --size 8x8 --model mlp --threads 1 --epochs 20 --batch 4 --lr 0.01 --augment none \
    --out "$dir/shades" --json > /dev/null || bad "image-folder"
says "light " "$("$facula" predict "$dir/shades" "$dir/photos/light/3.ppm")"
says "dark " "$("$facula" predict "$dir/shades" "$dir/photos/dark/3.ppm")"

refuse() {
    code=$1 says=$2
    shift 2
    "$facula" "$@" > /dev/null 2> "$dir/err" < /dev/null
    got=$?
    [ $got -eq "$code" ] || bad "$*: exit $got, expected $code"
    grep -q "$says" "$dir/err" || bad "$*: does not say \"$says\": $(cat "$dir/err")"
}
refuse 1 "glove.txt" train sst2 --data "$dir/data" --glove "$dir/glove.txt"
printf 'fine\t1\nbroken\n' > "$dir/data/dev.tsv"
refuse 1 "dev.tsv:2" train sst2 --data "$dir/data"
refuse 1 "train.tsv" train sst2 --data "$dir"
refuse 2 "which training" predict
refuse 2 "top" predict "$dir/run" --top 0
refuse 1 "run.json" predict "$dir"
refuse 1 "2 numbers" predict "$dir/toy" 1
refuse 1 "none.png" predict "$dir/shades" "$dir/none.png"
rm "$dir/run/vocab.txt"
refuse 1 "vocab.txt" predict "$dir/run" x
echo '{' > "$dir/toy/samples.json"
refuse 1 "samples.json" predict "$dir/toy" 1,1
[ $fails -eq 0 ] && echo "all fine"
exit $((fails > 0))
