/* Hooks of programs: they see every node with its inputs and outputs, and what they put in place of
 * a result is what every later reader and the outputs see: in chains, in blocked layouts, packed,
 * on the cpu and on the OpenCL device where there is one. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/facula.h"
#include "facula/op.h"
#include "op_list.h"
#include "opencl_check.h"

static fac_device *devices[2];

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

static fac_tensor *random_tensor(fac_dims d, uint64_t stream) {
    fac_tensor *t = NULL;
    size_t n = (size_t)fac_dims_count(&d);
    float *x = malloc((n + 1) * sizeof *x);
    fac_random_fill(11, stream, -1, 1, n, x);
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, err));
    OK(fac_tensor_write(t, x, n * sizeof *x, err));
    free(x);
    return t;
}

/* ---- one replaced result after the other ---- */

enum { STAGES = 9, BATCH = 2 };

/* `with` in place of stage `at` (from 0), its type to *type. */
static fac_value *stage(fac_value *v, int *now, int at, fac_tensor *with, fac_type *type) {
    if ((*now)++ != at) return v;
    if (type) *type = fac_value_type(v);
    return with ? fac_const(fac_value_graph(v), with) : v;
}

/* Blocked convolutions, a residual, a pool, a concat, a product of two computed matrices. */
static fac_graph *network(int at, fac_tensor *with, fac_type *type) {
    fac_graph *g = fac_graph_new();
    int now = 0;
    fac_nn_seed(g, 5);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(BATCH, 3, 10, 10));
    fac_value *a = stage(fac_nn_conv2d(x, "c1", 32, 3, &(fac_nn_conv2d_opts){ .pad = 1 }), &now, at,
                         with, type);
    fac_value *r = stage(fac_relu(a), &now, at, with, type);
    fac_value *b = stage(fac_nn_conv2d(r, "c2", 32, 3, &(fac_nn_conv2d_opts){ .pad = 1 }), &now, at,
                         with, type);
    fac_value *c = stage(fac_add(r, b), &now, at, with, type);
    fac_value *p = stage(fac_max_pool2d(c, 2, 2, NULL), &now, at, with, type);
    fac_value *d = stage(fac_concat((fac_value *[]){ p, fac_neg(p) }, 2, 1), &now, at, with, type);
    fac_value *m = stage(fac_mean(d, fac_shape(2, 3), false), &now, at, with, type);
    fac_value *u = stage(fac_transpose(m, fac_shape(1, 0)), &now, at, with, type);
    fac_value *y = stage(fac_matmul(m, u), &now, at, with, type);
    fac_output(g, "y", y);
    fac_output(g, "c", c); /* also an output, and read by others */
    OK(fac_graph_check(g, err));
    assert_int_equal(now, STAGES);
    return g;
}

/* Node `stage` of those that are no neg; the expected operators make sure that it is the one that
 * was meant. */
static const char *const stage_ops[STAGES] = { "conv2d", "relu", "conv2d",    "add",   "max_pool2d",
                                               "concat", "mean", "transpose", "matmul" };
typedef struct swap {
    int at, now;
    fac_tensor *with;
} swap;

static fac_status put(void *self, fac_hooked *h, fac_error *e) {
    swap *s = self;
    const fac_node *n = fac_hooked_node(h);
    if (FAC_IS(n, neg)) return FAC_OK;
    assert_true(s->now < STAGES);
    assert_string_equal(n->op->name, stage_ops[s->now]);
    return s->now++ == s->at ? fac_hooked_replace(h, 0, s->with, e) : FAC_OK;
}

static void expect_close(const fac_tensor *x, const fac_tensor *y, double tolerance) {
    const fac_type t = fac_tensor_type(x), u = fac_tensor_type(y);
    assert_true(t.dtype == u.dtype && fac_dims_equal(&t.dims, &u.dims));
    const float *a = fac_tensor_data(x), *b = fac_tensor_data(y);
    for (int64_t i = 0; i < fac_dims_count(&t.dims); i++)
        if (!(fabs((double)a[i] - b[i]) <= tolerance * (1 + fabs((double)b[i]))))
            fail_msg("element %lld: %.9g, expected %.9g", (long long)i, a[i], b[i]);
}

static bool has_blocks(fac_program *p) {
    fac_step_stat steps[64];
    const size_t n = fac_program_steps(p, steps, 64);
    for (size_t i = 0; i < n && i < 64; i++)
        if (strstr(steps[i].layouts, "n16c") || strstr(steps[i].layouts, "n8c") ||
            strstr(steps[i].layouts, "n4c"))
            return true;
    return false;
}

