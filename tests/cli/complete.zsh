# What zsh offers at the end of a line, a word a line:
#     zsh -f complete.zsh FILE 'facula run --p'
# FILE is the script of `facula completion zsh`.  A shell of its own on a pseudo terminal loads it and
# completes the line; all words go through compadd, which writes them down.
zmodload zsh/zpty
rm -f zsh.words zsh.ready
zpty shell zsh -f -i
setup=(
    'PS1=; TERM=dumb'
    "autoload -Uz compinit; compinit -u -d $PWD/zsh.dump"
    "source $PWD/$1 2>zsh.errors"
    'compadd() {
        local -a words
        if [[ ${@[1,(i)(-|--)]} == *-[OAD]* ]]; then builtin compadd "$@"; return; fi
        builtin compadd -O words "$@"
        print -rl -- $words >>zsh.words
        builtin compadd "$@"
     }'
    'finish() { print >zsh.ready; }; zle -N finish; bindkey "^X" finish'
    'bindkey "^I" complete-word; setopt no_beep'
    'print >zsh.ready'
)
# Reading keeps the terminal from filling up.
wait_for_it() {
    local turn out
    for turn in {1..600}; do
        [[ -e zsh.ready ]] && break
        sleep 0.05
        while zpty -r -t shell out 2>/dev/null; do :; done
    done
    [[ -e zsh.ready ]] || { print -u2 "zsh does not answer"; exit 1 }
    rm -f zsh.ready
}
for line in $setup; do zpty -w shell $line; done
wait_for_it
zpty -w -n shell "$2"$'\t\x18'
wait_for_it
zpty -d shell
cat zsh.errors >&2
[[ ! -e zsh.words ]] || grep . zsh.words | sort -u
exit 0
