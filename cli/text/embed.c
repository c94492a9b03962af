/* facula embed: texts as vectors of which similar ones point the same way. */
#include <stdlib.h>
#include <string.h>
#include "generate.h"
#include "json.h"

static struct {
    device_options on;
    bool json;
    const char *precision, *tokenizer;
} o;
static const option options[] = {
    { "--tokenizer", OPTION_TEXT, &o.tokenizer, "FILE",
      "tokenizer.json or tokenizer.bin; default: the model's own" },
    { "--precision", OPTION_TEXT, &o.precision, "NAME",
      "highest: multiply weights in blocks with f32, not with 8-bit activations" },
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    DEVICE_OPTIONS(o.on),
    { 0 }
};

/* One vector of `width` numbers. */
static int embed_one(const lm_open_model *m, const char *text, float *to) {
    fac_error err = { 0 };
    const size_t bytes = strlen(text);
    const int64_t n = fac_tokenizer_encode(m->tokens, text, bytes, FAC_TEXT_BOS, NULL, 0);
    if (n == -1) return fail_text("a text is not UTF-8");
    int32_t *ids = n < 0 ? NULL : malloc((size_t)(n + 1) * sizeof *ids);
    if (!ids) return fail_text("out of memory");
    fac_tokenizer_encode(m->tokens, text, bytes, FAC_TEXT_BOS, ids, n);
    const fac_status status = fac_lm_embed(m->lm, ids, n, to, &err);
    free(ids);
    return status ? fail(&err) : EXIT_OK;
}

static double similarity(const float *a, const float *b, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (double)a[k] * (double)b[k];
    return sum;
}

static int print_json(list texts, const float *x, int64_t width) {
    cJSON *root = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(root, "embeddings");
    cJSON_AddNumberToObject(root, "width", (double)width);
    for (int i = 0; i < texts.n; i++) {
        cJSON *one = cJSON_CreateObject(), *v = cJSON_CreateArray();
        cJSON_AddStringToObject(one, "text", texts.at[i]);
        for (int64_t k = 0; k < width; k++) {
            char number[32];
            snprintf(number, sizeof number, "%.9g", (double)x[i * width + k]);
            cJSON_AddItemToArray(v, cJSON_CreateRaw(number));
        }
        cJSON_AddItemToObject(one, "vector", v);
        cJSON_AddItemToArray(all, one);
    }
    return json_print(root);
}

/* Alone: the vector; several: how alike they are. */
static int print(list texts, const float *x, int64_t width) {
    if (texts.n == 1) {
        for (int64_t k = 0; k < width; k++) printf("%s%.6f", k ? " " : "", (double)x[k]);
        printf("\n");
        return EXIT_OK;
    }
    for (int i = 0; i < texts.n; i++) {
        for (int j = 0; j < texts.n; j++)
            printf("%7.3f", similarity(x + i * width, x + j * width, width));
        printf("  %s\n", texts.at[i]);
    }
    return EXIT_OK;
}

static int embed_all(const lm_open_model *m, list texts) {
    const int64_t width = fac_lm_about(m->lm).width;
    float *x = calloc((size_t)texts.n * (size_t)width, sizeof *x);
    int code = x ? EXIT_OK : fail_text("out of memory");
    for (int i = 0; i < texts.n && !code; i++) code = embed_one(m, texts.at[i], x + i * width);
    if (!code) code = o.json ? print_json(texts, x, width) : print(texts, x, width);
    free(x);
    return code;
}

static int embed(list args) {
    lm_open_model m = { 0 };
    fac_error err = { 0 };
    numerics precision = { FAC_PRECISION_DEFAULT, FAC_NONE };
    if (args.n < 2 || !*args.at[0])
        return usage_error(verb_find("embed"), "which model, and which texts?");
    int code = precision_read(verb_find("embed"), o.precision, &precision);
    if (!code) code = device_open(&o.on, &m.device);
    const fac_lm_opts opts = { .precision = precision.products };
    if (!code) code = lm_tokenizer(o.tokenizer, args.at[0], &m.tokens);
    if (!code && fac_lm_load(args.at[0], m.device, &opts, &m.lm, &err)) code = fail(&err);
    if (!code) code = lm_same_tokens(o.tokenizer, m.tokens, m.lm);
    if (!code) code = embed_all(&m, (list){ args.at + 1, args.n - 1 });
    lm_close(&m);
    return code;
}

const verb verb_embed = {
    .name = "embed",
    .summary = "turn texts into vectors that are close where the texts are alike",
    .usage = "facula embed MODEL TEXT... [options]",
    .options = options,
    .examples = "embed minilm 'a cat sat down'\nembed minilm 'a cat sat down' 'a kitten rested' "
                "'stock prices fell'",
    .run = embed,
    .more = "MODEL is an encoder (BERT, MiniLM): a folder or a .gguf.  Of one text its vector is "
            "printed, of length\n1; of several, how alike each two of them are: 1 for the same.",
};
