/* What the server has at which path. */
#include <string.h>
#include "base/error.h"
#include "base/quote.h"
#include "serve/serve.h"

void fac_serve_fail(fac_http_request *r, const fac_error *err) {
    const bool ours =
        err->status == FAC_E_NOMEM || err->status == FAC_E_INTERNAL || err->status == FAC_E_DEVICE;
    fac_http_fail(r, ours ? 500 : 400, NULL, "%s", err->text);
}

static void send_text(fac_http_request *r, fac_text *t, const char *type) {
    if (t->failed)
        fac_http_fail(r, 500, NULL, "no memory for the answer");
    else
        fac_http_reply(r, 200, type, t->s, t->n);
    fac_text_free(t);
}

/* ---- prompts ---- */

static fac_status encode(const fac_serve *s, fac_wish *w, fac_prompt *p, unsigned flags,
                         fac_error *err) {
    const size_t bytes = strlen(p->text);
    p->n = fac_tokenizer_encode(s->t, p->text, bytes, flags, NULL, 0);
    if (p->n == -1) return fac_raise(err, FAC_E_ARGUMENT, "the text is no UTF-8");
    if (p->n >= 0) p->ids = fac_arena_alloc(&w->arena, (size_t)p->n + 1, sizeof *p->ids);
    if (p->n < 0 || !p->ids) return fac_raise_memory(err, "the text");
    fac_tokenizer_encode(s->t, p->text, bytes, flags, p->ids, p->n);
    return FAC_OK;
}

fac_status fac_serve_tokens(fac_serve *s, fac_wish *w, fac_prompt *p, unsigned flags,
                            fac_error *err) {
    if (p->text) FAC_TRY(encode(s, w, p, flags, err));
    if (!p->n) return fac_raise(err, FAC_E_ARGUMENT, "an empty prompt");
    for (int64_t k = 0; k < p->n; k++)
        if (p->ids[k] >= s->facts.vocabulary)
            return fac_raise(err, FAC_E_ARGUMENT, "token %d of %lld", p->ids[k],
                             (long long)s->facts.vocabulary);
    return FAC_OK;
}

/* The conversation becomes the only prompt. */
static fac_status chat_tokens(fac_serve *s, fac_wish *w, fac_error *err) {
    int32_t *ids;
    int64_t n;
    w->prompts = fac_arena_alloc(&w->arena, 1, sizeof *w->prompts);
    if (!w->prompts) return fac_raise_memory(err, "a request");
    const fac_chat_opts how = { .format = s->opts.format,
                                .tools = w->tools,
                                .variables = w->variables,
                                .more = w->more,
                                .answer = true };
    FAC_TRY(fac_chat_encode_with(s->t, &how, w->nmessages, w->messages, &ids, &n, err));
    int32_t *copy = fac_arena_alloc(&w->arena, (size_t)n + 1, sizeof *copy);
    if (copy) memcpy(copy, ids, (size_t)n * sizeof *ids);
    fac_chat_free(ids);
    w->prompts[w->nprompts++] = (fac_prompt){ .ids = copy, .n = n };
    return copy ? FAC_OK : fac_raise_memory(err, "a request");
}

static fac_status all_tokens(fac_serve *s, fac_wish_kind kind, fac_wish *w, fac_error *err) {
    if (kind == FAC_WISH_CHAT) FAC_TRY(chat_tokens(s, w, err));
    for (int k = 0; k < w->nprompts; k++)
        FAC_TRY(fac_serve_tokens(s, w, &w->prompts[k], FAC_TEXT_BOS, err));
    return FAC_OK;
}

/* ---- completions ---- */

/* Each prompt, each of its choices, with a seed of its own. */
static void fill_tasks(fac_serve *s, fac_call *c) {
    const fac_wish *w = &c->wish;
    uint64_t seed = w->how.sampler.seed;
    if (!w->seeded) seed = s->seed + atomic_fetch_add(&s->count, (uint_fast64_t)c->ntasks);
    for (int k = 0; k < c->ntasks; k++) {
        fac_task *t = &c->tasks[k];
        const fac_prompt *p = &w->prompts[k / w->choices];
        t->prompt = p->ids;
        t->nprompt = p->n;
        t->how = w->how;
        t->how.grammar = c->grammar;
        t->how.control = w->tools != NULL; /* a call may begin with such a token */
        t->how.sampler.seed = seed + (uint64_t)(w->seeded ? k % w->choices : k);
    }
}

