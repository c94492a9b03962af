/* ai.onnx.ml's SVMClassifier.  With support vectors each pair of classes i < j has a score
 *   s_ij = sum over the vectors of i and j of coefficient times kernel, plus rho
 * and votes for i where it is above 0, else for j.  Without them a row of coefficients for each
 * class makes its score. prob_a, prob_b: each pair's score becomes a probability, 1 / (1 + exp(a s
 * + b)), and these become those of the classes. */
#include "base/error.h"
#include "graph/graph_internal.h"
#include "ops/ml/svm.h"

typedef struct machine {
    const fac_onnx_node *n;
    fac_graph *g;
    fac_ml_classes classes;
    fac_ml_reals w, v, rho, a, b;
    fac_ml_ints per_class;
    int64_t vectors, nclasses, pairs;
} machine;

static fac_value *list(const machine *m, fac_ml_reals r, int64_t n) {
    return fac_ml_numbers(m->g, FAC_F32, fac_shape(n), r.v);
}

static double *numbers(const machine *m, int64_t n) {
    double *to = fac_arena_alloc(&m->g->arena, (size_t)n + 1, sizeof *to);
    if (!to) fac_fail_graph(m->g, FAC_E_NOMEM, "no memory for %lld coefficients", (long long)n);
    return to;
}

/* [vectors, pairs]: what each vector gives to the score of each pair. */
static fac_value *pair_weights(const machine *m) {
    double *to = numbers(m, m->vectors * m->pairs);
    int64_t pair = 0, start_i = 0;
    for (int64_t i = 0; to && i < m->nclasses; start_i += m->per_class.v[i++]) {
        int64_t start_j = start_i + m->per_class.v[i];
        for (int64_t j = i + 1; j < m->nclasses; start_j += m->per_class.v[j++], pair++) {
            for (int64_t k = start_i; k < start_i + m->per_class.v[i]; k++)
                to[k * m->pairs + pair] = m->w.v[(j - 1) * m->vectors + k];
            for (int64_t k = start_j; k < start_j + m->per_class.v[j]; k++)
                to[k * m->pairs + pair] = m->w.v[i * m->vectors + k];
        }
    }
    return to ? fac_ml_numbers(m->g, FAC_F32, fac_shape(m->vectors, m->pairs), to) : m->g->poison;
}

/* [pairs, classes]: 1 where the pair's first (or second) class is that one. */
static fac_value *members(const machine *m, bool second) {
    double *to = numbers(m, m->pairs * m->nclasses);
    int64_t pair = 0;
    for (int64_t i = 0; to && i < m->nclasses; i++)
        for (int64_t j = i + 1; j < m->nclasses; j++)
            to[pair++ * m->nclasses + (second ? j : i)] = 1;
    return to ? fac_ml_numbers(m->g, FAC_F32, fac_shape(m->pairs, m->nclasses), to) : m->g->poison;
}

static fac_value *votes_of(const machine *m, fac_value *scores) {
    fac_value *first = fac_cast(fac_greater(scores, fac_number_as(scores, 0)), FAC_F32);
    fac_value *second = fac_sub(fac_number_as(scores, 1), first);
    return fac_add(fac_matmul(first, members(m, false)), fac_matmul(second, members(m, true)));
}

/* [N,C,C] of the pairs' probabilities [N,pairs]: places of pairs, and of their opposites after
 * them, in a list. */
static fac_value *table_of(const machine *m, fac_value *p) {
    const int64_t c = m->nclasses;
    int64_t *at = fac_arena_alloc(&m->g->arena, (size_t)(c * c), sizeof *at), pair = 0;
    if (!at) return fac_fail_graph(m->g, FAC_E_NOMEM, "no memory for pairs of classes");
    for (int64_t i = 0; i < c; i++)
        for (int64_t j = i + 1; j < c; j++, pair++) {
            at[i * c + j] = pair;
            at[j * c + i] = m->pairs + pair;
        }
    fac_value *both = fac_concat((fac_value *[]){ p, fac_sub(fac_number_as(p, 1), p) }, 2, 1);
    return fac_reshape(fac_gather(both, fac_ml_const(m->g, FAC_I64, c * c, at), 1),
                       fac_shape(-1, c, c));
}

