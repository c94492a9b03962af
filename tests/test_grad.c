/* Gradients: every op on its own cases against central differences in f64, first and second derivatives; unused outputs, what is
 * not connected, symbols, refusals; and that every op says something about its gradient. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/backend.h"
#include "facula/ops.h"
#include "facula/program.h"
#include "graph/graph_internal.h"

enum { OPERANDS = 16, PLACES = 10 };

static fac_device *device;
static fac_error err;
static uint64_t seed, stream;
static int kinks;                       /* places where differences say nothing */
#define OK(call) do { if (call) fail_msg("%s: %s", #call, err.text); } while (0)

static char kind(fac_dtype d) { return fac_dtype_get(d)->kind; }

/* ---- problems in f64 ---- */

/* The text with f64 for every other type of floats: "f32[" after "(" or a space. */
static void in_f64(const char *text, char *out, size_t room) {
    static const char *const others[] = { "f32[", "f16[", "bf16[" };
    size_t n = 0;
    for (const char *s = text; *s;) {
        size_t skip = 0;
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (!strncmp(s, others[k], strlen(others[k])) && s > text && (s[-1] == '(' || s[-1] == ' ')) skip = strlen(others[k]);
        n += (size_t)snprintf(out + n, room - n, "%s", skip ? "f64[" : (char[]){ *s, 0 });
        s += skip ? skip : 1;
    }
}

static fac_tensor *random_tensor(fac_type type, double lo, double hi) {
    int64_t n = fac_dims_count(&type.dims);
    double *x = calloc((size_t)n + 1, sizeof *x);
    stream++;
    for (int64_t k = 0; k < n; k++) {
        double u = fac_random_uniform(seed, stream, (uint64_t)k);
        x[k] = kind(type.dtype) == 'f' ? lo + (hi - lo) * u : floor(lo + (hi - lo + 1) * u);
        if (kind(type.dtype) == 'b') x[k] = u < 0.5;
        if (kind(type.dtype) == 'u') x[k] = fabs(x[k]);
    }
    fac_tensor *wide = NULL, *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F64, type.dims, &wide, &err));
    OK(fac_tensor_write(wide, x, (size_t)n * sizeof *x, &err));
    OK(fac_tensor_convert(wide, type.dtype, &t, &err));
    fac_tensor_free(wide);
    free(x);
    return t;
}

/* dot(x, r, [more]) = sum(x r) + more, of the test's own, so that one op is tried at a time. */
static const fac_port dot_in[] = { { "x", FAC_FLOATS, 0 }, { "r", FAC_FLOATS, 0 }, { "more", FAC_FLOATS, FAC_OPTIONAL }, { 0 } };
static bool dot_infer(fac_node *n) {
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, { 0 } };
    return true;
}
static fac_status dot_ref(const fac_ref *r, fac_error *e) {
    (void)e;
    double sum = r->in[2].f ? r->in[2].f[0] : 0;
    for (int64_t i = 0; i < fac_dims_count(&r->in[0].type.dims); i++) sum += r->in[0].f[i] * r->in[1].f[i];
    r->out[0].f[0] = sum;
    return FAC_OK;
}
static void dot_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    if (fac_needs(n, 0)) dx[0] = fac_mul(dy[0], n->in[1]);
    if (fac_needs(n, 1)) dx[1] = fac_mul(dy[0], n->in[0]);
    dx[2] = dy[0];
}
static const fac_op dot = { .name = "dot", .doc = "a test", .in = dot_in, .out = fac_ports_y, .infer = dot_infer,
                            .ref = dot_ref, .grad = dot_grad };

