/* Conversations as models were trained to read them.  Chat templates are Jinja; known ones are
 * recognized by their marks and rendered here.  What a template says may be control tokens, what a
 * message says never is: its text is tokenized as text, together with the template's plain text
 * around it. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "text/tokenizer.h"

/* begin: before all; a turn of each role in front of and after its text; answer: asks for one.
 * system NULL: its text comes before the first user's, `joint` between them.  trims: texts lose the
 * spaces around them. */
typedef struct format {
    const char *name, *marks[2], *begin;
    struct {
        const char *before, *after;
    } system, user, assistant;
    const char *answer, *joint;
    bool trims;
} format;

/* More special marks first: phi4 also has those of chatml. */
static const format formats[] = {
    { "phi4",
      { "<|im_start|>", "<|im_sep|>" },
      "",
      { "<|im_start|>system<|im_sep|>", "<|im_end|>" },
      { "<|im_start|>user<|im_sep|>", "<|im_end|>" },
      { "<|im_start|>assistant<|im_sep|>", "<|im_end|>" },
      "<|im_start|>assistant<|im_sep|>",
      NULL,
      false },
    { "chatml",
      { "<|im_start|>", NULL },
      "",
      { "<|im_start|>system\n", "<|im_end|>\n" },
      { "<|im_start|>user\n", "<|im_end|>\n" },
      { "<|im_start|>assistant\n", "<|im_end|>\n" },
      "<|im_start|>assistant\n",
      NULL,
      false },
    { "llama3",
      { "<|start_header_id|>", NULL },
      "<|begin_of_text|>",
      { "<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>" },
      { "<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>" },
      { "<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>" },
      "<|start_header_id|>assistant<|end_header_id|>\n\n",
      NULL,
      true },
    { "mistral-v7",
      { "[SYSTEM_PROMPT]", "[INST]" },
      "<s>",
      { "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]" },
      { "[INST]", "[/INST]" },
      { "", "</s>" },
      "",
      NULL,
      false },
    { "llama2",
      { "[INST]", "<<SYS>>" },
      "",
      { NULL, NULL },
      { "<s>[INST] ", " [/INST]" },
      { " ", " </s>" },
      "",
      "llama2",
      true },
    { "mistral-v1",
      { "' [INST] '", NULL },
      "<s>",
      { NULL, NULL },
      { " [INST] ", " [/INST]" },
      { " ", "</s>" },
      "",
      "\n\n",
      false },
    { "mistral-v3",
      { "[INST]", NULL },
      "<s>",
      { NULL, NULL },
      { "[INST] ", "[/INST]" },
      { " ", "</s>" },
      "",
      "\n\n",
      false },
    { "phi3",
      { "<|assistant|>", "<|end|>" },
      "",
      { "<|system|>\n", "<|end|>\n" },
      { "<|user|>\n", "<|end|>\n" },
      { "<|assistant|>\n", "<|end|>\n" },
      "<|assistant|>\n",
      NULL,
      false },
    { "zephyr",
      { "<|user|>", "eos_token" },
      "",
      { "<|system|>\n", "</s>\n" },
      { "<|user|>\n", "</s>\n" },
      { "<|assistant|>\n", "</s>\n" },
      "<|assistant|>\n",
      NULL,
      false },
    { "gemma",
      { "<start_of_turn>", NULL },
      "<bos>",
      { NULL, NULL },
      { "<start_of_turn>user\n", "<end_of_turn>\n" },
      { "<start_of_turn>model\n", "<end_of_turn>\n" },
      "<start_of_turn>model\n",
      "\n\n",
      true },
    { "deepseek",
      { "<\xef\xbd\x9cUser\xef\xbd\x9c>", NULL },
      "<\xef\xbd\x9c"
      "begin\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
      { "", "" },
      { "<\xef\xbd\x9cUser\xef\xbd\x9c>", "" },
      { "<\xef\xbd\x9c"
        "Assistant\xef\xbd\x9c>",
        "<\xef\xbd\x9c"
        "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>" },
      "<\xef\xbd\x9c"
      "Assistant\xef\xbd\x9c>",
      NULL,
      false },
    { "command-r",
      { "<|START_OF_TURN_TOKEN|>", NULL },
      "<BOS_TOKEN>",
      { "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>" },
      { "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>" },
      { "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>" },
      "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
      NULL,
      true },
};
enum { FORMATS = sizeof formats / sizeof *formats };

