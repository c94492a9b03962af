/* The sandbox of gradients: an expression in x, y and z, numbers or tensors, becomes a graph with
 * the value of each step and the gradient of the result with respect to it. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "facula/ops.h"
#include "studio/sandbox/sandbox.h"

enum { VARS = 3, MOST = 64 };
static const char *const names[VARS] = { "x", "y", "z" };

typedef struct variable {
    fac_dims dims;
    double x[MOST];
} variable;

/* {"shape": [2, 3], "values": [...]}; fewer values than elements are repeated. */
static fac_status read_variable(const cJSON *j, const char *name, variable *v, fac_error *err) {
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(j, "values");
    const int given = cJSON_GetArraySize(values);
    FAC_TRY(fac_sandbox_dims(j, "shape", 1, MOST, &v->dims, err));
    const int64_t n = fac_dims_count(&v->dims);
    if (n > MOST || given < 1 || given > MOST)
        return fac_raise(err, FAC_E_ARGUMENT, "%s must have 1 to %d numbers", name, MOST);
    for (int64_t i = 0; i < n; i++) {
        const cJSON *one = cJSON_GetArrayItem(values, (int)(i % given));
        if (!cJSON_IsNumber(one) || !isfinite(one->valuedouble))
            return fac_raise(err, FAC_E_ARGUMENT, "the values of %s must be finite numbers", name);
        v->x[i] = one->valuedouble;
    }
    return FAC_OK;
}

static fac_status read_variables(const cJSON *what, variable v[VARS], fac_error *err) {
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(what, "values");
    for (int k = 0; k < VARS; k++) {
        const cJSON *j = cJSON_GetObjectItemCaseSensitive(all, names[k]);
        v[k].x[0] = k + 1;
        if (j) FAC_TRY(read_variable(j, names[k], &v[k], err));
    }
    return FAC_OK;
}

/* A result that is not a scalar is summed first, because a loss must be one. */
static fac_status build(expression *e, const char *text, const variable v[VARS], int *result,
                        fac_error *err) {
    fac_value *at[EXPRESSION_STEPS], *slope[EXPRESSION_STEPS];
    for (int k = 0; k < VARS; k++) {
        e->of[e->n] = (expression_step){ .value = fac_input(e->g, names[k], e->dtype, v[k].dims) };
        strcpy(e->of[e->n++].name, names[k]);
    }
    FAC_TRY(fac_expression_read(e, text, result, err));
    fac_value *loss = e->of[*result].value;
    if (fac_value_type(loss).dims.n) loss = fac_sum(loss, (fac_dims){ 0 }, false);
    for (int k = 0; k < e->n; k++) at[k] = e->of[k].value;
    fac_grad(loss, e->n, at, slope);
    char name[24];
    for (int k = 0; k < 2 * e->n; k++) {
        snprintf(name, sizeof name, "output%d", k);
        fac_output(e->g, name, k < e->n ? at[k] : slope[k - e->n]);
    }
    return fac_graph_check(e->g, err);
}

static void write_steps(const expression *e, fac_tensor *const out[], fac_text *to) {
    fac_json_put_key(to, "steps");
    fac_text_add(to, "[");
    for (int k = 0; k < e->n; k++) {
        const expression_step *s = &e->of[k];
        const fac_dims d = fac_value_type(s->value).dims;
        fac_text_add(to, k ? ",{" : "{");
        fac_json_put_pair_text(to, "name", s->name);
        fac_json_put_key(to, "in");
        fac_text_add(to, "[");
        for (int i = 0; i < s->n; i++) fac_text_print(to, i ? ",%d" : "%d", s->in[i]);
        fac_text_add(to, "]");
        fac_sandbox_put_dims(to, "shape", &d);
        fac_sandbox_put_tensor(to, "value", out[k]);
        fac_sandbox_put_tensor(to, "gradient", out[e->n + k]);
        fac_text_add(to, "}");
    }
    fac_text_add(to, "]");
}

