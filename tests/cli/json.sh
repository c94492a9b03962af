#!/bin/sh
# What every verb prints as JSON, key by key, against the tables of docs/JSON.md.  usage: json.sh FACULA JSON_KEYS DOC
keys=$2 doc=$3
. "$(dirname "$0")/expect.sh"
FACULA_WISDOM="$dir/wisdom"
export FACULA_WISDOM

# json VERB ARGUMENTS...: all documented keys and no others; section=: where they stand, if not under the verb's name
json() {
    verb=${section:-$1}
    checks=$((checks + 1))
    "$facula" "$@" --json >out 2>err
    got=$?
    if [ $got -gt 1 ] || ! "$keys" "$doc" "$verb" <out >lines; then
        wrong "facula $* --json (exit $got)"
        cat lines err | sed 's/^/  | /' | head -20
    fi
}

"$facula" export zoo:lenet -o lenet.onnx >/dev/null
"$facula" export zoo:lenet --seed 7 -o other.onnx >/dev/null
printf 'input x f32[3]\n%%0 = loop(i64(2), -, x) carried=1 {(i64[], bool[], f32[3]) t0 = mul(x2, 0.5); x1, t0}\noutput y = %%0\n' >loop.txt
json summary zoo:lenet
json summary zoo:lenet --convention all
json summary lenet.onnx --batch 4 --convention thop
json inspect zoo:lenet
json inspect lenet.onnx --top 2
section='inspect --onnx' json inspect lenet.onnx --onnx
json profile zoo:lenet --seconds 0.001
json profile zoo:lenet --seconds 0.001 --train --top 3
json profile 'conv2d(f32[1,8,9,9], f32[4,8,3,3])' --seconds 0.001
json peaks
json bench zoo:lenet --seconds 0.001
json bench 'relu(f32[64])' --seconds 0.001 --verify
section='bench --callers' json bench zoo:lenet --callers 2 --seconds 0.001
json run zoo:lenet --random
json run zoo:lenet --random --top 3
{ printf 'P6\n28 28\n255\n'; head -c 2352 /dev/zero; } >photo.ppm
json run zoo:lenet photo.ppm
json run lenet.onnx photo.ppm --mean 0.5
json activations lenet.onnx photo.ppm
json verify lenet.onnx other.onnx --mode data --inputs photo.ppm
json tune zoo:lenet --seconds 0.001
json tune zoo:lenet --seconds 0.001 --rounds 1 --most 2 --all
section='tune --list' json tune --list
section='tune --export' json tune --export -o known
section='tune --export' json tune --merge known known -o merged
json export zoo:lenet -o again.onnx
printf "input x f32[1,4,5,5]\nparam w f32[6,4,3,3]\n%%1 = binarize(x)\n%%2 = binarize(w)\n%%3 = conv2d(%%1, %%2)\noutput y = %%3\n" >signs.txt
json pack signs.txt -o signs.fac
json quantize lenet.onnx --scheme int8:static --random -o bytes.onnx
json quantize lenet.onnx --scheme lq:w2a2 --random -o few.fac --histograms h.svg
section='quantize --sweep' json quantize lenet.onnx --scheme lq:w2a2 --sweep --random
section='bench --against' json bench signs.fac --against signs.txt --seconds 0.001
json tile lenet.onnx --max-m 16 --max-n 16 --max-k 16
json tile lenet.onnx --max-m 16 --max-n 16 --max-k 16 -o tiled.onnx
json verify lenet.onnx again.onnx
json verify lenet.onnx other.onnx
json verify lenet.onnx other.onnx --mode data
json edit lenet.onnx --rename x=photo --meta author=me --show-meta -o edited.onnx
json edit lenet.onnx --simplify --verify -o edited.onnx
json activations zoo:lenet --random
json activations zoo:lenet --random --bits 8
json diff lenet.onnx again.onnx
json diff lenet.onnx other.onnx
json train toy:xor --epochs 3
json op
json op conv2d
json op --onnx
json op --support --device cpu
json zoo
json report zoo:lenet -o page.html
json devices
json version
json activations loop.txt --random
printf '%s' '{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},"pre_tokenizer":{"type":"ByteLevel"}}' \
    > tokenizer.json
json tokenize tokenizer.json abba
# a language model of one layer, as llama2.c writes them: 259 + 3 tokens, zeros
{ printf '\004\000\000\000\004\000\000\000\001\000\000\000\001\000\000\000\001\000\000\000\003\000\000\000\020\000\000\000'
  head -c $(((3 * 4 + 4 + 4 * 16 + 4 + 3 * 16 + 4 + 16 * 4) * 4)) /dev/zero; } >model.bin
json generate model.bin ab --tokenizer tokenizer.json -n 2
printf 'abbaab' >text.txt
json perplexity model.bin text.txt --tokenizer tokenizer.json
json reduce lenet.onnx --check true --max-runs 3 -o small.onnx

# one case that passes and one that does not
mkdir -p cases/good/test_data_set_0 cases/bad/test_data_set_0
printf 'input x f32[2,3]\n%%1 = relu(x)\noutput y = %%1\n' >relu.txt
printf 'input x f32[2,3]\n%%1 = neg(x)\noutput y = %%1\n' >neg.txt
"$facula" export relu.txt -o cases/good/model.onnx >/dev/null
"$facula" export neg.txt -o cases/bad/model.onnx >/dev/null
"$facula" run relu.txt --random --output y=cases/good/test_data_set_0/input_0.pb >/dev/null
cp cases/good/test_data_set_0/input_0.pb cases/good/test_data_set_0/output_0.pb
cp cases/good/test_data_set_0/*.pb cases/bad/test_data_set_0
json conformance cases --quiet

# the totals that others may rely on
"$facula" summary zoo:lenet --json >out
holds out '"params":' '"macs":' '"peak_bytes":' '"layers":' '"schema_version":'

# the check itself: a key more, a key less, another type, no JSON
refuses() {
    checks=$((checks + 1))
    "$keys" "$doc" peaks <changed >lines 2>&1 && wrong "json_keys takes $1"
    return 0
}
"$facula" peaks --json >peaks
check "$keys" "$doc" peaks <peaks
sed 's/"threads"/"fibres"/' peaks >changed; refuses 'a key more'
sed '/"threads"/d' peaks >changed; refuses 'a key less'
sed 's/"threads":[^,]*/"threads": "two"/' peaks >changed; refuses 'another type'
echo '{ "peaks": [' >changed; refuses 'half an object'
: >changed; refuses 'nothing'

# verbs that have --json and no section here
for verb in $("$facula" help | awk '$1 == "usage:" { next } /^  [a-z]/ { print $1 }'); do
    "$facula" help "$verb" | grep -q -- '^  --json ' || continue
    case $verb in evaluate|predict) continue ;; esac        # of a training's folder: see docs/TRAINING.md
    check grep -qx "## $verb" "$doc"
done

finish
