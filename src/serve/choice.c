/* One choice of an answer, whole or the new part of it.  The text of a task only grows, so a number
 * of bytes says how much of it was sent. */
#include <string.h>
#include "base/quote.h"
#include "serve/reply.h"

static const char *finish_of(const fac_task *t) {
    const bool full = t->stat.finish == FAC_FINISH_LENGTH || t->stat.finish == FAC_FINISH_CONTEXT;
    return full ? "length" : "stop";
}

static const char *words(const fac_task *k) { return k->text.s ? k->text.s : ""; }

bool fac_reply_look(const fac_reply *y, int at, fac_parts *p) {
    const fac_task *k = &y->c->tasks[at];
    const fac_told *d = &y->told[at];
    if (d->over) return false;
    const fac_thought found = fac_thought_find(y->thoughts, words(k), k->text.n, k->over);
    const char *text = words(k) + found.text;
    const size_t n = k->text.n - found.text;
    *p = (fac_parts){ .thought = words(k) + found.from,
                      .text = text,
                      .nthought = found.to - found.from,
                      .ntext = fac_call_text(y->form, text, n) };
    if (k->over) p->calls = fac_calls_read(y->form, &y->c->wish, text, n, &p->ntext);
    return k->over || (y->chat && !d->role) || p->ntext > d->bytes || p->nthought > d->thought;
}

static void add_calls(const fac_reply *y, fac_text *t, const cJSON *calls, int at, bool delta) {
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

/* What comes before a field of a message: nothing, where it is the first. */
static const char *comma(bool *some) {
    const char *between = *some ? "," : "";
    *some = true;
    return between;
}

/* Which was not told yet. */
static void add_message(const fac_reply *y, fac_text *t, int at, const fac_parts *p, bool delta) {
    const fac_told *d = &y->told[at];
    const size_t n = p->ntext - d->bytes;
    const bool says = n || !delta, thinks = p->nthought > d->thought;
    bool some = false;
    fac_text_print(t, "\"%s\":{", delta ? "delta" : "message");
    if (!d->role) fac_text_print(t, "%s\"role\":\"assistant\"", comma(&some));
    if (thinks) {
        fac_text_print(t, "%s\"reasoning_content\":", comma(&some));
        fac_text_quote(t, p->thought + d->thought, p->nthought - d->thought);
    }
    if (says) fac_text_print(t, "%s\"content\":", comma(&some));
    if (says && !n && p->calls)
        fac_text_add(t, "null");
    else if (says)
        fac_text_quote(t, p->text + d->bytes, n);
    if (p->calls) fac_text_add(t, comma(&some));
    if (p->calls) add_calls(y, t, p->calls, at, delta);
    fac_text_add(t, "}");
}

void fac_reply_choice(const fac_reply *y, fac_text *t, int at, fac_parts *p, bool delta) {
    const fac_task *k = &y->c->tasks[at];
    fac_told *d = &y->told[at];
    if (p->ntext < d->bytes) p->ntext = d->bytes;
    if (p->nthought < d->thought) p->nthought = d->thought;
    fac_text_print(t, "{\"index\":%d,", at);
    if (y->chat) {
        add_message(y, t, at, p, delta);
    } else {
        fac_text_add(t, "\"text\":");
        fac_text_quote(t, p->text + d->bytes, p->ntext - d->bytes);
    }
    fac_reply_records(y, t, k, d);
    if (k->over)
        fac_text_print(t, ",\"finish_reason\":\"%s\"}", p->calls ? "tool_calls" : finish_of(k));
    else
        fac_text_add(t, ",\"finish_reason\":null}");
    cJSON_Delete(p->calls);
    p->calls = NULL;
    d->role = true;
    d->thought = p->nthought;
    d->bytes = p->ntext;
    d->over = k->over;
}
