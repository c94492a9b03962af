/* Gradients of elementwise ops and of those that move data, beyond what differences can see: ties
 * and corners, sizes that are symbols, many operands, zeros among factors; and the cpu's own kernel
 * for embeddings. */
#include "solver_check.h"
#include "allocations.h"
#include "facula/ops.h"
#include "facula/program.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "passes/passes.h"

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static fac_value *list(fac_graph *g, int n, const double *numbers) {
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F64, fac_shape(n), &t, &err));
    OK(fac_tensor_write(t, numbers, (size_t)n * sizeof *numbers, &err));
    fac_value *v = fac_const(g, t);
    fac_tensor_free(t);
    return v;
}

/* d sum(y) / dx is this. */
static void expect(fac_value *y, fac_value *x, int n, const double *want) {
    fac_device *device = NULL;
    fac_tensor *t = NULL;
    fac_value *d;
    double got[16];
    fac_grad(fac_sum(y, (fac_dims){ 0 }, false), 1, &x, &d);
    OK(fac_graph_check(y->graph, &err));
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, &err));
    OK(fac_eval(d, device, &t, &err));
    OK(fac_tensor_read(t, got, (size_t)n * sizeof *got, &err));
    for (int k = 0; k < n; k++)
        if (got[k] != want[k])
            fail_msg("%s: derivative %d is %.17g, expected %.17g", y->node->op->name, k, got[k],
                     want[k]);
    fac_tensor_free(t);
    fac_device_free(device);
}
#define LIST(...)                                                                                  \
    (int)(sizeof(double[]){ __VA_ARGS__ } / sizeof(double)), (const double[]) { __VA_ARGS__ }

/* As torch decides. */
static void ties_and_corners(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = list(g, LIST(-3, 0, 0.5, 1, 3)), *a = list(g, LIST(1, 2, 3)),
              *b = list(g, LIST(1, 3, 2));
    fac_value *one = fac_number(g, FAC_F64, 1), *zero = fac_number(g, FAC_F64, 0);
    expect(fac_max(a, b), a, LIST(0.5, 0, 1));
    expect(fac_max(a, b), b, LIST(0.5, 1, 0));
    expect(fac_min(a, b), a, LIST(0.5, 1, 0));
    expect(fac_min(a, b), b, LIST(0.5, 0, 1));
    expect(fac_max(a, a), a, LIST(1, 1, 1));
    expect(fac_relu(x), x, LIST(0, 0, 1, 1, 1));
    expect(fac_abs(x), x, LIST(-1, 0, 1, 1, 1));
    expect(fac_clip(x, zero, one), x, LIST(0, 1, 1, 1, 0));
    expect(fac_clip(x, zero, one), zero, LIST(1));
    expect(fac_clip(x, one, zero), zero, LIST(5));
    expect(fac_hard_sigmoid(x, 1, 0), x, LIST(0, 0, 1, 0, 0));
    expect(fac_leaky_relu(x, 0.5), x, LIST(0.5, 0.5, 1, 1, 1));
    fac_value *low = list(g, LIST(0, 1));
    expect(fac_elu(low, 2), low, LIST(2, 1));
    expect(fac_pow(x, fac_number(g, FAC_F64, 2)), x, LIST(-6, 0, 1, 2, 6));
    expect(fac_pow(x, zero), x, LIST(0, 0, 0, 0, 0));
    expect(fac_pow(zero, list(g, LIST(0, 1, 2))), zero, LIST(1));
    expect(fac_round(x), x, LIST(0, 0, 0, 0, 0));
    fac_graph_free(g);
}

/* As torch decides, too: what jumps has zeros, and NaN counts as above where there is a choice. */
static void no_numbers(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = list(g, LIST(NAN, INFINITY, -INFINITY, 0)),
              *a = list(g, LIST(1, -1, 2.5, 1, 5, -7)),
              *b = list(g, LIST(-INFINITY, INFINITY, INFINITY, 0, 2, 2));
    fac_value *(*const flat[])(fac_value *) = { fac_round, fac_floor, fac_ceil, fac_trunc,
                                                fac_sign };
    for (size_t k = 0; k < sizeof flat / sizeof *flat; k++) {
        expect(flat[k](x), x, LIST(0, 0, 0, 0));
        expect(fac_sub(a, flat[k](a)), a, LIST(1, 1, 1, 1, 1, 1));
    }
    expect(fac_relu(x), x, LIST(1, 1, 0, 0));
    expect(fac_relu6(x), x, LIST(1, 0, 0, 0));
    expect(fac_abs(x), x, LIST(0, 1, -1, 0));
    expect(fac_hard_swish(x), x, LIST(1, 1, 0, 0.5));
    expect(fac_leaky_relu(x, 0.5), x, LIST(0.5, 1, 0.5, 0.5));
    expect(fac_selu(x, 1, 2), x, LIST(2, 2, 0, 2));
    expect(fac_mod(a, b), b, LIST(1, 1, 0, -INFINITY, -2, 4));
    expect(fac_fmod(a, b), b, LIST(0, 0, 0, -INFINITY, -2, 3));
    expect(fac_nextafter(a, b), a, LIST(1, 1, 1, 1, 1, 1));
    expect(fac_nextafter(a, a), a, LIST(0, 0, 0, 0, 0, 0));
    fac_value *zero = list(g, LIST(0, 0, 0));
    expect(fac_atan2(zero, zero), zero, LIST(0, 0, 0));
    fac_value *power = list(g, LIST(0, 2, -2));
    expect(fac_pow(zero, power), power, LIST(0, 0, -INFINITY));
    fac_graph_free(g);
}

