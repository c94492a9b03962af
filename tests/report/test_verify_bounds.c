/* Bounds of rounding errors hold: for every case of every operator that has a rule, what is
 * computed in f32 (f16, bf16) is as near to the reference in f64 as the bound says, from exact
 * operands and from operands that are off by as much as their own bounds allow.  And they say
 * something: right rewritings pass, and those that are a little wrong do not. */
#include "random_check.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "facula/program.h"
#include "passes/passes.h"
#include "report/cost/report.h"
#include "report/verify/verify.h"
#include "ref/ref.h"
#include "tensor/tensor_internal.h"

enum { TEXT = 1000, NAMES = 4000 };

static int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return fac_device_open("cpu", NULL, &device, &err);
}

/* ---- one case, twice: as it is, with bounds; and in f64 ---- */

typedef struct sum {
    double elements, vacuous, largest, worst;
} sum;

typedef struct pairing {
    const char *text;
    bool off; /* operands are off, and known to be */
    fac_graph *g, *wide, *run;
    fac_tensor *in[OPERANDS], *exact[OPERANDS];
    int error_at[OPERANDS];
    const char *unknown;
} pairing;

static bool is_short(fac_dtype t) { return t == FAC_F16 || t == FAC_BF16; }

/* Every float type becomes f64. */
static void widened(const char *text, char to[TEXT]) {
    size_t n = 0;
    for (const char *s = text; *s && n + 1 < TEXT;) {
        const size_t skip = !strncmp(s, "f32[", 4) || !strncmp(s, "f16[", 4) ? 3
                            : !strncmp(s, "bf16[", 5)                        ? 4
                                                                             : 0;
        if (skip && n + 4 < TEXT) {
            memcpy(to + n, "f64", 3);
            n += 3;
            s += skip;
        } else
            to[n++] = *s++;
    }
    to[n] = 0;
}

static fac_graph *parsed(const char *text) {
    fac_graph *g = NULL;
    if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s: %s", text, err.text);
    const fac_port *port = g->last->op->out;
    const int known = ports(port);
    for (int k = (int)g->noutputs - 1; k > 0 && k < known && (port[k].is & FAC_OPTIONAL); k--)
        g->outputs[--g->noutputs].value->roots--;
    return g;
}

/* A float operand becomes a parameter of 16 bits: one that was rounded to them. */
static fac_value *rounded_leaf(void *self, fac_graph *to, const fac_value *v) {
    const pairing *p = self;
    size_t i = 0;
    if (v->leaf != FAC_INPUT || !fac_is_float(v)) return NULL;
    while (p->g->inputs[i] != v) i++;
    fac_value *w = fac_param(to, v->name, p->in[i]);
    return w->type.dtype == v->type.dtype ? w : fac_cast(w, v->type.dtype);
}

/* Numbers, and what they may stand for: v + e s, -1 <= s <= 1, where e is the bound of a number of
 * 16 bits. */
static void draw(pairing *p, size_t i, double lo, double hi) {
    fac_type type = p->g->inputs[i]->type;
    const bool real = fac_is_float(p->g->inputs[i]);
    if (real && p->off && !is_short(type.dtype)) type.dtype = FAC_F16;
    p->in[i] = random_tensor(type, lo, hi);
    OK(fac_tensor_convert(p->in[i], real ? FAC_F64 : type.dtype, &p->exact[i], &err));
    double *x = (double *)(uintptr_t)fac_tensor_data(p->exact[i]);
    const double unit = type.dtype == FAC_BF16 ? 0x1p-8 : 0x1p-11;
    for (int64_t k = 0; real && p->off && k < fac_dims_count(&type.dims); k++) {
        const double s = 3 * fac_random_uniform(seed, stream + 1000000, (uint64_t)k) - 1.5;
        x[k] += 2 * unit * fabs(x[k]) * fmax(-1, fmin(1, s));
    }
}