/* The hooked network answers as one that has a constant there. */
static void replace_each_on(fac_device *d) {
    fac_tensor *x = random_tensor(fac_shape(BATCH, 3, 10, 10), 1);
    for (int at = 0; at < STAGES; at++) {
        fac_type type = { 0 };
        fac_program *p = NULL, *q = NULL;
        fac_graph_free(network(at, NULL, &type));
        fac_tensor *with = random_tensor(type.dims, (uint64_t)(100 + at)), *y[2] = { NULL },
                   *z[2] = { NULL };
        fac_graph *g = network(-1, NULL, NULL), *k = network(at, with, NULL);
        swap s = { at, 0, with };
        OK(fac_program_new(g, d, &(fac_program_opts){ .hook = put, .hook_self = &s }, &p, err));
        OK(fac_program_new(k, devices[0], NULL, &q, err));
        OK(fac_program_run(p, &x, y, err));
        OK(fac_program_run(q, &x, z, err));
        assert_int_equal(s.now, STAGES);
        for (int i = 0; i < 2; i++) expect_close(y[i], z[i], 2e-5);
        if (d == devices[0] && strncmp(fac_device_about(d), "portable", 8))
            assert_true(has_blocks(p));
        for (int i = 0; i < 2; i++) fac_tensor_free(y[i]), fac_tensor_free(z[i]);
        fac_program_free(p);
        fac_program_free(q);
        fac_graph_free(g);
        fac_graph_free(k);
        fac_tensor_free(with);
    }
    fac_tensor_free(x);
}

static void replaced_results_are_read(void **state) {
    (void)state;
    replace_each_on(devices[0]);
}

static void replaced_results_are_read_on_opencl(void **state) {
    (void)state;
    if (!devices[1]) skip();
    replace_each_on(devices[1]);
}

/* ---- what a hook sees ---- */

/* Copies of all results so far, by the id of their value. */
typedef struct log {
    fac_tensor *x, *seen[256];
    int nodes, inputs;
} log_;

static void copy_of(const fac_tensor *t, fac_tensor **out) {
    OK(fac_tensor_convert(t, FAC_F32, out, err));
}

static fac_status look(void *self, fac_hooked *h, fac_error *e) {
    log_ *l = self;
    const fac_node *n = fac_hooked_node(h);
    const fac_tensor *t = NULL;
    assert_non_null(fac_hooked_name(h));
    for (int i = 0; i < n->nin; i++) {
        if (fac_hooked_input(h, i, &t, e)) return e->status;
        const fac_value *v = n->in[i];
        if (!v || !t) continue;
        l->inputs++;
        if (v->node)
            expect_close(t, l->seen[v->id], 0);
        else if (v->leaf == FAC_INPUT)
            expect_close(t, l->x, 0);
        else
            assert_ptr_equal(t, v->tensor);
    }
    assert_true(n->out[0]->id < 256);
    if (fac_hooked_output(h, 0, &t, e)) return e->status;
    if (FAC_IS(n, relu)) { /* what was replaced is what the next ones are given */
        fac_tensor *other = random_tensor(fac_tensor_type(t).dims, 77);
        if (fac_hooked_replace(h, 0, other, e)) return e->status;
        const fac_tensor *again = NULL;
        if (fac_hooked_output(h, 0, &again, e)) return e->status;
        expect_close(again, other, 0);
        assert_ptr_not_equal(again, t); /* and the first one is still there */
        assert_non_null(fac_tensor_data(t));
        t = again;
        fac_tensor_free(other);
    }
    copy_of(t, &l->seen[n->out[0]->id]);
    l->nodes++;
    return FAC_OK;
}

static void inputs_are_what_was_made(void **state) {
    (void)state;
    for (int k = 0; k < 2 && devices[k]; k++) {
        fac_graph *g = network(-1, NULL, NULL);
        fac_program *p = NULL;
        log_ l = { .x = random_tensor(fac_shape(BATCH, 3, 10, 10), 1) };
        fac_tensor *y[2] = { NULL };
        OK(fac_program_new(g, devices[k], &(fac_program_opts){ .hook = look, .hook_self = &l }, &p,
                           err));
        OK(fac_program_run(p, &l.x, y, err));
        assert_int_equal(l.nodes, STAGES + 1);
        assert_true(l.inputs >= STAGES + 6);
        for (int i = 0; i < 2; i++) fac_tensor_free(y[i]);
        for (int i = 0; i < 256; i++) fac_tensor_free(l.seen[i]);
        fac_tensor_free(l.x);
        fac_program_free(p);
        fac_graph_free(g);
    }
}

