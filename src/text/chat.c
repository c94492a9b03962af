/* Conversations as models were trained to read them: written by the file's chat template, which is
 * Jinja (jinja/), or in a format that was named (chat_formats.c).  What a template says may be
 * control tokens, what a message says never is: its text is tokenized as text, together with the
 * template's plain text around it. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "text/chat_formats.h"
#include "text/jinja/jinja.h"
#include "text/tokenizer.h"

/* ---- tokens ---- */

typedef struct writing {
    const fac_tokenizer *t;
    fac_text plain;
    fac_ids ids;
    bool begun;
} writing;

static void flush(writing *w) {
    if (w->plain.failed)
        w->ids.failed = true;
    else if (w->plain.n)
        fac_encode(w->t, w->plain.s, w->plain.n, 0, !w->begun, &w->ids);
    w->begun = true;
    w->plain.n = 0;
}

/* The longest control token among n bytes at s; -1: none. */
static int32_t control_at(const fac_tokenizer *t, const char *s, size_t n) {
    for (int32_t k = 0; k < t->nspecials; k++) {
        const fac_token *a = &t->tokens[t->specials[k]];
        if (a->spelled <= n && !memcmp(a->spelling, s, a->spelled)) return t->specials[k];
    }
    return -1;
}

static void put_template(writing *w, const char *s, size_t n) {
    while (n) {
        const int32_t id = control_at(w->t, s, n);
        const size_t length = id < 0 ? 1 : w->t->tokens[id].spelled;
        if (id < 0) {
            fac_text_add_bytes(&w->plain, s, 1);
        } else {
            flush(w);
            fac_ids_add(&w->ids, id);
        }
        s += length;
        n -= length;
    }
}

/* ---- by a template ---- */

static const char *token_text(const fac_tokenizer *t, int32_t id) {
    return id < 0 ? NULL : t->tokens[id].spelling;
}

static fac_status render(fac_arena *arena, const fac_tokenizer *t, const char *jinja, int n,
                         const fac_message m[], bool answer, fac_jinja_result *out,
                         fac_error *err) {
    const fac_jinja_input in = { .messages = m,
                                 .n = n,
                                 .answer = answer,
                                 .bos = token_text(t, t->bos),
                                 .eos = token_text(t, t->eos),
                                 .unknown = token_text(t, t->unknown) };
    return fac_jinja_render(arena, jinja, &in, out, err);
}

static bool is_role(const fac_message *m, const char *role) { return !strcmp(m->role, role); }

/* The messages with what the system says before what is asked next, two line ends between them;
 * false: nothing is asked after it, or no memory. */
static bool fold_system(fac_arena *arena, int n, const fac_message m[], fac_message to[],
                        int *kept) {
    const char *system = NULL;
    *kept = 0;
    for (int k = 0; k < n; k++) {
        if (is_role(&m[k], "system")) {
            system = system ? fac_arena_print(arena, "%s\n\n%s", system, m[k].text) : m[k].text;
            if (!system) return false;
            continue;
        }
        to[*kept] = m[k];
        if (system && is_role(&m[k], "user")) {
            to[*kept].text = fac_arena_print(arena, "%s\n\n%s", system, m[k].text);
            if (!to[*kept].text) return false;
            system = NULL;
        }
        ++*kept;
    }
    return !system;
}

static bool tells_system(int n, const fac_message m[]) {
    for (int k = 0; k < n; k++)
        if (is_role(&m[k], "system") && m[k].text[strspn(m[k].text, " \t\r\n")]) return true;
    return false;
}

/* A template that knows no system refuses it, or leaves it out: then it comes with the question. */
static fac_status by_template(fac_arena *arena, const fac_tokenizer *t, const char *jinja, int n,
                              const fac_message m[], bool answer, fac_jinja_result *out,
                              fac_error *err) {
    fac_error refusal = { 0 };
    fac_jinja_result again;
    int kept;
    fac_status status = render(arena, t, jinja, n, m, answer, out, &refusal);
    const bool missing = status ? out->refused : !out->system;
    fac_message *folded = fac_arena_alloc(arena, (size_t)n + 1, sizeof *folded);
    if (missing && tells_system(n, m) && folded && fold_system(arena, n, m, folded, &kept) &&
        !render(arena, t, jinja, kept, folded, answer, &again, NULL)) {
        *out = again;
        return FAC_OK;
    }
    if (!status && missing && tells_system(n, m))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "the chat template has no place for what the system says");
    return status ? fac_raise(err, status, "%s", refusal.text) : FAC_OK;
}

