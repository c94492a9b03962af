/* Contributions of a sentence's words.  The margin is the logit of "positive" minus that of
 * "negative"; the contribution of a word is the gradient of the margin with respect to its vector,
 * times this vector. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "data/text/text_internal.h"
#include "facula/ops.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "studio/sentences/sentences.h"

enum { OUT_LOGITS, OUT_P, OUT_MARGIN, OUT_SHARES, OUTPUTS };

/* Vectors of the words, as the table gives them. */
static fac_value *find_vectors(fac_graph *g) {
    const fac_value *table = fac_graph_find(g, "embedding.weight");
    for (fac_node *k = g->first; k; k = k->next)
        if (FAC_IS(k, gather) && k->in[0] == table) return k->out[0];
    return NULL;
}

fac_status fac_sentences_looker(sentences *p, fac_error *err) {
    fac_graph *g = fac_graph_inference(p->model);
    if (!g) return fac_raise_memory(err, "a graph");
    fac_value *logits = fac_graph_output(g, 0), *vectors = find_vectors(g), *slope;
    fac_value *good = fac_slice(logits, 1, 1, 2, 1), *bad = fac_slice(logits, 1, 0, 1, 1);
    fac_value *margin = fac_sum(fac_sub(good, bad), (fac_dims){ 0 }, false);
    fac_grad(margin, 1, &vectors, &slope);
    fac_output(g, "p", fac_softmax(logits, 1));
    fac_output(g, "margin", margin);
    fac_output(g, "shares", fac_sum(fac_mul(slope, vectors), fac_shape(2), false));
    fac_status status = fac_graph_check(g, err);
    if (!status) status = fac_program_new(g, p->device, NULL, &p->looker, err);
    fac_graph_free(g);
    return status;
}

static fac_status ask(sentences *p, const char *text, fac_tensor **out, fac_error *err) {
    int32_t ids[SENTENCES_LENGTH] = { FAC_PAD };
    int64_t wide[SENTENCES_LENGTH];
    const int64_t all = fac_vocab_encode(p->vocab, text, ids, SENTENCES_LENGTH);
    int64_t n = all < SENTENCES_LENGTH ? all : SENTENCES_LENGTH;
    fac_tensor *x;
    if (n < 1) n = 1;
    for (int64_t i = 0; i < n; i++) wide[i] = ids[i];
    FAC_TRY(fac_tensor_new(NULL, FAC_I64, fac_shape(1, n), &x, err));
    fac_status status = fac_tensor_write(x, wide, (size_t)n * sizeof *wide, err);
    if (!status) status = fac_program_run(p->looker, &x, out, err);
    fac_tensor_free(x);
    return status;
}

/* The words, as tokenized, each with its contribution. */
static void put_words(const sentences *p, const char *text, const fac_tensor *shares,
                      fac_text *to) {
    const unsigned char *at = (const unsigned char *)text;
    const float *share = fac_tensor_data(shares);
    const fac_type type = fac_tensor_type(shares);
    char token[FAC_TOKEN_ROOM];
    fac_json_put_key(to, "words");
    fac_text_add(to, "[");
    for (int64_t i = 0; i < type.dims.d[1] && share &&
                        fac_token_next(p->vocab->kind, p->vocab->keep_case, &at, token);
         i++) {
        fac_text_add(to, i ? ",{" : "{");
        fac_json_put_pair_text(to, "word", token);
        fac_json_put_pair(to, "share", (double)share[i]);
        fac_json_put_pair_bool(to, "known", fac_vocab_find(p->vocab, token) != FAC_UNK);
        fac_text_add(to, "}");
    }
    fac_text_add(to, "]");
}

fac_status fac_sentences_look(sentences *p, const char *text, fac_text *to, fac_error *err) {
    fac_tensor *out[OUTPUTS] = { NULL };
    float chance[2] = { 0 };
    float margin = 0;
    fac_status status = ask(p, text, out, err);
    if (!status) status = fac_tensor_read(out[OUT_P], chance, sizeof chance, err);
    if (!status) status = fac_tensor_read(out[OUT_MARGIN], &margin, sizeof margin, err);
    if (!status) {
        fac_json_put_pair_text(to, "text", text);
        fac_json_put_pair(to, "chance", (double)chance[1]);
        fac_json_put_pair(to, "margin", (double)margin);
        put_words(p, text, out[OUT_SHARES], to);
    }
    for (int k = 0; k < OUTPUTS; k++) fac_tensor_free(out[k]);
    return status;
}

/* ---- neighbours ---- */

typedef struct near_word {
    double cosine;
    int64_t id;
} near_word;

static double product(const float *a, const float *b, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (double)a[k] * (double)b[k];
    return sum;
}

/* Keeps the best ones in order. */
static void take(near_word *best, int *n, near_word w) {
    int at = *n;
    while (at > 0 && best[at - 1].cosine < w.cosine) at--;
    if (at == SENTENCES_NEAR) return;
    if (*n < SENTENCES_NEAR) ++*n;
    memmove(best + at + 1, best + at, (size_t)(*n - at - 1) * sizeof *best);
    best[at] = w;
}

static void put_near(const sentences *p, const near_word *best, int n, fac_text *to) {
    fac_json_put_key(to, "near");
    fac_text_add(to, "[");
    for (int k = 0; k < n; k++) {
        fac_text_add(to, k ? ",{" : "{");
        fac_json_put_pair_text(to, "word", fac_vocab_word(p->vocab, best[k].id));
        fac_json_put_pair(to, "cosine", best[k].cosine);
        fac_text_add(to, "}");
    }
    fac_text_add(to, "]");
}

fac_status fac_sentences_near(sentences *p, const char *word, fac_text *to, fac_error *err) {
    int32_t id = FAC_UNK;
    if (fac_vocab_encode(p->vocab, word, &id, 1) != 1 || id == FAC_UNK)
        return fac_raise(err, FAC_E_ARGUMENT, "\"%s\" is not a word of the training sentences",
                         word);
    const fac_tensor *table = fac_value_tensor(fac_graph_find(p->model, "embedding.weight"));
    const fac_type type = fac_tensor_type(table);
    const int64_t count = type.dims.d[0], dim = type.dims.d[1];
    const float *x = fac_tensor_data(table);
    if (!x) return fac_raise(err, FAC_E_IO, "cannot read the word vectors");
    const float *mine = x + id * dim;
    near_word best[SENTENCES_NEAR + 1];
    int n = 0;
    const double length = sqrt(product(mine, mine, dim));
    for (int64_t k = FAC_UNK + 1; k < count; k++) {
        const double of = sqrt(product(x + k * dim, x + k * dim, dim)) * length;
        if (k == id || !(of > 0)) continue;
        take(best, &n, (near_word){ product(mine, x + k * dim, dim) / of, k });
    }
    fac_json_put_pair_text(to, "word", fac_vocab_word(p->vocab, id));
    put_near(p, best, n, to);
    return FAC_OK;
}