/* ---- what cannot be replaced, and what stops ---- */

static fac_status wrong(void *self, fac_hooked *h, fac_error *e) {
    const fac_node *n = fac_hooked_node(h);
    const fac_tensor *t = NULL;
    assert_int_equal(fac_hooked_output(h, n->nout, &t, e), FAC_E_ARGUMENT);
    assert_int_equal(fac_hooked_input(h, n->nin, &t, e), FAC_E_ARGUMENT);
    assert_int_equal(fac_hooked_replace(h, -1, self, e), FAC_E_ARGUMENT);
    return fac_hooked_replace(h, 0, self, e);
}

static void other_sizes_are_refused(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_program *p = NULL;
    fac_error e = { 0 };
    fac_tensor *x = random_tensor(fac_shape(4), 1), *five = random_tensor(fac_shape(5), 2),
               *y = NULL;
    fac_output(g, "y", fac_exp(fac_input(g, "x", FAC_F32, fac_shape(4))));
    OK(fac_program_new(g, devices[0], &(fac_program_opts){ .hook = wrong, .hook_self = five }, &p,
                       err));
    assert_int_equal(fac_program_run(p, &x, &y, &e), FAC_E_SHAPE);
    assert_non_null(strstr(e.text, "cannot become a tensor of another type or size"));
    assert_null(y);
    fac_program_free(p);
    fac_tensor_free(x);
    fac_tensor_free(five);
    fac_graph_free(g);
}

/* ---- chains, updates, observers ---- */

typedef struct trace {
    fac_tensor *with;
    int n;
    float first[8];
} trace;

static fac_status swap_exp(void *self, fac_hooked *h, fac_error *e) {
    return strcmp(fac_hooked_node(h)->op->name, "exp")
               ? FAC_OK
               : fac_hooked_replace(h, 0, ((trace *)self)->with, e);
}

static bool note(void *self, const char *node, const fac_tensor *value) {
    trace *t = self;
    (void)node;
    t->first[t->n++] = ((const float *)fac_tensor_data(value))[0];
    return true;
}

/* Elementwise ops that would be one step; an observer sees what was replaced, and a parameter takes
 * it. */
static void chains_updates_and_observers_follow(void **state) {
    (void)state;
    for (int k = 0; k < 2 && devices[k]; k++) {
        fac_graph *g = fac_graph_new();
        fac_program *p = NULL;
        fac_tensor *x = random_tensor(fac_shape(4), 1), *w = NULL, *y = NULL;
        trace t = { .with = random_tensor(fac_shape(4), 2) };
        OK(fac_tensor_new(NULL, FAC_F32, fac_shape(4), &w, err));
        fac_value *e = fac_exp(fac_input(g, "x", FAC_F32, fac_shape(4)));
        fac_value *m = fac_param(g, "w", w);
        fac_update(m, fac_add(m, e));
        fac_output(g, "y", fac_neg(fac_mul(e, e)));
        fac_program_opts o = {
            .hook = swap_exp, .hook_self = &t, .observe = note, .observe_self = &t
        };
        OK(fac_program_new(g, devices[k], &o, &p, err));
        OK(fac_program_run(p, &x, &y, err));
        const float *r = fac_tensor_data(t.with), *to = fac_tensor_data(y),
                    *now = fac_tensor_data(w);
        for (int i = 0; i < 4; i++) assert_true(to[i] == -(r[i] * r[i]) && now[i] == r[i]);
        assert_int_equal(t.n, 4);
        bool seen = false;
        for (int i = 0; i < 4; i++) seen |= t.first[i] == r[0];
        assert_true(seen);
        fac_tensor_free(x), fac_tensor_free(w), fac_tensor_free(y), fac_tensor_free(t.with);
        fac_program_free(p);
        fac_graph_free(g);
    }
}

static int open_devices(void **state) {
    fac_error e = { 0 };
    (void)state;
    if (fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &devices[0], &e)) return -1;
    return opencl_open(&devices[1], &e);
}

static int close_devices(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) fac_device_free(devices[k]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaced_results_are_read),
        cmocka_unit_test(replaced_results_are_read_on_opencl),
        cmocka_unit_test(inputs_are_what_was_made),
        cmocka_unit_test(other_sizes_are_refused),
        cmocka_unit_test(chains_updates_and_observers_follow),
    };
    return cmocka_run_group_tests_name("hooks", tests, open_devices, close_devices);
}
