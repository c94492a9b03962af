/* Answers as OpenAI's clients read them: whole, or as server-sent events.  The text of a task only
 * grows, so what was told of it is a number. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/quote.h"
#include "serve/serve.h"
#include "serve/tools.h"

enum { WAIT_MS = 200 };

typedef struct told {
    size_t bytes, records, letters; /* of the text; letters: where the next record's token begins */
    bool role, over;
} told;

typedef struct reply {
    fac_serve *s;
    fac_call *c;
    told *told; /* by task */
    char id[40];
    int64_t created; /* seconds since 1970 */
    bool chat;
    fac_call_form form;
    fac_text out; /* of a stream: events, of which `sent` bytes have gone */
    size_t sent;
    bool ended;
} reply;

/* ---- what both have ---- */

static void add_head(const reply *y, fac_text *t, const char *object) {
    fac_text_print(t, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", y->id, object,
                   (long long)y->created);
    fac_text_quote(t, y->s->opts.name, strlen(y->s->opts.name));
}

static const char *finish_of(const fac_task *t) {
    const bool full = t->stat.finish == FAC_FINISH_LENGTH || t->stat.finish == FAC_FINISH_CONTEXT;
    return full ? "length" : "stop";
}

static void add_usage(const reply *y, fac_text *t) {
    const fac_wish *w = &y->c->wish;
    long long prompt = 0, answer = 0;
    for (int k = 0; k < w->nprompts; k++) prompt += w->prompts[k].n;
    for (int k = 0; k < y->c->ntasks; k++) answer += y->c->tasks[k].stat.generated;
    fac_text_print(t,
                   ",\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,"
                   "\"total_tokens\":%lld}",
                   prompt, answer, prompt + answer);
}

/* ---- log probabilities ---- */

/* Its bytes, maybe no whole character; control tokens by their names. */
static size_t piece_of(const reply *y, int32_t id, char to[256]) {
    const size_t n = fac_tokenizer_piece(y->s->t, id, FAC_TEXT_SPECIAL, to, 256);
    return n < 256 ? n : 256;
}

static void add_likely(const reply *y, fac_text *t, const fac_likely *x) {
    char piece[256];
    const size_t n = piece_of(y, x->id, piece);
    fac_text_add(t, "{\"token\":");
    fac_text_quote(t, piece, n);
    fac_text_print(t, ",\"logprob\":%.6g,\"bytes\":[", (double)x->logprob);
    for (size_t k = 0; k < n; k++) fac_text_print(t, "%s%d", k ? "," : "", (unsigned char)piece[k]);
    fac_text_add(t, "]");
}

static void add_chat_records(const reply *y, fac_text *t, const fac_task *k, size_t from) {
    fac_text_add(t, "{\"content\":[");
    for (size_t i = from; i < k->nrecords; i++) {
        const fac_token_record *r = &k->records[i];
        if (i > from) fac_text_add(t, ",");
        add_likely(y, t, &r->chosen);
        fac_text_add(t, ",\"top_logprobs\":[");
        for (int j = 0; j < r->ntop; j++) {
            if (j) fac_text_add(t, ",");
            add_likely(y, t, &r->top[j]);
            fac_text_add(t, "}");
        }
        fac_text_add(t, "]}");
    }
    fac_text_add(t, "]}");
}

static void quote_piece(const reply *y, fac_text *t, int32_t id) {
    char piece[256];
    const size_t n = piece_of(y, id, piece);
    fac_text_quote(t, piece, n);
}

static size_t letters_of(const reply *y, int32_t id) {
    char piece[256];
    size_t letters = 0;
    const size_t n = piece_of(y, id, piece);
    for (size_t k = 0; k < n; k++) letters += ((unsigned char)piece[k] & 0xc0) != 0x80;
    return letters;
}

static void add_tops(const reply *y, fac_text *t, const fac_token_record *r) {
    fac_text_add(t, "{");
    for (int j = 0; j < r->ntop; j++) {
        if (j) fac_text_add(t, ",");
        quote_piece(y, t, r->top[j].id);
        fac_text_print(t, ":%.6g", (double)r->top[j].logprob);
    }
    fac_text_add(t, "}");
}

/* The older form: four lists. */
static void add_text_records(const reply *y, fac_text *t, const fac_task *k, told *d) {
    fac_text_add(t, "{\"tokens\":[");
    for (size_t i = d->records; i < k->nrecords; i++) {
        if (i > d->records) fac_text_add(t, ",");
        quote_piece(y, t, k->records[i].chosen.id);
    }
    fac_text_add(t, "],\"token_logprobs\":[");
    for (size_t i = d->records; i < k->nrecords; i++)
        fac_text_print(t, "%s%.6g", i > d->records ? "," : "",
                       (double)k->records[i].chosen.logprob);
    fac_text_add(t, "],\"top_logprobs\":[");
    for (size_t i = d->records; i < k->nrecords; i++) {
        if (i > d->records) fac_text_add(t, ",");
        add_tops(y, t, &k->records[i]);
    }
    fac_text_add(t, "],\"text_offset\":[");
    for (size_t i = d->records; i < k->nrecords; i++) {
        fac_text_print(t, "%s%zu", i > d->records ? "," : "", d->letters);
        d->letters += letters_of(y, k->records[i].chosen.id);
    }
    fac_text_add(t, "]}");
}

