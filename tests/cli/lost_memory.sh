#!/bin/sh
# Every verb while memory is lost: its n-th allocation fails, or the n-th and all that follow.  There is an answer or an error,
# never a signal nor a hang; an answer that does not hang on the clock is the one that comes with all its memory.
# usage: lost_memory.sh FACULA LOSE_MEMORY.so
# A few n of each verb, drawn by FACULA_SEED; FACULA_ALL=STEP goes over all of them, every STEP-th.
# ONLY=WORD: just verbs of that name.
. "$(dirname "$0")/expect.sh"
lose=$2
seed=${FACULA_SEED:-$(date +%s)}
echo "FACULA_SEED=$seed"
FACULA_WISDOM='' FACULA_CACHE='' OCL_ICD_VENDORS=$dir/nowhere
export FACULA_WISDOM FACULA_CACHE OCL_ICD_VENDORS

# draw N: $drawn is a number from 1 to N
draw() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 8 % $1 + 1))
}

# Which solvers were left to choose from is seen in the plan, and nowhere else.
differs() {
    case $kind in
    any) return 1 ;;
    plan) ! sed '/^plan /d' out | cmp -s - want.plan ;;
    same) ! cmp -s out want ;;
    esac
}

# lose HOW N: the command in $@ after them, without its N-th allocation (AT) or without all from there on (FROM)
lose() {
    way=$1 nth=$2
    shift 2
    restore
    env "LOSE_$way=$nth" LD_PRELOAD="$lose" timeout 30 "$facula" "$@" >out 2>err </dev/null
    got=$?
    checks=$((checks + 1))
    why=
    [ $got -ge 124 ] && why="exit $got"
    grep -q 'thread-local data: ABORT' err && why=              # the C library, of a driver that it loads
    [ $got -ne 0 ] && [ ! -s err ] && [ ! -s out ] && why="exit $got without a word"
    [ $got -eq 0 ] && differs && why="another answer, and exit 0"
    [ -z "$why" ] && return
    wrong "LOSE_$way=$nth facula $*: $why"
    tail -2 err | sed 's/^/  | /'
}

# what a verb may have changed
restore() { rm -rf made kept; cp -r trained kept; }

# verb KIND ARGUMENTS...: same: the answer is always the same; plan: but for the plan; any: it may differ
verb() {
    kind=$1
    shift
    case " $1 " in *"${ONLY:-}"*) ;; *) return ;; esac
    restore
    env LOSE_COUNT="$dir/count" LD_PRELOAD="$lose" "$facula" "$@" >want 2>err </dev/null
    got=$?
    total=$(cat count)
    sed '/^plan /d' want >want.plan
    [ $got -eq 0 ] || { wrong "facula $*: exit $got"; cat err; return; }
    if [ -n "${FACULA_ALL:-}" ]; then
        n=1
        while [ "$n" -le "$total" ]; do
            lose AT "$n" "$@"
            lose FROM "$n" "$@"
            n=$((n + FACULA_ALL * ${slow:-1}))
        done
        echo "$total allocations: facula $*"
        return
    fi
    for how in AT AT FROM; do
        draw "$total"
        lose $how "$drawn" "$@"
    done
}

"$facula" export zoo:lenet --seed 1 -o lenet.onnx >out 2>err || cat err
"$facula" export lenet.onnx -o again.onnx >out 2>err || cat err
printf 'a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n' >names
printf '{"max_m": 16, "max_n": 16, "max_k": 16}\n' >unit.json
printf 'P6 28 28 255\n' >photo.ppm
head -c 2352 /dev/zero >>photo.ppm
printf 'input x f32[2,3]\n%%r = relu(x)\noutput y = %%r\n' >relu.txt
mkdir -p case/test_data_set_0
"$facula" export relu.txt -o case/model.onnx >out 2>err || cat err
"$facula" run relu.txt --random --output y=case/test_data_set_0/input_0.pb >out 2>err || cat err
cp case/test_data_set_0/input_0.pb case/test_data_set_0/output_0.pb
"$facula" train toy:xor --epochs 2 --out trained --quiet >out 2>err || cat err

