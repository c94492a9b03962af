/* Grammars for answers: what they are made from, and the vocabulary in the order of its bytes. */
#include "lm/grammar.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"

/* ---- the vocabulary ---- */

static size_t piece(const fac_grammar *g, int32_t id, char *to, size_t room) {
    return fac_tokenizer_piece(g->tokens, id, 0, to, room);
}

static bool read_bytes(fac_grammar *g) {
    size_t all = 0;
    g->count = fac_tokenizer_count(g->tokens);
    g->at = fac_alloc((size_t)g->count + 1, sizeof *g->at);
    g->order = fac_alloc((size_t)g->count + 1, sizeof *g->order);
    if (!g->at || !g->order) return false;
    for (int32_t id = 0; id < g->count; id++) {
        g->at[id] = all;
        all += piece(g, id, NULL, 0);
    }
    g->at[g->count] = all;
    g->bytes = fac_alloc(all + 1, 1);
    if (!g->bytes) return false;
    for (int32_t id = 0; id < g->count; id++) {
        const size_t n = g->at[id + 1] - g->at[id];
        piece(g, id, g->bytes + g->at[id], n);
        if (n) g->order[g->ordered++] = id;
    }
    return true;
}

static int compare(const fac_grammar *g, int32_t a, int32_t b) {
    const size_t n = g->at[a + 1] - g->at[a], m = g->at[b + 1] - g->at[b];
    const int order = memcmp(g->bytes + g->at[a], g->bytes + g->at[b], n < m ? n : m);
    return order ? order : (n > m) - (n < m);
}

/* qsort takes no context, and the library has no globals: merges of twice as long rows. */
static bool sort(fac_grammar *g) {
    int32_t *spare = fac_alloc((size_t)g->ordered + 1, sizeof *spare), *from = g->order,
            *to = spare;
    if (!spare) return false;
    for (int32_t wide = 1; wide < g->ordered; wide *= 2) {
        for (int32_t k = 0; k < g->ordered; k += 2 * wide) {
            int32_t a = k, b = k + wide < g->ordered ? k + wide : g->ordered;
            const int32_t middle = b, end = b + wide < g->ordered ? b + wide : g->ordered;
            for (int32_t i = k; i < end; i++) {
                const bool left = a < middle && (b >= end || compare(g, from[a], from[b]) <= 0);
                to[i] = left ? from[a++] : from[b++];
            }
        }
        int32_t *swap = from;
        from = to;
        to = swap;
    }
    g->order = from;
    fac_release(to);
    return true;
}

/* ---- making ---- */

void fac_grammar_free(fac_grammar *g) {
    if (!g) return;
    fac_release(g->items);
    fac_release(g->rules);
    fac_release(g->bytes);
    fac_release(g->at);
    fac_release(g->order);
    fac_release(g);
}

fac_status fac_grammar_new(const fac_tokenizer *t, const char *text, fac_grammar **out,
                           fac_error *err) {
    fac_grammar *g = fac_alloc(1, sizeof *g);
    if (!g) return fac_raise_memory(err, "a grammar");
    g->tokens = t;
    fac_status status = fac_grammar_parse(g, text, err);
    if (!status && (!read_bytes(g) || !sort(g))) status = fac_raise_memory(err, "a grammar");
    if (status)
        fac_grammar_free(g);
    else
        *out = g;
    return status;
}

fac_status fac_grammar_json(const fac_tokenizer *t, const char *schema, fac_grammar **out,
                            fac_error *err) {
    static const char any[] = "{\"type\":\"object\"}";
    const char *from = schema ? schema : any;
    char *text;
    FAC_TRY(fac_grammar_of_schema(from, strlen(from), &text, err));
    const fac_status status = fac_grammar_new(t, text, out, err);
    fac_release(text);
    /* rules are numbered here: their names say nothing to who wrote the schema */
    if (status == FAC_E_FORMAT && err && strstr(err->text, "begins with itself"))
        return fac_raise(err, status, "JSON schema: a $ref that leads to itself");
    return status == FAC_E_FORMAT ? fac_raise_in(err, status, "JSON schema") : status;
}
