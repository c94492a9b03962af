/* See problem.h. */
#include <string.h>
#include "facula/backend.h"
#include "facula/op.h"
#include "problem.h"

enum { STREAM = 1000 }; /* those of inputs are smaller */

/* A variance is positive, or everything after it is NaN. */
static fac_status above_zero(fac_tensor *t, fac_error *err) {
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    fac_tensor *wide = NULL, *own = NULL;
    fac_status status = fac_tensor_convert(t, FAC_F64, &wide, err);
    double *x = status ? NULL : (double *)(uintptr_t)fac_tensor_data(wide);
    for (int64_t i = 0; x && i < n; i++) x[i] = (x[i] < 0 ? -x[i] : x[i]) + 0.1;
    if (!status) status = fac_tensor_convert(wide, type.dtype, &own, err);
    if (!status) status = fac_tensor_write(t, fac_tensor_data(own), fac_type_bytes(&type), err);
    fac_tensor_free(own);
    fac_tensor_free(wide);
    return status;
}

static bool is_variance(const fac_value *v) {
    const fac_use *u = v->uses;
    const char *port = u ? fac_port_name(u->node, u->input) : NULL;
    return port && !strcmp(port, "var");
}

static fac_status draw(fac_value *v, uint64_t seed, uint64_t stream, fac_error *err) {
    const fac_type type = fac_value_type(v);
    fac_tensor *t = fac_value_tensor(v), *r = NULL;
    fac_status status = tensor_random(type, seed, stream, &r, err);
    if (!status && is_variance(v)) status = above_zero(r, err);
    if (!status) status = fac_tensor_write(t, fac_tensor_data(r), fac_type_bytes(&type), err);
    fac_tensor_free(r);
    return status;
}

/* Bytes and blocks are weights and codes; wider integers are indices and lengths, which zeros fit.
 */
static bool may_be_drawn(fac_dtype t) {
    const char kind = fac_dtype_get(t)->kind;
    return kind == 'f' || kind == 'q' || t == FAC_U8 || t == FAC_I8;
}

int problem_load(const char *text, bool params, uint64_t seed, fac_graph **out) {
    fac_error err = { 0 };
    fac_graph *g = NULL;
    fac_status status = fac_problem_graph(text, params, &g, &err);
    for (int i = 0; !status && i < fac_graph_params(g); i++) {
        fac_value *v = fac_graph_param(g, i);
        if (may_be_drawn(fac_value_type(v).dtype))
            status = draw(v, seed, (uint64_t)(STREAM + i), &err);
    }
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status ? fail(&err) : EXIT_OK;
}