static void add_logprobs(const reply *y, fac_text *t, const fac_task *k, told *d) {
    fac_text_add(t, ",\"logprobs\":");
    if (y->c->wish.logprobs < 0)
        fac_text_add(t, "null");
    else if (y->chat)
        add_chat_records(y, t, k, d->records);
    else
        add_text_records(y, t, k, d);
    d->records = k->nrecords;
}

/* ---- one choice: a whole one, or what is new of it ---- */

static const char *words(const fac_task *k) { return k->text.s ? k->text.s : ""; }

/* Bytes of the text that may be told while it is written. */
static size_t ready(const reply *y, const fac_task *k) {
    return fac_call_text(y->form, words(k), k->text.n);
}

static void add_calls(const reply *y, fac_text *t, const cJSON *calls, int at, bool delta) {
    const cJSON *x;
    int n = 0;
    fac_text_add(t, "\"tool_calls\":[");
    cJSON_ArrayForEach(x, calls) {
        const char *name = x->child->valuestring, *arguments = x->child->next->valuestring;
        const char *unique = strrchr(y->id, '-') + 1;
        fac_text_add(t, n ? ",{" : "{");
        if (delta) fac_text_print(t, "\"index\":%d,", n);
        /* nine letters and digits, as Mistral's templates want them */
        fac_text_print(t, "\"id\":\"%.5s%02x%02x\",\"type\":\"function\",\"function\":{",
                       unique + strlen(unique) - 5, at & 0xff, n & 0xff);
        fac_text_add(t, "\"name\":");
        fac_text_quote(t, name, strlen(name));
        fac_text_add(t, ",\"arguments\":");
        fac_text_quote(t, arguments, strlen(arguments));
        fac_text_add(t, "}}");
        n++;
    }
    fac_text_add(t, "]");
}

/* Up to byte `end` of the text, then calls of tools, if any. */
static void add_message(const reply *y, fac_text *t, int at, size_t end, const cJSON *calls,
                        bool delta) {
    told *d = &y->told[at];
    const size_t n = end - d->bytes;
    const bool says = n || !delta;
    fac_text_print(t, "\"%s\":{", delta ? "delta" : "message");
    if (!d->role) fac_text_add(t, "\"role\":\"assistant\"");
    if (!d->role && (says || calls)) fac_text_add(t, ",");
    if (says) fac_text_add(t, "\"content\":");
    if (says && !n && calls)
        fac_text_add(t, "null");
    else if (says)
        fac_text_quote(t, words(&y->c->tasks[at]) + d->bytes, n);
    if (says && calls) fac_text_add(t, ",");
    if (calls) add_calls(y, t, calls, at, delta);
    fac_text_add(t, "}");
}

/* *calls: there are some. */
static void add_content(const reply *y, fac_text *t, int at, bool delta, bool *calls) {
    const fac_task *k = &y->c->tasks[at];
    told *d = &y->told[at];
    size_t end = ready(y, k);
    cJSON *all = k->over ? fac_calls_read(y->form, &y->c->wish, words(k), k->text.n, &end) : NULL;
    if (end < d->bytes) end = d->bytes;
    if (y->chat) {
        add_message(y, t, at, end, all, delta);
    } else {
        fac_text_add(t, "\"text\":");
        fac_text_quote(t, words(k) + d->bytes, end - d->bytes);
    }
    *calls = all != NULL;
    cJSON_Delete(all);
    d->role = true;
    d->bytes = end;
}

static void add_choice(const reply *y, fac_text *t, int at, bool delta) {
    const fac_task *k = &y->c->tasks[at];
    told *d = &y->told[at];
    bool calls;
    fac_text_print(t, "{\"index\":%d,", at);
    add_content(y, t, at, delta, &calls);
    add_logprobs(y, t, k, d);
    if (k->over)
        fac_text_print(t, ",\"finish_reason\":\"%s\"}", calls ? "tool_calls" : finish_of(k));
    else
        fac_text_add(t, ",\"finish_reason\":null}");
    d->over = k->over;
}

static bool all_over(const fac_call *c) {
    for (int k = 0; k < c->ntasks; k++)
        if (!c->tasks[k].over) return false;
    return true;
}

/* The first error of a task; a text that there was no memory for is one. */
static const char *error_of(const fac_call *c) {
    for (int k = 0; k < c->ntasks; k++) {
        if (c->tasks[k].err.status) return c->tasks[k].err.text;
        if (c->tasks[k].text.failed) return "no memory for the answer";
    }
    return NULL;
}

static void end(reply *y) {
    atomic_store(&y->c->left, true);
    fac_call_release(y->c);
    fac_release(y->told);
    fac_text_free(&y->out);
    fac_release(y);
}

