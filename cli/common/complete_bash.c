/* The script for bash. */
#include <string.h>
#include "complete.h"

/* Values of the options of one verb, as branches of a case. */
static void put_values(const verb *v) {
    char words[1024];
    for (const option *o = v->options; o && o->name; o++) {
        if (!complete_takes_value(o)) continue;
        complete_words(o, words, sizeof words);
        if (*words)
            printf("        %s) _facula_words '%s'; return ;;\n", o->name, words);
        else if (complete_takes_file(o))
            printf("        %s) return ;;\n", o->name);
        else
            printf("        %s) _facula_nothing; return ;;\n", o->name);
    }
}

static void put_verb(const verb *v) {
    printf("    %s)\n", v->name);
    if (v->options) {
        printf("        case $prev in\n");
        put_values(v);
        printf("        esac\n");
    }
    printf("        case $cur in -*) _facula_words '");
    for (const option *o = v->options; o && o->name; o++) printf("%s ", o->name);
    printf("--help'; return ;; esac\n");
    if (complete_takes_model(v)) printf("        _facula_model\n");
    if (complete_takes_verb(v)) printf("        _facula_words \"$_facula_verbs\"\n");
    if (!strcmp(v->name, "completion")) printf("        _facula_words 'bash zsh fish'\n");
    printf("        ;;\n");
}

static void put_words_of_verbs(void) {
    printf("_facula_verbs='");
    for (const verb *const *v = verbs; *v; v++) printf("%s%s", v == verbs ? "" : " ", (*v)->name);
    printf("'\n");
}

void complete_bash(void) {
    out_lines("# bash completion for facula, made by `facula completion bash`");
    put_words_of_verbs();
    printf("_facula_zoo='");
    complete_zoo("", "");
    out_lines(
        "'\n"
        "_facula_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
        "_facula_nothing() { compopt +o default +o bashdefault 2>/dev/null; }\n"
        "# files, and zoo:NAME, which bash takes for three words\n"
        "_facula_model() {\n"
        "    if [ \"$prev\" = : ] && [ \"${COMP_WORDS[COMP_CWORD-2]}\" = zoo ]; then "
        "_facula_words \"$_facula_zoo\"\n"
        "    elif [ \"$cur\" = : ] && [ \"$prev\" = zoo ]; then cur=; _facula_words "
        "\"$_facula_zoo\"\n"
        "    elif [[ $cur == zoo:* ]]; then _facula_words \"zoo:${_facula_zoo// / zoo:}\"\n"
        "    elif [ -n \"$cur\" ] && [[ zoo: == \"$cur\"* ]]; then\n"
        "        mapfile -t COMPREPLY < <(echo zoo:; compgen -f -- \"$cur\")\n"
        "        compopt -o nospace 2>/dev/null\n"
        "    fi\n"
        "}\n"
        "_facula() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} "
        "verb=${COMP_WORDS[1]}\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then _facula_words \"$_facula_verbs\"; return; fi\n"
        "    # --option=value is three words as well\n"
        "    if [ \"$cur\" = = ]; then cur=\n"
        "    elif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}\n"
        "    fi\n"
        "    case $verb in");
    for (const verb *const *v = verbs; *v; v++) put_verb(*v);
    out_lines("    esac\n"
              "}\n"
              "complete -o bashdefault -o default -F _facula facula");
}
