#!/bin/sh
# What verbs write: names become files of their own, no input is written over, a full disk or a
# standard output that cannot be written is an error and what was there stays.
# usage: outputs.sh FACULA HOSTILE
. "$(dirname "$0")/expect.sh"
hostile=$2

# ---- two names, two files ----
long=$(printf 'n%.0s' $(seq 300))
cat >names.txt <<END
input x f32[2]
%1 = relu(x)
%2 = neg(x)
output "a/b" = %1
output a_b = %2
output A_B = x
output "a:b" = %1
output "/a/b" = %2
output "." = %1
output ".." = %2
output "../up" = %1
output "nul" = %1
output "x\\\\y" = %2
output "é" = %1
output "É" = %2
output "\\x1b[31m" = %1
output "\\xff" = %2
output $long = %1
output ${long}m = %2
output "two words" = %1
END
expect 0 'a_b.npy' "$facula" run names.txt --random --output-dir files --json
check [ "$(ls -A files | wc -l)" -eq 17 ]
check [ "$(ls -A files | tr 'A-Z' 'a-z' | sort -u | wc -l)" -eq 17 ]
check [ "$(sed -n 's/.*"file":[^"]*"\(.*\)",*/\1/p' out | sort -u | wc -l)" -eq 17 ]
check [ -z "$(ls -A files | LC_ALL=C tr -d 'A-Za-z0-9._~[\200-\377\n-')" ]
check [ -z "$(ls -A files | grep -E '^\.|^nul\.|^.{230}')" ]
check [ ! -e up.npy ]
# a_b is its own file, whatever comes before it: -x, while a/b is relu(x)
"$facula" run names.txt --random --output 'a_b=want.npy' >/dev/null
check cmp want.npy files/a_b.npy

# pictures and parts of an archive
cat >maps.txt <<'END'
input x f32[1,2,4,4]
"a/b" = relu(x)
a_b = neg("a/b")
A_B = abs(a_b)
"/a/b" = exp(A_B)
output y = "/a/b"
END
expect 0 '5 pictures' "$facula" activations maps.txt --random --pictures maps --npz maps.npz
check [ "$(ls maps | wc -l)" -eq 5 ]
check [ "$(ls maps | tr 'A-Z' 'a-z' | sort -u | wc -l)" -eq 5 ]
check [ "$(grep -aoE '[~/A-Za-z0-9_]+\.npy' maps.npz | tr 'A-Z' 'a-z' | sort -u | wc -l)" -eq 5 ]

# ---- an input is no output ----
"$facula" export zoo:lenet -o plain.onnx >/dev/null
"$facula" run zoo:lenet --random --output-dir npy >/dev/null
cp plain.onnx a.onnx
ln -s a.onnx link.onnx
ln a.onnx hard.onnx
refused() { expect 1 'is an input, too' "$facula" "$@"; one_line; check cmp plain.onnx a.onnx; }
for to in a.onnx ./a.onnx link.onnx hard.onnx "$PWD/a.onnx"; do
    refused report a.onnx -o "$to"
    refused profile a.onnx --seconds 0.01 --chrome-trace "$to"
    refused export a.onnx -o "$to"
    refused edit a.onnx --simplify -o "$to"
    refused tile a.onnx --max-m 4 --max-n 4 --max-k 4 -o "$to"
    refused reduce a.onnx --check true -o "$to"
    refused run a.onnx --random --output "logits=$to"
    refused activations a.onnx --random --npz "$to"
done
refused report link.onnx -o a.onnx
refused edit plain.onnx --append a.onnx -o a.onnx
refused edit plain.onnx --restore a.onnx -o a.onnx
# what lies beside a model is an input as well
mkdir beside
check "$hostile" beside w.bin beside/m.onnx
head -c 36 /dev/zero >beside/w.bin
expect 0 'Softmax' "$facula" summary beside/m.onnx
for to in beside/w.bin beside/../beside/w.bin; do
    expect 1 'is an input, too' "$facula" report beside/m.onnx -o "$to"
    expect 1 'is an input, too' "$facula" run beside/m.onnx --random --output "y=$to"
