#!/bin/sh
# Language models from a text: sh train_text.sh FACULA.  Trained, stopped and resumed with the same bytes, generated from;
# what cannot be is one error.
facula=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fails=0
bad() { echo "FAILED: $*"; fails=$((fails + 1)); }
refused() {             # exit code, what it says, arguments
    want=$1; text=$2; shift 2
    "$facula" train text "$@" > "$dir/out" 2> "$dir/err"
    code=$?
    [ $code -eq "$want" ] || bad "$*: exit code $code instead of $want: $(cat "$dir/err")"
    grep -q -- "$text" "$dir/err" || bad "$*: does not say \"$text\": $(cat "$dir/err")"
    [ "$(grep -c '^facula:' "$dir/err")" -eq 1 ] || bad "$*: not one error: $(cat "$dir/err")"
}

i=0
while [ $i -lt 150 ]; do
    echo "the cat sat on the mat; café number $((i % 7)) was là."
    i=$((i + 1))
done > "$dir/text.txt"
small="--data $dir/text.txt --context 16 --batch 4 --threads 1 --test-batches 4 --json --seed 3"

# a few steps learn such a text, with characters and with a BPE, as GPT-2 and as Llama
for what in "gpt:2x2x16 char" "llama:1x2x32 bpe:300"; do
    set -- $what
    run="$dir/run_$2"
    "$facula" train text $small --model "$1" --tokenizer "$2" --steps 240 --lr 1e-2 --evaluate-every 80 \
        --dropout 0.05 --out "$run" > "$dir/log" 2> "$dir/err" || bad "$what: $(cat "$dir/err")"
    [ "$(grep -c '"epoch"' "$dir/log")" -eq 3 ] || bad "$what: looks at the test part: $(cat "$dir/log")"
    python3 - "$dir/log" <<'P' || bad "$what: it learns too little: $(cat "$dir/log")"
import json, sys
last = json.loads(open(sys.argv[1]).read().split("\n")[-2])
assert last["steps"] == 240 and last["test_loss"] < 1.2 and last["test_loss_error"] >= 0, last
P
    for name in config.json tokenizer.json model.safetensors model.onnx run.json log.csv; do
        [ -s "$run/$name" ] || bad "$what: there is no $name"
    done
    "$facula" profile "$run" --json --seconds 0.01 > "$dir/out" 2> "$dir/err" || bad "profile: $(cat "$dir/err")"
    grep -q '"cache_write"' "$dir/out" || bad "profile: no step of decoding: $(cat "$dir/out")"
    "$facula" generate "$run" "the cat" -n 4 --temp 0 > "$dir/said" 2> "$dir/err" || bad "generate: $(cat "$dir/err")"
    grep -q "^the cat s" "$dir/said" || bad "$what: goes on with \"$(cat "$dir/said")\""
    "$facula" perplexity "$run" "$dir/text.txt" > /dev/null 2> "$dir/err" || bad "perplexity: $(cat "$dir/err")"
    "$facula" run "$run/model.onnx" ids=i64[2,5]:zeros > /dev/null 2>&1 || "$facula" summary "$run/model.onnx" > /dev/null 2>&1 \
        || bad "$what: its model.onnx cannot be used"
done

# trained further from its own folder; the tokenizer goes along
"$facula" train text $small --model "$dir/run_char" --steps 4 --out "$dir/further" > /dev/null 2> "$dir/err" \
    || bad "further: $(cat "$dir/err")"
cmp -s "$dir/run_char/tokenizer.json" "$dir/further/tokenizer.json" || bad "the tokenizer did not go along"
"$facula" generate "$dir/further" "the" -n 2 --temp 0 > /dev/null 2> "$dir/err" || bad "further: $(cat "$dir/err")"

# beams give texts and scores; guesses change nothing
"$facula" generate "$dir/run_char" "the cat" -n 9 --beams 3 > "$dir/b" 2> "$dir/err" || bad "beams: $(cat "$dir/err")"
grep -q "^the cat........." "$dir/b" || bad "beams: $(cat "$dir/b")"
"$facula" generate "$dir/run_char" "the cat" -n 9 --beams 3 --json | grep -c '"score"' > "$dir/b"
[ "$(cat "$dir/b")" -eq 3 ] || bad "beams --json: $(cat "$dir/b")"
"$facula" generate "$dir/run_char" "the cat" -n 9 --beams 3 --lookup 3 > /dev/null 2> "$dir/err" && bad "beams with guesses"
"$facula" generate "$dir/run_char" "cat; cat" -n 7 --temp 0 > "$dir/a"
"$facula" generate "$dir/run_char" "cat; cat" -n 7 --temp 0 --lookup 3 --draft "$dir/run_char" --stats > "$dir/b" 2> "$dir/err"
cmp -s "$dir/a" "$dir/b" || bad "guesses change the text: $(cat "$dir/b")"
grep -q "^guesses .* accepted" "$dir/err" || bad "--stats says nothing of guesses: $(cat "$dir/err")"