/* 131,072 elements are more than f16 can count. */
static void means_of_many_in_16_bits(void **state) {
    (void)state;
    static const fac_dtype types[] = { FAC_F16, FAC_BF16 };
    for (int k = 0; k < 2; k++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = list(g, LIST(0, 1, 2, 3, 4, 5, 6, 7));
        fac_value *wide =
            fac_expand(fac_unsqueeze(fac_cast(x, types[k]), fac_shape(1)), fac_shape(8, 1 << 14));
        expect(fac_mean(wide, fac_shape(1), false), x, LIST(1, 1, 1, 1, 1, 1, 1, 1));
        expect(fac_mean(wide, fac_shape(0, 1), false), x,
               LIST(0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125));
        fac_graph_free(g);
    }
}

static void products_with_zeros(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = list(g, LIST(2, 3, 0)), *u = list(g, LIST(5, 0, 7, 0)),
              *at = fac_ints(g, fac_shape(0, 0, 1, 2));
    fac_value *y = fac_scatter_elements(x, at, u, 0, FAC_SCATTER_MUL);
    expect(y, x, LIST(0, 7, 0));
    expect(y, u, LIST(0, 10, 3, 0));
    y = fac_scatter_elements(x, at, u, 0, FAC_SCATTER_NONE); /* 5 is written over by 0 */
    expect(y, x, LIST(0, 0, 0));
    expect(y, u, LIST(0, 1, 1, 1));
    y = fac_scatter_elements(x, at, u, 0, FAC_SCATTER_MAX); /* 5, 7, 0 */
    expect(y, x, LIST(0, 0, 0.5));
    expect(y, u, LIST(1, 0, 1, 0.5));
    fac_value *two = list(g, LIST(2, 0, 3, 0, 5));
    expect(fac_cum_prod(two, 0, false, false), two, LIST(1, 8, 0, 0, 0));
    expect(fac_cum_prod(two, 0, true, false), two, LIST(1, 8, 0, 0, 0));
    expect(fac_cum_prod(two, 0, false, true), two, LIST(0, 0, 0, 20, 1));
    fac_graph_free(g);
}

static void many_are_joined(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = list(g, LIST(1, 2)), *all[60];
    for (int k = 0; k < 60; k++) all[k] = k % 2 ? fac_mul(x, x) : x;
    expect(fac_concat(all, 60, 0), x, LIST(30 + 30 * 2, 30 + 30 * 4));
    fac_graph_free(g);
}

/* ---- sizes that are symbols: the same gradient as with numbers ---- */

/* x [N, M] and w [M]: everything that moves data. */
static fac_value *moving(fac_value *x, fac_value *w) {
    fac_graph *g = x->graph;
    fac_value *parts[3], *y = fac_mul(x, fac_exp(w));
    y = fac_concat((fac_value *[]){ y, fac_sin(x), y }, 3, 1);
    fac_split(y, 1, 3, parts);
    y = fac_add(parts[0], parts[2]);
    y = fac_concat((fac_value *[]){ y, fac_slice(fac_mul(y, y), 0, -1, -1000, -1),
                                    fac_slice(x, 0, 0, INT64_MAX, 2) },
                   3, 0);
    y = fac_gather(fac_mul(y, y), fac_ints(g, fac_shape(0, 2, 0, -1)), 0);
    y = fac_tile(y, fac_shape(2, 3));
    y = fac_pad(y, fac_ints(g, fac_shape(1, 0, -1, 2)), NULL, NULL, FAC_PAD_CONSTANT);
    y = fac_pad(y, fac_ints(g, fac_shape(1, 2)), NULL, fac_ints(g, fac_shape(1)), FAC_PAD_REFLECT);
    y = fac_cum_sum(fac_transpose(y, (fac_dims){ 0 }), 0, false, true);
    y = fac_mul(
        y, fac_unsqueeze(fac_flatten(fac_squeeze(fac_unsqueeze(y, fac_shape(0)), fac_shape(0)), 1),
                         (fac_dims){ 0 }));
    return fac_sum(fac_tanh(y), (fac_dims){ 0 }, false);
}