done
mv beside/w.bin beside/n.onnx.data
check "$hostile" beside n.onnx.data beside/m.onnx
expect 1 'is an input, too' "$facula" edit beside/m.onnx --simplify -o beside/n.onnx
check [ "$(wc -c <beside/n.onnx.data)" -eq 36 ]
cp npy/*.npy x.npy
expect 1 'is an input, too' "$facula" run plain.onnx --input image=x.npy --output logits=x.npy
expect 1 'is an input, too' "$facula" tune --merge a.onnx -o a.onnx
expect 1 'two outputs' "$facula" run names.txt --random --output a_b=one.npy --output A_B=./one.npy
check [ ! -e one.npy ]
printf 'input x f32[10]\n%%1 = relu(x)\noutput x = %%1\n' >same.txt
mkdir here && "$facula" run same.txt --random --output x=here/x.npy >/dev/null
cp here/x.npy before.npy
expect 1 'is an input, too' "$facula" run same.txt here/x.npy --output-dir here
check cmp before.npy here/x.npy
"$facula" train toy:circle --threads 1 --epochs 1 --out trained --quiet >/dev/null
circle() { "$facula" train toy:circle --threads 1 --epochs 1 --quiet "$@"; }
expect 1 'is an input, too' circle --model trained/model.onnx --out trained

# ---- standard output that cannot be written ----
full() {
    checks=$((checks + 1))
    "$@" >/dev/full 2>err && wrong "a full disk is no error: $*"
    [ "$(wc -l <err)" -eq 1 ] || { wrong "not one line: $*"; cat err; }
    "$@" >&- 2>err && wrong "a closed output is no error: $*"
}
if [ -w /dev/full ]; then
    for words in help 'help run' version zoo devices 'op relu' op 'show plain.onnx' \
        'summary plain.onnx' 'inspect plain.onnx' 'run plain.onnx --random' 'diff plain.onnx a.onnx' \
        'verify plain.onnx a.onnx' 'activations plain.onnx --random' 'bench plain.onnx --runs 1' \
        'profile plain.onnx --seconds 0.01' 'export plain.onnx -o 1.onnx' \
        'edit plain.onnx --simplify -o 2.onnx' 'report plain.onnx -o 3.html' \
        'report plain.onnx -o -' 'tile plain.onnx --max-m 64 --max-n 64 --max-k 64' \
        'train toy:circle --threads 1 --epochs 1 --out other --overwrite' 'plot trained' \
        'predict trained 0.1,0.2' 'evaluate trained'; do
        full "$facula" $words
        case $words in help*|show*|*' -o -'|plot*) ;; *) full "$facula" $words --json ;; esac
    done
    check [ -s 1.onnx ]
fi
"$facula" show plain.onnx | head -n 1 >first 2>err
check [ -s first ]

# ---- a full disk: what was there stays ----
# limited BLOCKS FILE COMMAND...: files may not grow beyond so many blocks of 512 bytes
limited() {
    blocks=$1 file=$2
    shift 2
    printf 'what was there' >"$file"
    cp "$file" before
    checks=$((checks + 1)) limits=$((limits + 1))
    (ulimit -f "$blocks" && exec "$@") >out 2>err && wrong "$blocks blocks, a full disk is no error: $*"
    [ "$(wc -l <err)" -eq 1 ] || { wrong "$blocks blocks, not one line: $*"; cat err; }
    cmp before "$file" || wrong "$blocks blocks, a full disk damages $file: $*"
    [ -z "$(find . -name '*.tmp')" ] || wrong "a full disk leaves $(find . -name '*.tmp')"
}
# fills FILE COMMAND...: the disk is full after its first block, a quarter, a half, three quarters,
# or before the last
fills() {
    file=$1
    shift
    check "$@" >/dev/null
    last=$((($(wc -c <"$file") - 1) / 512))
    tried=
    for blocks in 1 $((last / 4)) $((last / 2)) $((last * 3 / 4)) "$last"; do
        case " $tried " in *" $blocks "*) continue ;; esac
        tried="$tried $blocks"
        [ "$blocks" -eq 0 ] || limited "$blocks" "$file" "$@"
    done
}
limits=0
printf 'input x f32[1000]\n%%1 = relu(x)\noutput y = %%1\n' >wide.txt
for blocks in 1 8 64; do limited $blocks page.html "$facula" report plain.onnx -o page.html; done
limited 1 trace.json "$facula" profile plain.onnx --seconds 0.01 --chrome-trace trace.json
fills big.onnx "$facula" export zoo:lenet -o big.onnx
fills copy.onnx "$facula" export plain.onnx -o copy.onnx
fills edited.onnx "$facula" edit plain.onnx --simplify -o edited.onnx
fills halved.onnx "$facula" edit plain.onnx --dtype f16 -o halved.onnx
fills tiled.onnx "$facula" tile plain.onnx --max-m 64 --max-n 64 --max-k 64 -o tiled.onnx
fills bytes.onnx "$facula" quantize plain.onnx --scheme int8:dynamic -o bytes.onnx
fills tensors.npz "$facula" activations plain.onnx --random --npz tensors.npz
fills small.onnx "$facula" reduce plain.onnx --check true --max-runs 2 -o small.onnx
fills curves.svg "$facula" plot trained -o curves.svg
for kind in npy npz pb safetensors; do
    fills "relu.$kind" "$facula" run wide.txt --random --output "y=relu.$kind"
done
ln -s page.html page.link
limited 8 page.html "$facula" report plain.onnx -o page.link
check [ "$limits" -ge 60 ]

# a link that leads to itself, or nowhere, is not replaced
for target in lost nowhere; do
    rm -f lost && ln -s $target lost
    for to in "export plain.onnx -o" "edit plain.onnx --simplify -o" "report plain.onnx -o" \
        "quantize plain.onnx --scheme int8:dynamic -o" "activations plain.onnx --random --npz" \
        "profile plain.onnx --seconds 0.01 --chrome-trace" "plot trained -o"; do
        $facula $to lost >out 2>err && wrong "$to: writes over a link to $target"
        holds err 'lost: '
        check [ -L lost ]
    done
done

# a log that cannot grow ends the training, after a checkpoint; whole lines stay
printf 'input x f32[N,2]\nparam w f32[2,2]\n%%1 = matmul(x, w)\noutput y = %%1\n' >tiny.txt
"$facula" export tiny.txt -o tiny.onnx >/dev/null
tiny() {
    "$facula" train toy:circle --model tiny.onnx --threads 1 --batch 2 --epochs 100 --quiet "$@"
}
(ulimit -f 20 && tiny --out logged) >out 2>err && wrong 'a log that cannot be written is no error'
holds err 'steps.jsonl' 'train --resume'
check [ -f logged/checkpoint.safetensors ]
check [ -z "$(tail -c 1 logged/steps.jsonl)" ]
check tiny --resume logged >/dev/null
check grep -q '"step":2500,' logged/steps.jsonl
(ulimit -f 20 && tiny --tensorboard events) >out 2>err &&
    wrong 'events that cannot be written are no error'
holds err 'tfevents'
# and no log goes through a link, or into a pipe
for name in log.jsonl log.csv steps.jsonl; do
    rm -rf linked && mkdir linked && echo precious >target && ln -s ../target "linked/$name"
    expect 1 'is a link' circle --out linked
    check grep -qx precious target
    rm -rf linked && mkdir linked && mkfifo "linked/$name"
    expect 1 'not a regular file' circle --out linked
done
finish
