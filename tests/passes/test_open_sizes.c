/* Graphs with open sizes mean the same before and after every pass, whatever the sizes turn out
 * to be: 0, 1, 2 and 7 for each.  What the graph gave it gives afterwards, with the same dims.
 * Where it fails a pass may have dropped what failed, as dead code is dropped, so nothing is
 * asked there. */
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

/* ---- by hand ---- */

static void known_ones(void **state) {
    (void)state;
    static const char *const texts[] = {
        "input x f32[N,6]\ny = squeeze(x)\noutput y = y\n",
        "input x f32[N,6]\na = squeeze(x)\nb = relu(a)\nc = relu(b)\ny = identity(c)\noutput y = "
        "y\n",
        "input x f32[N,6]\na = squeeze(x)\ns = shape(a)\ny = cast(s) to=f32\noutput y = y\n",
        "input x f32[N,M,6]\na = squeeze(x)\ny = sum(a, i64{0})\noutput y = y\n",
        "input x f32[N,M,6]\na = squeeze(x, i64{0})\ny = squeeze(a)\noutput y = y\n",
        "input x f32[N,1,M]\na = unsqueeze(x, i64{0})\nb = squeeze(a)\ny = neg(b)\noutput y = y\n",
        "input x f32[N,6]\na = squeeze(x)\nb = unsqueeze(a, i64{0})\ny = flatten(b) axis=1\noutput "
        "y = y\n",
        "input x f32[N,6]\na = squeeze(x)\nb = squeeze(x)\nc = add(a, b)\ny = add(c, "
        "f32(0))\noutput y = y\n",
        "input x f32[N,6]\na = squeeze(x)\nb = transpose(a)\ny = transpose(b)\noutput y = y\n",
        "input x f32[N,6]\na = squeeze(x)\nb = cast(a) to=f64\ny = cast(b) to=f32\noutput y = y\n",
        "input x f32[N,6]\na = squeeze(x)\ny = softmax(a) axis=-1\noutput y = y\n",
        "input x f32[N,2,3]\ny = reshape(x, i64{0,-1})\noutput y = y\n",
        "input x f32[N,2,3]\na = reshape(x, i64{-1})\ny = reshape(a, i64{-1,6})\noutput y = y\n",
        "input x f32[N,M,3]\na = flatten(x) axis=2\nb = relu(a)\ns = shape(x)\ny = reshape(b, "
        "s)\noutput y = y\n",
        "input x f32[N,M]\ninput y f32[M,K]\na = matmul(x, y)\nb = add(a, f32(0))\noutput y2 = b\n",
        "input x f32[N,1]\ninput y f32[1,M]\na = add(x, y)\nb = mul(a, f32(1))\noutput b = b\n",
        "input x f32[N,6]\ninput y f32[M,6]\na = add(x, y)\nb = sub(a, a)\noutput b = b\n",
        "input x f32[N]\ninput y f32[3]\na = add(x, y)\nb = expand(x, i64{3})\nc = mul(b, y)\nd = "
        "add(a, c)\noutput d = d\n",
        "input x f32[N,6]\na = slice(x, i64{0}, i64{5}, i64{0})\nb = slice(a, i64{1}, i64{9}, "
        "i64{1})\noutput b = b\n",
        "input x f32[N,6]\na = slice(x, i64{0}, i64{9223372036854775807}, i64{0})\nb = "
        "relu(a)\noutput b = b\n",
        "input x f32[N,6]\na = slice(x, i64{-3}, i64{-1}, i64{0})\nb = concat(a, x)\nc = concat(b, "
        "x)\noutput c = c\n",
        "input x f32[N,6]\np, q = split(x) parts=2\na = concat(p, q)\nb = sum(q, i64{0})\noutput a "
        "= a\noutput b = b\n",
        "input x f32[N,6]\np, q = split(x) parts=2\na = shape(p)\nb = shape(q)\nc = sub(a, b)\nd = "
        "cast(c) to=f32\noutput d = d\n",
        "input x f32[N,M]\na = reduce_max(x, -) keep\nb = sum(x, i64{1})\nc = mean(x, i64{0}) "
        "keep\noutput b = b\noutput c = c\n",
        "input x f32[N,M]\na = tile(x, i64{2,1})\nb = pad(a, i64{1,0,1,0})\nc = tile(b, "
        "i64{1,1})\noutput c = c\n",
        "input x f32[N,M]\ns = shape(x)\nn = gather(s, i64{0})\nm = gather(s, i64{1})\nk = mul(n, "
        "m)\ny = reshape(x, k)\noutput y = y\n",
        "input x f32[N,4]\ns = shape(x)\nn = gather(s, i64{0})\nl = concat(n, i64{2,2})\ny = "
        "reshape(x, l)\noutput y = y\n",
        "input x f32[N,M]\ns = shape(x)\ne = expand(f32(1), s)\ny = add(x, e)\nz = mul(x, "
        "e)\noutput y = y\noutput z = z\n",
        "input x f32[N,M]\nc = greater(x, f32(0))\na = where(c, x, f32(0))\nb = where(bool(1), a, "
        "x)\noutput b = b\n",
        "input x f32[N,4]\nparam w f32[4,3]\nparam b f32[3]\na = matmul(x, w)\ny = add(a, "
        "b)\noutput y = y\n",
        "input x f32[N,2,M,K]\nparam w f32[4,2,1,1]\nparam b f32[4,1,1]\na = conv2d(x, w)\ny = "
        "mul(a, b)\noutput y = y\n",
        "input c f32[N,3]\na = log_softmax(c) axis=0\nb = reduce_log_sum_exp(c, i64{0})\noutput a "
        "= a\noutput b = b\n",
    };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        assert_true(check_text(texts[k], 0) > 0);
    }
}