/* sum over k of sum(v[k] * random weights): a number that depends on every element.  NULL when nothing has a float type. */
static fac_value *weighted(fac_graph *g, fac_value *const v[], int n) {
    fac_value *loss = NULL;
    for (int k = 0; k < n; k++) {
        if (kind(v[k]->type.dtype) != 'f' || v[k]->leaf == FAC_POISON) continue;
        fac_tensor *r = random_tensor((fac_type){ FAC_F64, v[k]->type.dims }, -1, 1);
        fac_value *x = v[k]->type.dtype == FAC_F64 ? v[k] : fac_cast(v[k], FAC_F64);
        loss = fac_emit(&dot, NULL, 3, (fac_value *[]){ x, fac_const(g, r), loss });
        fac_tensor_free(r);
    }
    return loss;
}

typedef struct trial {
    const char *text;
    fac_graph  *g;                      /* output 0: the loss; outputs 1...: gradients of the inputs in `wrt` */
    fac_tensor *in[OPERANDS];
    int         nin, wrt[OPERANDS], nwrt;
} trial;

/* The graph of the problem with `order` derivatives on it.  false: the op takes no floats or makes none, or an error. */
static bool differentiate(trial *t, int order) {
    fac_value *y[OPERANDS], *x[OPERANDS], *d[OPERANDS];
    fac_graph *g = t->g;
    int nout = fac_graph_outputs(g);
    t->nin = fac_graph_inputs(g);
    assert_true(nout <= OPERANDS && t->nin <= OPERANDS);
    for (int i = 0; i < t->nin; i++)
        if (kind(fac_graph_input(g, i)->type.dtype) == 'f') t->wrt[t->nwrt] = i, x[t->nwrt++] = fac_graph_input(g, i);
    for (int k = 0; k < nout; k++) {
        y[k] = fac_graph_output(g, k);
        if (kind(y[k]->type.dtype) == 'f' && y[k]->type.dtype != FAC_F64) return false;    /* too coarse for differences */
    }
    fac_value *loss = t->nwrt ? weighted(g, y, nout) : NULL;
    if (!loss) return false;
    for (int k = 1; k < order; k++) {
        fac_grad(loss, t->nwrt, x, d);
        loss = weighted(g, d, t->nwrt);
        if (!loss) return false;
    }
    fac_grad(loss, t->nwrt, x, d);
    g->noutputs = 0;
    fac_output(g, "loss", loss);
    for (int i = 0; i < t->nwrt; i++) {
        char name[32];
        snprintf(name, sizeof name, "d%d", i);
        fac_output(g, name, d[i]);
    }
    return true;
}

static double run(const trial *t, fac_program *p, fac_tensor *grads[]) {
    fac_tensor *out[OPERANDS + 1] = { 0 };
    double loss = 0;
    if (fac_program_run(p, t->in, out, &err)) fail_msg("%s: %s", t->text, err.text);
    OK(fac_tensor_read(out[0], &loss, sizeof loss, &err));
    for (int i = 0; i <= t->nwrt; i++) {
        if (i && grads) grads[i - 1] = out[i];
        else fac_tensor_free(out[i]);
    }
    return loss;
}

/* The loss with element `at` of input i moved by h. */
static double moved(const trial *t, fac_program *p, int i, int64_t at, double h) {
    double *x = (double *)(uintptr_t)fac_tensor_data(t->in[i]), old = x[at];
    x[at] = old + h;
    double loss = run(t, p, NULL);
    x[at] = old;
    return loss;
}

/* f'(x) = (8 f(x+h) - 8 f(x-h) - f(x+2h) + f(x-2h)) / 12 h, off by h^4 f'''''/30. */
static double difference(const trial *t, fac_program *p, int i, int64_t at, double h) {
    double near = moved(t, p, i, at, h) - moved(t, p, i, at, -h), far = moved(t, p, i, at, 2 * h) - moved(t, p, i, at, -2 * h);
    return (8 * near - far) / (12 * h);
}

/* Whether a kink or a jump lies within h: the slopes to the left and to the right differ by more than curvature can explain.
 * There a difference says nothing; a step falls on one by chance. */
