#!/bin/sh
# facula train's logs and charts, and facula plot, from outside: sh plot.sh FACULA.
facula=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fails=0
bad() { echo "FAILED: $*"; fails=$((fails + 1)); }
export LC_ALL=C COLUMNS=80

# the end of a training: curve, matrix, mistakes, classes, samples; in ASCII where the locale says so
"$facula" train toy:circle --threads 1 --batch 10 --epochs 30 --out "$dir/a" --tensorboard "$dir/events" --show 5 > "$dir/out" || bad "train"
for text in "epoch 30/30" "  loss   \*\* train   oo test" "confusion of the test set" "accuracy by class" \
            "answers to 5 samples" "test accuracy .* after 30 epochs, 150 steps" "facula plot $dir/a"; do
    grep -q "$text" "$dir/out" || bad "the end of a training does not say \"$text\""
done
[ "$(grep -c '^  test sample' "$dir/out")" -eq 5 ] || bad "not five samples are shown"
LC_ALL=C grep -q "[^ -~]" "$dir/out" && bad "there is more than ASCII in the C locale"
[ "$(ls "$dir"/events/events.out.tfevents.* | wc -l)" -eq 1 ] || bad "event files: $(ls "$dir/events")"
LC_ALL=C.UTF-8 "$facula" train toy:circle --threads 1 --epochs 30 | grep -q "⣀" || bad "no braille in a UTF-8 locale"
"$facula" train toy:circle --threads 1 --epochs 5 --quiet | grep -q "confusion" && bad "--quiet shows charts"

# logs: a line for each epoch, the same numbers in both
[ "$(wc -l < "$dir/a/log.jsonl")" -eq 30 ] || bad "log.jsonl has not a line for each epoch"
[ "$(wc -l < "$dir/a/log.csv")" -eq 31 ] || bad "log.csv has not a line for each epoch and a head"
[ "$(wc -l < "$dir/a/steps.jsonl")" -eq 150 ] || bad "steps.jsonl has not a line for each step"
head=$(head -n 1 "$dir/a/log.csv")
[ "$head" = "epoch,step,lr,train_loss,train_accuracy,test_loss,test_accuracy,images_per_s,seconds" ] || bad "head of log.csv: $head"
loss=$(tail -n 1 "$dir/a/log.csv" | cut -d, -f6)
case $(tail -n 1 "$dir/a/log.jsonl") in *"\"test_loss\":$loss,"*) ;; *) bad "the logs differ: $loss" ;; esac

# a training that was killed in the middle of writing: its logs are whole again after the resumed one
"$facula" train toy:circle --threads 1 --batch 10 --epochs 20 --schedule constant --out "$dir/b" --quiet > /dev/null || bad "train"
printf '{"epoch":21,"step":105,"train_lo' >> "$dir/b/log.jsonl"
printf '{"step":101,"train_loss":1}\n{"step":10' >> "$dir/b/steps.jsonl"
"$facula" train --resume "$dir/b" --threads 1 --epochs 24 --quiet > /dev/null || bad "resume"
[ "$(wc -l < "$dir/b/log.jsonl")" -eq 24 ] || bad "log.jsonl after a crash has $(wc -l < "$dir/b/log.jsonl") lines"
[ "$(wc -l < "$dir/b/log.csv")" -eq 25 ] || bad "log.csv after a crash has $(wc -l < "$dir/b/log.csv") lines"
[ "$(wc -l < "$dir/b/steps.jsonl")" -eq 120 ] || bad "steps.jsonl after a crash has $(wc -l < "$dir/b/steps.jsonl") lines"
grep -c '"step":101,' "$dir/b/steps.jsonl" | grep -qx 1 || bad "step 101 is not in steps.jsonl once"

# pictures
png=$("$facula" version | grep -c "^cairo .*charts as PNG$")
made=$("$facula" plot "$dir/a") || bad "plot"
if [ "$png" -eq 1 ]; then
    [ "$made" = "$dir/a/plot.png" ] || bad "plot wrote $made"
    "$facula" plot "$dir/a" "$dir/b" --size 500x400 -o "$dir/two.png" > /dev/null || bad "plot of two"
    [ "$(od -An -tx1 -j1 -N3 "$dir/two.png" | tr -d ' \n')" = 504e47 ] || bad "two.png is no PNG"
    [ "$(od -An -tu1 -j16 -N8 "$dir/two.png" | tr -s ' ')" = " 0 0 1 244 0 0 1 144" ] || bad "two.png is not 500 x 400"
else
    [ "$made" = "$dir/a/plot.svg" ] || bad "plot wrote $made"
    "$facula" plot "$dir/a" -o "$dir/one.png" 2>&1 | grep -q "libcairo2-dev" || bad "plot does not say what to install"
fi
"$facula" plot "$dir/a" --compare "$dir/b" --title 'me & <you>' -o "$dir/two.svg" > /dev/null || bad "plot as SVG"
grep -q ">me &amp; &lt;you&gt;<" "$dir/two.svg" || bad "the title of two.svg"
if command -v python3 > /dev/null; then
    python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$dir/two.svg" || bad "two.svg is no XML"
fi
"$facula" plot "$dir/a" --weights -o "$dir/weights.svg" > /dev/null || bad "plot --weights"
for text in ">fc1.weight  100x2<" ">fc4.bias  2<" ">8 parameters<"; do
    grep -q "$text" "$dir/weights.svg" || bad "weights.svg does not say $text"
done
"$facula" plot "$dir/a" --text | grep -q "  accuracy, %   \*\* train   oo test" || bad "plot --text"

refuse() {
    code=$1 says=$2
    shift 2
    "$facula" plot "$@" > /dev/null 2> "$dir/err"
    got=$?
    [ $got -eq "$code" ] || bad "plot $*: exit $got, expected $code"
    grep -q "$says" "$dir/err" || bad "plot $*: does not say \"$says\": $(cat "$dir/err")"
}
mkdir "$dir/empty" "$dir/broken" "$dir/odd"
: > "$dir/empty/log.jsonl"
printf '{"epoch":1,"step":5}\nnonsense\n' > "$dir/broken/log.jsonl"
printf '{"epoch":1,"step":5}\n' > "$dir/odd/log.jsonl"
echo '{"classes":["a"],"counts":[[1,2]]}' > "$dir/odd/confusion.json"
refuse 2 "which training"
refuse 2 "WIDTHxHEIGHT" "$dir/a" --size 5
refuse 2 "one training" "$dir/a" "$dir/b" --weights
refuse 1 "log.jsonl" "$dir/nothing"
refuse 1 "model.safetensors" "$dir/odd" --weights
refuse 1 "no epoch" "$dir/empty"
refuse 1 "line 2 is not a JSON object" "$dir/broken"
refuse 1 "not a confusion matrix" "$dir/odd"
refuse 1 "svg or .png" "$dir/a" -o "$dir/a.jpg"
refuse 1 "nowhere" "$dir/a" -o /nowhere/a.svg
[ $fails -eq 0 ] && echo "plot: ok"
exit $fails