/* The longest prompt must leave room for a token. */
static bool too_long(const fac_serve *s, const fac_wish *w, int64_t *longest) {
    *longest = 0;
    for (int k = 0; k < w->nprompts; k++)
        if (w->prompts[k].n > *longest) *longest = w->prompts[k].n;
    return *longest >= s->facts.context;
}

static fac_status make_grammar(const fac_serve *s, fac_call *c, fac_error *err) {
    const fac_wish *w = &c->wish;
    if (w->grammar) return fac_grammar_new(s->t, w->grammar, &c->grammar, err);
    if (!w->schema) return FAC_OK;
    const fac_status status = fac_grammar_json(s->t, w->schema, &c->grammar, err);
    if (!status || status == FAC_E_NOMEM || !w->loose) return status;
    return fac_grammar_json(s->t, w->loose, &c->grammar, err);
}

static void serve_call(fac_serve *s, fac_http_request *r, fac_call *c) {
    fac_error err = { 0 };
    if (make_grammar(s, c, &err)) {
        fac_serve_fail(r, &err);
        fac_call_release(c);
        return;
    }
    fill_tasks(s, c);
    if (!fac_engine_add(s->engine, c)) {
        fac_http_fail(r, 429, "queue_full", "too many requests wait already: try again later");
        fac_call_release(c);
        return;
    }
    if (c->wish.stream)
        fac_serve_stream(s, r, c);
    else
        fac_serve_whole(s, r, c);
}

static void complete(fac_serve *s, fac_http_request *r, fac_wish_kind kind) {
    fac_wish w;
    fac_error err = { 0 };
    size_t bytes;
    int64_t longest;
    const char *body = fac_http_body(r, &bytes);
    if (!s->engine) {
        fac_http_fail(r, 400, "encoder", "this model gives embeddings, and writes no texts");
        return;
    }
    fac_status status = fac_wish_read(kind, body, bytes, &w, &err);
    if (!status) status = all_tokens(s, kind, &w, &err);
    if (status)
        fac_serve_fail(r, &err);
    else if (too_long(s, &w, &longest))
        fac_http_fail(r, 400, "context_length_exceeded",
                      "the prompt has %lld tokens, the context %lld", (long long)longest,
                      (long long)s->facts.context);
    else {
        fac_call *c = fac_call_new(&w, w.nprompts * w.choices);
        if (c) {
            serve_call(s, r, c);
            return;
        }
        fac_http_fail(r, 500, NULL, "no memory for a request");
    }
    fac_wish_free(&w);
}

static void chat_completions(void *self, fac_http_request *r) { complete(self, r, FAC_WISH_CHAT); }
static void completions(void *self, fac_http_request *r) { complete(self, r, FAC_WISH_COMPLETE); }

/* ---- tokens ---- */

static void tokenize(void *self, fac_http_request *r) {
    fac_serve *s = self;
    fac_wish w;
    fac_error err = { 0 };
    fac_text t = { 0 };
    size_t bytes;
    const char *body = fac_http_body(r, &bytes);
    fac_status status = fac_wish_read(FAC_WISH_TOKENIZE, body, bytes, &w, &err);
    if (!status && (w.nprompts != 1 || !w.prompts->text))
        status = fac_raise(&err, FAC_E_ARGUMENT, "content: a text is expected");
    if (!status) status = encode(s, &w, w.prompts, w.special ? FAC_TEXT_BOS : 0, &err);
    fac_text_add(&t, "{\"tokens\":[");
    for (int64_t k = 0; !status && k < w.prompts->n; k++)
        fac_text_print(&t, "%s%d", k ? "," : "", w.prompts->ids[k]);
    fac_text_add(&t, "]}");
    if (status)
        fac_text_free(&t), fac_serve_fail(r, &err);
    else
        send_text(r, &t, "application/json");
    fac_wish_free(&w);
}

