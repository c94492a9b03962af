/* What the tests of edits share: graphs from texts, their texts again, and whether two are the same
 * function. */
#ifndef FACULA_TESTS_EDIT_CHECK_H
#define FACULA_TESTS_EDIT_CHECK_H
#include "graph_check.h"
#include "device_check.h"
#include "graph_of.h"

static inline char *text_of(const fac_graph *g) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    OK(fac_graph_write(g, f, &err));
    fclose(f);
    return text;
}

/* How many nodes of an op. */
static inline int count_op(const fac_graph *g, const char *op) {
    int n = 0;
    for (const fac_node *m = g->first; m; m = m->next) n += !strcmp(m->op->name, op);
    return n;
}

/* Parameters of graphs from texts are zeros: other contents, positive (they may be variances). */
static inline void fill_params(fac_graph *g) {
    for (int k = 0; k < fac_graph_params(g); k++) {
        fac_tensor *t = fac_value_tensor(fac_graph_param(g, k));
        const fac_type type = fac_tensor_type(t);
        const size_t n = (size_t)fac_dims_count(&type.dims);
        float *x = calloc(n + 1, sizeof *x);
        for (size_t i = 0; i < n; i++)
            x[i] = 0.25f + (float)(fac_random_bits(seed, (uint64_t)k + 100, i) % 1000) / 1500;
        OK(fac_tensor_write(t, x, n * sizeof *x, &err));
        free(x);
    }
}

static inline void assert_same(const fac_graph *a, const fac_graph *b) {
    fac_verdict v;
    assert_sound(b);
    OK(fac_verify(a, b, device,
                  &(fac_verify_opts){ .mode = FAC_VERIFY_DATA, .rounds = 1, .seed = seed }, &v,
                  &err));
    if (v.same != FAC_NO_DIFFERENCE) fail_msg("%s", v.why);
}

/* The edit fails with this status and a text that says this; *out stays as it was. */
#define FAILS(call, status, says)                                                                  \
    do {                                                                                           \
        assert_int_equal(call, status);                                                            \
        if (!strstr(err.text, says)) fail_msg("\"%s\" does not say \"%s\"", err.text, says);       \
    } while (0)
#endif
