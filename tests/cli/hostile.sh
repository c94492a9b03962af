#!/bin/sh
# Names of models, labels, classes, files and arguments that would steer a terminal, through every
# verb as text: none of it reaches a terminal, none begins a line of its own, and JSON stays UTF-8.
# usage: hostile.sh FACULA HOSTILE
. "$(dirname "$0")/expect.sh"
hostile=$2
export LC_ALL=C.UTF-8 COLUMNS=200

# clean COMMAND...: what it prints, whether it succeeds or not
clean() {
    "$@" >all 2>&1
    checks=$((checks + 1))
    "$hostile" check <all >places || { wrong "$*"; sed 's/^/  | /' places; }
    [ -s all ] || wrong "prints nothing: $*"
}

# the same of files and JSON, in which blanks may be tabs; in a page lines are blanks, too
written() { clean sh -c '"$@" | tr "\t" " "' sh "$@"; }
page() { clean sh -c 'tr "\t\n" "  " <"$1"' sh "$1"; }

for kind in c0 c1 bytes bidi del; do
    name=$("$hostile" name "$kind")
    mkdir -p "$kind" && cd "$kind" || exit 1
    check "$hostile" model "$kind" "$name.onnx"
    check "$hostile" refused "$kind" "$name.refused.onnx"
    m="$name.onnx"
    line=$(printf %s "$name" | tr '\n' ' ')               # a name of a class is a line
    printf 'a%s\nb%s\nc%s\n' "$line" "$line" "$line" >"$name.txt"
    check "$facula" run "$m" --random --output-dir out >/dev/null
    x="$name.npy"
    cp out/*.npy "$x"

    # each verb succeeds on it, or the check would see nothing
    works() {
        clean "$facula" "$@"
        "$facula" "$@" >/dev/null 2>&1 || wrong "$kind: facula $*"
    }
    # a verdict that proves nothing has an exit code of its own
    judges() {
        clean "$facula" "$@"
        "$facula" "$@" >/dev/null 2>&1
        case $? in 0|4) ;; *) wrong "$kind: facula $*" ;; esac
    }
    works summary "$m"
    works summary "$m" --columns kind,in,out,kernel,params,macs,memory
    works run "$m" --random --verbose
    works run "$m" "$x" --labels "$name.txt" --stats
    works run "$m" --input "x$name=$x" --output "y$name=$name.out.npy"
    works run "$m" --random --output-dir "$name"
    works inspect "$m" --plan
    works diff "$m" "$m" --names --order
    works edit "$m" -o "$name.2.onnx" --rename "m$name=other$name" --meta "more$name=more$name" \
        --show-meta --verify
    clean "$facula" diff "$m" "$name.2.onnx" --names --order
    works edit "$m" --simplify --bake --dry-run -o "$name.3.onnx"
    works tile "$m" --batch 4 --max-m 2 --max-n 2 --max-k 2 -o "$name.4.onnx"
    judges verify "$m" "$name.4.onnx" --batch 4 --mode bound --verbose
    judges verify "$m" "$name.2.onnx" --batch 4
    works activations "$m" --random --quantiles --pictures "$name.pictures" --npz "$name.npz"
    works profile "$m" --seconds 0.01 --chrome-trace "$name.trace"
    works bench "$m" --seconds 0.01 --profile --memory
    works report "$m" -o "$name.html"
    works reduce "$m" --check true -o reduced.onnx --max-runs 3
    works export "$m" -o "$name.6.onnx"
    works show "$m"
    works tune "$m" --seconds 0.01 --most 2 --wisdom "$name.wisdom"
    works tune --list --wisdom "$name.wisdom"

    # what is written reads again under the same names
    "$facula" show "$m" >again.txt
    check "$facula" diff "$m" again.txt --names --structure >/dev/null

    # whatever fails says so in one clean line
    for verb in summary run inspect show bench profile tune activations; do
        clean "$facula" $verb "$name.refused.onnx"
        clean "$facula" $verb "no$name.onnx"
    done
    clean "$facula" run "$m" --random --output "z$name=z.npy"
    clean "$facula" run "$m" "$name.txt"
    clean "$facula" edit "$m" -o z.onnx --remove "z$name"
    clean "$facula" edit "$m" -o z.onnx --insert "relu$name@m$name"
    clean "$facula" activations "$m" --random --at "z$name"
    clean "$facula" bench "relu(f32[2]) $name"
    clean "$facula" conformance "$name"
    clean "$facula" plot "no$name"
    clean "$facula" predict "no$name" text
    clean "$facula" evaluate "no$name"
    clean "$facula" train "set$name"
    clean "$facula" op "relu$name"
    clean "$facula" devices "--$name"
    clean "$facula" help "$name"
    clean "$facula" "$name"
    clean "$facula" zoo "--$name"

    # JSON is UTF-8 and steers nothing either
    for verb in summary inspect 'run --random' 'activations --random' 'profile --seconds 0.01' \
        'bench --runs 1'; do
        written "$facula" $verb "$m" --json
    done
    written "$facula" diff "$m" "$name.2.onnx" --names --json
    written cat "$name.trace"
    page "$name.html"
    cd ..
done

# classes of photos with such names: training, its charts, its answers
photo() { { printf 'P6 4 4 255\n'; head -c 48 /dev/zero | tr '\0' "$1"; } >"$2"; }
name=$("$hostile" name c0)
folder="photos$(printf '%s' "$name" | tr '\n' '_')"
for class in a b; do
    mkdir -p "$folder/$class$name"
    for i in 1 2 3 4 5 6; do
        [ $class = a ] && shade="\\02$i" || shade="\\33$i"
        photo "$shade" "$folder/$class$name/$i.ppm"
    done
done
train() {
    "$facula" train image-folder --data "$folder" --size 4x4 --model mlp --threads 1 --epochs 2 \
        --batch 4 --augment none "$@"
}
clean train --out "run$name" --show 3 --tensorboard "events$name"
check [ -f "run$name/model.safetensors" ]
for file in log.jsonl samples.json run.json confusion.json; do written cat "run$name/$file"; done
clean "$facula" predict "run$name" "$folder/a$name/1.ppm"
written "$facula" predict "run$name" "$folder/a$name/1.ppm" --json
clean "$facula" evaluate "run$name"
clean "$facula" plot "run$name" --text
clean "$facula" plot "run$name" -o "curves$name.svg"
page "curves$name.svg"
clean "$facula" train --resume "run$name" --epochs 3 --threads 1
mkdir -p "cases/case$name/test_data_set_0"
"$hostile" model c0 "cases/case$name/model.onnx"
clean "$facula" conformance cases
finish