static void detokenize(void *self, fac_http_request *r) {
    fac_serve *s = self;
    fac_wish w;
    fac_error err = { 0 };
    fac_text t = { 0 };
    size_t bytes;
    const char *body = fac_http_body(r, &bytes);
    fac_status status = fac_wish_read(FAC_WISH_WORDS, body, bytes, &w, &err);
    for (int64_t k = 0; !status && k < w.prompts->n; k++)
        if (w.prompts->ids[k] >= fac_tokenizer_count(s->t))
            status = fac_raise(&err, FAC_E_ARGUMENT, "token %d of %d", w.prompts->ids[k],
                               fac_tokenizer_count(s->t));
    if (status)
        fac_serve_fail(r, &err);
    else {
        const fac_prompt *p = w.prompts;
        const size_t n = fac_tokenizer_decode(s->t, p->ids, p->n, 0, NULL, 0);
        char *text = fac_arena_alloc(&w.arena, n + 1, 1);
        if (text) fac_tokenizer_decode(s->t, p->ids, p->n, 0, text, n);
        fac_text_add(&t, "{\"content\":");
        if (text) fac_text_quote(&t, text, n);
        fac_text_add(&t, "}");
        t.failed |= !text;
        send_text(r, &t, "application/json");
    }
    fac_wish_free(&w);
}

/* ---- about ---- */

static void add_model(const fac_serve *s, fac_text *t) {
    fac_text_add(t, "{\"id\":");
    fac_text_quote(t, s->opts.name, strlen(s->opts.name));
    fac_text_print(t,
                   ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"facula\","
                   "\"context\":%lld,\"architecture\":\"%s\",\"weights\":\"%s\"}",
                   (long long)s->created, (long long)s->facts.context, s->facts.architecture,
                   s->facts.weights);
}

static void models(void *self, fac_http_request *r) {
    fac_text t = { 0 };
    fac_text_add(&t, "{\"object\":\"list\",\"data\":[");
    add_model(self, &t);
    fac_text_add(&t, "]}");
    send_text(r, &t, "application/json");
}

static void one_model(void *self, fac_http_request *r) {
    const fac_serve *s = self;
    fac_text t = { 0 };
    if (strcmp(fac_http_path(r) + strlen("/v1/models/"), s->opts.name)) {
        fac_http_fail(r, 404, "model_not_found", "there is another model here: see /v1/models");
        return;
    }
    add_model(s, &t);
    send_text(r, &t, "application/json");
}

static void health(void *self, fac_http_request *r) {
    (void)self;
    fac_http_json(r, 200, "{\"status\":\"ok\"}");
}

/* Prometheus' text format, 0.0.4. */
static void metrics(void *self, fac_http_request *r) {
    const fac_serve *s = self;
    const fac_engine_stat e = s->engine ? fac_engine_about(s->engine) : (fac_engine_stat){ 0 };
    const struct {
        const char *name, *type;
        double x;
    } rows[] = { { "facula_requests_total", "counter", (double)e.requests },
                 { "facula_prompt_tokens_total", "counter", (double)e.prompt_tokens },
                 { "facula_prompt_tokens_reused_total", "counter", (double)e.reused },
                 { "facula_tokens_total", "counter", (double)e.tokens },
                 { "facula_tokens_guessed_total", "counter", (double)e.guessed },
                 { "facula_tokens_accepted_total", "counter", (double)e.accepted },
                 { "facula_work_seconds_total", "counter", e.seconds },
                 { "facula_sequences_active", "gauge", e.active },
                 { "facula_sequences_waiting", "gauge", e.queued } };
    fac_text t = { 0 };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        fac_text_print(&t, "# TYPE %s %s\n%s %.17g\n", rows[k].name, rows[k].type, rows[k].name,
                       rows[k].x);
    send_text(r, &t, "text/plain; version=0.0.4");
}

enum { BODY = 4 << 20 };
const fac_http_route fac_serve_routes[] = {
    { "POST", "/v1/chat/completions", chat_completions, 0, BODY },
    { "POST", "/v1/completions", completions, 0, BODY },
    { "POST", "/v1/embeddings", fac_serve_embed, 0, BODY },
    { "POST", "/tokenize", tokenize, 0, BODY },
    { "POST", "/detokenize", detokenize, 0, BODY },
    { "GET", "/v1/models", models, 0, 0 },
    { "GET", "/v1/models/", one_model, FAC_HTTP_PREFIX, 0 },
    { "GET", "/health", health, FAC_HTTP_OPEN, 0 },
    { "GET", "/metrics", metrics, 0, 0 },
};
const int fac_serve_nroutes = sizeof fac_serve_routes / sizeof *fac_serve_routes;
