/* Answers as OpenAI's clients read them: whole, or as server-sent events. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/quote.h"
#include "serve/reply.h"

enum { WAIT_MS = 200 };

static void add_head(const fac_reply *y, fac_text *t, const char *object) {
    fac_text_print(t, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", y->id, object,
                   (long long)y->created);
    fac_text_quote(t, y->s->opts.name, strlen(y->s->opts.name));
}

static void add_usage(const fac_reply *y, fac_text *t) {
    const fac_wish *w = &y->c->wish;
    long long prompt = 0, answer = 0;
    for (int k = 0; k < w->nprompts; k++) prompt += w->prompts[k].n;
    for (int k = 0; k < y->c->ntasks; k++) answer += y->c->tasks[k].stat.generated;
    fac_text_print(t,
                   ",\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,"
                   "\"total_tokens\":%lld}",
                   prompt, answer, prompt + answer);
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

static void end(fac_reply *y) {
    atomic_store(&y->c->left, true);
    fac_call_release(y->c);
    fac_release(y->told);
    fac_text_free(&y->out);
    fac_release(y);
}

/* NULL: no memory, and the request was answered. */
static fac_reply *begin(fac_serve *s, fac_http_request *r, fac_call *c) {
    fac_reply *y = fac_alloc(1, sizeof *y);
    fac_told *d = fac_alloc((size_t)c->ntasks, sizeof *d);
    if (!y || !d) {
        atomic_store(&c->left, true);
        fac_call_release(c);
        fac_release(y);
        fac_release(d);
        fac_http_fail(r, 500, NULL, "no memory for the answer");
        return NULL;
    }
    *y = (fac_reply){ .s = s, .c = c, .told = d, .chat = c->wish.nmessages > 0 };
    const char *jinja = s->opts.format ? s->opts.format : fac_tokenizer_template(s->t);
    y->form = fac_call_form_of(jinja, &c->wish);
    if (y->chat) y->thoughts = fac_thought_form_of(jinja, &c->wish, s->t);
    y->created = (int64_t)time(NULL);
    const unsigned long long count = (unsigned long long)atomic_fetch_add(&s->count, 1);
    snprintf(y->id, sizeof y->id, "%s-%llx%06llx", y->chat ? "chatcmpl" : "cmpl",
             (unsigned long long)s->seed & 0xffffffff, count & 0xffffff);
    return y;
}

/* ---- whole answers ---- */

static void send_whole(fac_reply *y, fac_http_request *r) {
    fac_text t = { 0 };
    add_head(y, &t, y->chat ? "chat.completion" : "text_completion");
    fac_text_add(&t, ",\"choices\":[");
    for (int k = 0; k < y->c->ntasks; k++) {
        fac_parts p;
        if (!fac_reply_look(y, k, &p)) continue;
        if (k) fac_text_add(&t, ",");
        fac_reply_choice(y, &t, k, &p, false);
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
    fac_reply *y = begin(s, r, c);
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

/* New parts of answers become events; the lock is held.  False: there are none. */
static bool add_events(fac_reply *y) {
    fac_text *t = &y->out;
    bool any = false;
    for (int k = 0; k < y->c->ntasks; k++) {
        fac_parts p;
        if (!fac_reply_look(y, k, &p)) continue;
        any = true;
        fac_text_add(t, "data: ");
        add_head(y, t, y->chat ? "chat.completion.chunk" : "text_completion");
        fac_text_add(t, ",\"choices\":[");
        fac_reply_choice(y, t, k, &p, true);
        fac_text_add(t, y->c->wish.usage ? "],\"usage\":null}\n\n" : "]}\n\n");
    }
    return any;
}

static void add_end(fac_reply *y) {
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

static void add_error(fac_reply *y, const char *message) {
    y->ended = true;
    fac_text_add(&y->out, "data: {\"error\":{\"message\":");
    fac_text_quote(&y->out, message, strlen(message));
    fac_text_add(&y->out, ",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n");
}

static void collect(fac_reply *y, int wait_ms) {
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
    fac_reply *y = stream;
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
    fac_reply *y = begin(s, r, c);
    if (y) fac_http_stream(r, "text/event-stream", next, end_stream, y);
}
