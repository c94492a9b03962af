/* Conversations as models were trained to read them.  Chat templates are Jinja; known ones are
 * recognized by their marks (chat_formats.c) and rendered here.  What a template says may be
 * control tokens, what a message says never is: its text is tokenized as text, together with the
 * template's plain text around it. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "text/chat_formats.h"
#include "text/tokenizer.h"

const char *fac_chat_format(const fac_tokenizer *t) { return fac_chat_format_of(t->chat); }

/* ---- rendering ---- */

/* chat: the template of the file, where it decides; NULL: a format that was named. */
typedef struct writing {
    const fac_tokenizer *t;
    const char *chat;
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

/* The longest control token at s; -1: none. */
static int32_t control_at(const fac_tokenizer *t, const char *s) {
    for (int32_t k = 0; k < t->nspecials; k++) {
        const fac_token *a = &t->tokens[t->specials[k]];
        if (!strncmp(a->spelling, s, a->spelled)) return t->specials[k];
    }
    return -1;
}

/* Templates name the tokens that begin and end a text, so in another model these are others than
 * the format's own: `length` of its spelling, -1: none stands at s. */
static int32_t named_at(const writing *w, const char *s, size_t *length) {
    const struct {
        const char *spelling, *name;
        int32_t id;
    } named[] = { { "</s>", "eos_token", w->t->eos }, { "<s>", "bos_token", w->t->bos } };
    for (int k = 0; w->chat && k < 2; k++) {
        *length = strlen(named[k].spelling);
        if (named[k].id >= 0 && !strncmp(s, named[k].spelling, *length) &&
            strstr(w->chat, named[k].name))
            return named[k].id;
    }
    return -1;
}

static void put_template(writing *w, const char *s) {
    while (s && *s) {
        size_t length = 0;
        int32_t id = named_at(w, s, &length);
        if (id < 0) {
            id = control_at(w->t, s);
            length = id < 0 ? 0 : w->t->tokens[id].spelled;
        }
        if (id < 0) {
            fac_text_add_bytes(&w->plain, s++, 1);
            continue;
        }
        flush(w);
        fac_ids_add(&w->ids, id);
        s += length;
    }
}

/* What begins a conversation is there where the file's template says so, by its name or in full. */
static void put_begin(writing *w, const fac_chat_turns *f) {
    if (!w->chat) {
        put_template(w, f->begin);
    } else if (f->user.before && !strncmp(f->user.before, "<s>", 3)) {
        return; /* each question begins with it */
    } else if (strstr(w->chat, "bos_token") && w->t->bos >= 0) {
        flush(w);
        fac_ids_add(&w->ids, w->t->bos);
    } else if (*f->begin && strstr(w->chat, f->begin)) {
        put_template(w, f->begin);
    }
}

static bool is_blank(char c) { return c == ' ' || (c >= 9 && c <= 13); }

static void put_text(writing *w, const char *s, bool trims) {
    size_t n = strlen(s);
    while (trims && n && is_blank(*s)) s++, n--;
    while (trims && n && is_blank(s[n - 1])) n--;
    fac_text_add_bytes(&w->plain, s, n);
}

/* The system text that a template of chatml has of its own: between its marks, where it is a plain
 * text. */
static bool default_system(const fac_tokenizer *t, const fac_chat_turns *f, char to[1024]) {
    static const char begin[] = "<|im_start|>system";
    if (!t->chat || strcmp(f->name, "chatml")) return false;
    for (const char *s = strstr(t->chat, begin); s; s = strstr(s + 1, begin)) {
        const char *from = s + sizeof begin - 1;
        if (!strncmp(from, "\\n", 2))
            from += 2;
        else if (*from == '\n')
            from++;
        const char *end = strstr(from, "<|im_end|>");
        const size_t n = end ? (size_t)(end - from) : 0;
        if (!n || n >= 1024 || memchr(from, '\'', n) || memchr(from, '{', n) ||
            memchr(from, '\\', n))
            continue;
        memcpy(to, from, n);
        to[n] = 0;
        return true;
    }
    return false;
}

/* Models that think aloud do not read again what they thought before: of earlier answers what comes
 * after it is left. */
static const char *after_thinking(const writing *w, const char *text) {
    static const char end[] = "</think>";
    if (!w->chat || !strstr(w->chat, end)) return text;
    for (const char *s = strstr(text, end); s; s = strstr(text, end)) text = s + sizeof end - 1;
    while (strstr(w->chat, ".lstrip('\\n')") && *text == '\n') text++;
    return text;
}

/* Llama 3.1 and later are always told dates, before all else. */
static bool put_dates(writing *w, const fac_chat_turns *f, const char *system) {
    static const char known[] = "Cutting Knowledge Date: December 2023\n";
    char today[64] = "26 Jul 2024"; /* as the templates have it */
    if (!w->chat || !strstr(w->chat, "Cutting Knowledge Date: December 2023")) return false;
    const time_t now = time(NULL);
    struct tm day;
    if (strstr(w->chat, "strftime_now") && localtime_r(&now, &day))
        strftime(today, sizeof today, "%d %b %Y", &day);
    put_template(w, f->system.before);
    put_template(w, known);
    put_template(w, "Today Date: ");
    put_template(w, today);
    put_template(w, "\n\n");
    put_text(w, system, true);
    put_template(w, f->system.after);
    return true;
}

/* Which question the text of the system comes with, where it has no turn: the first one, or the
 * last one where the template says so. */
static int question_of_system(const writing *w, int n, const fac_message m[]) {
    int first = -1, last = -1;
    for (int k = 0; k < n; k++) {
        if (strcmp(m[k].role, "user")) continue;
        if (first < 0) first = k;
        last = k;
    }
    return w->chat && strstr(w->chat, "loop.last and system_message") ? last : first;
}

static void put_turn(writing *w, const char *before, const char *text, const char *after,
                     bool trims) {
    put_template(w, before);
    put_text(w, text, trims);
    put_template(w, after);
}

static void put_user(writing *w, const fac_chat_turns *f, const char *system, const char *text) {
    put_template(w, f->user.before);
    if (system && !strcmp(f->joint, "llama2")) {
        put_template(w, "<<SYS>>\n");
        put_text(w, system, false);
        put_template(w, "\n<</SYS>>\n\n");
    } else if (system) {
        put_text(w, system, f->trims);
        put_template(w, f->joint);
    }
    put_text(w, text, f->trims);
    put_template(w, f->user.after);
}

static void put_answer(writing *w, const fac_chat_turns *f, const char *text, bool earlier) {
    const char *before = f->assistant.before;
    if (!*before && w->chat && strstr(w->chat, "' ' + message['content']")) before = " ";
    if (earlier) text = after_thinking(w, text);
    put_turn(w, before, text, f->assistant.after, f->trims);
}

/* The first turn of the system, where there is one without a message for it. */
static int put_first(writing *w, const fac_chat_turns *f, int n, const fac_message m[]) {
    const bool told = n && !strcmp(m[0].role, "system");
    char own[1024];
    put_begin(w, f);
    if (!strcmp(f->name, "llama3") && put_dates(w, f, told ? m[0].text : "")) return told;
    if (!told && default_system(w->t, f, own))
        put_turn(w, f->system.before, own, f->system.after, false);
    return 0;
}

static fac_status put_all(writing *w, const fac_chat_turns *f, int n, const fac_message m[],
                          bool answer, fac_error *err) {
    const int asked = question_of_system(w, n, m);
    const char *system = NULL;
    int last = -1;
    for (int k = 0; k < n; k++)
        if (!strcmp(m[k].role, "user")) last = k;
    for (int k = put_first(w, f, n, m); k < n; k++) {
        if (!strcmp(m[k].role, "system") && f->system.before)
            put_turn(w, f->system.before, m[k].text, f->system.after, f->trims);
        else if (!strcmp(m[k].role, "system"))
            system = m[k].text;
        else if (!strcmp(m[k].role, "user")) {
            put_user(w, f, k >= asked ? system : NULL, m[k].text);
            if (k >= asked) system = NULL;
        } else if (!strcmp(m[k].role, "assistant"))
            put_answer(w, f, m[k].text, k < last);
        else
            return fac_raise(
                err, FAC_E_ARGUMENT,
                "a message of the role \"%.40s\": system, user and assistant are known", m[k].role);
    }
    if (answer) put_template(w, f->answer);
    if (answer && w->chat && strstr(w->chat, "Assistant\xef\xbd\x9c><think>\\n"))
        put_template(w, "<think>\n");
    flush(w);
    return FAC_OK;
}

static fac_status find(const fac_tokenizer *t, const char *name, const fac_chat_turns **out,
                       fac_error *err) {
    *out = name ? fac_chat_named(name) : fac_chat_recognized(t->chat);
    if (*out) return FAC_OK;
    if (name)
        return fac_raise(err, FAC_E_ARGUMENT, "a chat format \"%.40s\": none of that name", name);
    return fac_raise(err, FAC_E_UNSUPPORTED,
                     "%s: name a format (--chat-template, fac_serve_opts.format), such as chatml",
                     t->chat ? "the chat template is none that is known"
                             : "a model without a chat template");
}

static bool is_text(const fac_message *m) {
    return m->role && m->text && fac_is_utf8(m->text, strlen(m->text));
}

fac_status fac_chat_encode(const fac_tokenizer *t, const char *name, int n, const fac_message m[],
                           bool answer, int32_t **ids, int64_t *count, fac_error *err) {
    const fac_chat_turns *f;
    writing w = { .t = t, .chat = name ? NULL : t->chat };
    FAC_TRY(find(t, name, &f, err));
    for (int k = 0; k < n; k++)
        if (!is_text(&m[k])) return fac_raise(err, FAC_E_ARGUMENT, "message %d is no UTF-8", k);
    fac_status status = put_all(&w, f, n, m, answer, err);
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
