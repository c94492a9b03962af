/* facula quantize: a language model with smaller weights. */
#include <string.h>
#include <sys/stat.h>
#include "cli.h"
#include "facula/lm.h"

static struct { const char *scheme, *out; } o;
static const option options[] = {
    { "--scheme", OPTION_TEXT, &o.scheme, "NAME", "what matrices become: see below" },
    { "-o", OPTION_OUT, &o.out, "FILE", "the GGUF file that is written" },
    { 0 }
};

static double size_of(const char *path) {
    struct stat s;
    return stat(path, &s) ? 0 : (double)s.st_size;
}

static int quantize(list args) {
    fac_error err = { 0 };
    char bytes[32];
    if (args.n != 1) return usage_error(verb_find("quantize"), "which model?");
    if (!o.scheme || !o.out) return usage_error(verb_find("quantize"), "%s is missing", o.scheme ? "-o" : "--scheme");
    if (fac_lm_quantize(args.at[0], o.scheme, o.out, &err)) return fail(&err);
    printf("%s: %s of %s\n", o.out, bytes_text(size_of(o.out), bytes, sizeof bytes), o.scheme);
    return EXIT_OK;
}

static void schemes(void) {
    printf("schemes:");
    for (int k = 0; fac_lm_scheme(k); k++) printf(" %s", fac_lm_scheme(k));
    printf("\n");
}

const verb verb_quantize = {
    .name = "quantize",
    .summary = "a language model with smaller weights, as a GGUF file",
    .usage = "facula quantize MODEL --scheme NAME -o FILE",
    .options = options,
    .run = quantize,
    .list = schemes,
    .more = "MODEL is a folder of Hugging Face or a .gguf.  Tables of tokens get q8_0 where others get fewer bits;\n"
            "what has one dim stays f32.  `facula perplexity` says what it costs.",
};
