/* Vocabularies: words by how often they are seen, and numbers of words. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "data/text/text_internal.h"

enum { SPECIAL = 2 }; /* <pad> and <unk> */

fac_vocab *fac_vocab_begin(fac_token_kind kind, bool keep_case, int64_t room) {
    fac_vocab *v = fac_alloc(1, sizeof *v);
    if (!v) return NULL;
    v->kind = kind;
    v->keep_case = keep_case;
    fac_error err;
    if (!(v->words = fac_alloc((size_t)room + SPECIAL, sizeof *v->words)) ||
        fac_vocab_add(v, "<pad>", &err) || fac_vocab_add(v, "<unk>", &err)) {
        fac_vocab_free(v);
        return NULL;
    }
    return v;
}

fac_status fac_vocab_add(fac_vocab *v, const char *word, fac_error *err) {
    if (fac_table_get(&v->numbers, word))
        return fac_raise(err, FAC_E_FORMAT, "the word \"%s\" is there twice", word);
    const char **at = &v->words[v->count];
    if (!(*at = fac_arena_text(&v->arena, word)) || !fac_table_put(&v->numbers, *at, at))
        return fac_raise_memory(err, "a vocabulary");
    v->count++;
    return FAC_OK;
}

void fac_vocab_free(fac_vocab *v) {
    if (!v) return;
    fac_arena_free(&v->arena);
    fac_table_free(&v->numbers);
    fac_release(v->words);
    fac_release(v);
}

int64_t fac_vocab_count(const fac_vocab *v) { return v->count; }
const char *fac_vocab_word(const fac_vocab *v, int64_t id) {
    return id >= 0 && id < v->count ? v->words[id] : NULL;
}

int32_t fac_vocab_find(const fac_vocab *v, const char *word) {
    const char **at = fac_table_get(&v->numbers, word);
    return at ? (int32_t)(at - v->words) : FAC_UNK;
}

int64_t fac_vocab_encode(const fac_vocab *v, const char *text, int32_t *ids, int64_t room) {
    const unsigned char *p = (const unsigned char *)text;
    char token[FAC_TOKEN_ROOM];
    int64_t n = 0;
    for (; fac_token_next(v->kind, v->keep_case, &p, token); n++)
        if (n < room) ids[n] = fac_vocab_find(v, token);
    return n;
}

/* ---- counting ---- */

typedef struct word {
    const char *text;
    int64_t count;
} word;
typedef struct counter {
    fac_arena arena;
    fac_table seen;
    const word **words;
    size_t n, room;
} counter;

static bool count(counter *c, const char *token) {
    word *w = fac_table_get(&c->seen, token);
    if (!w) {
        w = fac_arena_alloc(&c->arena, 1, sizeof *w);
        if (!w || !(w->text = fac_arena_text(&c->arena, token)) ||
            !fac_reserve(&c->words, &c->room, c->n + 1, sizeof *c->words) ||
            !fac_table_put(&c->seen, w->text, w))
            return false;
        c->words[c->n++] = w;
    }
    w->count++;
    return true;
}

static int commonest_first(const void *a, const void *b) {
    const word *x = *(const word *const *)a, *y = *(const word *const *)b;
    if (x->count == y->count) return strcmp(x->text, y->text);
    return x->count < y->count ? 1 : -1;
}

static fac_status fill(counter *c, const fac_texts *t, const fac_vocab_opts *o, fac_vocab **out,
                       fac_error *err) {
    char token[FAC_TOKEN_ROOM];
    for (int64_t i = 0; i < t->count; i++)
        for (const unsigned char *p = (const unsigned char *)t->text[i];
             fac_token_next(o->kind, o->keep_case, &p, token);)
            if (*token && !count(c, token))
                return fac_raise(err, FAC_E_NOMEM, "no memory to count words");
    if (c->n) qsort(c->words, c->n, sizeof *c->words, commonest_first);
    size_t n = 0, most = o->size ? (size_t)o->size : INT32_MAX - SPECIAL;
    while (n < c->n && n < most && c->words[n]->count >= o->min_count) n++;
    fac_vocab *v = fac_vocab_begin(o->kind, o->keep_case, (int64_t)n);
    if (!v) return fac_raise_memory(err, "a vocabulary");
    fac_status status = FAC_OK;
    for (size_t k = 0; k < n && !status; k++)
        if (!fac_table_get(&v->numbers, c->words[k]->text))
            status = fac_vocab_add(v, c->words[k]->text, err);
    if (status)
        fac_vocab_free(v);
    else
        *out = v;
    return status;
}

fac_status fac_vocab_new(const fac_texts *t, const fac_vocab_opts *opts, fac_vocab **out,
                         fac_error *err) {
    static const fac_vocab_opts usual;
    const fac_vocab_opts *o = opts ? opts : &usual;
    counter c = { 0 };
    if (o->kind > FAC_TOKENS_CHAR || o->min_count < 0 || o->size < 0)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "a vocabulary of kind %d, at least %lld times, at most %lld words",
                         (int)o->kind, (long long)o->min_count, (long long)o->size);
    fac_status status = fill(&c, t, o, out, err);
    fac_table_free(&c.seen);
    fac_arena_free(&c.arena);
    fac_release(c.words);
    return status;
}