static const format *recognized(const char *chat) {
    for (int k = 0; chat && k < FORMATS; k++)
        if (strstr(chat, formats[k].marks[0]) &&
            (!formats[k].marks[1] || strstr(chat, formats[k].marks[1])))
            return &formats[k];
    return NULL;
}

const char *fac_chat_format_of(const char *jinja) {
    const format *f = recognized(jinja);
    return f ? f->name : NULL;
}

const char *fac_chat_format(const fac_tokenizer *t) { return fac_chat_format_of(t->chat); }

const char *fac_chat_format_name(int i) { return i >= 0 && i < FORMATS ? formats[i].name : NULL; }

/* ---- rendering ---- */

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

/* The longest control token at s; -1: none. */
static int32_t control_at(const fac_tokenizer *t, const char *s) {
    for (int32_t k = 0; k < t->nspecials; k++) {
        const fac_token *a = &t->tokens[t->specials[k]];
        if (!strncmp(a->spelling, s, a->spelled)) return t->specials[k];
    }
    return -1;
}

static void put_template(writing *w, const char *s) {
    while (s && *s) {
        const int32_t id = control_at(w->t, s);
        if (id < 0) {
            fac_text_add_bytes(&w->plain, s++, 1);
            continue;
        }
        flush(w);
        fac_ids_add(&w->ids, id);
        s += w->t->tokens[id].spelled;
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
static bool default_system(const fac_tokenizer *t, const format *f, char to[1024]) {
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

static void put_turn(writing *w, const char *before, const char *text, const char *after,
                     bool trims) {
    put_template(w, before);
    put_text(w, text, trims);
    put_template(w, after);
}

static void put_user(writing *w, const format *f, const char *system, const char *text) {
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

static fac_status put_all(writing *w, const format *f, int n, const fac_message m[], bool answer,
                          fac_error *err) {
    const char *system = NULL;
    char own[1024];
    put_template(w, f->begin);
    if ((!n || strcmp(m[0].role, "system")) && default_system(w->t, f, own))
        put_turn(w, f->system.before, own, f->system.after, false);
    for (int k = 0; k < n; k++) {
        if (!strcmp(m[k].role, "system") && f->system.before)
            put_turn(w, f->system.before, m[k].text, f->system.after, f->trims);
        else if (!strcmp(m[k].role, "system"))
            system = m[k].text;
        else if (!strcmp(m[k].role, "user")) {
            put_user(w, f, system, m[k].text);
            system = NULL;
        } else if (!strcmp(m[k].role, "assistant"))
            put_turn(w, f->assistant.before, m[k].text, f->assistant.after, f->trims);
        else
            return fac_raise(
                err, FAC_E_ARGUMENT,
                "a message of the role \"%.40s\": system, user and assistant are known", m[k].role);
    }
    if (answer) put_template(w, f->answer);
    flush(w);
    return FAC_OK;
}

static fac_status find(const fac_tokenizer *t, const char *name, const format **out,
                       fac_error *err) {
    *out = name ? NULL : recognized(t->chat);
    for (int k = 0; name && k < FORMATS; k++)
        if (!strcmp(formats[k].name, name)) *out = &formats[k];
    if (*out) return FAC_OK;
    if (name)
        return fac_raise(err, FAC_E_ARGUMENT, "a chat format \"%.40s\": none of that name", name);
    return fac_raise(err, FAC_E_UNSUPPORTED,
                     t->chat ? "the chat template is none that is known: name a format"
                             : "a model without a chat template: name a format");
}

static bool is_text(const fac_message *m) {
    return m->role && m->text && fac_is_utf8(m->text, strlen(m->text));
}

fac_status fac_chat_encode(const fac_tokenizer *t, const char *name, int n, const fac_message m[],
                           bool answer, int32_t **ids, int64_t *count, fac_error *err) {
    const format *f;
    writing w = { .t = t };
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
