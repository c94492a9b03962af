/* Unigram (Kudo 2018): the cut of a text into tokens whose scores, logarithms of probabilities,
 * have the largest sum (Viterbi). A character that no token covers costs the least score less 10.
 */
#include <math.h>
#include "base/memory.h"
#include "text/tokenizer.h"

typedef struct step {
    double score;
    uint32_t from;
    int32_t id;
} step; /* the best way to a byte */

static void improve(step *to, double score, size_t from, int32_t id) {
    if (score > to->score) *to = (step){ score, (uint32_t)from, id };
}

static void forward(const fac_tokenizer *t, const char *s, size_t n, step *best) {
    for (size_t k = 1; k <= n; k++) best[k].score = -INFINITY;
    for (size_t at = 0, used; at < n; at += used) {
        size_t bytes;
        bool single = false;
        fac_code_point(s + at, n - at, &used);
        for (size_t end = at; end < n && end - at < t->longest;) {
            fac_code_point(s + end, n - end, &bytes);
            end += bytes;
            const int32_t id = fac_tokenizer_look(t, s + at, end - at);
            if (id < 0 || t->tokens[id].type == FAC_TOKEN_UNKNOWN ||
                t->tokens[id].type == FAC_TOKEN_CONTROL)
                continue;
            single |= end - at == used;
            improve(&best[end], best[at].score + (double)t->tokens[id].score, at, id);
        }
        if (!single) improve(&best[at + used], best[at].score + (double)t->least - 10, at, -1);
    }
}

/* Unknown characters: their bytes if there are such tokens, else one <unk> for all that stand
 * together. */
static void put(const fac_tokenizer *t, const char *s, size_t from, size_t end, int32_t id,
                fac_ids *out, bool *unknown) {
    bool bytes = id < 0;
    for (size_t k = from; bytes && k < end; k++) bytes = t->byte[(unsigned char)s[k]] >= 0;
    if (id >= 0) fac_ids_add(out, id);
    for (size_t k = from; bytes && k < end; k++) fac_ids_add(out, t->byte[(unsigned char)s[k]]);
    if (id < 0 && !bytes && !*unknown && t->unknown >= 0) fac_ids_add(out, t->unknown);
    *unknown = id < 0 && !bytes;
}

void fac_unigram(const fac_tokenizer *t, const char *s, size_t n, fac_ids *out) {
    step *best = n < UINT32_MAX ? fac_alloc(n + 1, sizeof *best) : NULL;
    uint32_t *ends = best ? fac_alloc(n + 1, sizeof *ends) : NULL;
    size_t cuts = 0;
    if (!ends) {
        out->failed = true;
        fac_release(best);
        return;
    }
    forward(t, s, n, best);
    for (size_t at = n; at; at = best[at].from) ends[cuts++] = (uint32_t)at;
    bool unknown = false;
    while (cuts--) put(t, s, best[ends[cuts]].from, ends[cuts], best[ends[cuts]].id, out, &unknown);
    fac_release(ends);
    fac_release(best);
}