static bool beside_kink(const trial *t, fac_program *p, int i, int64_t at, double h, double scale) {
    double here = moved(t, p, i, at, 0);
    double right = (moved(t, p, i, at, h) - here) / h, left = (here - moved(t, p, i, at, -h)) / h;
    return !(fabs(right - left) <= 1e-3 * scale);
}

/* A graph with the loss alone, so that a difference costs no gradients. */
static fac_program *loss_alone(const trial *t) {
    fac_graph *g = fac_graph_clone(t->g);
    fac_program *p = NULL;
    g->noutputs = 1;
    fac_graph_sweep(g);
    OK(fac_program_new(g, device, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, &p, &err));
    fac_graph_free(g);
    return p;
}

/* false: no gradient; why is in err. */
static bool agrees_with_differences(const fac_case *c, int order, int *compared) {
    char text[512];
    in_f64(c->problem, text, sizeof text);
    trial t = { .text = text };
    err = (fac_error){ 0 };
    if (fac_problem_graph(text, false, &t.g, &err)) fail_msg("%s: %s", text, err.text);
    bool floats = differentiate(&t, order);
    if (fac_graph_check(t.g, &err)) {
        fac_graph_free(t.g);
        return false;
    }
    if (floats) {
        for (int i = 0; i < t.nin; i++) t.in[i] = random_tensor(fac_graph_input(t.g, i)->type, c->lo, c->hi);
        fac_tensor *grads[OPERANDS];
        fac_program *p = NULL, *alone = loss_alone(&t);
        OK(fac_program_new(t.g, device, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, &p, &err));
        double loss = run(&t, p, grads);
        for (int j = 0; j < t.nwrt; j++) {
            fac_type type = fac_graph_input(t.g, t.wrt[j])->type, got = fac_tensor_type(grads[j]);
            if (got.dtype != type.dtype || !fac_dims_equal(&got.dims, &type.dims))
                fail_msg("%s: the gradient of input %d has another type", text, t.wrt[j]);
            int64_t count = fac_dims_count(&type.dims);
            for (int k = 0; k < PLACES && k < count; k++, ++*compared) {
                int64_t at = count <= PLACES ? k : (int64_t)(fac_random_uniform(seed, ++stream, 0) * (double)count);
                double d = ((const double *)fac_tensor_data(grads[j]))[at], want = difference(&t, alone, t.wrt[j], at, 1e-4);
                double scale = 1 + fabs(want) + 1e-3 * fabs(loss);
                if (fabs(d - want) <= 1e-7 * scale) continue;
                want = difference(&t, alone, t.wrt[j], at, 1e-6);       /* beside a kink: from nearer */
                if (fabs(d - want) <= 1e-5 * scale) continue;
                if (beside_kink(&t, alone, t.wrt[j], at, 2e-6, scale)) kinks++;
                else fail_msg("%s: derivative %d of input %d[%lld] is %.12g, differences say %.12g", text, order, t.wrt[j],
                             (long long)at, d, want);
            }
            fac_tensor_free(grads[j]);
        }
        fac_program_free(p);
        fac_program_free(alone);
        for (int i = 0; i < t.nin; i++) fac_tensor_free(t.in[i]);
    }
    fac_graph_free(t.g);
    return true;
}

static const char *only;                /* a single op to look at, from the command line */

/* surrogate() is there to have another gradient than the true one */
static bool asked_for(const fac_op *op) {
    return strcmp(op->name, "surrogate") && !(op->is & FAC_OP_NO_GRAD) && (!only || !strcmp(only, op->name));
}

static int every_case(int order, int *compared) {
    int missing = 0;
    for (const fac_op *const *p = fac_ops; *p; p++) {
        char why[sizeof err.text] = "";
        for (const fac_case *c = asked_for(*p) ? (*p)->cases : NULL; c && c->problem; c++)
            if (!agrees_with_differences(c, order, compared)) snprintf(why, sizeof why, "%s", err.text);
        if (*why) print_message("%s: %s\n", (*p)->name, why);
        missing += *why != 0;
    }
    return missing;
}