static fac_value *probabilities(const machine *m, fac_value *scores) {
    fac_value *a = list(m, m->a, m->pairs), *b = list(m, m->b, m->pairs);
    fac_value *p = fac_sigmoid(fac_neg(fac_add(fac_mul(scores, a), b)));
    p = fac_min(fac_max(p, fac_number_as(p, 1e-7)), fac_number_as(p, 1 - 1e-7));
    return fac_pairwise_coupling(table_of(m, p));
}

static bool fits(const machine *m) {
    if (m->rho.n < 1) return false;
    if (m->per_class.n <= 0) return m->w.n > 0 && m->w.n % m->classes.n == 0;
    int64_t all = 0;
    for (int k = 0; k < m->per_class.n; k++) {
        if (m->per_class.v[k] < 0 || m->per_class.v[k] > INT32_MAX) return false;
        all += m->per_class.v[k];
    }
    return all > 0 && m->v.n > 0 && m->v.n % all == 0 && m->nclasses > 1 && m->nclasses <= 4096 &&
           m->w.n == (m->nclasses - 1) * all && m->rho.n >= m->pairs &&
           (m->a.n <= 0 || m->a.n >= m->pairs) && m->a.n == m->b.n;
}

static void read(machine *m) {
    m->classes = fac_ml_classes_of(m->n, m->g, "classlabels_ints", "classlabels_strings");
    m->w = fac_ml_reals_of(m->n, m->g, "coefficients");
    m->v = fac_ml_reals_of(m->n, m->g, "support_vectors");
    m->rho = fac_ml_reals_of(m->n, m->g, "rho");
    m->a = fac_ml_reals_of(m->n, m->g, "prob_a");
    m->b = fac_ml_reals_of(m->n, m->g, "prob_b");
    m->per_class = fac_ml_ints_of(m->n, m->g, "vectors_per_class");
    m->nclasses = m->per_class.n;
    m->pairs = m->nclasses * (m->nclasses - 1) / 2;
    for (int k = 0; k < m->per_class.n; k++) m->vectors += m->per_class.v[k];
}

/* Two classes without probabilities: the margin of class 0 is its score, that of class 1 its
 * opposite. */
static fac_value *scores_of_two(fac_value *s, fac_ml_post post) {
    return post == FAC_ML_NONE ? fac_ml_two_columns(fac_neg(s), s) : fac_ml_both(s, post);
}

static void by_vectors(const machine *m, fac_value *x, fac_value *out[]) {
    const fac_ml_post post = fac_ml_post_of(m->n, m->g);
    fac_value *k = fac_ml_kernel(m->n, x, m->v.v, m->vectors, m->v.n / m->vectors);
    if (!k) return;
    fac_value *s = fac_add(fac_matmul(k, pair_weights(m)), list(m, m->rho, m->pairs));
    fac_value *votes = votes_of(m, s);
    out[0] = fac_ml_label(&m->classes, votes);
    if (m->n->nout < 2) return;
    if (m->a.n > 0)
        out[1] = fac_ml_post_apply(probabilities(m, s), post);
    else
        out[1] = m->pairs == 1 ? scores_of_two(s, post) : fac_ml_post_apply(s, post);
}

static void by_rows(const machine *m, fac_value *x, fac_value *out[]) {
    const int64_t classes = m->classes.n;
    fac_value *s = fac_ml_kernel(m->n, x, m->w.v, classes, m->w.n / classes);
    if (!s) return;
    s = fac_add(s, fac_number_as(s, m->rho.v[0]));
    out[0] = fac_ml_label(&m->classes, s);
    if (m->n->nout > 1) out[1] = fac_ml_post_apply(s, fac_ml_post_of(m->n, m->g));
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    machine m = { .n = n, .g = g };
    read(&m);
    if (!m.classes.labels || g->error.status) return;
    if (!fits(&m) || (m.per_class.n > 0 && m.per_class.n > m.classes.n)) {
        fac_fail_graph(
            g, FAC_E_FORMAT,
            "SVMClassifier: its vectors, coefficients, rho and classes do not fit together");
        return;
    }
    fac_value *x = fac_cast(fac_ml_rows(in[0]), FAC_F32);
    if (m.per_class.n > 0)
        by_vectors(&m, x, out);
    else
        by_rows(&m, x, out);
}

static const fac_onnx_attr names[] = {
    { "kernel_type", NULL }, { "kernel_params", NULL }, { "post_transform", NULL }, { 0 }
};
const fac_onnx fac_reads_svm_classifier[] = { { FAC_ML, "SVMClassifier", 1, 0, names, load, 1 },
                                              { 0 } };
