/* What the tests of tiles share: small integers as contents, so that every order of adding gives
 * the same bits; graphs run and compared; products counted and held to the limits. */
#ifndef FACULA_TESTS_TILE_CHECK_H
#define FACULA_TESTS_TILE_CHECK_H
#include "device_check.h"
#include "base/rng.h"
#include "facula/backend.h"
#include "graph/graph_internal.h"
#include "graph/attr.h"
#include "op_list.h"

static inline int64_t random_below(int64_t n) {
    return (int64_t)(fac_random_bits(seed, ++stream, 0) % (uint64_t)n);
}

/* Integers from -4 to 4. */
static inline void fill(fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    fac_tensor *f32 = NULL, *own = NULL;
    OK(fac_tensor_new(NULL, FAC_F32, type.dims, &f32, &err));
    float *x = calloc((size_t)n + 1, sizeof *x);
    stream++;
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(int64_t)(fac_random_bits(seed, stream, (uint64_t)i) % 9) - 4;
    OK(fac_tensor_write(f32, x, (size_t)n * sizeof *x, &err));
    OK(fac_tensor_convert(f32, type.dtype, &own, &err));
    OK(fac_tensor_write(t, fac_tensor_data(own), fac_type_bytes(&type), &err));
    fac_tensor_free(own);
    fac_tensor_free(f32);
    free(x);
}

static inline fac_tensor *random_tensor(fac_type type) {
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, type.dtype, type.dims, &t, &err));
    fill(t);
    return t;
}

static inline void fill_params(fac_graph *g) {
    for (int i = 0; i < fac_graph_params(g); i++) fill(fac_value_tensor(fac_graph_param(g, i)));
}

/* solver NULL: as the planner likes. */
static inline void run_graph(const fac_graph *g, const char *solver, fac_tensor *const in[],
                             fac_tensor *out[]) {
    fac_program *p = NULL;
    OK(fac_program_new(g, device, &(fac_program_opts){ .solver = solver }, &p, &err));
    OK(fac_program_run(p, in, out, &err));
    fac_program_free(p);
}

static inline bool same_bits(fac_tensor *a, fac_tensor *b) {
    const fac_type type = fac_tensor_type(a), other = fac_tensor_type(b);
    if (!fac_dims_equal(&type.dims, &other.dims)) return false;
    const size_t bytes = fac_type_bytes(&type);
    char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
    OK(fac_tensor_read(a, x, bytes, &err));
    OK(fac_tensor_read(b, y, bytes, &err));
    const bool same = !memcmp(x, y, bytes);
    free(x), free(y);
    return same;
}

/* Both graphs on the same inputs of small integers: every output has the same bits. */
static inline bool same_function(const fac_graph *a, const fac_graph *b) {
    enum { MOST = 8 };
    fac_tensor *in[MOST], *was[MOST] = { NULL }, *is[MOST] = { NULL };
    const int n = fac_graph_inputs(a), outs = fac_graph_outputs(a);
    bool same = n <= MOST && outs <= MOST && outs == fac_graph_outputs(b);
    for (int i = 0; i < n; i++) in[i] = random_tensor(fac_value_type(fac_graph_input(b, i)));
    run_graph(a, NULL, in, was);
    run_graph(b, NULL, in, is);
    for (int k = 0; k < outs; k++) same = same && same_bits(was[k], is[k]);
    for (int i = 0; i < n; i++) fac_tensor_free(in[i]);
    for (int k = 0; k < outs; k++) fac_tensor_free(was[k]), fac_tensor_free(is[k]);
    return same;
}

/* How many products run when the graph runs once, in functions and loops too; none is above the
 * limits m, n, k, and none but a gemm is left.  Depthwise convolutions are no products. */
static inline int64_t products(const char *what, const fac_graph *g, const int64_t limit[3]) {
    static const char *const others[] = {
        "linear",           "matmul",           "conv1d",    "conv2d", "conv3d", "conv_transpose1d",
        "conv_transpose2d", "conv_transpose3d", "attention", "lstm",   "gru",    "rnn"
    };
    int64_t count = 0;
    for (const fac_node *n = g->first; n; n = n->next) {
        const int64_t groups = fac_attr_int(n, "groups", 1);
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (!strcmp(n->op->name, others[k]) && groups == 1)
                fail_msg("%s: %s is left", what, n->op->name);
        if (FAC_IS(n, call)) count += products(what, n->body[0], limit);
        if (FAC_IS(n, loop)) {
            fac_contents trips;
            assert_true(fac_known_numbers(n->in[0], &trips));
            count += trips.v[0] * products(what, n->body[0], limit);
        }
        if (!FAC_IS(n, gemm)) continue;
        const fac_dims *a = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
        const int64_t k = a->d[!fac_attr_flag(n, "trans_a")];
        if ((limit[0] && y->d[0] > limit[0]) || (limit[1] && y->d[1] > limit[1]) ||
            (limit[2] && k > limit[2]))
            fail_msg("%s: a product of %lld x %lld x %lld", what, (long long)y->d[0],
                     (long long)y->d[1], (long long)k);
        count++;
    }
    return count;
}

static inline int64_t tiles_reported(const fac_tiling *t) {
    int64_t tiles = 0;
    for (int i = 0; i < fac_tiling_rows(t); i++) tiles += fac_tiling_row(t, i)->tiles;
    return tiles;
}
#endif
