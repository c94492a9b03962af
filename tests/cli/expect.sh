# Sourced by the scripts beside it, first of all: $facula is the command, the folder a new one that goes when the script ends, and
# these words judge.  A script ends with `finish`.
set -u
facula=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
checks=0 bad=0

# wrong WHAT: one that failed
wrong() {
    bad=$((bad + 1))
    echo "FAILED: $*"
}
# expect CODE 'words that stdout or stderr must hold' COMMAND...: both are kept in the files out and err
expect() {
    code=$1 words=$2
    shift 2
    "$@" >out 2>err
    got=$?
    checks=$((checks + 1))
    if [ $got -ne "$code" ] || ! cat out err | grep -qF -- "$words"; then
        wrong "$*"
        echo "  exit $got, expected $code; expected words: $words"
        sed 's/^/  | /' out err | head -20
    fi
}
# one line on stderr and nothing on stdout: how every failure looks
one_line() {
    checks=$((checks + 1))
    if [ "$(wc -l <err)" -ne 1 ] || [ -s out ]; then
        wrong "not one line of error:"
        sed 's/^/  | /' out err
    fi
}
# holds FILE WORDS...: each of them
holds() {
    file=$1
    shift
    for words in "$@"; do
        checks=$((checks + 1))
        grep -qF -- "$words" "$file" || wrong "$file lacks $words"
    done
}
# check COMMAND...: it succeeds
check() {
    checks=$((checks + 1))
    "$@" || wrong "$*"
}
finish() {
    echo "$checks checks, $bad failed"
    exit $((bad > 0))
}
