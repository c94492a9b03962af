/* The scripts for zsh and fish. */
#include <string.h>
#include "complete.h"

/* Text between single quotes; `also` are characters that _arguments takes for its own. */
static void put_quoted(const char *text, const char *also, const char *quote) {
    for (const char *c = text; *c; c++) {
        if (*c == '\'') {
            out_raw(quote, stdout);
            continue;
        }
        if (strchr(also, *c)) putchar('\\');
        out_char(*c, stdout);
    }
}

/* ---- zsh ---- */

static void zsh_option(const option *o) {
    char words[1024];
    const bool many = o->kind == OPTION_LIST || o->kind == OPTION_STEP;
    printf("            '%s%s[", many ? "*" : "", o->name);
    put_quoted(o->help, "[]:\\", "'\\''");
    printf("]");
    if (complete_takes_value(o)) {
        printf(":");
        put_quoted(o->value, "[]:\\", "'\\''");
        complete_words(o, words, sizeof words);
        if (*words)
            printf(":(%s)", words);
        else
            printf(":%s", complete_takes_file(o) ? "_files" : " ");
    }
    out_lines("' \\");
}

static void zsh_verb(const verb *v) {
    printf("        %s) _arguments \\\n", v->name);
    for (const option *o = v->options; o && o->name; o++) zsh_option(o);
    printf("            '--help[what the verb does]' ");
    if (complete_takes_verb(v))
        out_lines("'*:verb:($_facula_verbs)' ;;");
    else if (!strcmp(v->name, "completion"))
        out_lines("'1:shell:(bash zsh fish)' ;;");
    else if (complete_takes_model(v))
        out_lines("'*:model or file:_facula_model' ;;");
    else
        out_lines("'*:file:_files' ;;");
}

void complete_zsh(void) {
    out_lines("#compdef facula\n# zsh completion for facula, made by `facula completion zsh`");
    printf("_facula_zoo='"); /* split where it is used: names may hold a ? */
    complete_zoo("zoo:", "");
    out_lines("'\n"
              "_facula_model() {\n"
              "    local -a zoo\n"
              "    zoo=(${=_facula_zoo})\n"
              "    _alternative 'zoo:network of the zoo:compadd -a zoo' 'files:file:_files'\n"
              "}\n"
              "_facula() {\n"
              "    local -a _facula_verbs\n"
              "    _facula_verbs=(");
    for (const verb *const *v = verbs; *v; v++) {
        printf("        '%s:", (*v)->name);
        put_quoted((*v)->summary, ":", "'\\''");
        out_lines("'");
    }
    out_lines("    )\n"
              "    if (( CURRENT == 2 )); then _describe verb _facula_verbs; return; fi\n"
              "    local verb=$words[2]\n"
              "    _facula_verbs=(${_facula_verbs%%:*})\n"
              "    shift words; (( CURRENT-- ))\n"
              "    case $verb in");
    for (const verb *const *v = verbs; *v; v++) zsh_verb(*v);
    out_lines(
        "    esac\n"
        "}\n"
        "if [ \"$funcstack[1]\" = _facula ]; then _facula \"$@\"; else compdef _facula facula; "
        "fi");
}

/* ---- fish ---- */

static void fish_option(const verb *v, const option *o) {
    char words[1024];
    printf("complete -c facula -n '__fish_seen_subcommand_from %s' ", v->name);
    if (o->name[1] == '-')
        printf("-l %s", o->name + 2);
    else
        printf("-s %s", o->name + 1);
    if (complete_takes_value(o)) {
        complete_words(o, words, sizeof words);
        if (*words)
            printf(" -x -a '%s'", words);
        else
            printf("%s", complete_takes_file(o) ? " -r -F" : " -x");
    }
    printf(" -d '");
    put_quoted(o->help, "\\", "\\'");
    out_lines("'");
}

static void fish_arguments(const verb *v) {
    const bool shells = !strcmp(v->name, "completion"), words = shells || complete_takes_verb(v);
    if (!complete_takes_model(v) && !words) return;
    printf("complete -c facula -n '__fish_seen_subcommand_from %s'%s -a '", v->name,
           words ? " -f" : "");
    if (shells)
        printf("bash zsh fish");
    else if (complete_takes_model(v))
        complete_zoo("zoo:", "?"); /* no pattern of files */
    else
        for (const verb *const *k = verbs; *k; k++) printf("%s ", (*k)->name);
    out_lines("'");
}

void complete_fish(void) {
    out_lines("# fish completion for facula, made by `facula completion fish`");
    for (const verb *const *v = verbs; *v; v++) {
        printf("complete -c facula -n __fish_use_subcommand -f -a %s -d '", (*v)->name);
        put_quoted((*v)->summary, "\\", "\\'");
        out_lines("'");
    }
    for (const verb *const *v = verbs; *v; v++) {
        for (const option *o = (*v)->options; o && o->name; o++) fish_option(*v, o);
        fish_arguments(*v);
    }
    out_lines("complete -c facula -l help -d 'what the verb does'");
}