static void reference(pairing *p, fac_host want[OPERANDS]) {
    fac_host in[OPERANDS];
    fac_graph *simple = fac_pass_expand(p->wide, NULL, NULL);
    for (size_t i = 0; i < p->wide->ninputs; i++)
        in[i] = (fac_host){ fac_tensor_type(p->exact[i]),
                            (void *)(uintptr_t)fac_tensor_data(p->exact[i]), NULL };
    for (size_t k = 0; k < p->wide->noutputs; k++) {
        want[k] = (fac_host){ p->wide->outputs[k].value->type, NULL, NULL };
        want[k].data = calloc(1, fac_type_bytes(&want[k].type) + 8);
    }
    if (fac_graph_check(simple, &err) || fac_ref_graph(simple, in, want, &err))
        fail_msg("%s: reference: %s", p->text, err.text);
    fac_graph_free(simple);
}

static double *doubles(const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    double *x = calloc((size_t)fac_dims_count(&type.dims) + 1, sizeof *x);
    fac_tensor_doubles(t, 0, fac_dims_count(&type.dims), x);
    return x;
}

static void compare_all(const pairing *p, fac_tensor *const out[], const fac_host want[], sum *s) {
    for (size_t k = 0; k < p->wide->noutputs; k++) {
        const int64_t n = fac_dims_count(&want[k].type.dims);
        double *y = doubles(out[k]), *e = p->error_at[k] < 0 ? NULL : doubles(out[p->error_at[k]]);
        double *z = calloc((size_t)n + 1, sizeof *z);
        const fac_type bound = fac_tensor_type(out[e ? p->error_at[k] : (int)k]);
        if (!fac_dims_equal(&want[k].type.dims, &bound.dims))
            fail_msg("%s: the bound of output %zu has another size", p->text, k);
        fac_convert(FAC_F64, z, want[k].type.dtype, want[k].data, (size_t)n);
        for (int64_t i = 0; i < n; i++) {
            const double room = (e ? e[i] : 0) + FAC_UNDERFLOW, off = fabs(y[i] - z[i]);
            if (y[i] == z[i] || isnan(z[i]) || isinf(y[i]) || isinf(z[i])) continue;
            s->elements++;
            s->largest = fmax(s->largest, fabs(z[i]));
            if (!isfinite(room))
                s->vacuous++;
            else
                s->worst = fmax(s->worst, off / room);
            if (off > room)
                fail_msg("%s (%s operands): output %zu[%lld] is %.9g, exactly %.9g, off by %.3g; "
                         "the bound is %.3g",
                         p->text, p->off ? "rounded" : "exact", k, (long long)i, y[i], z[i], off,
                         e ? e[i] : 0);
        }
        free(y), free(e), free(z);
    }
}

static void run_case(pairing *p, sum *s) {
    fac_program *program = NULL;
    fac_tensor *out[2 * OPERANDS] = { NULL }, *in[OPERANDS];
    fac_host want[OPERANDS];
    size_t n = 0;
    for (size_t i = 0; i < p->g->ninputs; i++)
        if (!p->off || !fac_is_float(p->g->inputs[i])) in[n++] = p->in[i];
    const fac_program_opts opts = { .precision = FAC_PRECISION_HIGHEST };
    if (fac_program_new(p->run, device, &opts, &program, &err) ||
        fac_program_run(program, in, out, &err))
        fail_msg("%s: %s", p->text, err.text);
    reference(p, want);
    compare_all(p, out, want, s);
    for (size_t k = 0; k < p->wide->noutputs; k++) free(want[k].data);
    fac_drop_tensors(out, p->run->noutputs);
    fac_program_free(program);
}

