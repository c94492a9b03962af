#!/bin/sh
# Pages of the manual and completions of shells are whole: every verb, every option.
# usage: manual.sh FACULA
here=$(cd "$(dirname "$0")" && pwd)
. "$here/expect.sh"

verbs=$("$facula" help | sed -n 's/^  \([a-z]*\)  *.*/\1/p')
# options VERB: as its help lists them
options() { "$facula" help "$1" | sed -n 's/^  \(--*[a-z][a-z0-9-]*\).*/\1/p' | sort -u; }
# clean PAGE: no warning of the formatters that are here
clean() {
    if command -v man >/dev/null && command -v groff >/dev/null; then
        checks=$((checks + 1))
        LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$1" >shown 2>said || wrong "man -l $1"
        [ ! -s said ] || wrong "$1: $(head -n 3 said)"
    fi
    if command -v mandoc >/dev/null; then
        checks=$((checks + 1))
        mandoc -T lint -W error "$1" >said 2>&1 || wrong "mandoc $1: $(head -n 3 said)"
    fi
}

check test "$(echo "$verbs" | wc -l)" -gt 20
"$facula" help --man >facula.1
clean facula.1
for shell in bash zsh fish; do check "$facula" completion $shell >$shell; done
expect 2 'for which shell' "$facula" completion tcsh; one_line
expect 2 'for which shell' "$facula" completion; one_line
expect 2 'there is no verb "nope"' "$facula" help --man nope; one_line

for verb in $verbs; do
    # a line break that was taken for text of a model
    "$facula" help "$verb" >help
    checks=$((checks + 1))
    ! grep -v 'zoo:' help | grep '[a-z,.;]?[A-Za-z -]' >said || wrong "help $verb: $(head -n 1 said)"
    # text is filled, and nothing is left without words
    checks=$((checks + 1))
    ! sed '/^usage:/d; /^  facula /d' help | grep '.\{81\}' >said || wrong "help $verb is wide: $(head -n 1 said)"
    ! grep ' $' help >said || wrong "help $verb says nothing of $(head -n 1 said)"
    # examples are of this verb, with options that it has
    sed -n '/^examples*$/,/^$/s/^  //p' help >examples
    checks=$((checks + 1))
    [ -s examples ] && ! grep -v "^facula $verb\( \|$\)" examples || wrong "help $verb has no examples"
    options "$verb" >known
    for option in $(sed "s/'[^']*'//g; s/ |.*//" examples | grep -o ' --*[a-z][a-z0-9-]*'); do
        grep -qxe "$option" known || wrong "an example of $verb has $option"
    done
    holds facula.1 "facula\\-$verb"
    "$facula" help --man "$verb" >facula-$verb.1
    clean facula-$verb.1
    grep -q "^$verb \|^    $verb)" bash && checks=$((checks + 1)) ||
        wrong "bash does not know $verb"
    sed -n "/^    $verb)/,/^        ;;/p" bash >bash.verb
    sed -n "/^        $verb) _arguments/,/;;\$/p" zsh >zsh.verb
    for option in $(options "$verb"); do
        holds facula-$verb.1 "\\fB$(printf "%s\n" "$option" | sed 's/-/\\-/g')\\fR"
        holds bash.verb "$option "
        holds zsh.verb "$option["
        case $option in
        --*) grep -q "from $verb' -l ${option#--} " fish ;;
        *) grep -q "from $verb' -s ${option#-} " fish ;;
        esac && checks=$((checks + 1)) || wrong "fish does not know $option of $verb"
    done
done
# examples that need no file run as they are
for verb in bench export tile; do
    "$facula" help "$verb" | grep -e "^  facula.*'gemm" -e '^  facula.*--gemm' -e '^  facula.*--problem' >lines
    while read -r word line; do
        checks=$((checks + 1))
        eval "\"\$facula\" $line" >said 2>&1 || wrong "$word $line: $(head -n 1 said)"
    done <lines
