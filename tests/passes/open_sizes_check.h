/* Graphs with open sizes mean the same before and after every pass, whatever the sizes turn out
 * to be: 0, 1, 2 and 7 for each.  What the graph gave it gives afterwards, with the same dims.
 * Where it fails a pass may have dropped what failed, as dead code is dropped, so nothing is
 * asked there. */
#ifndef FACULA_OPEN_SIZES_CHECK_H
#define FACULA_OPEN_SIZES_CHECK_H
#include <math.h>
#include "edit_check.h"
#include "through_onnx.h"
#include "passes/passes.h"
#include "ref/ref.h"

/* ---- running at given sizes ---- */

enum { SYMBOLS = 3, PORTS = 8 };
static const char *const symbols[SYMBOLS] = { "N", "M", "K" };
static const int64_t sizes_of[] = { 0, 1, 2, 7 };

typedef struct sizes {
    int64_t of[SYMBOLS];
} sizes;

static int64_t size_of(const fac_graph *g, int64_t d, const sizes *s) {
    for (int k = 0; k < SYMBOLS && d < 0; k++)
        if (!strcmp(fac_symbol_name(g, d), symbols[k])) return s->of[k];
    return d;
}

/* Numbers around 0, some of them equal, so that all ops take them. */
static fac_tensor *input_of(const fac_graph *g, int i, const sizes *s) {
    const fac_value *v = fac_graph_input(g, i);
    fac_type type = fac_value_type(v);
    for (int k = 0; k < type.dims.n; k++) type.dims.d[k] = size_of(g, type.dims.d[k], s);
    const size_t n = (size_t)fac_dims_count(&type.dims);
    fac_tensor *t = NULL;
    float *x = calloc(n + 1, sizeof *x);
    for (size_t k = 0; k < n; k++)
        x[k] = (float)(fac_random_bits(seed, (uint64_t)i, k) % 17) / 8 - 1;
    OK(fac_tensor_new(NULL, FAC_F32, type.dims, &t, &err));
    OK(fac_tensor_write(t, x, n * sizeof *x, &err));
    free(x);
    return t;
}

typedef struct results {
    fac_status status;
    int n;
    fac_tensor *out[PORTS];
    fac_error err;
} results;

static results run_at(const fac_graph *g, const sizes *s) {
    results r = { .n = fac_graph_outputs(g) };
    fac_tensor *in[PORTS] = { NULL };
    fac_program *p = NULL;
    assert_true(fac_graph_inputs(g) <= PORTS && r.n <= PORTS);
    for (int i = 0; i < fac_graph_inputs(g); i++) in[i] = input_of(g, i, s);
    r.status = fac_program_new(g, device, &(fac_program_opts){ .precision = FAC_PRECISION_HIGHEST },
                               &p, &r.err);
    if (!r.status) r.status = fac_program_run(p, in, r.out, &r.err);
    for (int i = 0; i < fac_graph_inputs(g); i++) fac_tensor_free(in[i]);
    fac_program_free(p);
    return r;
}

static void results_free(results *r) {
    for (int k = 0; k < r->n; k++) fac_tensor_free(r->out[k]);
}

static const char *difference(const fac_tensor *a, const fac_tensor *b) {
    const fac_type x = fac_tensor_type(a), y = fac_tensor_type(b);
    fac_tensor *p = NULL, *q = NULL;
    if (x.dtype != y.dtype || !fac_dims_equal(&x.dims, &y.dims)) return "another type";
    OK(fac_tensor_convert(a, FAC_F64, &p, &err));
    OK(fac_tensor_convert(b, FAC_F64, &q, &err));
    const double *u = fac_tensor_data(p), *v = fac_tensor_data(q);
    bool same = true;
    for (int64_t k = 0; k < fac_dims_count(&x.dims); k++)
        same &= u[k] == v[k] || (isnan(u[k]) && isnan(v[k])) ||
                fabs(u[k] - v[k]) <= 1e-5 * fmax(1, fabs(u[k]));
    fac_tensor_free(p);
    fac_tensor_free(q);
    return same ? NULL : "other numbers";
}

/* ---- passes ---- */