verb same help
verb same help run
verb any version
verb any version --json
verb same zoo
verb same zoo --json
verb same op
verb same op conv2d
verb same op conv2d --json
verb any devices
verb any devices --json
verb same show lenet.onnx
verb same summary lenet.onnx
verb same summary zoo:lenet --json
verb plan inspect lenet.onnx
verb any inspect lenet.onnx --plan
verb any inspect lenet.onnx --json
verb any report lenet.onnx -o made
verb any run lenet.onnx --random --labels names --threads 1
verb any run lenet.onnx photo.ppm --preset mnist --threads 1
verb any run lenet.onnx photo.ppm --preset mnist --top 3 --json --threads 1
verb any run lenet.onnx --random --output-dir made --threads 1
verb any conformance case --quiet
verb any conformance case --json
verb any run lenet.onnx --random --json --verbose --threads 1
verb any bench lenet.onnx --seconds 0.001 --threads 1
verb any bench lenet.onnx --seconds 0.001 --threads 1 --json
verb same activations lenet.onnx --random --threads 1
verb same activations lenet.onnx --random --threads 1 --json
verb any activations lenet.onnx --random --threads 1 --npz made.npz --pictures made
verb same edit lenet.onnx --simplify --rename x=photo -o made
verb same edit lenet.onnx --meta author=me --show-meta -o made --json
verb same tile lenet.onnx --target unit.json
verb same tile lenet.onnx --target unit.json -o made --json
verb any verify lenet.onnx lenet.onnx --threads 1
verb any verify lenet.onnx lenet.onnx --threads 1 --json
verb same diff lenet.onnx again.onnx
verb same diff lenet.onnx again.onnx --json
verb any reduce lenet.onnx --check true -o made --max-runs 2
verb same export zoo:lenet -o made
verb same export zoo:lenet -o made --json
verb same quantize lenet.onnx --scheme int8:static --random -o made --threads 1
verb same quantize lenet.onnx --scheme int8:dynamic -o made --json --threads 1
verb same quantize lenet.onnx --scheme int4:block32 --random -o made --threads 1
verb any train toy:xor --epochs 1 --out made --threads 1
verb any train toy:xor --epochs 2 --out made --tensorboard made/tb --json --threads 1
verb any train --resume kept --epochs 3 --quiet --threads 1
verb same predict kept 0,1
verb same predict kept 0,1 --json
verb any evaluate kept
verb any evaluate kept --json
verb same plot kept -o made.svg
verb any tune lenet.onnx --seconds 0.001 --rounds 1 --most 1 --threads 1 --wisdom made


# sounds of two pitches, and what they are trained with
wave() {
    printf 'RIFF\144\006\000\000WAVEfmt \020\000\000\000\001\000\001\000'
    printf '\100\037\000\000\200\076\000\000\002\000\020\000data\100\006\000\000'
    awk -v p="$1" 'BEGIN {
        for (i = 0; i < 800; i++) printf "%s", i % p < p / 2 ? "\\000\\040" : "\\000\\340"
    }' | xargs -0 printf
}
mkdir -p birds/low birds/high
for k in 1 2; do
    wave $((60 + k)) >birds/low/$k.wav
    wave $((8 + k)) >birds/high/$k.wav
done
printf 'birds/high/1.wav,high\nbirds/low/1.wav,low,0.01,0.09\n' >few.csv
hears="train sound-folder --data birds --rate 8000 --seconds 0.4 --mels 16 --epochs 1"
hears="$hears --batch 2 --threads 1"
"$facula" $hears --quiet --out heard >/dev/null 2>&1 || wrong "facula $hears"
verb any $hears --augment shift,mixup --out made
verb any $hears --augment none --out made
verb same run heard/model.onnx birds/high/1.wav --threads 1
verb same predict heard few.csv --json --threads 1
verb any evaluate heard --data few.csv --threads 1
verb same plot birds/low/1.wav -o made.svg

# these measure the machine, which takes its time
slow=25
verb any report lenet.onnx -o made --profile --seconds 0.001 --threads 1
verb any profile lenet.onnx --seconds 0.001 --threads 1 --chrome-trace made
verb any profile lenet.onnx --seconds 0.001 --threads 1 --json
verb any peaks --threads 1
verb any peaks --threads 1 --json
verb same op --onnx
finish