/* ---- drawn ---- */

typedef struct drawing {
    uint64_t stream, at;
    char text[4096];
    int values;
} drawing;

static int draw(drawing *d, int n) {
    return (int)(fac_random_bits(seed, d->stream, d->at++) % (uint64_t)n);
}

/* A node that reads earlier values; whether it fits them shows when the text is read. */
static void draw_node(drawing *d, char *to, size_t size) {
    const int a = draw(d, d->values), b = draw(d, d->values), axis = draw(d, 3), n = draw(d, 4),
              v = d->values;
    switch (draw(d, 30)) {
    case 0:
    case 1:
        snprintf(to, size, "v%d = squeeze(v%d)\n", v, a);
        break;
    case 2:
        snprintf(to, size, "v%d = squeeze(v%d, i64{%d})\n", v, a, axis);
        break;
    case 3:
        snprintf(to, size, "v%d = unsqueeze(v%d, i64{%d})\n", v, a, axis);
        break;
    case 4:
        snprintf(to, size, "v%d = reshape(v%d, i64{0,-1})\n", v, a);
        break;
    case 5:
        snprintf(to, size, "v%d = reshape(v%d, i64{-1,%d})\n", v, a, n + 1);
        break;
    case 6:
        snprintf(to, size, "v%d = reshape(v%d, i64{-1})\n", v, a);
        break;
    case 7:
        snprintf(to, size, "v%d = flatten(v%d) axis=%d\n", v, a, axis);
        break;
    case 8:
        snprintf(to, size, "v%d = expand(v%d, i64{%d,1})\n", v, a, n + 1);
        break;
    case 9:
        snprintf(to, size, "s%d = shape(v%d)\nv%d = expand(v%d, s%d)\n", v, b, v, a, v);
        break;
    case 10:
    case 11:
        snprintf(to, size, "v%d = add(v%d, v%d)\n", v, a, b);
        break;
    case 12:
        snprintf(to, size, "v%d = mul(v%d, f32(1))\n", v, a);
        break;
    case 13:
        snprintf(to, size, "v%d = slice(v%d, i64{%d}, i64{%d}, i64{%d})\n", v, a, draw(d, 3) - 1,
                 n * 3 - 2, axis);
        break;
    case 14:
        snprintf(to, size, "v%d = slice(v%d, i64{0}, i64{9223372036854775807}, i64{%d})\n", v, a,
                 axis);
        break;
    case 15:
        snprintf(to, size, "v%d = concat(v%d, v%d) axis=%d\n", v, a, b, axis);
        break;
    case 16:
        snprintf(to, size, "v%d = sum(v%d, i64{%d})%s\n", v, a, axis, n % 2 ? " keep" : "");
        break;
    case 17:
        snprintf(to, size, "v%d = transpose(v%d)\n", v, a);
        break;
    case 18:
        snprintf(to, size, "v%d = tile(v%d, i64{%d,1})\n", v, a, n);
        break;
    case 19:
        snprintf(to, size, "v%d = pad(v%d, i64{%d,0,%d,0})\n", v, a, n - 1, draw(d, 2));
        break;
    case 20:
        snprintf(to, size, "v%d, p%d = split(v%d) axis=%d parts=2\n", v, v, a, axis);
        break;
    case 21:
        snprintf(to, size,
                 "s%d = shape(v%d)\ng%d = gather(s%d, i64{%d})\nl%d = concat(g%d, i64{-1})\nv%d = "
                 "reshape(v%d, l%d)\n",
                 v, b, v, v, axis, v, v, v, a, v);
        break;
    case 22:
        snprintf(to, size, "s%d = shape(v%d)\nv%d = reshape(v%d, s%d)\n", v, b, v, a, v);
        break;
    case 23:
        snprintf(to, size, "s%d = shape(v%d)\nv%d = cast(s%d) to=f32\n", v, a, v, v);
        break;
    case 24:
        snprintf(to, size, "c%d = greater(v%d, v%d)\nv%d = where(c%d, v%d, v%d)\n", v, a, b, v, v,
                 a, b);
        break;
    case 25:
        snprintf(to, size, "v%d = gather(v%d, i64{0}) axis=%d\n", v, a, axis);
        break;
    case 26:
        snprintf(to, size,
                 "s%d = shape(v%d)\nr%d = gather(s%d, i64(%d))\nq%d = range(i64(0), r%d, "
                 "i64(1))\nv%d = cast(q%d) to=f32\n",
                 v, a, v, v, axis, v, v, v, v);
        break;
    case 27:
        snprintf(
            to, size,
            "s%d = shape(v%d)\nt%d = shape(v%d)\nu%d = equal(s%d, t%d)\nv%d = cast(u%d) to=f32\n",
            v, a, v, b, v, v, v, v, v);
        break;
    case 28:
        snprintf(to, size, "v%d = softmax(v%d) axis=-1\n", v, a);
        break;
    default:
        snprintf(to, size, "v%d = relu(v%d)\n", v, a);
        break;
    }
}

