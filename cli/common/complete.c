/* facula completion: what shells complete, from the tables of options. */
#include "complete.h"
#include <ctype.h>
#include <string.h>

bool complete_takes_value(const option *o) { return o->value != NULL; }

bool complete_takes_file(const option *o) {
    static const char *const kinds[] = { "FILE", "DIR", "MODEL" };
    for (int k = 0; k < 3 && o->value; k++)
        if (strstr(o->value, kinds[k])) return true;
    return false;
}

/* "nchw|nhwc": words of small letters and digits. */
static bool are_words(const char *value) {
    for (const char *c = value; *c; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '|' && *c != '-')
            return false;
    return strchr(value, '|') != NULL;
}

static void presets(char *to, size_t size) {
    for (const fac_preset *p = fac_presets; p->name; p++) {
        const size_t n = strlen(to);
        snprintf(to + n, size - n, "%s%s", n ? " " : "", p->name);
    }
}

const char *complete_words(const option *o, char *to, size_t size) {
    *to = 0;
    if (!strcmp(o->name, "--preset") || !strcmp(o->name, "--set-preset"))
        presets(to, size);
    else if (!strcmp(o->name, "--device"))
        snprintf(to, size, "cpu opencl");
    else if (!strcmp(o->name, "--isa"))
        snprintf(to, size, "avx512 avx2 neon portable");
    else if (!strcmp(o->name, "--precision"))
        snprintf(to, size, "default highest high medium bf16 f16");
    else if (!strcmp(o->name, "--interpolation"))
        snprintf(to, size, "nearest bilinear bicubic");
    else if (o->value && are_words(o->value))
        snprintf(to, size, "%s", o->value);
    for (char *c = to; *c; c++)
        if (*c == '|') *c = ' ';
    return to;
}

bool complete_takes_model(const verb *v) {
    return strstr(v->usage, "MODEL") || strstr(v->usage, " A B");
}
bool complete_takes_verb(const verb *v) { return !strcmp(v->name, "help"); }

void complete_escaped(const char *text, const char *special) {
    for (const char *c = text; *c; c++) {
        if (strchr(special, *c)) putchar('\\');
        out_char(*c, stdout);
    }
}

void complete_zoo(const char *before, const char *special) {
    for (const fac_zoo *z = fac_zoo_models; z->name; z++) {
        printf("%s%s", z == fac_zoo_models ? "" : " ", before);
        complete_escaped(z->name, special);
    }
}

static int run(list args) {
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = { { "bash", complete_bash }, { "zsh", complete_zsh }, { "fish", complete_fish } };
    for (int k = 0; k < 3 && args.n == 1; k++) {
        if (strcmp(args.at[0], shells[k].name)) continue;
        shells[k].print();
        return EXIT_OK;
    }
    return usage_error(verb_find("completion"), "for which shell: bash, zsh or fish?");
}

const verb verb_completion = {
    .name = "completion",
    .summary = "print a script that completes verbs and options in a shell",
    .examples = "completion bash > ~/.local/share/bash-completion/completions/facula",
    .run = run,
    .usage = "facula completion bash|zsh|fish",
    .more = "`make install` puts the scripts where shells look.  For one session of bash or "
            "zsh:\nsource <(facula completion bash)."
};