static fac_graph *simplified(const fac_graph *g) {
    fac_graph *made = NULL;
    return fac_graph_simplified(g, &made, &err) ? NULL : made;
}
static fac_graph *baked(const fac_graph *g) {
    fac_graph *made = NULL;
    return fac_graph_baked(g, NULL, &made, &err) ? NULL : made;
}
static fac_graph *reordered(const fac_graph *g) {
    fac_graph *made = NULL;
    return fac_graph_reordered(g, 2, &made, &err) ? NULL : made;
}
static fac_graph *in_f64(const fac_graph *g) {
    fac_graph *made = NULL;
    const fac_float_opts how = { .to = FAC_F64, .keep_ports = true };
    return fac_graph_floats_but(g, &how, NULL, &made, &err) ? NULL : made;
}
static fac_graph *folded(const fac_graph *g) { return fac_pass_fold(g, fac_ref_evaluate); }
static fac_graph *expanded(const fac_graph *g) { return fac_pass_expand(g, NULL, NULL); }
static fac_graph *opened(const fac_graph *g) { return fac_pass_open(g, true); }
static fac_graph *written(const fac_graph *g) {
    char *text = text_of(g);
    fac_graph *again = graph_of(text);
    free(text);
    return again;
}
static fac_graph *exported(const fac_graph *g) { return through_onnx(g, &err); }

static const struct {
    const char *name;
    fac_graph *(*of)(const fac_graph *g);
} passes[] = { { "all of --simplify", simplified },
               { "absorb", fac_pass_absorb },
               { "products", fac_pass_products },
               { "fold", folded },
               { "bake", baked },
               { "simplify", fac_pass_simplify },
               { "neutral", fac_pass_neutral },
               { "shapes", fac_pass_shapes },
               { "movers", fac_pass_movers },
               { "cse", fac_pass_cse },
               { "expand", expanded },
               { "open", opened },
               { "joins", fac_pass_joins },
               { "chains", fac_pass_chains },
               { "batch_norm", fac_pass_batch_norm },
               { "inference", fac_graph_inference },
               { "clone", fac_graph_clone },
               { "--reorder", reordered },
               { "--dtype f64", in_f64 },
               { "text", written },
               { "ONNX", exported } };
enum { PASSES = sizeof passes / sizeof *passes };

static void compare_at(const fac_graph *g, const fac_graph *made, const char *pass,
                       const char *text, const sizes *s, const results *want) {
    results got = run_at(made, s);
    const char *wrong = got.status ? got.err.text : NULL;
    for (int k = 0; k < want->n && !wrong; k++) wrong = difference(want->out[k], got.out[k]);
    if (wrong) {
        char *now = text_of(made);
        (void)g;
        fail_msg("%s at N=%d M=%d K=%d: %s\n%s\n%s", pass, (int)s->of[0], (int)s->of[1],
                 (int)s->of[2], wrong, text, now);
    }
    results_free(&got);
}

/* NULL: refused, in err. */
static fac_graph *passed(const fac_graph *g, int pass) {
    fac_graph *made = passes[pass].of(g);
    if (made && !fac_graph_check(made, &err)) return made;
    fac_graph_free(made);
    return NULL;
}

/* What a pass refuses can run at no size: it found out what nobody knew when the graph was
 * built. */
static void check_refusal(const fac_graph *g, const char *pass, const char *text) {
    const fac_error why = err;
    for (int at = 0; at < 64; at++) {
        const sizes s = { { sizes_of[at % 4], sizes_of[at / 4 % 4], sizes_of[at / 16] } };
        results r = run_at(g, &s);
        if (!r.status)
            fail_msg("%s refuses what runs at N=%d M=%d K=%d: %s\n%s", pass, (int)s.of[0],
                     (int)s.of[1], (int)s.of[2], why.text, text);
        results_free(&r);
    }
}

/* At all sizes, or at a few of them that are drawn; returns at how many the graph gave
 * something. */
static int check_text(const char *text, int draws) {
    fac_graph *g = graph_of(text), *made[PASSES];
    int ran = 0;
    for (int k = 0; k < PASSES; k++)
        if (!(made[k] = passed(g, k))) check_refusal(g, passes[k].name, text);
    for (int at = 0; at < (draws ? draws : 64); at++) {
        const uint64_t pick = draws ? fac_random_bits(seed, 99, (uint64_t)at) : (uint64_t)at;
        const sizes s = { { sizes_of[pick % 4], sizes_of[pick / 4 % 4], sizes_of[pick / 16 % 4] } };
        results want = run_at(g, &s);
        for (int k = 0; k < PASSES && !want.status; k++)
            if (made[k]) compare_at(g, made[k], passes[k].name, text, &s, &want);
        ran += !want.status;
        results_free(&want);
    }
    for (int k = 0; k < PASSES; k++) fac_graph_free(made[k]);
    fac_graph_free(g);
    return ran;
}
#endif