static fac_status answer(expression *e, const char *text, const variable v[VARS], fac_text *to,
                         fac_error *err) {
    fac_tensor *in[VARS] = { NULL }, *out[2 * EXPRESSION_STEPS] = { NULL };
    fac_device *device = NULL;
    int result;
    fac_status status = build(e, text, v, &result, err);
    for (int k = 0; k < VARS && !status; k++)
        status = fac_sandbox_tensor(v[k].dims, v[k].x, &in[k], err);
    if (!status) status = fac_sandbox_run(e->g, &device, in, out, err);
    if (!status) {
        write_steps(e, out, to);
        fac_json_put_pair(to, "result", result);
    }
    for (int k = 0; k < 2 * EXPRESSION_STEPS; k++) fac_tensor_free(out[k]);
    for (int k = 0; k < VARS; k++) fac_tensor_free(in[k]);
    fac_device_free(device);
    return status;
}

/* ---- export ---- */

/* The variables that the expression reads. */
static fac_status find_used(const char *text, const variable v[VARS], bool used[VARS],
                            fac_error *err) {
    expression e = { .g = fac_graph_new(), .dtype = FAC_F32 };
    int result;
    if (!e.g) return fac_raise_memory(err, "a graph");
    const fac_status status = build(&e, text, v, &result, err);
    for (int k = 0; k < VARS && !status; k++) {
        used[k] = k == result;
        for (int s = VARS; s < e.n; s++)
            for (int i = 0; i < e.of[s].n; i++) used[k] |= e.of[s].in[i] == k;
    }
    fac_graph_free(e.g);
    return status;
}

/* The value, and its gradient with respect to each variable that it reads. */
static fac_status build_used(expression *e, const char *text, const variable v[VARS],
                             const bool used[VARS], fac_error *err) {
    static const char *const slopes[VARS] = { "dx", "dy", "dz" };
    fac_value *var[VARS], *slope[VARS];
    int n = 0, result;
    for (int k = 0; k < VARS; k++) {
        if (!used[k]) continue;
        var[n] = fac_input(e->g, names[k], FAC_F32, v[k].dims);
        e->of[n] = (expression_step){ .value = var[n] };
        strcpy(e->of[n++].name, names[k]);
    }
    e->n = n;
    FAC_TRY(fac_expression_read(e, text, &result, err));
    fac_value *value = e->of[result].value, *loss = value;
    fac_output(e->g, "value", value);
    if (fac_value_type(value).dims.n) loss = fac_sum(value, (fac_dims){ 0 }, false);
    if (n) fac_grad(loss, n, var, slope);
    for (int k = 0, i = 0; k < VARS; k++)
        if (used[k]) fac_output(e->g, slopes[k], slope[i++]);
    return fac_graph_check(e->g, err);
}

fac_status fac_sandbox_expression_graph(const cJSON *what, fac_graph **out, fac_error *err) {
    variable v[VARS] = { 0 };
    bool used[VARS];
    const char *text = fac_json_string_of(what, "text");
    if (!text) return fac_raise(err, FAC_E_ARGUMENT, "text must be an expression of x, y and z");
    FAC_TRY(read_variables(what, v, err));
    FAC_TRY(find_used(text, v, used, err));
    expression e = { .g = fac_graph_new(), .dtype = FAC_F32 };
    if (!e.g) return fac_raise_memory(err, "a graph");
    const fac_status status = build_used(&e, text, v, used, err);
    if (status)
        fac_graph_free(e.g);
    else
        *out = e.g;
    return status;
}

fac_status fac_sandbox_put_numbers(const cJSON *what, const fac_graph *g, fac_text *to,
                                   fac_error *err) {
    variable v[VARS] = { 0 };
    FAC_TRY(read_variables(what, v, err));
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        const char *name = fac_value_name(fac_graph_input(g, i));
        int k = 0;
        while (k < VARS - 1 && strcmp(names[k], name)) k++;
        if (i) fac_text_add(to, " --");
        for (int64_t at = 0; at < fac_dims_count(&v[k].dims); at++) {
            fac_text_add(to, " ");
            fac_json_put_number(to, v[k].x[at]);
        }
    }
    return FAC_OK;
}

fac_status fac_sandbox_graph(const cJSON *what, fac_text *to, fac_error *err) {
    variable v[VARS] = { 0 };
    const char *text = fac_json_string_of(what, "text");
    if (!text) return fac_raise(err, FAC_E_ARGUMENT, "text must be an expression of x, y and z");
    FAC_TRY(read_variables(what, v, err));
    expression e = { .g = fac_graph_new(), .dtype = FAC_F64 };
    if (!e.g) return fac_raise_memory(err, "a graph");
    const fac_status status = answer(&e, text, v, to, err);
    fac_graph_free(e.g);
    return status;
}