static fac_status put_by_template(writing *w, const char *jinja, int n, const fac_message m[],
                                  bool answer, fac_error *err) {
    fac_arena arena = { 0 };
    fac_jinja_result r;
    const fac_status status = by_template(&arena, w->t, jinja, n, m, answer, &r, err);
    for (size_t at = 0, end; !status && at < r.n; at = end) {
        for (end = at; end < r.n && !r.from[end] == !r.from[at]; end++) {}
        if (r.from[at])
            fac_text_add_bytes(&w->plain, r.s + at, end - at);
        else
            put_template(w, r.s + at, end - at);
    }
    fac_arena_free(&arena);
    return status;
}

/* ---- by a format ---- */

static bool is_blank(char c) { return c == ' ' || (c >= 9 && c <= 13); }

static void put_text(writing *w, const char *s, bool trims) {
    size_t n = strlen(s);
    while (trims && n && is_blank(*s)) s++, n--;
    while (trims && n && is_blank(s[n - 1])) n--;
    fac_text_add_bytes(&w->plain, s, n);
}

static void put_mark(writing *w, const char *s) { put_template(w, s, strlen(s)); }

static void put_turn(writing *w, const char *before, const char *text, const char *after,
                     bool trims) {
    put_mark(w, before);
    put_text(w, text, trims);
    put_mark(w, after);
}

static void put_user(writing *w, const fac_chat_turns *f, const char *system, const char *text) {
    put_mark(w, f->user.before);
    if (system && !strcmp(f->joint, "llama2")) {
        put_mark(w, "<<SYS>>\n");
        put_text(w, system, false);
        put_mark(w, "\n<</SYS>>\n\n");
    } else if (system) {
        put_text(w, system, f->trims);
        put_mark(w, f->joint);
    }
    put_text(w, text, f->trims);
    put_mark(w, f->user.after);
}

/* Where the system has no turn, its text comes with the next question. */
static fac_status put_by_format(writing *w, const fac_chat_turns *f, int n, const fac_message m[],
                                bool answer, fac_error *err) {
    const char *system = NULL;
    put_mark(w, f->begin);
    for (int k = 0; k < n; k++) {
        if (is_role(&m[k], "system") && f->system.before) {
            put_turn(w, f->system.before, m[k].text, f->system.after, f->trims);
        } else if (is_role(&m[k], "system")) {
            if (system)
                return fac_raise(err, FAC_E_ARGUMENT,
                                 "two messages of the system before a question: the format %s has "
                                 "room for one",
                                 f->name);
            system = m[k].text;
        } else if (is_role(&m[k], "user")) {
            put_user(w, f, system, m[k].text);
            system = NULL;
        } else if (is_role(&m[k], "assistant")) {
            put_turn(w, f->assistant.before, m[k].text, f->assistant.after, f->trims);
        } else {
            return fac_raise(
                err, FAC_E_ARGUMENT,
                "a message of the role \"%.40s\": system, user and assistant are known", m[k].role);
        }
    }
    if (system)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "what the system says comes with a question in the format %s, and none "
                         "follows",
                         f->name);
    if (answer) put_mark(w, f->answer);
    return FAC_OK;
}

/* ---- either ---- */

static bool is_jinja(const char *s) { return strstr(s, "{{") || strstr(s, "{%"); }

static fac_status put_all(writing *w, const char *format, int n, const fac_message m[], bool answer,
                          fac_error *err) {
    const char *jinja = format ? format : w->t->chat;
    if (!jinja)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "a model without a chat template: name a format (--chat-template, "
                         "fac_serve_opts.format), such as chatml");
    if (!format || is_jinja(format)) return put_by_template(w, jinja, n, m, answer, err);
    const fac_chat_turns *f = fac_chat_named(format);
    if (f) return put_by_format(w, f, n, m, answer, err);
    return fac_raise(err, FAC_E_ARGUMENT,
                     "a chat format \"%.40s\": none of that name, and no Jinja", format);
}

static bool is_text(const fac_message *m) {
    return m->role && m->text && fac_is_utf8(m->text, strlen(m->text)) &&
           fac_is_utf8(m->role, strlen(m->role));
}

fac_status fac_chat_encode(const fac_tokenizer *t, const char *format, int n, const fac_message m[],
                           bool answer, int32_t **ids, int64_t *count, fac_error *err) {
    writing w = { .t = t };
    for (int k = 0; k < n; k++)
        if (!is_text(&m[k])) return fac_raise(err, FAC_E_ARGUMENT, "message %d is no UTF-8", k);
    fac_status status = put_all(&w, format, n, m, answer, err);
    if (!status) flush(&w);
    fac_text_free(&w.plain);
    if (!status && w.ids.failed) status = fac_raise_memory(err, "a conversation");
    if (status) {
        fac_release(w.ids.at);
        return status;
    }
    *ids = w.ids.at;
    *count = (int64_t)w.ids.n;
    return FAC_OK;
}

void fac_chat_free(int32_t *ids) { fac_release(ids); }