static bool readable(const char *text) {
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    fac_graph *g = NULL;
    fac_error e = { 0 };
    const bool ok = !fac_graph_read(f, &g, &e);
    fclose(f);
    fac_graph_free(g);
    return ok;
}

static void draw_graph(drawing *d) {
    static const char *const dims[] = { "N,6", "N,M",   "M,6", "N,1,M", "1,M,6",
                                        "K",   "N,6,K", "3",   "2,6" };
    size_t n = 0;
    for (d->values = 0; d->values < 3; d->values++)
        n += (size_t)snprintf(d->text + n, sizeof d->text - n, "input v%d f32[%s]\n", d->values,
                              dims[draw(d, 9)]);
    for (int tries = 0; tries < 40 && d->values < 11; tries++) {
        draw_node(d, d->text + n, sizeof d->text - n);
        if (!readable(d->text)) {
            d->text[n] = 0;
            continue;
        }
        n = strlen(d->text);
        d->values++;
    }
    snprintf(d->text + n, sizeof d->text - n, "output y = v%d\noutput z = v%d\n", d->values - 1,
             d->values - 2);
}

static void drawn_ones(void **state) {
    (void)state;
    const char *asked = getenv("FACULA_GRAPHS");
    const int graphs = asked ? atoi(asked) : 150;
    int ran = 0;
    for (int k = 0; k < graphs; k++) {
        drawing d = { .stream = (uint64_t)k + 1000 };
        draw_graph(&d);
        ran += check_text(d.text, 5);
    }
    print_message("%d graphs, %d runs compared\n", graphs, ran);
    assert_true(ran > graphs / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(known_ones),
                                        cmocka_unit_test(drawn_ones) };
    return cmocka_run_group_tests_name("open sizes", tests, open_device, close_device);
}
