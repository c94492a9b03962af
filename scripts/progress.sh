#!/bin/sh
# Runs a build whose output goes to a file, and says how far it is: one line that changes on a
# terminal, a few lines elsewhere.  When it fails the end of the file is shown.
# usage: progress.sh LOG 'building facula' COMMAND...
set -u
log=$1 what=$2
shift 2
last=-1 shown=-1 start=$(date +%s)
terminal=
[ -t 1 ] && [ "${TERM:-dumb}" != dumb ] && terminal=yes

# say PERCENT: each new one on a terminal, each quarter elsewhere
say() {
    if [ -n "$terminal" ]; then
        printf '\r%s: %d %%' "$what" "$1"
    elif [ $(($1 / 25)) -gt "$shown" ]; then
        shown=$(($1 / 25))
        printf '%s: %d %%\n' "$what" "$1"
    fi
}

: >"$log" || exit 1
say 0
{ "$@" 2>&1; echo "$?" >"$log.status"; } | {
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        case $line in
        '['*'%]'*)                                      # make: [ 37%] Building C object ...
            percent=${line%%\%*}
            percent=${percent#[}
            percent=${percent##* }
            ;;
        '['*/*']'*)                                     # ninja: [120/324] Building C object ...
            done=${line%%/*} all=${line#*/}
            done=${done#[} all=${all%%]*}
            case $done$all in *[!0-9]*|'') continue ;; esac
            percent=$((100 * done / all))
            ;;
        *) continue ;;
        esac
        case $percent in *[!0-9]*|'') continue ;; esac
        # several compilers at once do not report in order
        [ "$percent" -gt "$last" ] || continue
        last=$percent
        say "$percent"
    done
}
status=$(cat "$log.status" 2>/dev/null || echo 1)
rm -f "$log.status"
[ -n "$terminal" ] && printf '\r\033[K'
if [ "$status" -ne 0 ]; then
    echo "$what failed; the end of $log:"
    tail -n 40 "$log"
    exit 1
fi
echo "$what: done in $(($(date +%s) - start)) s"
