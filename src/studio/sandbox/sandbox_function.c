/* The sandbox of functions: every elementwise operator, and any expression of x and y, with its
 * derivatives. */
#include <string.h>
#include "base/error.h"
#include "facula/ops.h"
#include "studio/sandbox/sandbox.h"

enum { LINE = 400, SIDE = 61 };

fac_status fac_sandbox_functions(const cJSON *what, fac_text *to, fac_error *err) {
    (void)what, (void)err;
    bool first = true;
    fac_json_put_key(to, "functions");
    fac_text_add(to, "[");
    for (const fac_op *const *op = fac_ops; *op; op++) {
        const int n = fac_expression_arity(*op);
        if (!n || n > 2) continue;
        fac_text_add(to, first ? "{" : ",{");
        first = false;
        fac_json_put_pair_text(to, "name", (*op)->name);
        fac_json_put_pair_text(to, "doc", (*op)->doc ? (*op)->doc : "");
        fac_json_put_pair_text(to, "text", (*op)->map->text);
        fac_json_put_pair(to, "inputs", n);
        fac_text_add(to, "}");
    }
    fac_text_add(to, "]");
    return FAC_OK;
}

/* Values of x (and y) over low..high: a line, or a square grid with y growing downwards. */
static int64_t places(int vars, double low, double high, double *x, double *y) {
    const int64_t side = vars > 1 ? SIDE : LINE;
    const int64_t n = vars > 1 ? SIDE * SIDE : LINE;
    for (int64_t i = 0; i < n; i++) {
        x[i] = low + (high - low) * (double)(i % side) / (double)(side - 1);
        y[i] = low + (high - low) * (double)(i / side) / (double)(side - 1);
    }
    return n;
}

/* f and its derivatives at each place, which are the gradient of the sum. */
static fac_status build(fac_graph *g, fac_dtype dtype, const char *text, int vars, int64_t n,
                        fac_error *err) {
    static const char *const names[] = { "x", "y" }, *const slopes[] = { "dx", "dy" };
    expression e = { .g = g, .dtype = dtype };
    fac_value *var[2], *slope[2];
    int result;
    for (int k = 0; k < vars; k++) {
        var[k] = fac_input(g, names[k], dtype, fac_shape(n));
        e.of[e.n] = (expression_step){ .value = var[k] };
        strcpy(e.of[e.n++].name, names[k]);
    }
    FAC_TRY(fac_expression_read(&e, text, &result, err));
    fac_value *f = fac_add(e.of[result].value, fac_mul(var[0], fac_number(g, dtype, 0)));
    const fac_dims d = fac_value_type(e.of[result].value).dims;
    if (d.n == 1 && d.d[0] == n) f = e.of[result].value; /* else a constant */
    fac_grad(fac_sum(f, (fac_dims){ 0 }, false), vars, var, slope);
    fac_output(g, "f", f);
    for (int k = 0; k < vars; k++) fac_output(g, slopes[k], slope[k]);
    return fac_graph_check(g, err);
}

static fac_status answer(fac_graph *g, int vars, int64_t n, const double *x, const double *y,
                         fac_text *to, fac_error *err) {
    fac_tensor *in[2] = { NULL }, *out[3] = { NULL };
    fac_device *device = NULL;
    static const char *const names[] = { "f", "dx", "dy" };
    fac_status status = fac_sandbox_tensor(fac_shape(n), x, &in[0], err);
    if (!status) status = fac_sandbox_tensor(fac_shape(n), y, &in[1], err);
    if (!status) status = fac_sandbox_run(g, &device, in, out, err);
    for (int k = 0; k <= vars && !status; k++) fac_sandbox_put_tensor(to, names[k], out[k]);
    for (int k = 0; k < 3; k++) fac_tensor_free(out[k]);
    for (int k = 0; k < 2; k++) fac_tensor_free(in[k]);
    fac_device_free(device);
    return status;
}

static fac_status read_text(const cJSON *what, const char **text, int64_t *vars, fac_error *err) {
    *text = fac_json_string_of(what, "text");
    if (!*text)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "text must be an expression of x, such as \"tanh(x)\"");
    return fac_json_int(what, "vars", 1, 2, vars, err);
}

/* For an open number of places. */
fac_status fac_sandbox_curve_graph(const cJSON *what, fac_graph **out, fac_error *err) {
    const char *text;
    int64_t vars = 1;
    FAC_TRY(read_text(what, &text, &vars, err));
    fac_graph *g = fac_graph_new();
    if (!g) return fac_raise_memory(err, "a graph");
    const fac_status status = build(g, FAC_F32, text, (int)vars, fac_symbol(g, "N"), err);
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status;
}

fac_status fac_sandbox_curve(const cJSON *what, fac_text *to, fac_error *err) {
    static const double usual = 6;
    double x[SIDE * SIDE], y[SIDE * SIDE], low = -usual, high = usual;
    const char *text;
    int64_t vars = 1;
    FAC_TRY(read_text(what, &text, &vars, err));
    FAC_TRY(fac_json_real(what, "low", -1000, 1000, &low, err));
    FAC_TRY(fac_json_real(what, "high", -1000, 1000, &high, err));
    if (low >= high) return fac_raise(err, FAC_E_ARGUMENT, "low must be below high");
    const int64_t n = places((int)vars, low, high, x, y);
    fac_graph *g = fac_graph_new();
    if (!g) return fac_raise_memory(err, "a graph");
    fac_status status = build(g, FAC_F64, text, (int)vars, n, err);
    if (!status) status = answer(g, (int)vars, n, x, y, to, err);
    fac_graph_free(g);
    if (status) return status;
    fac_json_put_pair(to, "side", vars > 1 ? SIDE : LINE);
    fac_json_put_pair(to, "low", low);
    fac_json_put_pair(to, "high", high);
    return FAC_OK;
}