static void gradients_are_those_of_differences(void **state) {
    (void)state;
    int compared = 0, missing = every_case(1, &compared);
    print_message("%d derivatives compared, %d beside kinks\n", compared, kinks);
    assert_true(kinks * 200 <= compared || kinks < 3);
    assert_int_equal(missing, 0);
    assert_true(only || compared > 5000);
}

static void second_derivatives_are_those_of_differences(void **state) {
    (void)state;
    int compared = 0, missing = every_case(2, &compared);
    print_message("%d second derivatives compared\n", compared);
    assert_int_equal(missing, 0);
}

static void every_op_says_something_about_its_gradient(void **state) {
    (void)state;
    int missing = 0;
    for (const fac_op *const *p = fac_ops; *p; p++)
        if (!(*p)->grad && !(*p)->expand && !((*p)->is & FAC_OP_NO_GRAD)) missing++, print_message("%s\n", (*p)->name);
    assert_int_equal(missing, 0);
}

/* ---- what is not in the cases ---- */

static double value_of(fac_value *v) {
    fac_tensor *t = NULL;
    double x = 0;
    OK(fac_eval(v, device, &t, &err));
    OK(fac_tensor_read(t, &x, sizeof x, &err));
    fac_tensor_free(t);
    return x;
}

static void what_is_not_connected_gets_zeros(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *a = fac_number(g, FAC_F64, 3), *b = fac_number(g, FAC_F64, 5), *d[2];
    fac_grad(fac_mul(a, a), 2, (fac_value *[]){ a, b }, d);
    OK(fac_graph_check(g, &err));
    assert_true(value_of(d[0]) == 6 && value_of(d[1]) == 0);
    fac_grad(fac_mul(fac_stop(a), a), 1, &a, d);
    OK(fac_graph_check(g, &err));
    assert_true(value_of(d[0]) == 3);
    fac_graph_free(g);
}

static void unused_outputs_have_no_gradient(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F64, fac_shape(2, 3, 4)), *dx;
    fac_value *y = fac_layer_norm(x, NULL, NULL, 1, 1e-5);
    /* only the statistics are used, not the normalized tensor */
    fac_grad(fac_sum(fac_mul(fac_value_other(y, 1), fac_value_other(y, 2)), (fac_dims){ 0 }, false), 1, &x, &dx);
    OK(fac_graph_check(g, &err));
    assert_true(fac_dims_equal(&dx->type.dims, &x->type.dims));
    fac_graph_free(g);
}

/* Training with a batch of any size: gradients of a small network of many ops, built with symbols, run at two sizes and compared
 * with the graph that knows the sizes. */
static fac_value *network(fac_graph *g, fac_value *x, fac_value *w[4]) {
    fac_type four = { FAC_F64, fac_shape(4) };
    const fac_dims dims[] = { fac_shape(4, 3, 3, 3), fac_shape(4), fac_shape(4), fac_shape(5, 4) };
    for (int k = 0; k < 4; k++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", k);
        stream = 100 + (uint64_t)k;
        fac_tensor *t = random_tensor((fac_type){ FAC_F64, dims[k] }, -1, 1);
        w[k] = fac_param(g, name, t);
        fac_tensor_free(t);
    }
    fac_tensor *zeros = NULL;
    OK(fac_tensor_new(NULL, four.dtype, four.dims, &zeros, &err));
    fac_value *stat = fac_const(g, zeros);
    fac_tensor_free(zeros);
    fac_value *y = fac_conv2d(x, w[0], NULL, &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } });
    y = fac_apply(g, fac_op_find("batch_norm"), "training_mode epsilon=1e-5", 5, (fac_value *[]){ y, w[1], w[2], stat, stat });
    y = fac_add(fac_max_pool2d(fac_relu(y), 2, 2, NULL), fac_avg_pool2d(y, 2, 2, NULL));
    y = fac_linear(fac_mean(y, fac_shape(2, 3), false), w[3], NULL);
    return fac_mean(fac_mul(fac_log_softmax(y, -1), fac_softmax(y, 1)), (fac_dims){ 0 }, false);
}