done
# what is in a page reads as it was written: quotes, backslashes, dots that begin a line
"$facula" help edit | tr -s ' \n' '  ' >plain
if command -v man >/dev/null && command -v groff >/dev/null; then
    LC_ALL=C MANWIDTH=2000 man -l facula-edit.1 2>/dev/null | tr -s ' \n' '  ' >page
    holds page "--set 'conv1 stride=2,2 pad=1,1,1,1'" "'t = exp(_); mul(t, _)'" '-o FILE.onnx'
    holds plain "--set 'conv1 stride=2,2 pad=1,1,1,1'"
fi

# offered: what the shell offered, a word a line
missing() {
    for word in $2; do
        checks=$((checks + 1))
        grep -qxF -- "$word" offered || wrong "$1: no $word, but $(tr '\n' ' ' <offered)"
    done
}
# loads_and_completes SHELL: its script is loaded by the shell itself, which then completes lines
loads_and_completes() {
    while IFS='|' read -r count line words; do
        ask_$1 "$line" || wrong "$1 completing '$line': exit $?"
        [ ! -s said ] || wrong "$1: $(cat said)"
        missing "$1 completing '$line'" "$words"
        [ -n "$count" ] || continue
        checks=$((checks + 1))
        [ "$(grep -c . offered)" -eq "$count" ] || wrong "$1 completing '$line' offers $count"
    done <<END
$(echo "$verbs" | wc -l)|facula |run train completion
2|facula re|report reduce
3|facula run --p|--preset --picture --precision
2|facula run model.onnx --preset c|caffe cifar10
2|facula run --layout |nchw nhwc
1|facula summary zoo:le|zoo:lenet
2|facula summary zoo:goo|zoo:googlenet zoo:googlenet?transform_input
4|facula help e|edit embed evaluate export
3|facula completion |bash zsh fish
|facula train --|$(options train | grep ^-- | tr '\n' ' ') --help
END
}

ask_zsh() { zsh -f "$here/complete.zsh" zsh "$1" >offered 2>said </dev/null; }
ask_fish() {
    fish --no-config -c 'source ./fish; complete -C $argv[1]' "$1" 2>said </dev/null |
        cut -f1 >offered
}
for shell in zsh fish; do
    if command -v $shell >/dev/null; then
        check $shell -n $shell
        loads_and_completes $shell
    else
        echo "skipped: no $shell here"
    fi
done
if ! command -v bash >/dev/null; then finish; fi
check bash -n bash
# completes 'WORDS THAT MUST BE OFFERED' WORD...: the last one is being typed
cat >try.bash <<'END'
source ./bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_facula
printf '%s\n' "${COMPREPLY[@]}"
END
completes() {
    offers=$1
    shift
    bash try.bash "$@" >offered 2>said
    [ ! -s said ] || wrong "completing $*: $(cat said)"
    for word in $offers; do
        checks=$((checks + 1))
        grep -qxF -- "$word" offered || wrong "completing $*: no $word, but $(tr '\n' ' ' <offered)"
    done
}
# offers exactly this many
offers() {
    checks=$((checks + 1))
    [ "$(grep -c . offered)" -eq "$1" ] || wrong "offers $(tr '\n' ' ' <offered), not $1 words"
}
completes 'run train export' facula ''
offers "$(echo "$verbs" | wc -l)"
completes 'report reduce' facula re; offers 2
completes '--preset --picture --precision' facula run --p; offers 3
completes "$(options train) --help" facula train --
offers "$(($(options train | wc -l) + 1))"
completes 'caffe cifar10' facula run model.onnx --preset c; offers 2
completes 'caffe cifar10' facula run model.onnx --preset = c; offers 2
completes 'caffe' facula edit model.onnx --set-preset = caf; offers 1
completes 'nchw nhwc' facula run --layout ''; offers 2
completes '' facula run --top ''; offers 0
completes '' facula run --labels ''; offers 0
completes 'resnet18 resnet34' facula run zoo : resnet
bash try.bash facula run zoo : '' >offered
check test "$(grep -c . offered)" -gt 5
completes 'zoo:lenet' facula summary zoo:le; offers 1
completes 'zoo:' facula summary zo
completes 'edit embed evaluate export' facula help e; offers 4
completes 'bash zsh fish' facula completion ''; offers 3
finish
