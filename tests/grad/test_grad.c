/* Gradients: every op on its own cases against central differences in f64, first and second
 * derivatives; and that every op says something about its gradient. */
#include "grad_check.h"
#include "op_list.h"

enum { PLACES = 10 };
static int kinks; /* places where differences say nothing */

/* ---- problems in f64 ---- */

/* The text with f64 for every other type of floats: "f32[" after "(" or a space. */
static void in_f64(const char *text, char *out, size_t room) {
    static const char *const others[] = { "f32[", "f16[", "bf16[" };
    size_t n = 0;
    for (const char *s = text; *s;) {
        size_t skip = 0;
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (!strncmp(s, others[k], strlen(others[k])) && s > text &&
                (s[-1] == '(' || s[-1] == ' '))
                skip = strlen(others[k]);
        n += (size_t)snprintf(out + n, room - n, "%s", skip ? "f64[" : (char[]){ *s, 0 });
        s += skip ? skip : 1;
    }
}

/* dot(x, r, [more]) = sum(x r) + more, of the test's own, so that one op is tried at a time. */
static const fac_port dot_in[] = {
    { "x", FAC_FLOATS, 0 }, { "r", FAC_FLOATS, 0 }, { "more", FAC_FLOATS, FAC_OPTIONAL }, { 0 }
};
static bool dot_infer(fac_node *n) {
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, { 0 } };
    return true;
}
static fac_status dot_ref(const fac_ref *r, fac_error *e) {
    (void)e;
    double sum = r->in[2].f ? r->in[2].f[0] : 0;
    for (int64_t i = 0; i < fac_dims_count(&r->in[0].type.dims); i++)
        sum += r->in[0].f[i] * r->in[1].f[i];
    r->out[0].f[0] = sum;
    return FAC_OK;
}
static void dot_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    if (fac_needs(n, 0)) dx[0] = fac_mul(dy[0], n->in[1]);
    if (fac_needs(n, 1)) dx[1] = fac_mul(dy[0], n->in[0]);
    dx[2] = dy[0];
}
static const fac_op dot = { .name = "dot",
                            .doc = "a test",
                            .in = dot_in,
                            .out = fac_ports_y,
                            .infer = dot_infer,
                            .ref = dot_ref,
                            .grad = dot_grad };

/* sum over k of sum(v[k] * random weights): a number that depends on every element.  NULL when
 * nothing has a float type. */
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
    fac_graph *g; /* output 0: the loss; outputs 1...: gradients of the inputs in `wrt` */
    fac_tensor *in[OPERANDS];
    int nin, wrt[OPERANDS], nwrt;
} trial;

/* The graph of the problem with `order` derivatives on it.  false: the op takes no floats or makes
 * none, or an error. */
static bool differentiate(trial *t, int order) {
    fac_value *y[OPERANDS], *x[OPERANDS], *d[OPERANDS];
    fac_graph *g = t->g;
    int nout = fac_graph_outputs(g);
    t->nin = fac_graph_inputs(g);
    assert_true(nout <= OPERANDS && t->nin <= OPERANDS);
    for (int i = 0; i < t->nin; i++)
        if (kind(fac_graph_input(g, i)->type.dtype) == 'f') {
            t->wrt[t->nwrt] = i;
            x[t->nwrt++] = fac_graph_input(g, i);
        }
    for (int k = 0; k < nout; k++) {
        y[k] = fac_graph_output(g, k);
        if (kind(y[k]->type.dtype) == 'f' && y[k]->type.dtype != FAC_F64)
            return false; /* too coarse for differences */
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
        if (i && grads)
            grads[i - 1] = out[i];
        else
            fac_tensor_free(out[i]);
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
    double near = moved(t, p, i, at, h) - moved(t, p, i, at, -h),
           far = moved(t, p, i, at, 2 * h) - moved(t, p, i, at, -2 * h);
    return (8 * near - far) / (12 * h);
}

/* Whether a kink or a jump lies within h: the slopes to the left and to the right differ by more
 * than curvature can explain. There a difference says nothing; a step falls on one by chance. */
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
    OK(fac_program_new(g, device, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, &p,
                       &err));
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
        for (int i = 0; i < t.nin; i++)
            t.in[i] = random_tensor(fac_graph_input(t.g, i)->type, c->lo, c->hi);
        fac_tensor *grads[OPERANDS];
        fac_program *p = NULL, *alone = loss_alone(&t);
        OK(fac_program_new(t.g, device, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, &p,
                           &err));
        double loss = run(&t, p, grads);
        for (int j = 0; j < t.nwrt; j++) {
            fac_type type = fac_graph_input(t.g, t.wrt[j])->type, got = fac_tensor_type(grads[j]);
            if (got.dtype != type.dtype || !fac_dims_equal(&got.dims, &type.dims))
                fail_msg("%s: the gradient of input %d has another type", text, t.wrt[j]);
            int64_t count = fac_dims_count(&type.dims);
            for (int k = 0; k < PLACES && k < count; k++, ++*compared) {
                int64_t at = count <= PLACES
                                 ? k
                                 : (int64_t)(fac_random_uniform(seed, ++stream, 0) * (double)count);
                double d = ((const double *)fac_tensor_data(grads[j]))[at],
                       want = difference(&t, alone, t.wrt[j], at, 1e-4);
                double scale = 1 + fabs(want) + 1e-3 * fabs(loss);
                if (fabs(d - want) <= 1e-7 * scale) continue;
                want = difference(&t, alone, t.wrt[j], at, 1e-6); /* beside a kink: from nearer */
                if (fabs(d - want) <= 1e-5 * scale) continue;
                if (beside_kink(&t, alone, t.wrt[j], at, 2e-6, scale))
                    kinks++;
                else
                    fail_msg("%s: derivative %d of input %d[%lld] is %.12g, differences say %.12g",
                             text, order, t.wrt[j], (long long)at, d, want);
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

static const char *only; /* a single op to look at, from the command line */

/* surrogate() is there to have another gradient than the true one */
static bool asked_for(const fac_op *op) {
    return op != &fac_op_surrogate && !(op->is & FAC_OP_NO_GRAD) &&
           (!only || !strcmp(only, op->name));
}

/* Not differentiable: the columns that complete q are any that do. */
static bool has_none(const fac_op *op, const fac_case *c) {
    return op == &fac_op_qr && !strcmp(c->problem, "qr(f32[3,0]) complete");
}

static int every_case(int order, int *compared) {
    int missing = 0;
    for (const fac_op *const *p = fac_ops; *p; p++) {
        char why[sizeof err.text] = "";
        for (const fac_case *c = asked_for(*p) ? (*p)->cases : NULL; c && c->problem; c++)
            if (agrees_with_differences(c, order, compared)) {
                if (has_none(*p, c)) snprintf(why, sizeof why, "%s has one", c->problem);
            } else if (!has_none(*p, c) || err.status != FAC_E_UNSUPPORTED)
                snprintf(why, sizeof why, "%s", err.text);
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
        if (!(*p)->grad && !(*p)->expand && !((*p)->is & FAC_OP_NO_GRAD))
            missing++, print_message("%s\n", (*p)->name);
    assert_int_equal(missing, 0);
}

int main(int argc, char **argv) {
    only = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(second_derivatives_are_those_of_differences),
        cmocka_unit_test(every_op_says_something_about_its_gradient),
    };
    return cmocka_run_group_tests_name("grad", tests, open_device, close_device);
}
