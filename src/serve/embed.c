/* POST /v1/embeddings. */
#include <string.h>
#include "base/memory.h"
#include "base/quote.h"
#include "serve/serve.h"

static void add_numbers(fac_text *t, const float *x, int64_t n) {
    for (int64_t k = 0; k < n; k++) fac_text_print(t, "%c%.9g", k ? ',' : '[', (double)x[k]);
    fac_text_add(t, "]");
}

/* RFC 4648, of the numbers' bytes, the least first: what OpenAI's own client asks for. */
static void add_base64(fac_text *t, const unsigned char *x, size_t n) {
    static const char of[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    fac_text_add(t, "\"");
    for (size_t k = 0; k < n; k += 3) {
        const unsigned b = k + 1 < n ? x[k + 1] : 0;
        const unsigned c = k + 2 < n ? x[k + 2] : 0;
        const unsigned bits = (unsigned)x[k] << 16 | b << 8 | c;
        char four[4] = { of[bits >> 18], of[bits >> 12 & 63], of[bits >> 6 & 63], of[bits & 63] };
        if (k + 2 >= n) four[3] = '=';
        if (k + 1 >= n) four[2] = '=';
        fac_text_add_bytes(t, four, 4);
    }
    fac_text_add(t, "\"");
}

static fac_status embed_one(fac_serve *s, fac_wish *w, int at, float *x, int64_t *tokens,
                            fac_text *t, fac_error *err) {
    fac_prompt *p = &w->prompts[at];
    fac_status status = fac_serve_tokens(s, w, p, FAC_TEXT_BOS, err);
    if (status) return status;
    pthread_mutex_lock(&s->embeds);
    status = fac_lm_embed(s->m, p->ids, p->n, x, err);
    pthread_mutex_unlock(&s->embeds);
    if (status) return status;
    *tokens += p->n;
    fac_text_print(t, "%s{\"object\":\"embedding\",\"index\":%d,\"embedding\":", at ? "," : "", at);
    if (w->base64)
        add_base64(t, (const unsigned char *)x, (size_t)s->facts.width * sizeof *x);
    else
        add_numbers(t, x, s->facts.width);
    fac_text_add(t, "}");
    return FAC_OK;
}

static fac_status embed_all(fac_serve *s, fac_wish *w, float *x, fac_text *t, fac_error *err) {
    int64_t tokens = 0;
    fac_text_add(t, "{\"object\":\"list\",\"data\":[");
    for (int k = 0; k < w->nprompts; k++) {
        const fac_status status = embed_one(s, w, k, x, &tokens, t, err);
        if (status) return status;
    }
    fac_text_add(t, "],\"model\":");
    fac_text_quote(t, s->opts.name, strlen(s->opts.name));
    fac_text_print(t, ",\"usage\":{\"prompt_tokens\":%lld,\"total_tokens\":%lld}}",
                   (long long)tokens, (long long)tokens);
    return FAC_OK;
}

void fac_serve_embed(void *self, fac_http_request *r) {
    fac_serve *s = self;
    fac_wish w;
    fac_error err = { 0 };
    fac_text t = { 0 };
    size_t bytes;
    const char *body = fac_http_body(r, &bytes);
    if (s->engine) {
        fac_http_fail(r, 400, "no_encoder", "this model writes texts, and gives no embeddings");
        return;
    }
    fac_status status = fac_wish_read(FAC_WISH_EMBED, body, bytes, &w, &err);
    float *x = fac_alloc((size_t)s->facts.width, sizeof *x);
    if (!status && x) status = embed_all(s, &w, x, &t, &err);
    if (status)
        fac_serve_fail(r, &err);
    else if (!x || t.failed)
        fac_http_fail(r, 500, NULL, "no memory for the embeddings");
    else
        fac_http_json(r, 200, t.s);
    fac_release(x);
    fac_text_free(&t);
    fac_wish_free(&w);
}