/* NULL: no memory, and the request was answered. */
static reply *begin(fac_serve *s, fac_http_request *r, fac_call *c) {
    reply *y = fac_alloc(1, sizeof *y);
    told *d = fac_alloc((size_t)c->ntasks, sizeof *d);
    if (!y || !d) {
        atomic_store(&c->left, true);
        fac_call_release(c);
        fac_release(y);
        fac_release(d);
        fac_http_fail(r, 500, NULL, "no memory for the answer");
        return NULL;
    }
    *y = (reply){ .s = s, .c = c, .told = d, .chat = c->wish.nmessages > 0 };
    y->form =
        fac_call_form_of(s->opts.format ? s->opts.format : fac_tokenizer_template(s->t), &c->wish);
    y->created = (int64_t)time(NULL);
    const unsigned long long count = (unsigned long long)atomic_fetch_add(&s->count, 1);
    snprintf(y->id, sizeof y->id, "%s-%llx%06llx", y->chat ? "chatcmpl" : "cmpl",
             (unsigned long long)s->seed & 0xffffffff, count & 0xffffff);
    return y;
}

/* ---- whole answers ---- */

static void send_whole(reply *y, fac_http_request *r) {
    fac_text t = { 0 };
    add_head(y, &t, y->chat ? "chat.completion" : "text_completion");
    fac_text_add(&t, ",\"choices\":[");
    for (int k = 0; k < y->c->ntasks; k++) {
        if (k) fac_text_add(&t, ",");
        add_choice(y, &t, k, false);
    }
    fac_text_add(&t, "]");
    add_usage(y, &t);
    fac_text_add(&t, "}");
    if (t.failed)
        fac_http_fail(r, 500, NULL, "no memory for the answer");
    else
        fac_http_reply(r, 200, "application/json", t.s, t.n);
    fac_text_free(&t);
}

void fac_serve_whole(fac_serve *s, fac_http_request *r, fac_call *c) {
    reply *y = begin(s, r, c);
    bool gone = false;
    if (!y) return;
    pthread_mutex_lock(&c->lock);
    while (!all_over(c) && !gone) {
        fac_call_wait(c, WAIT_MS);
        gone = fac_http_gone(r);
    }
    const char *error = error_of(c);
    pthread_mutex_unlock(&c->lock);
    if (gone)
        fac_http_fail(r, 503, "gone", "no client waits for this answer");
    else if (error)
        fac_http_fail(r, 500, NULL, "%s", error);
    else
        send_whole(y, r);
    end(y);
}

/* ---- streams ---- */

/* What is new becomes events; the lock is held.  False: nothing is. */
static bool add_events(reply *y) {
    fac_text *t = &y->out;
    bool any = false;
    for (int k = 0; k < y->c->ntasks; k++) {
        const fac_task *x = &y->c->tasks[k];
        told *d = &y->told[k];
        const bool nothing = ready(y, x) <= d->bytes && !x->over && (d->role || !y->chat);
        if (d->over || nothing) continue;
        any = true;
        fac_text_add(t, "data: ");
        add_head(y, t, y->chat ? "chat.completion.chunk" : "text_completion");
        fac_text_add(t, ",\"choices\":[");
        add_choice(y, t, k, true);
        fac_text_add(t, y->c->wish.usage ? "],\"usage\":null}\n\n" : "]}\n\n");
    }
    return any;
}

static void add_end(reply *y) {
    fac_text *t = &y->out;
    y->ended = true;
    if (y->c->wish.usage) {
        fac_text_add(t, "data: ");
        add_head(y, t, y->chat ? "chat.completion.chunk" : "text_completion");
        fac_text_add(t, ",\"choices\":[]");
        add_usage(y, t);
        fac_text_add(t, "}\n\n");
    }
    fac_text_add(t, "data: [DONE]\n\n");
}

static void add_error(reply *y, const char *message) {
    y->ended = true;
    fac_text_add(&y->out, "data: {\"error\":{\"message\":");
    fac_text_quote(&y->out, message, strlen(message));
    fac_text_add(&y->out, ",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n");
}

static void collect(reply *y, int wait_ms) {
    fac_call *c = y->c;
    pthread_mutex_lock(&c->lock);
    bool any = add_events(y);
    if (!any && !all_over(c)) {
        fac_call_wait(c, wait_ms);
        any = add_events(y);
    }
    const char *error = error_of(c);
    if (error)
        add_error(y, error);
    else if (all_over(c))
        add_end(y);
    pthread_mutex_unlock(&c->lock);
}

static int64_t next(void *stream, char *to, size_t room, int wait_ms) {
    reply *y = stream;
    if (y->sent == y->out.n && !y->ended) {
        y->out.n = 0;
        y->sent = 0;
        collect(y, wait_ms);
    }
    if (y->out.failed) return -2;
    if (y->sent == y->out.n) return y->ended ? -1 : 0;
    const size_t left = y->out.n - y->sent, n = left < room ? left : room;
    memcpy(to, y->out.s + y->sent, n);
    y->sent += n;
    return (int64_t)n;
}

static void end_stream(void *stream) { end(stream); }

void fac_serve_stream(fac_serve *s, fac_http_request *r, fac_call *c) {
    reply *y = begin(s, r, c);
    if (y) fac_http_stream(r, "text/event-stream", next, end_stream, y);
}