# a conversation goes on after a line that is no text, and tells its commands in lines
printf 'caf\351\n/what\nthe cat\n' | "$facula" chat "$dir/run_char" --chat-template zephyr -n 3 --temp 0 > "$dir/a" 2> "$dir/err" \
    || bad "chat: $(cat "$dir/err")"
grep -q "^this line is not UTF-8" "$dir/err" || bad "chat passes over a line without a word: $(cat "$dir/err")"
grep -q "^/regenerate answers again" "$dir/err" || bad "the commands of chat: $(cat "$dir/err")"

# an end of the text that the model does not know
cp -R "$dir/run_char" "$dir/odd"
python3 - "$dir/odd" <<'P'
import json, sys
path = sys.argv[1] + "/tokenizer.json"
all = json.load(open(path))
all["added_tokens"] = (all.get("added_tokens") or []) + [{"id": 5000, "content": "<end>", "special": True}]
json.dump(all, open(path, "w"))
json.dump({"eos_token": "<end>"}, open(sys.argv[1] + "/tokenizer_config.json", "w"))
P
for what in generate perplexity; do
    "$facula" $what "$dir/odd" "$dir/text.txt" > "$dir/out" 2> "$dir/err" && bad "$what: the end is no token of the model"
    grep -q "begins or ends texts beyond the model's" "$dir/err" || bad "$what: the end: $(cat "$dir/err")"
done

# a prompt that is too long, a tokenizer of another model
"$facula" generate "$dir/run_char" "the cat the cat the cat" --ctx-size 8 > "$dir/a" 2> "$dir/err" && bad "a prompt longer than the context"
grep -q "the context 8: --ctx-size" "$dir/err" || bad "a long prompt: $(cat "$dir/err")"
[ -s "$dir/a" ] && bad "a prompt that is refused was printed: $(cat "$dir/a")"
"$facula" generate "$dir/run_char" "the" --tokenizer "$dir/run_bpe:300" > /dev/null 2> "$dir/err" && bad "a tokenizer of another model"
grep -q "another model's" "$dir/err" || bad "a tokenizer of another model: $(cat "$dir/err")"
mv "$dir/further/tokenizer.json" "$dir/further/kept"
"$facula" generate "$dir/further" "the" > /dev/null 2> "$dir/err" && bad "a model without its tokenizer"
grep -q -- "--tokenizer FILE" "$dir/err" || bad "a model without its tokenizer: $(cat "$dir/err")"
mv "$dir/further/kept" "$dir/further/tokenizer.json"