/* Whether there is a rule for it. */
static bool try_case(const fac_case *c, bool off, sum *s) {
    char wide[TEXT];
    pairing p = { .text = c->problem, .off = off };
    widened(c->problem, wide);
    p.g = parsed(c->problem);
    p.wide = parsed(wide);
    assert_true(p.g->ninputs <= OPERANDS && p.g->noutputs <= OPERANDS);
    for (size_t i = 0; i < p.g->ninputs; i++) draw(&p, i, c->lo, c->hi);
    const fac_rebuild rounding = { .self = &p, .leaf = rounded_leaf, .keep_dead = true };
    fac_graph *from = off ? fac_graph_rebuild(p.g, &rounding, NULL) : p.g;
    if (fac_graph_check(from, &err)) fail_msg("%s: %s", p.text, err.text);
    fac_graph *open = fac_pass_open(from, true);
    p.run = fac_error_bounds(open, off, p.error_at, &p.unknown);
    if (fac_graph_check(p.run, &err)) fail_msg("%s: its bounds: %s", p.text, err.text);
    if (!p.unknown) run_case(&p, s);
    for (size_t i = 0; i < p.g->ninputs; i++) fac_tensor_free(p.in[i]), fac_tensor_free(p.exact[i]);
    if (off) fac_graph_free(from);
    fac_graph_free(open), fac_graph_free(p.run), fac_graph_free(p.wide), fac_graph_free(p.g);
    return !p.unknown;
}

/* Some ops take f32 alone: the wide twin of their case is refused.  Texts have no bound. */
static bool can_be_wide(const fac_case *c) {
    char wide[TEXT];
    fac_graph *g = NULL;
    fac_error e = { 0 };
    widened(c->problem, wide);
    const bool can = !fac_problem_graph(wide, false, &g, &e) &&
                     g->outputs[0].value->type.dtype != FAC_TEXT;
    fac_graph_free(g);
    return can;
}

/* Of floats of at most 32 bits; not one that is another number each time. */
static bool is_asked(const fac_op *op, const fac_case *c) {
    if (op == &fac_op_bit_cast || !can_be_wide(c)) return false;
    const bool real = strstr(c->problem, "f32[") || strstr(c->problem, "f16[");
    return real && !(op->is & FAC_OP_BODIES) && !strstr(c->problem, "f64") &&
           !strstr(op->name, "_grad") && c->hi > c->lo;
}

static void add_name(char names[NAMES], const char *name) {
    const size_t n = strlen(names), last = strlen(name);
    if (n < last || strcmp(names + n - last, name)) snprintf(names + n, NAMES - n, " %s", name);
}

static void bounds_hold(void **state) {
    (void)state;
    static const char *const must[] = { "add",
                                        "avg_pool2d",
                                        "batch_norm",
                                        "conv2d",
                                        "conv_transpose2d",
                                        "div",
                                        "exp",
                                        "gather",
                                        "gelu",
                                        "gelu_slope",
                                        "gemm",
                                        "group_norm",
                                        "instance_norm",
                                        "layer_norm",
                                        "linear",
                                        "log",
                                        "log_softmax",
                                        "lrn",
                                        "matmul",
                                        "max",
                                        "max_pool2d",
                                        "mean",
                                        "mul",
                                        "pow",
                                        "reciprocal",
                                        "reduce_l2",
                                        "reduce_log_sum_exp",
                                        "reduce_max",
                                        "rms_norm",
                                        "silu_slope",
                                        "softmax",
                                        "sqrt",
                                        "sub",
                                        "sum",
                                        "where",
                                        "attention",
                                        "gru",
                                        "lstm",
                                        NULL };
    for (int off = 0; off < 2; off++) {
        char unknown[NAMES] = "";
        int known = 0;
        for (const fac_op *const *p = fac_ops; *p; p++)
            for (const fac_case *c = (*p)->cases; c && c->problem; c++) {
                sum s = { 0 };
                if (!is_asked(*p, c)) continue;
                if (!try_case(c, off, &s)) {
                    add_name(unknown, (*p)->name);
                    for (int k = 0; must[k] && !off; k++)
                        if (!strcmp(must[k], (*p)->name))
                            fail_msg("%s: nothing is known of its error", c->problem);
                    continue;
                }
                known++;
                if (s.vacuous > s.elements / 4)
                    fail_msg("%s: the bounds of %.0f of %.0f elements are infinite", c->problem,
                             s.vacuous, s.elements);
            }
        print_message("%s operands: %d cases; nothing is said of%s\n", off ? "rounded" : "exact",
                      known, unknown);
        assert_true(known > (off ? 250 : 280));
    }
}

