#!/bin/sh
# What is read may be anything: a pipe, a device that never ends, a folder, too much.  The command says so at once, and what waits
# for a pipe on purpose can be stopped.
# usage: reading.sh path/to/facula
. "$(dirname "$0")/expect.sh"

# refused WORDS COMMAND...: exit 1 and one line, within some seconds
refused() {
    words=$1
    shift
    expect 1 "$words" timeout -k 5 20 "$@"
    one_line
}

cat >m.txt <<'END'
input x f32[1,3]
%r = relu(x)
output y = %r
END
mkfifo fifo
ln -s /dev/zero endless.txt
ln -s fifo pipe.txt
mkdir folder
printf 'a\nb\nc\n' >names
: >nothing
"$facula" train toy:xor --epochs 2 --out run --quiet >out 2>err
"$facula" export m.txt -o m.onnx >out 2>err

# ---- labels: a file, or a pipe that something writes to ----

label() { "$facula" run m.onnx --random --labels "$1"; }
expect 0 'ms on cpu' label names
refused 'has no names' "$facula" run m.onnx --random --labels nothing
refused 'nothing writes to this pipe' "$facula" run m.onnx --random --labels fifo
refused 'not a regular file or a pipe' "$facula" run m.onnx --random --labels /dev/zero
refused 'it is a folder' "$facula" run m.onnx --random --labels folder
refused 'No such file' "$facula" run m.onnx --random --labels nowhere
printf 'a\0b\n' >binary
refused 'zero byte' "$facula" run m.onnx --random --labels binary
head -c 70000000 /dev/zero | tr '\0' 'a' >large
refused 'holds more than' "$facula" run m.onnx --random --labels large
rm large
cat names | expect 0 'ms on cpu' label /dev/stdin
yes | refused 'holds more than' "$facula" run m.onnx --random --labels /dev/stdin

# ---- a pipe whose other end says nothing: a signal ends the command ----

sleep 30 >fifo &
sleeper=$!
"$facula" run m.onnx --random --labels fifo >out 2>err &
waiting=$!
sleep 0.5
check kill -0 $waiting
check kill $waiting
wait $waiting
got=$?
check [ $got -ge 128 ]
kill $sleeper
wait $sleeper 2>/dev/null

# ---- texts of graphs, rules, targets ----

refused 'not a regular file or a pipe' "$facula" summary endless.txt
refused 'nothing writes to this pipe' "$facula" summary pipe.txt
(sleep 0.2; cat m.txt >fifo) &       # one that begins a little later
expect 0 'relu' "$facula" summary pipe.txt
refused 'not a regular file or a pipe' "$facula" edit m.onnx --rules /dev/zero -o o.onnx
refused 'not a regular file or a pipe' "$facula" tile m.onnx --target /dev/zero

# ---- what must be a file: models, tensors, weights, wisdom ----

for path in fifo /dev/zero; do
    refused 'not a regular file' "$facula" run "$path" --random
    ln -sf "$path" tensor.npy
    refused 'not a regular file' "$facula" run m.onnx tensor.npy
    refused 'not a regular file' "$facula" run zoo:lenet --random --weights "$path"
    refused 'not a regular file' "$facula" run m.onnx --random --wisdom "$path"
done

# ---- a line that never ends ----

endless_line() { tr '\0' a </dev/zero | timeout -k 5 20 "$facula" predict run; }
expect 1 'a line of more than' endless_line

# ---- the folder of a training ----

for file in run.json log.jsonl steps.jsonl confusion.json samples.json; do
    for kind in endless fifo; do
        rm -rf broken
        cp -r run broken
        rm -f broken/$file
        if [ $kind = fifo ]; then mkfifo broken/$file; else ln -s /dev/zero broken/$file; fi
        case $file in
        run.json) refused 'not a regular file' "$facula" train --resume broken --quiet ;;
        samples.json) refused 'not a regular file' "$facula" predict broken 0,1 ;;
        confusion.json) refused 'not a regular file' "$facula" plot broken -o p.svg ;;
        *) refused 'not a regular file' "$facula" plot broken -o p.svg
           refused 'not a regular file' "$facula" train --resume broken --epochs 3 --quiet ;;
        esac
    done
done
finish