static void symbols_have_gradients(void **state) {
    (void)state;
    for (int n = 1; n < 4; n += 2) {
        fac_tensor *grads[2][4] = { { NULL } }, *x = NULL;
        for (int symbolic = 0; symbolic < 2; symbolic++) {
            fac_graph *g = fac_graph_new();
            fac_value *w[4], *d[4];
            fac_dims dims = symbolic ? fac_shape(fac_symbol(g, "N"), 3, fac_symbol(g, "H"), 8) : fac_shape(n, 3, 6, 8);
            fac_value *loss = network(g, fac_input(g, "x", FAC_F64, dims), w);
            fac_grad(loss, 4, w, d);
            for (int k = 0; k < 4; k++) fac_output(g, (char[]){ 'd', (char)('0' + k), 0 }, d[k]);
            OK(fac_graph_check(g, &err));
            fac_program *p = NULL;
            OK(fac_program_new(g, device, NULL, &p, &err));
            stream = 55;
            if (!x) x = random_tensor((fac_type){ FAC_F64, fac_shape(n, 3, 6, 8) }, -1, 1);
            OK(fac_program_run(p, &x, grads[symbolic], &err));
            fac_program_free(p);
            fac_graph_free(g);
        }
        for (int k = 0; k < 4; k++) {
            fac_type type = fac_tensor_type(grads[0][k]);
            double largest = 0;
            for (int64_t i = 0; i < fac_dims_count(&type.dims); i++) {
                double a = ((const double *)fac_tensor_data(grads[0][k]))[i];
                double b = ((const double *)fac_tensor_data(grads[1][k]))[i];
                assert_true(fabs(a - b) <= 1e-12);
                largest = fmax(largest, fabs(a));
            }
            assert_true(largest > 1e-6);
            fac_tensor_free(grads[0][k]);
            fac_tensor_free(grads[1][k]);
        }
        fac_tensor_free(x);
    }
}

/* What the planner makes of gradients for the cpu, against the reference: with enough pixels gradients of convolutions are
 * convolutions with turned weights. */
