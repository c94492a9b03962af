/* facula train text: conversations, a JSON object a line with "messages" of a role and a content.
 * What an assistant says is learned, with the token that ends it; all else is only read. */
#include <stdlib.h>
#include <string.h>
#include "json.h"
#include "train.h"

bool lm_is_chat(const train_options *o) {
    const size_t n = o->data ? strlen(o->data) : 0;
    return n > 6 && !strcmp(o->data + n - 6, ".jsonl");
}

enum { MOST_MESSAGES = 1000 };

/* Rows of `length` tokens, in one piece. */
typedef struct rows {
    int32_t *tokens;
    int64_t *labels;
    int64_t n, room, length;
} rows;

typedef struct reading {
    const train_options *o;
    const fac_tokenizer *t;
    rows to[2]; /* for training, for testing */
    long line, kept, skipped;
    double part;
} reading;

static int widen(rows *r) {
    if (r->n < r->room) return EXIT_OK;
    const int64_t room = r->room ? 2 * r->room : 64;
    int32_t *tokens = realloc(r->tokens, (size_t)(room * r->length) * sizeof *tokens);
    if (tokens) r->tokens = tokens;
    int64_t *labels = realloc(r->labels, (size_t)(room * r->length) * sizeof *labels);
    if (labels) r->labels = labels;
    if (!tokens || !labels) return fail_text("out of memory");
    r->room = room;
    return EXIT_OK;
}

/* ---- one conversation ---- */

static int bad(const reading *r, const char *why) {
    return fail_text("%s: line %ld: %s", r->o->data, r->line, why);
}

static int messages_of(const reading *r, const cJSON *root, fac_message *to, int *n) {
    const cJSON *all = cJSON_GetObjectItem(root, "messages"), *one;
    *n = 0;
    if (!cJSON_IsArray(all)) return bad(r, "there is no list \"messages\"");
    if (cJSON_GetArraySize(all) > MOST_MESSAGES) return bad(r, "over 1000 messages");
    cJSON_ArrayForEach(one, all) {
        const char *role = cJSON_GetStringValue(cJSON_GetObjectItem(one, "role"));
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(one, "content"));
        if (!role || !text) return bad(r, "a message needs a \"role\" and a \"content\"");
        to[(*n)++] = (fac_message){ role, text };
    }
    return EXIT_OK;
}

typedef struct ids {
    int32_t *at;
    int64_t n;
} ids;

static int encode(const reading *r, const fac_message *m, int n, bool answer, ids *to) {
    fac_error err = { 0 };
    if (!fac_chat_encode(r->t, NULL, n, m, answer, &to->at, &to->n, &err)) return EXIT_OK;
    return bad(r, err.text);
}

static bool begins(const ids *all, const ids *with) {
    return with->n <= all->n && !memcmp(all->at, with->at, (size_t)with->n * sizeof *with->at);
}

/* Where the answer of message k stands among all tokens: up to the token that ends it. */
static int find_answer(const reading *r, const fac_message *m, int k, const ids *all, int64_t *from,
                       int64_t *to) {
    ids before = { 0 }, with = { 0 };
    int code = encode(r, m, k, true, &before);
    if (!code) code = encode(r, m, k + 1, false, &with);
    if (!code && (!begins(all, &before) || !begins(all, &with) || with.n < before.n))
        code = bad(r, "the chat template changes earlier turns: answers cannot be told apart");
    *from = before.n;
    *to = with.n;
    for (int64_t i = before.n; i < with.n && !code; i++)
        if (fac_tokenizer_ends(r->t, all->at[i])) *to = i + 1;
    fac_chat_free(before.at);
    fac_chat_free(with.at);
    return code;
}

/* Labels of one answer; false: none of it is within the row. */
static bool mark(const rows *r, int64_t *labels, const ids *all, int64_t from, int64_t to) {
    bool any = false;
    for (int64_t i = from < 1 ? 1 : from; i < to && i <= r->length; i++) {
        labels[i - 1] = all->at[i];
        any = true;
    }
    return any;
}

/* A row is kept where it has something to learn. */
static int add_row(reading *r, const fac_message *m, int n, const ids *all) {
    rows *to = &r->to[(long)((double)(r->kept + 1) * r->part) > (long)((double)r->kept * r->part)];
    bool any = false;
    int code = widen(to);
    if (code) return code;
    int32_t *tokens = to->tokens + to->n * to->length;
    int64_t *labels = to->labels + to->n * to->length;
    for (int64_t i = 0; i < to->length; i++) {
        tokens[i] = i < all->n ? all->at[i] : FAC_PAD;
        labels[i] = FAC_NO_LABEL;
    }
    for (int k = 0; k < n && !code; k++) {
        int64_t from, end;
        if (strcmp(m[k].role, "assistant")) continue;
        code = find_answer(r, m, k, all, &from, &end);
        if (!code) any |= mark(to, labels, all, from, end);
    }
    to->n += any;
    r->kept += any;
    r->skipped += !any;
    return code;
}

static int read_line(reading *r, const char *line, size_t n) {
    fac_message m[MOST_MESSAGES];
    ids all = { 0 };
    int count;
    cJSON *root = cJSON_ParseWithLength(line, n);
    if (!root) return bad(r, "is not JSON");
    int code = messages_of(r, root, m, &count);
    if (!code && count) code = encode(r, m, count, false, &all);
    if (!code) code = add_row(r, m, count, &all);
    fac_chat_free(all.at);
    cJSON_Delete(root);
    return code;
}

/* ---- all of them ---- */

static bool is_blank(const char *s, size_t n) { return strspn(s, " \t\r") >= n; }

static int read_all(reading *r, const char *text, size_t bytes) {
    int code = EXIT_OK;
    for (size_t at = 0, n; at < bytes && !code; at += n + 1) {
        n = strcspn(text + at, "\n");
        r->line++;
        if (!is_blank(text + at, n)) code = read_line(r, text + at, n);
    }
    return code;
}

static int give(const reading *r, int part, int classes, fac_dataset *to) {
    fac_error err = { 0 };
    const rows *x = &r->to[part];
    if (!x->n)
        return fail_text(
            "%s: %ld conversation%s with an answer within --context %ld: none is left for "
            "%s",
            r->o->data, r->kept, plural((double)r->kept), r->o->context,
            part ? "testing" : "training");
    if (!fac_dataset_sequences(x->tokens, x->labels, x->n, x->length, classes, to, &err))
        return EXIT_OK;
    return fail(&err);
}

int lm_read_chats(train_options *o, train_job *j, const char *text, size_t bytes) {
    const int classes = (int)fac_lm_about(j->lm).vocabulary;
    reading r = { .o = o, .t = j->tokens, .part = o->test_part };
    r.to[0].length = r.to[1].length = o->context;
    int code = EXIT_OK;
    if (!fac_tokenizer_template(j->tokens))
        code = fail_text("%s: conversations need a model with a chat template", o->model);
    if (!code) code = read_all(&r, text, bytes);
    if (!code && r.skipped)
        fprintf(stderr,
                "facula: %ld of %ld conversations have no answer within --context %ld: they are "
                "left out\n",
                r.skipped, r.kept + r.skipped, o->context);
    if (!code) code = give(&r, 0, classes, &j->train);
    if (!code) code = give(&r, 1, classes, &j->test);
    for (int k = 0; k < 2; k++) {
        free(r.to[k].tokens);
        free(r.to[k].labels);
    }
    return code;
}
