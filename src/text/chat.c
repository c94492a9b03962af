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

static fac_status render(fac_arena *arena, const fac_tokenizer *t, const fac_chat_opts *o, int n,
                         const fac_message m[], fac_jinja_result *out, fac_error *err) {
    const fac_jinja_input in = { .messages = m,
                                 .n = n,
                                 .answer = o->answer,
                                 .tools = o->tools,
                                 .variables = o->variables,
                                 .more = o->more,
                                 .bos = token_text(t, t->bos),
                                 .eos = token_text(t, t->eos),
                                 .unknown = token_text(t, t->unknown) };
    return fac_jinja_render(arena, o->format, &in, out, err);
}

static bool is_role(const fac_message *m, const char *role) { return !strcmp(m->role, role); }

/* The messages with what the system says before what is asked next, two line ends between them.
 * *fits: something is asked after it.  false: no memory. */
static bool fold_system(fac_arena *arena, const char *const *more, int n, const fac_message m[],
                        fac_message to[], const char **more_to, int *kept, bool *fits) {
    const char *system = NULL;
    *kept = 0;
    for (int k = 0; k < n; k++) {
        if (is_role(&m[k], "system") && m[k].text) {
            system = system ? fac_arena_print(arena, "%s\n\n%s", system, m[k].text) : m[k].text;
            if (!system) return false;
            continue;
        }
        to[*kept] = m[k];
        more_to[*kept] = more ? more[k] : NULL;
        if (system && is_role(&m[k], "user") && m[k].text) {
            to[*kept].text = fac_arena_print(arena, "%s\n\n%s", system, m[k].text);
            if (!to[*kept].text) return false;
            system = NULL;
        }
        ++*kept;
    }
    *fits = !system;
    return true;
}

static bool tells_system(int n, const fac_message m[]) {
    for (int k = 0; k < n; k++)
        if (is_role(&m[k], "system") && m[k].text && m[k].text[strspn(m[k].text, " \t\r\n")])
            return true;
    return false;
}

/* A template that knows no system refuses it, or leaves it out: then it comes with the question. */
static fac_status by_template(fac_arena *arena, const fac_tokenizer *t, const fac_chat_opts *o,
                              int n, const fac_message m[], fac_jinja_result *out, fac_error *err) {
    fac_error refusal = { 0 };
    fac_jinja_result again;
    int kept;
    bool fits;
    const fac_status status = render(arena, t, o, n, m, out, &refusal);
    const bool missing = (status ? out->refused : !out->system) && tells_system(n, m);
    if (!missing) return status ? fac_raise(err, status, "%s", refusal.text) : FAC_OK;
    fac_message *folded = fac_arena_alloc(arena, (size_t)n + 1, sizeof *folded);
    const char **more = fac_arena_alloc(arena, (size_t)n + 1, sizeof *more);
    if (!folded || !more || !fold_system(arena, o->more, n, m, folded, more, &kept, &fits))
        return fac_raise_memory(err, "a conversation");
    fac_chat_opts with = *o;
    with.more = more;
    const fac_status folds =
        fits ? render(arena, t, &with, kept, folded, &again, NULL) : FAC_E_ARGUMENT;
    if (folds == FAC_E_NOMEM) return fac_raise_memory(err, "a conversation");
    if (!folds) {
        *out = again;
        return FAC_OK;
    }
    if (status) return fac_raise(err, status, "%s", refusal.text);
    return fac_raise(err, FAC_E_ARGUMENT,
                     "the chat template has no place for what the system says");
}

static fac_status put_by_template(writing *w, const fac_chat_opts *o, int n, const fac_message m[],
                                  fac_error *err) {
    fac_arena arena = { 0 };
    fac_jinja_result r;
    const fac_status status = by_template(&arena, w->t, o, n, m, &r, err);
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
static fac_status put_by_format(writing *w, const fac_chat_turns *f, const fac_chat_opts *o, int n,
                                const fac_message m[], fac_error *err) {
    const char *system = NULL, *const *more = o->more;
    put_mark(w, f->begin);
    for (int k = 0; k < n; k++) {
        if (more && more[k])
            return fac_raise(err, FAC_E_UNSUPPORTED,
                             "calls of tools are written by a model's own template, not by the "
                             "format %s",
                             f->name);
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
    if (o->answer) put_mark(w, f->answer);
    return FAC_OK;
}

/* ---- either ---- */

static bool is_jinja(const char *s) { return strstr(s, "{{") || strstr(s, "{%"); }

/* What was asked for in vain would be an answer to something else. */
static fac_status check_tools(const char *jinja, const fac_chat_opts *o, fac_error *err) {
    if (!o->tools || (jinja && strstr(jinja, "tools"))) return FAC_OK;
    return fac_raise(err, FAC_E_UNSUPPORTED, "the model's chat template knows no tools");
}

static fac_status put_all(writing *w, const fac_chat_opts *opts, int n, const fac_message m[],
                          fac_error *err) {
    const char *format = opts->format, *jinja = format ? format : w->t->chat;
    fac_chat_opts o = *opts;
    o.format = jinja;
    if (!jinja)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "a model without a chat template: name a format (--chat-template, "
                         "fac_serve_opts.format), such as chatml");
    const bool own = !format || is_jinja(format);
    FAC_TRY(check_tools(own ? jinja : NULL, &o, err));
    if (own) return put_by_template(w, &o, n, m, err);
    const fac_chat_turns *f = fac_chat_named(format);
    if (f) return put_by_format(w, f, &o, n, m, err);
    return fac_raise(err, FAC_E_ARGUMENT,
                     "a chat format \"%.40s\": none of that name, and no Jinja", format);
}

static bool is_text(const char *s) { return s && fac_is_utf8(s, strlen(s)); }

static bool is_whole(const fac_message *m, const char *more) {
    if (more && !is_text(more)) return false;
    return is_text(m->role) && (m->text ? is_text(m->text) : more != NULL);
}

static bool is_plain(const char *s) { return !s || is_text(s); }

fac_status fac_chat_encode(const fac_tokenizer *t, const char *format, int n, const fac_message m[],
                           bool answer, int32_t **ids, int64_t *count, fac_error *err) {
    const fac_chat_opts o = { .format = format, .answer = answer };
    return fac_chat_encode_with(t, &o, n, m, ids, count, err);
}

fac_status fac_chat_encode_with(const fac_tokenizer *t, const fac_chat_opts *o, int n,
                                const fac_message m[], int32_t **ids, int64_t *count,
                                fac_error *err) {
    writing w = { .t = t };
    for (int k = 0; k < n; k++)
        if (!is_whole(&m[k], o->more ? o->more[k] : NULL))
            return fac_raise(err, FAC_E_ARGUMENT, "message %d is no UTF-8", k);
    if (!is_plain(o->tools) || !is_plain(o->variables))
        return fac_raise(err, FAC_E_ARGUMENT, "tools or variables are no UTF-8");
    fac_status status = put_all(&w, o, n, m, err);
    if (!status) flush(&w);
    fac_text_free(&w.plain);
    if (!status && w.ids.failed) status = fac_raise_memory(err, "a conversation");
    if (!status && !w.ids.n)
        status = fac_raise(err, FAC_E_ARGUMENT, "the chat template writes nothing");
    if (status) {
        fac_release(w.ids.at);
        return status;
    }
    *ids = w.ids.at;
    *count = (int64_t)w.ids.n;
    return FAC_OK;
}

void fac_chat_free(int32_t *ids) { fac_release(ids); }