/* ---- right and a little wrong ---- */

typedef struct rewriting {
    const char *what, *leaves, *model, *right, *wrong;
} rewriting;

static const rewriting rewritings[] = {
    { "layer norm", "input x f32[4,32]\nparam s f32[32]\nparam t f32[32]\n",
      "y = layer_norm(x, s, t) axis=-1 epsilon=1e-5\n",
      "m = mean(x, i64{-1}) keep\nd = sub(x, m)\nq = mul(d, d)\nv = mean(q, i64{-1}) keep\nw = "
      "add(v, 1e-5)\nr = sqrt(w)\n"
      "h = div(d, r)\na = mul(h, s)\ny = add(a, t)\n",
      "m = mean(x, i64{-1}) keep\nd = sub(x, m)\nq = mul(d, d)\nv = mean(q, i64{-1}) keep\nw = "
      "add(v, 1e-3)\nr = sqrt(w)\n"
      "h = div(d, r)\na = mul(h, s)\ny = add(a, t)\n" },
    { "rms norm", "input x f32[4,32]\nparam s f32[32]\n",
      "y = rms_norm(x, s) axis=-1 epsilon=1e-5\n",
      "q = mul(x, x)\nv = mean(q, i64{-1}) keep\nw = add(v, 1e-5)\nr = sqrt(w)\nh = div(x, r)\ny = "
      "mul(h, s)\n",
      "q = mul(x, x)\nv = mean(q, i64{-1}) keep\nw = add(v, 1e-3)\nr = sqrt(w)\nh = div(x, r)\ny = "
      "mul(h, s)\n" },
    { "softmax", "input x f32[4,32]\n", "y = softmax(x) axis=-1\n",
      "m = reduce_max(x, i64{-1}) keep\nd = sub(x, m)\np = exp(d)\ns = sum(p, i64{-1}) keep\ny = "
      "div(p, s)\n",
      "m = reduce_max(x, i64{-1}) keep\nd = sub(x, m)\np = exp(d)\ns = sum(p, i64{-1}) keep\nb = "
      "add(s, 1e-3)\ny = div(p, b)\n" },
    { "power", "input x f32[4,32]\n", "a = add(x, 2)\ny = pow(a, 3)\n",
      "a = add(x, 2)\nb = mul(a, a)\ny = mul(b, a)\n",
      "a = add(x, 2.0001)\nb = mul(a, a)\ny = mul(b, a)\n" },
    { "logarithm", "input x f32[4,32]\n", "a = add(x, 2)\nb = mul(a, a)\ny = log(b)\n",
      "a = add(x, 2)\nb = log(a)\ny = mul(b, 2)\n",
      "a = add(x, 2)\nb = log(a)\ny = mul(b, 2.0001)\n" },
    { "gelu", "input x f32[4,32]\n", "y = gelu(x)\n",
      "a = mul(x, 0.70710678)\nb = erf(a)\nc = add(b, 1)\nd = mul(x, c)\ny = mul(d, 0.5)\n",
      "y = gelu_tanh(x)\n" },
    { "response norm", "input x f32[1,8,2,2]\n", "y = lrn(x) size=1 alpha=0.5 beta=0.5 bias=1\n",
      "a = mul(x, x)\nb = mul(a, 0.5)\nc = add(b, 1)\nd = sqrt(c)\ny = div(x, d)\n",
      "a = mul(x, x)\nb = mul(a, 0.5001)\nc = add(b, 1)\nd = sqrt(c)\ny = div(x, d)\n" },
    { "attention", "input q f32[1,2,8,16]\ninput k f32[1,2,8,16]\ninput v f32[1,2,8,16]\n",
      "t = transpose(k) perm=0,1,3,2\ns = matmul(q, t)\na = mul(s, 0.25)\np = softmax(a) "
      "axis=-1\ny = matmul(p, v)\n",
      "h = mul(q, 0.25)\nt = transpose(k) perm=0,1,3,2\ns = matmul(h, t)\np = softmax(s) "
      "axis=-1\ny = matmul(p, v)\n",
      "h = mul(q, 0.2501)\nt = transpose(k) perm=0,1,3,2\ns = matmul(h, t)\np = softmax(s) "
      "axis=-1\ny = matmul(p, v)\n" }
};