static void fast_gradients_are_those_of_the_reference(void **state) {
    (void)state;
    static const char *const problems[] = {
        "conv2d_grad_x(f32[2,16,14,14], f32[16,8,3,3], f32[2,8,14,14]) pad=1,1,1,1",
        "conv2d_grad_x(f32[2,6,15,11], f32[6,4,3,2], f32[2,8,14,13]) pad=2,0,1,0 dilation=1,2 groups=2",
        "conv2d_grad_x(f32[3,5,12,12], f32[5,1,5,5], f32[3,5,12,12]) pad=2,2,2,2 groups=5",
        "conv2d_grad_x(f32[3,10,12,12], f32[10,1,3,3], f32[3,5,14,14]) groups=5",
        "conv2d_grad_x(f32[2,20,12,12], f32[20,7,1,1], f32[2,7,12,12])",
        "conv2d_grad_x(f32[2,8,16,16], f32[8,8,3,3], f32[2,8,12,12]) pad=3,3,3,3",
        "conv2d_grad_x(f32[2,8,17,17], f32[8,6,3,3], f32[2,6,33,33]) stride=2,2 pad=1,1,1,1",
        "conv2d_grad_w(f32[2,6,33,33], f32[2,8,17,17], f32[8,6,3,3]) stride=2,2 pad=1,1,1,1",
        "conv2d_grad_w(f32[3,5,20,31], f32[3,10,20,31], f32[10,1,3,3]) pad=1,1,1,1 groups=5",
        "max_pool2d_grad(f32[3,5,30,31], f32[3,5,15,16]) kernel=3,3 stride=2,2 pad=1,1,1,1",
        "avg_pool2d_grad(f32[3,5,30,31], f32[3,5,15,16]) kernel=3,3 stride=2,2 pad=1,1,1,1 count_include_pad",
        "batch_norm_grad(f32[3,5,20,31], f32[3,5,20,31], f32[5]) epsilon=1e-5",
        "batch_norm(f32[3,5,20,31], f32[5], f32[5], f32[5], f32[5]) epsilon=1e-5 momentum=0.9 training_mode" };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        fac_graph *g = NULL;
        fac_tensor *in[OPERANDS], *out[2][OPERANDS] = { { NULL } };
        OK(fac_problem_graph(problems[i], false, &g, &err));
        for (int k = 0; k < fac_graph_inputs(g); k++) in[k] = random_tensor(fac_graph_input(g, k)->type, -1, 1);
        for (int how = 0; how < 2; how++) {
            fac_program *p = NULL;
            const fac_program_opts ref = { .solver = "ref", .no_fuse = true };
            OK(fac_program_new(g, device, how ? &ref : NULL, &p, &err));
            if (fac_program_run(p, in, out[how], &err)) fail_msg("%s: %s", problems[i], err.text);
            fac_program_free(p);
        }
        for (int k = 0; k < fac_graph_outputs(g); k++) {
            fac_type type = fac_tensor_type(out[0][k]);
            for (int64_t e = 0; e < fac_dims_count(&type.dims); e++) {
                double a = (double)((const float *)fac_tensor_data(out[0][k]))[e];
                double b = (double)((const float *)fac_tensor_data(out[1][k]))[e];
                if (!(fabs(a - b) <= 5e-5 * (1 + fabs(b))))
                    fail_msg("%s: output %d[%lld] is %g, not %g", problems[i], k, (long long)e, a, b);
            }
            fac_tensor_free(out[0][k]);
            fac_tensor_free(out[1][k]);
        }
        for (int k = 0; k < fac_graph_inputs(g); k++) fac_tensor_free(in[k]);
        fac_graph_free(g);
    }
}

/* The gradient of a weight multiplies with dy transposed, which is a view: it must reach the product without a copy. */
static void transposed_operands_are_not_copied(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(70, 33)), *dy = fac_input(g, "dy", FAC_F32, fac_shape(70, 45));
    fac_output(g, "dw", fac_matmul(fac_transpose(dy, fac_shape(1, 0)), x));
    fac_program *p = NULL;
    fac_tensor *in[2] = { random_tensor((fac_type){ FAC_F32, fac_shape(70, 33) }, -1, 1),
                          random_tensor((fac_type){ FAC_F32, fac_shape(70, 45) }, -1, 1) }, *out[1] = { NULL };
    OK(fac_program_new(g, device, NULL, &p, &err));
    OK(fac_program_run(p, in, out, &err));
    const float *a = fac_tensor_data(in[0]), *b = fac_tensor_data(in[1]), *y = fac_tensor_data(out[0]);
    for (int i = 0; i < 45; i++)
        for (int k = 0; k < 33; k++) {
            double want = 0;
            for (int n = 0; n < 70; n++) want += (double)b[n * 45 + i] * (double)a[n * 33 + k];
            assert_true(fabs((double)y[i * 33 + k] - want) <= 1e-4);
        }
    fac_step_stat steps[4];
    size_t count = fac_program_steps(p, steps, 4);
    for (size_t i = 0; i < count; i++) assert_false(!strcmp(steps[i].solver, "reorder") || !strcmp(steps[i].solver, "move"));
    fac_tensor_free(in[0]);
    fac_tensor_free(in[1]);
    fac_tensor_free(out[0]);
    fac_program_free(p);
    fac_graph_free(g);
}

