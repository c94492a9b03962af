/* Solver "fill": range, eye_like, one_hot, shape, size: what follows from shapes and a few numbers.
 */
#include <string.h>
#include "graph/attr.h"
#include "backends/opencl/device/calls.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_fill.h"
#include "op_list.h"

enum { GROUP = 64 };

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!FAC_IS(p->node, range) && !FAC_IS(p->node, eye_like) && !FAC_IS(p->node, one_hot) &&
        !FAC_IS(p->node, shape) && !FAC_IS(p->node, size))
        return false;
    if (!fac_cl_settle_plain(o, p)) return false;
    for (int i = 0; i < 3 && FAC_IS(p->node, range); i++)
        if (!p->in[i].known || p->in[i].known->symbolic) return false;
    if (FAC_IS(p->node, range) && fac_dtype_get(p->out[0].type.dtype)->kind == 'f') return false;
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

/* The numbers after the count; returns the options of the kernel. */
static void numbers(const fac_problem *p, fac_text *options, int64_t *x, int *n) {
    const fac_dims *in = &p->in[0].type.dims, *out = &p->out[0].type.dims;
    int64_t given = 0;
    if (FAC_IS(p->node, range)) {
        fac_text_add(options, " -DRANGE");
        x[(*n)++] = p->in[0].known->v[0];
        x[(*n)++] = p->in[2].known->v[0];
    } else if (FAC_IS(p->node, eye_like)) {
        fac_text_add(options, " -DEYE");
        fac_attr_get_int(p->node, "k", &given);
        x[(*n)++] = out->d[1];
        x[(*n)++] = given;
    } else if (FAC_IS(p->node, one_hot)) {
        const bool real = fac_dtype_get(p->in[0].type.dtype)->kind == 'f';
        fac_attr_get_int(p->node, "axis", &given);
        const int axis = fac_axis(given, out->n);
        int64_t inner = 1;
        for (int k = axis + 1; k < out->n; k++) inner *= out->d[k];
        fac_text_print(options, " -DHOT -DX=%s -DNUMBER=%s", fac_cl_tag(p->in[0].type.dtype),
                       real ? fac_cl_computing(p->in[0].type.dtype) : "long");
        fac_text_add(options, real ? " -DWHOLE(x)=trunc(x)" : " -DWHOLE(x)=(x)");
        fac_text_print(options, " -DLOAD_NUMBER(p,i)=%s",
                       p->in[0].type.dtype == FAC_F16    ? "fac_load_f16(p,i)"
                       : p->in[0].type.dtype == FAC_BF16 ? "fac_load_bf16(p,i)"
                                                         : "((NUMBER)(p)[i])");
        x[(*n)++] = out->d[axis];
        x[(*n)++] = inner;
    } else if (FAC_IS(p->node, size)) {
        fac_text_add(options, " -DLISTED=1");
        x[(*n)++] = fac_dims_count(in);
    } else {
        fac_text_print(options, " -DLISTED=%d",
                       (int)fac_dims_count(out) ? (int)fac_dims_count(out) : 1);
        fac_attr_get_int(p->node, "start", &given);
        for (int64_t k = 0; k < fac_dims_count(out); k++) x[(*n)++] = in->d[given + k];
    }
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const int64_t count = fac_dims_count(&p->out[0].type.dims);
    const char *name = FAC_IS(p->node, range)      ? "range"
                       : FAC_IS(p->node, eye_like) ? "eye"
                       : FAC_IS(p->node, one_hot)  ? "one_hot"
                                                   : "listed";
    int64_t x[FAC_DIMS + 2];
    int n = 0;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    if (!count) return FAC_OK;
    fac_text_print(&options, "-DV=1 -DT=%s -DY=%s", fac_cl_computing(p->out[0].type.dtype),
                   fac_cl_tag(p->out[0].type.dtype));
    numbers(p, &options, x, &n);
    fac_status status = fac_cl_call_new(o, plan, fac_kernel_fill, &options, name, &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    if (FAC_IS(p->node, one_hot)) {
        fac_cl_call_in(c, p, 0);
        fac_cl_call_in(c, p, 2);
    }
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, count);
    for (int k = 0; k < n; k++) fac_cl_call_number(c, x[k]);
    fac_cl_call_items(c, (size_t)count, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_fill = { .name = "fill",
                                 .rank = 90,
                                 .offer = offer,
                                 .make = make,
                                 .done = fac_cl_plan_done,
                                 .run = fac_cl_plan_run };
