/* facula perplexity: how surprised a language model is by a text. */
#include <stdlib.h>
#include "generate.h"
#include "json.h"
#include "words.h"

static struct {
    device_options on;
    bool json;
    long window, tokens;
    const char *precision, *tokenizer;
} o;
static const option options[] = {
    { "--ctx-size", OPTION_INT, &o.window, "N",
      "tokens of a window; default: the model's context, at most 4096", OPTION_COUNT },
    { "-n", OPTION_INT, &o.tokens, "N", "read only the first N tokens of the text; default 0: all",
      OPTION_TALLY },
    { "--tokenizer", OPTION_TEXT, &o.tokenizer, "FILE",
      "tokenizer.json or tokenizer.bin; default: the model's own" },
    { "--precision", OPTION_TEXT, &o.precision, "NAME",
      "highest: multiply weights in blocks with f32, not with 8-bit activations" },
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    DEVICE_OPTIONS(o.on),
    { 0 }
};

static int report(const fac_perplexity *p, long window) {
    if (!o.json) {
        printf("perplexity %.4f +- %.4f  (nll %.5f +- %.5f over %lld tokens, windows of %ld)\n",
               p->perplexity, p->perplexity * p->error, p->nll, p->error, (long long)p->tokens,
               window);
        return EXIT_OK;
    }
    cJSON *root = cJSON_CreateObject();
    json_number(root, "perplexity", p->perplexity, 9);
    json_number(root, "nll", p->nll, 9);
    json_number(root, "nll_error", p->error, 6);
    cJSON_AddNumberToObject(root, "tokens", (double)p->tokens);
    cJSON_AddNumberToObject(root, "window", (double)window);
    return json_print(root);
}

static int measure(const lm_open_model *m, const char *file, const char *text, size_t bytes) {
    fac_error err = { 0 };
    fac_perplexity p;
    int64_t n = fac_tokenizer_encode(m->tokens, text, bytes, FAC_TEXT_BOS, NULL, 0);
    if (n == -1) return lm_not_utf8(file);
    if (n >= 0 && n < 2)
        return fail_text("%s: a text of %lld tokens: at least 2", file, (long long)n);
    int32_t *ids = n < 0 ? NULL : malloc((size_t)(n + 1) * sizeof *ids);
    if (!ids) return fail_text("out of memory");
    fac_tokenizer_encode(m->tokens, text, bytes, FAC_TEXT_BOS, ids, n);
    if (o.tokens && o.tokens < n) n = o.tokens;
    const long window = o.window ? o.window : (long)fac_lm_about(m->lm).context;
    const fac_status status = fac_lm_perplexity(m->lm, ids, n, window, &p, &err);
    free(ids);
    return status ? fail(&err) : report(&p, window);
}

static int perplexity(list args) {
    lm_open_model m = { 0 };
    fac_error err = { 0 };
    numerics precision = { FAC_PRECISION_DEFAULT, FAC_NONE };
    char *text;
    size_t bytes;
    const int wrong =
        arguments_fit(verb_find("perplexity"), args, 2, 2, "it takes a model and a file of text");
    if (wrong) return wrong;
    int code = words_given((list){ 0 }, args.at[1], &text, &bytes);
    if (code) return code;
    code = precision_read(verb_find("perplexity"), o.precision, &precision);
    if (!code) code = device_open(&o.on, &m.device);
    const fac_lm_opts opts = { .precision = precision.products };
    if (!code) code = lm_tokenizer(o.tokenizer, args.at[0], &m.tokens);
    if (!code && fac_lm_load(args.at[0], m.device, &opts, &m.lm, &err)) code = fail(&err);
    if (!code) code = lm_same_tokens(o.tokenizer, m.tokens, m.lm);
    if (!code) code = measure(&m, args.at[1], text, bytes);
    lm_close(&m);
    free(text);
    return code;
}

const verb verb_perplexity = {
    .name = "perplexity",
    .summary = "measure how well a language model predicts a text",
    .usage = "facula perplexity MODEL FILE [options]",
    .options = options,
    .examples =
        "perplexity model.gguf book.txt\nperplexity model.gguf book.txt --ctx-size 512 -n 20000",
    .run = perplexity,
    .more = "The text is read in windows.  In each but the first only the second half counts, so "
            "that every token\nhas context.  The result is exp of the mean of -log p, with its "
            "standard error.",
};