/* Noise is a function of the counter: the same for the same, half of it zeros, and its gradient has the same zeros. */
static void dropout_drops_and_its_gradient_too(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1000)), *counter = fac_input(g, "counter", FAC_I64, (fac_dims){ 0 }), *d;
    fac_value *y = fac_dropout_train(x, 0.5, counter), *z = fac_dropout_train(x, 0.5, counter);
    fac_grad(fac_sum(y, (fac_dims){ 0 }, false), 1, &x, &d);
    fac_output(g, "y", y);
    fac_output(g, "z", z);
    fac_output(g, "d", d);
    fac_program *p = NULL, *quiet = NULL;
    fac_graph *inference = fac_graph_inference(g);
    OK(fac_program_new(g, device, NULL, &p, &err));
    OK(fac_program_new(inference, device, NULL, &quiet, &err));
    fac_tensor *in[2] = { random_tensor((fac_type){ FAC_F32, fac_shape(1000) }, 1, 2), NULL }, *out[3][3] = { { NULL } };
    OK(fac_tensor_new(NULL, FAC_I64, (fac_dims){ 0 }, &in[1], &err));
    OK(fac_program_run(p, in, out[0], &err));
    OK(fac_program_run(quiet, in, out[2], &err));
    OK(fac_tensor_write(in[1], &(int64_t){ 7 }, sizeof(int64_t), &err));
    OK(fac_program_run(p, in, out[1], &err));
    int zeros = 0, other_stream = 0, other_counter = 0;
    for (int i = 0; i < 1000; i++) {
        float v[3][3], from = ((const float *)fac_tensor_data(in[0]))[i];
        for (int k = 0; k < 9; k++) v[k / 3][k % 3] = ((const float *)fac_tensor_data(out[k / 3][k % 3]))[i];
        assert_true(v[0][0] == 0 ? v[0][2] == 0 : v[0][0] == 2 * from && v[0][2] == 2);
        assert_true(v[2][0] == from);
        assert_true((v[0][1] == 0) == (fac_random_uniform(0, 1, (uint64_t)i) < 0.5));       /* stream 1, counter 0 */
        assert_true((v[1][0] == 0) == (fac_random_uniform(7, 0, (uint64_t)i) < 0.5));
        zeros += v[0][0] == 0;
        other_stream += (v[0][0] == 0) != (v[0][1] == 0);
        other_counter += (v[0][0] == 0) != (v[1][0] == 0);
    }
    assert_true(zeros > 400 && zeros < 600 && other_stream > 400 && other_stream < 600 && other_counter > 400 &&
                other_counter < 600);
    for (int k = 0; k < 9; k++) fac_tensor_free(out[k / 3][k % 3]);
    fac_tensor_free(in[0]);
    fac_tensor_free(in[1]);
    fac_program_free(p);
    fac_program_free(quiet);
    fac_graph_free(inference);
    fac_graph_free(g);
}

static void what_has_no_gradient_is_named(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(3)), *d = NULL;
    fac_grad(x, 1, &x, &d);
    fac_error e = { 0 };
    assert_int_equal(fac_graph_check(g, &e), FAC_E_SHAPE);
    assert_non_null(strstr(e.text, "one floating-point number"));
    fac_graph_free(g);
}

/* ---- */

static int open_device(void **state) {
    (void)state;
    const char *again = getenv("FACULA_SEED");
    seed = again ? strtoull(again, NULL, 10) : (uint64_t)time(NULL);
    print_message("seed: FACULA_SEED=%llu\n", (unsigned long long)seed);
    return fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, &err);
}
static int close_device(void **state) {
    (void)state;
    fac_device_free(device);
    return 0;
}

int main(int argc, char **argv) {
    only = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_says_something_about_its_gradient), cmocka_unit_test(what_is_not_connected_gets_zeros),
        cmocka_unit_test(unused_outputs_have_no_gradient), cmocka_unit_test(symbols_have_gradients),
        cmocka_unit_test(what_has_no_gradient_is_named),
        cmocka_unit_test(fast_gradients_are_those_of_the_reference), cmocka_unit_test(dropout_drops_and_its_gradient_too),
        cmocka_unit_test(transposed_operands_are_not_copied),
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(second_derivatives_are_those_of_differences),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