static fac_graph *written(const rewriting *r, const char *body) {
    char text[TEXT * 2];
    fac_graph *g = NULL;
    snprintf(text, sizeof text, "%s%soutput z = y\n", r->leaves, body);
    FILE *f = fmemopen(text, strlen(text), "r");
    if (fac_graph_read(f, &g, &err)) fail_msg("%s: %s", r->what, err.text);
    fclose(f);
    for (int i = 0; i < fac_graph_params(g); i++) {
        fac_tensor *t = fac_value_tensor(fac_graph_param(g, i));
        const fac_type type = fac_tensor_type(t);
        float *w = calloc((size_t)fac_dims_count(&type.dims), sizeof *w);
        for (int64_t k = 0; k < fac_dims_count(&type.dims); k++)
            w[k] = 0.5f + (float)fac_random_uniform(seed, (uint64_t)i + 500, (uint64_t)k);
        OK(fac_tensor_write(t, w, (size_t)fac_dims_count(&type.dims) * sizeof *w, &err));
        free(w);
    }
    return g;
}

static void rewritings_are_judged(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rewritings / sizeof *rewritings; k++)
        for (int whole = 0; whole < 2; whole++) {
            const rewriting *r = &rewritings[k];
            fac_graph *model = written(r, r->model), *right = written(r, r->right),
                      *wrong = written(r, r->wrong);
            const fac_verify_opts o = {
                .mode = FAC_VERIFY_BOUND, .seed = seed, .rounds = 2, .whole = whole
            };
            fac_verdict v;
            OK(fac_verify(model, right, device, &o, &v, &err));
            if (v.same != FAC_NO_DIFFERENCE) fail_msg("%s: %s", r->what, v.why);
            OK(fac_verify(model, wrong, device, &o, &v, &err));
            if (v.same == FAC_NO_DIFFERENCE)
                fail_msg("%s, a little wrong: %s, %.3g of the bound", r->what, v.why, v.ratio);
            fac_graph_free(model), fac_graph_free(right), fac_graph_free(wrong);
        }
}

/* A divisor that may be 0 within its error, in two networks that differ there: no bound, so no
 * verdict. */
static void what_has_no_bound(void **state) {
    (void)state;
    const rewriting r = {
        "quotient", "input x f32[4]\n",
        "a = mul(x, 3)\nb = sub(a, x)\nc = sub(b, x)\nd = sub(c, x)\ny = div(x, d)\n",
        "a = mul(x, 3)\nb = sub(a, x)\nc = sub(b, x)\nd = sub(c, x)\ne = add(d, 1e-9)\ny = div(x, "
        "e)\n",
        NULL
    };
    fac_graph *a = written(&r, r.model), *b = written(&r, r.right);
    fac_verdict v;
    OK(fac_verify(a, b, device,
                  &(fac_verify_opts){ .mode = FAC_VERIFY_BOUND, .seed = seed, .whole = true }, &v,
                  &err));
    assert_int_equal(v.same, FAC_CANNOT_TELL);
    assert_non_null(strstr(v.why, "has no bound"));
    fac_graph_free(a), fac_graph_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(bounds_hold),
                                        cmocka_unit_test(rewritings_are_judged),
                                        cmocka_unit_test(what_has_no_bound) };
    return cmocka_run_group_tests_name("verify_bounds", tests, open_device, close_device);
}
