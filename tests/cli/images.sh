#!/bin/sh
# facula train on folders of photos, from outside: sh images.sh FACULA.  Augmentation by name; a model from an ONNX file gets the
# classes of other photos; what is frozen stays.
facula=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fails=0
bad() { echo "FAILED: $*"; fails=$((fails + 1)); }

# photo FILE RED GREEN BLUE: 8 x 8 pixels of one colour
photo() {
    mkdir -p "$(dirname "$1")"
    pixel=$(printf '\\%03o\\%03o\\%03o' "$2" "$3" "$4")
    { printf 'P6\n8 8\n255\n'; for i in $(seq 64); do printf "$pixel"; done; } > "$1"
}
for i in 0 1 2 3 4 5 6 7 8 9; do
    photo "$dir/two/red/$i.ppm" $((200 + i)) 20 $((3 * i))
    photo "$dir/two/blue/$i.ppm" 10 $((2 * i)) $((180 + i))
done
cp -r "$dir/two" "$dir/three"
for i in 0 1 2 3 4 5 6 7 8 9; do photo "$dir/three/green/$i.ppm" $((2 * i)) $((190 + i)) 30; done

"$facula" train image-folder --data "$dir/two" --size 8x8 --model cnn --threads 1 --epochs 4 --batch 6 --quiet \
    --augment crop=1,flip,resize,rotate,colour,hue,cutout=2,erase,mixup --out "$dir/first" > "$dir/log" 2>&1 ||
    bad "all kinds of augmentation: $(cat "$dir/log")"
"$facula" train image-folder --data "$dir/three" --model "$dir/first/model.onnx" --freeze 'conv*' --threads 1 --epochs 30 \
    --batch 8 --lr 0.05 --augment none --json --out "$dir/second" > "$dir/log" 2> "$dir/err" || bad "other classes: $(cat "$dir/err")"
grep -q "fc gave 2 classes, the data set has 3" "$dir/err" || bad "does not say what was replaced: $(cat "$dir/err")"
case $(tail -n 1 "$dir/log") in *'"test_accuracy":1,'*) ;; *) bad "colours are not learned: $(tail -n 1 "$dir/log")" ;; esac

# the head that was replaced has its weights when the folder is used; a model of other classes is not evaluated with a random one
"$facula" predict "$dir/second" "$dir/three/green/3.ppm" > "$dir/log" 2> "$dir/err" || bad "predict: $(cat "$dir/err")"
grep -q "^green" "$dir/log" || bad "predict: $(cat "$dir/log")"
"$facula" evaluate "$dir/second" --json > "$dir/log" 2> "$dir/err" || bad "evaluate: $(cat "$dir/err")"
grep -q '"accuracy":.*1,' "$dir/log" || bad "evaluate: $(cat "$dir/log")"
"$facula" evaluate "$dir/first/model.onnx" image-folder --data "$dir/three" > /dev/null 2> "$dir/err" &&
    bad "a model of other classes is evaluated"
grep -q "not trained for these classes" "$dir/err" || bad "other classes: $(cat "$dir/err")"

# ResNet-20: 19 convolutions and a linear layer; in bits it answers as the network without quantizers does
"$facula" train image-folder --data "$dir/three" --size 12x12 --model resnet20 --threads 1 --epochs 3 --batch 6 --quiet \
    --augment none --quantize lq:w2a2 --out "$dir/twenty" > "$dir/log" 2>&1 || bad "resnet20: $(cat "$dir/log")"
"$facula" summary "$dir/twenty/model.onnx" --json > "$dir/log" 2> "$dir/err" || bad "resnet20: $(cat "$dir/err")"
tr -d '\t\n' < "$dir/log" | grep -q '"kind":"Conv2d","layers":19,' || bad "resnet20 has not 19 convolutions"
"$facula" evaluate "$dir/twenty" --against "$dir/twenty/model.onnx" > "$dir/log" 2>&1 || bad "resnet20 in bits: $(cat "$dir/log")"

# a network of the zoo takes another size than its own
"$facula" train image-folder --data "$dir/two" --size 32x48 --model zoo:resnet18 --threads 1 --epochs 1 --batch 10 --quiet \
    --out "$dir/sized" > "$dir/log" 2>&1 || bad "another size: $(cat "$dir/log")"
"$facula" evaluate "$dir/sized" > "$dir/log" 2>&1 || bad "another size, evaluate: $(cat "$dir/log")"
"$facula" train toy:xor --size 8x8 > /dev/null 2> "$dir/err" && bad "points have no size"
grep -q -e "--size is for images, not for toy:xor" "$dir/err" || bad "size of points: $(cat "$dir/err")"

refuse() {
    says=$1
    shift
    "$facula" train image-folder --data "$dir/two" --size 8x8 "$@" > /dev/null 2> "$dir/err" && bad "train $*: is not refused"
    grep -q "$says" "$dir/err" || bad "train $*: does not say \"$says\": $(cat "$dir/err")"
}
refuse 'no augmentation "flop"; there are crop, flip' --augment crop,flop
refuse "at most 0.5" --augment hue=0.7
"$facula" train toy:xor --augment flip > /dev/null 2> "$dir/err" && bad "points are not mirrored"
grep -q "for images" "$dir/err" || bad "points: $(cat "$dir/err")"
printf 'P6\n8 8\n255\nshort' > "$dir/two/red/broken.ppm"
refuse "broken.ppm"

[ $fails -eq 0 ] && echo "ok"
exit $fails