static void symbols_give_the_same(void **state) {
    (void)state;
    enum { N = 3, M = 4 };
    fac_device *device = NULL;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, &err));
    double x[N * M], w[M], got[2][N * M + M];
    for (int k = 0; k < N * M; k++) x[k] = 0.1 * k - 0.5;
    for (int k = 0; k < M; k++) w[k] = 0.2 * k - 0.3;
    for (int symbolic = 0; symbolic < 2; symbolic++) {
        fac_graph *g = fac_graph_new();
        int64_t n = symbolic ? fac_symbol(g, "N") : N;
        int64_t m = symbolic ? fac_symbol(g, "M") : M;
        fac_value *v[2] = { fac_input(g, "x", FAC_F64, fac_shape(n, m)),
                            fac_input(g, "w", FAC_F64, fac_shape(m)) },
                  *d[2];
        fac_grad(moving(v[0], v[1]), 2, v, d);
        fac_output(g, "dx", d[0]);
        fac_output(g, "dw", d[1]);
        OK(fac_graph_check(g, &err));
        fac_program *p = NULL;
        fac_tensor *in[2] = { NULL }, *out[2] = { NULL };
        OK(fac_program_new(g, device, NULL, &p, &err));
        OK(fac_tensor_new(NULL, FAC_F64, fac_shape(N, M), &in[0], &err));
        OK(fac_tensor_new(NULL, FAC_F64, fac_shape(M), &in[1], &err));
        OK(fac_tensor_write(in[0], x, sizeof x, &err));
        OK(fac_tensor_write(in[1], w, sizeof w, &err));
        OK(fac_program_run(p, in, out, &err));
        OK(fac_tensor_read(out[0], got[symbolic], sizeof x, &err));
        OK(fac_tensor_read(out[1], got[symbolic] + N * M, sizeof w, &err));
        for (int k = 0; k < 2; k++) fac_tensor_free(in[k]), fac_tensor_free(out[k]);
        fac_program_free(p);
        fac_graph_free(g);
    }
    double largest = 0;
    for (int k = 0; k < N * M + M; k++) {
        assert_true(fabs(got[0][k] - got[1][k]) <= 1e-12);
        largest = fmax(largest, fabs(got[0][k]));
    }
    assert_true(largest > 1e-3);
    fac_device_free(device);
}

/* Every allocation of building it fails once: an error of the graph each time, and at last the
 * gradients. */
static void lost_memory_is_an_error(void **state) {
    (void)state;
    bool built = false;
    for (long n = 0; !built; n++) {
        fac_graph *g = fac_graph_new();
        fac_value *v[2] = { fac_input(g, "x", FAC_F64,
                                      fac_shape(fac_symbol(g, "N"), fac_symbol(g, "M"))),
                            fac_input(g, "w", FAC_F64, fac_shape(fac_symbol(g, "M"))) },
                  *d[2] = { NULL };
        allocations_left = n;
        fac_grad(moving(v[0], v[1]), 2, v, d);
        allocations_left = -1;
        err = (fac_error){ 0 };
        fac_status s = fac_graph_check(g, &err);
        built = !s;
        assert_true(built || s == FAC_E_NOMEM);
        assert_non_null(d[0]);
        fac_graph_free(g);
    }
}

/* ---- one pass over memory ---- */

static fac_value *hard_sigmoid(fac_value *x) { return fac_hard_sigmoid(x, 0.2, 0.5); }
static fac_value *squared(fac_value *x) { return fac_pow(x, fac_number(x->graph, FAC_F32, 2)); }

/* The gradient of an elementwise op from dy is one chain, however often it reads what it computed;
 * and the chain, run by the cpu, says what the single ops say. */
