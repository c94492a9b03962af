/* facula tokenize: the tokens that a text is for a language model. */
#include <string.h>
#include "facula/tokenizer.h"
#include "generate.h"
#include "json.h"
#include "words.h"

static struct {
    bool json, count, special, bare;
    const char *file;
} o;
static const option options[] = {
    { "--file", OPTION_TEXT, &o.file, "FILE", "read the text from a file" },
    { "--special", OPTION_FLAG, &o.special, NULL,
      "read control tokens in the text as such, not as text" },
    { "--bare", OPTION_FLAG, &o.bare, NULL,
      "leave out the tokens that the model wants around a text" },
    { "--count", OPTION_FLAG, &o.count, NULL, "print only how many tokens there are" },
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

static int print_json(const fac_tokenizer *t, const int32_t *ids, int64_t n) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "tokenizer", fac_tokenizer_kind(t));
    cJSON_AddNumberToObject(root, "vocabulary", fac_tokenizer_count(t));
    cJSON_AddNumberToObject(root, "count", (double)n);
    cJSON *all = cJSON_AddArrayToObject(root, "tokens");
    for (int64_t k = 0; k < n && !o.count; k++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, "id", ids[k]);
        cJSON_AddStringToObject(one, "token", fac_tokenizer_token(t, ids[k]));
        cJSON_AddItemToArray(all, one);
    }
    return json_print(root);
}

static int print_text(const fac_tokenizer *t, const int32_t *ids, int64_t n) {
    if (o.count) {
        printf("%lld\n", (long long)n);
        return EXIT_OK;
    }
    for (int64_t k = 0; k < n; k++) {
        char piece[512];
        const size_t bytes =
            fac_tokenizer_piece(t, ids[k], FAC_TEXT_SPECIAL, piece, sizeof piece - 1);
        piece[bytes < sizeof piece ? bytes : sizeof piece - 1] = 0;
        printf("%8d  \"%s\"\n", ids[k], piece);
    }
    return EXIT_OK;
}

static int tokens_of(const fac_tokenizer *t, const char *text, size_t bytes) {
    unsigned flags = o.bare ? 0u : FAC_TEXT_BOS;
    if (o.special) flags |= FAC_TEXT_SPECIAL;
    const int64_t n = fac_tokenizer_encode(t, text, bytes, flags, NULL, 0);
    if (n == -1) return lm_not_utf8(o.file);
    int32_t *ids = n < 0 ? NULL : malloc((size_t)(n + 1) * sizeof *ids);
    if (!ids || fac_tokenizer_encode(t, text, bytes, flags, ids, n) != n) {
        free(ids);
        return fail_text("out of memory");
    }
    const int code = o.json ? print_json(t, ids, n) : print_text(t, ids, n);
    free(ids);
    return code;
}

static int tokenize(list args) {
    fac_error err = { 0 };
    fac_tokenizer *t;
    char *text;
    size_t bytes;
    const int wrong = arguments_fit(verb_find("tokenize"), args, 1, ANY_NUMBER, "which model?");
    if (wrong) return wrong;
    int code = words_given((list){ args.at + 1, args.n - 1 }, o.file, &text, &bytes);
    if (code) return code;
    if (fac_tokenizer_load(args.at[0], &t, &err)) code = fail(&err);
    if (!code) {
        code = tokens_of(t, text, bytes);
        fac_tokenizer_free(t);
    }
    fac_read_free(text);
    return code;
}

const verb verb_tokenize = {
    .name = "tokenize",
    .summary = "print the tokens of a text, as a language model reads it",
    .usage = "facula tokenize MODEL [TEXT...] [options]",
    .options = options,
    .examples =
        "tokenize model.gguf 'Hello, world'\ntokenize tokenizer.json --file book.txt --count",
    .run = tokenize,
    .more = "MODEL is a .gguf, a tokenizer.json, a tokenizer.bin of llama2.c, or a folder that has "
            "one.  The words\nof the text are joined by spaces; - reads standard input.",
};