for what in "generate needs|--lookup|--guesses 3" "chat needs|--lookup|--guesses 3" "serve needs|--lookup|--guesses 3" \
    "generate a whole number|from 2|--lookup 1" "serve a whole number|from 2|--lookup 1" "generate needs|--context-shift|--keep 4"; do
    verb=${what%% *}
    "$facula" "$verb" "$dir/run_char" ${what##*|} < /dev/null > /dev/null 2> "$dir/err"
    [ $? -eq 2 ] || bad "$verb ${what##*|}: $(cat "$dir/err")"
    says=${what%|*}
    grep -q -- "${says#*|}" "$dir/err" || bad "$verb ${what##*|}: $(cat "$dir/err")"
done

# adapters alone, and merged
"$facula" train text $small --model "$dir/run_char" --lora r=2,c_attn --steps 6 --merge --out "$dir/lora" \
    > /dev/null 2> "$dir/err" || bad "adapters: $(cat "$dir/err")"
"$facula" generate "$dir/run_char" --lora "$dir/lora" "the cat" -n 6 --temp 0 > "$dir/a" 2> "$dir/err" \
    || bad "generate with adapters: $(cat "$dir/err")"
"$facula" generate "$dir/lora/merged" "the cat" -n 6 --temp 0 > "$dir/b" 2> "$dir/err" || bad "merged: $(cat "$dir/err")"
cmp -s "$dir/a" "$dir/b" || bad "adapters say $(cat "$dir/a"), merged $(cat "$dir/b")"
"$facula" generate "$dir/run_char" --lora "$dir/further" "a" -n 1 > /dev/null 2> "$dir/err" && bad "a folder without adapters"
grep -q "adapter_config.json" "$dir/err" || bad "no adapters: does not say so: $(cat "$dir/err")"

# a .gguf is trained whole, and stays one: in its types, or as --scheme says
"$facula" quantize "$dir/run_bpe:300" --scheme q8_0 -o "$dir/model.gguf" > /dev/null 2> "$dir/err" || bad "quantize: $(cat "$dir/err")"
for scheme in "" "--scheme f16"; do
    "$facula" train text $small --model "$dir/model.gguf" $scheme --steps 40 --lr 5e-3 --evaluate-every 20 \
        --out "$dir/all$scheme" > "$dir/log" 2> "$dir/err" || bad "a .gguf $scheme: $(cat "$dir/err")"
    python3 - "$dir/log" <<'P' || bad "a .gguf $scheme: it learns nothing: $(cat "$dir/log")"
import json, sys
lines = [json.loads(x) for x in open(sys.argv[1]).read().split("\n") if x]
assert lines[-1]["test_loss"] < 0.6, lines
P
    "$facula" generate "$dir/all$scheme/model.gguf" "the cat" -n 8 --temp 0 --json > "$dir/said" 2> "$dir/err" \
        || bad "generate with it: $(cat "$dir/err")"
    want=q8_0; [ -z "$scheme" ] || want=f16
    grep -q "\"$want\"" "$dir/said" || bad "a .gguf $scheme: $(cat "$dir/said")"
    cmp -s "$dir/model.gguf" "$dir/all$scheme/model.gguf" && bad "a .gguf $scheme: nothing was trained"
done
"$facula" train --resume "$dir/all" --threads 1 --json > /dev/null 2> "$dir/err" || bad "resume of a .gguf: $(cat "$dir/err")"
"$facula" train text $small --model "$dir/model.gguf" --lora r=2 --merge --steps 3 --out "$dir/adapted" \
    > /dev/null 2> "$dir/err" || bad "adapters of a .gguf: $(cat "$dir/err")"
"$facula" generate "$dir/model.gguf" --lora "$dir/adapted" "the cat" -n 4 --temp 0 > "$dir/a" 2>&1
"$facula" generate "$dir/adapted/merged/model.gguf" "the cat" -n 4 --temp 0 > "$dir/b" 2>&1
cmp -s "$dir/a" "$dir/b" || bad "a .gguf with adapters says $(cat "$dir/a"), merged $(cat "$dir/b")"

# conversations need a template
echo '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}' > "$dir/chat.jsonl"
refused 1 "chat template" --data "$dir/chat.jsonl" --model "$dir/run_char"
cp -r "$dir/run_bpe:300" "$dir/chatty"
echo '{"chat_template":"{% for m in messages %}<{{ m.role }}>{{ m.content }}\\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"}' > "$dir/chatty/tokenizer_config.json"
i=0
while [ $i -lt 12 ]; do
    echo '{"messages":[{"role":"user","content":"cat"},{"role":"assistant","content":"mat"}]}'
    i=$((i + 1))
done > "$dir/chat.jsonl"
"$facula" train text --data "$dir/chat.jsonl" --model "$dir/chatty" --context 64 --epochs 1 --json > "$dir/out" 2> "$dir/err"
grep -q "im_start\|context" "$dir/err" || grep -q test_loss "$dir/out" || bad "conversations: $(cat "$dir/err")"
echo '{"messages":[{"role":"user"}]}' >> "$dir/chat.jsonl"
refused 1 "line 13: a message needs" --data "$dir/chat.jsonl" --model "$dir/chatty"
echo 'no' > "$dir/chat.jsonl"
refused 1 "line 1: is not JSON" --data "$dir/chat.jsonl" --model "$dir/chatty"

# stopped in the middle and resumed: the same bytes
half="$small --model gpt:1x2x16 --steps 60 --evaluate-every 20 --dropout 0.1"
"$facula" train text $half --out "$dir/whole" > /dev/null 2> "$dir/err" || bad "whole: $(cat "$dir/err")"
"$facula" train text $half --out "$dir/part" > "$dir/log" 2>&1 &
pid=$!
while [ "$(cat "$dir/part/log.jsonl" 2> /dev/null | wc -l)" -lt 1 ] && kill -0 $pid 2> /dev/null; do sleep 0.02; done
kill -INT $pid 2> /dev/null
wait $pid
"$facula" train --resume "$dir/part" --threads 1 --json > /dev/null 2> "$dir/err" || bad "resume: $(cat "$dir/err")"
cmp -s "$dir/whole/model.safetensors" "$dir/part/model.safetensors" || bad "a resumed training ends with other weights"

# what cannot be
: > "$dir/empty.txt"
printf 'abc' > "$dir/few.txt"
printf 'caf\351 caf\351 caf\351 caf\351' > "$dir/latin.txt"
refused 1 "an empty file" --data "$dir/empty.txt"
refused 1 "needs more than that" --data "$dir/few.txt"
refused 1 "no UTF-8" --data "$dir/latin.txt"
refused 1 "No such file" --data "$dir/none.txt"
refused 2 "needs --data FILE" --steps 3
refused 1 "LAYERSxHEADSxWIDTH" $small --model gpt:4x4
refused 1 "not divided by 3 heads" $small --model gpt:4x3x128
refused 1 "neither gpt" $small --model nothing
refused 1 "0 layers" $small --model gpt:0x3x128
refused 2 "char or bpe:N" $small --tokenizer word
refused 1 "257 to" $small --tokenizer bpe:9
refused 2 "needs --model" $small --lora r=2
refused 2 "for the adapters" $small --merge
refused 2 "adapters alone have no scheme" $small --model "$dir/model.gguf" --lora r=2 --scheme nothing
refused 2 "model of a .gguf" $small --scheme q8_0
refused 2 "model of a .gguf" $small --scheme q8_0 --model "$dir/run_char"
refused 1 "none of that name" $small --scheme q9 --model "$dir/model.gguf"
refused 1 "no linear layer" $small --model "$dir/run_char" --lora q_proj
refused 1 "is none of r=" $small --model "$dir/run_char" --lora r=none
refused 2 "networks of classes" $small --quantize lq:w1a2
[ $fails -eq 0 ] || exit 1
echo "language models from texts: passed"