static void a_gradient_is_one_chain(void **state) {
    (void)state;
    static fac_value *(*const ops[])(
        fac_value *) = { fac_relu,       fac_sigmoid, fac_tanh,     fac_silu,  fac_gelu,
                         fac_gelu_tanh,  fac_mish,    fac_softsign, fac_relu6, hard_sigmoid,
                         fac_hard_swish, fac_abs,     fac_sqrt,     squared,   fac_atan };
    enum { N = 1000 };
    fac_device *device = NULL;
    fac_tensor *in[2];
    float x[N], r[N], got[2][N];
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, &err));
    for (int k = 0; k < N; k++) {
        x[k] = 0.01f * (float)(k + 1);
        r[k] = (float)(k % 7) - 3;
    }
    for (int k = 0; k < 2; k++) {
        OK(fac_tensor_new(NULL, FAC_F32, fac_shape(N), &in[k], &err));
        OK(fac_tensor_write(in[k], k ? r : x, sizeof x, &err));
    }
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        fac_graph *g = fac_graph_new();
        fac_value *v = fac_input(g, "x", FAC_F32, fac_shape(N)),
                  *w = fac_input(g, "r", FAC_F32, fac_shape(N)), *d;
        fac_value *y = ops[k](v), *along = fac_mul(y, w);
        fac_grad(fac_sum(along, (fac_dims){ 0 }, false), 1, &v, &d);
        fac_output(g, "d", d);
        fac_output(g, "y", y);
        fac_output(g, "along", along);
        OK(fac_graph_check(g, &err));
        fac_graph *chains = fac_pass_chains(g);
        int left = 0;
        for (const fac_node *n = chains->first; n; n = n->next)
            left += n->op->map || n->op == &fac_op_fused;
        if (left != 3) fail_msg("the gradient of %s takes %d chains", y->node->op->name, left - 2);
        fac_graph_free(chains);
        for (int fuse = 0; fuse < 2; fuse++) {
            fac_program *p = NULL;
            fac_tensor *out[3] = { NULL };
            OK(fac_program_new(g, device, &(fac_program_opts){ .no_fuse = !fuse }, &p, &err));
            OK(fac_program_run(p, in, out, &err));
            OK(fac_tensor_read(out[0], got[fuse], sizeof *got, &err));
            for (int i = 0; i < 3; i++) fac_tensor_free(out[i]);
            fac_program_free(p);
        }
        for (int i = 0; i < N; i++)
            if (!(fabsf(got[0][i] - got[1][i]) <= 1e-5f * (1 + fabsf(got[0][i]))))
                fail_msg("%zu at %g: %g in single steps, %g in a chain", k, (double)x[i],
                         (double)got[0][i], (double)got[1][i]);
        fac_graph_free(g);
    }
    for (int k = 0; k < 2; k++) fac_tensor_free(in[k]);
    fac_device_free(device);
}

/* ---- the kernel for embeddings ---- */

static void embeddings(void **state) {
    (void)state;
    static const struct {
        fac_dims x, indices, dy;
        int axis;
    } all[] = { { { 2, { 7, 5 } }, { 2, { 9, 3 } }, { 3, { 9, 3, 5 } }, 0 },
                { { 3, { 3, 50, 130 } }, { 1, { 99 } }, { 3, { 3, 99, 130 } }, 1 },
                { { 2, { 4, 6 } }, { 0 }, { 1, { 4 } }, 1 },
                { { 2, { 300, 70 } }, { 1, { 0 } }, { 2, { 0, 70 } }, 0 } };
    for (size_t s = 0; s < sizeof all / sizeof *all; s++)
        for (int narrow = 0; narrow < 2; narrow++) {
            fac_graph *g = fac_graph_new();
            fac_value *x = fac_input(g, "x", FAC_F32, all[s].x);
            fac_value *i = fac_input(g, "i", narrow ? FAC_I32 : FAC_I64, all[s].indices);
            fac_value *dy = fac_input(g, "dy", FAC_F32, all[s].dy);
            int64_t axis = all[s].axis;
            fac_value *y = fac_emit(&fac_op_gather_grad, &axis, 3, (fac_value *[]){ x, i, dy });
            OK(fac_graph_check(g, &err));
            for (size_t k = 0; k < sizeof check_isas / sizeof *check_isas; k++) {
                check c = { .seed = 60 + s,
                            .lo = -8,
                            .hi = 8,
                            .index = all[s].x.d[all[s].axis],
                            .tolerance = 1e-5,
                            .threads = 2,
                            .strided = true,
                            .isa = check_isas[k] };
                assert_true(check_node(&c, "gather_grad", y->node));
            }
            fac_graph_free(g);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ties_and_corners),
        cmocka_unit_test(no_numbers),
        cmocka_unit_test(means_of_many_in_16_bits),
        cmocka_unit_test(products_with_zeros),
        cmocka_unit_test(many_are_joined),
        cmocka_unit_test(symbols_give_the_same),
        cmocka_unit_test(lost_memory_is_an_error),
        cmocka_unit_test(a_gradient_is_one_chain),
        cmocka_unit_test(embeddings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
