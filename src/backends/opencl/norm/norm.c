/* Solver "norm": layer_norm, rms_norm, group_norm, instance_norm.  All are rows of neighbours with
 * statistics of their own; they differ in what a row is and which scale and bias belong to an
 * element. */
#include <string.h>
#include "graph/attr.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/reduce/fold.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "graph/graph_internal.h"
#include "cl_norm.h"
#include "cl_team.h"
#include "op_list.h"

/* The dims of a row, and how scale (0) and bias (1) move along them and from row to row. */
typedef struct rows {
    int64_t count, size, mod, row[2];
    int dims;
    int64_t d[FAC_DIMS], by[2][FAC_DIMS];
} rows;

static bool takes(const fac_node *n) {
    return FAC_IS(n, layer_norm) || FAC_IS(n, rms_norm) || FAC_IS(n, group_norm) ||
           FAC_IS(n, instance_norm);
}

static void put(rows *r, int64_t d, int64_t scale, int64_t bias) {
    if (d == 1) return;
    const int last = r->dims - 1;
    if (last >= 0 && r->by[0][last] == scale * d && r->by[1][last] == bias * d) {
        r->d[last] *= d;
        r->by[0][last] = scale;
        r->by[1][last] = bias;
        return;
    }
    r->d[r->dims] = d;
    r->by[0][r->dims] = scale;
    r->by[1][r->dims++] = bias;
}

/* How a parameter that broadcasts to the last dims of x moves along dim k of x. */
static int64_t step_along(const fac_operand *parameter, const fac_dims *x, int k) {
    const fac_dims *d = &parameter->type.dims;
    const int at = k - (x->n - d->n);
    return parameter->type.dtype == FAC_NONE || at < 0 || d->d[at] == 1
               ? 0
               : fac_layout_plain(d).stride[at];
}

static void rows_of(const fac_problem *p, rows *r) {
    const fac_dims *x = &p->in[0].type.dims;
    const fac_operand none = { 0 };
    const fac_operand *scale = p->nin > 1 ? &p->in[1] : &none;
    const fac_operand *bias = p->nin > 2 ? &p->in[2] : &none;
    *r = (rows){ .count = 1, .size = 1, .mod = 1 };
    if (FAC_IS(p->node, layer_norm) || FAC_IS(p->node, rms_norm)) {
        int64_t axis = 0;
        fac_attr_get_int(p->node, "axis", &axis);
        const int first = fac_axis(axis, x->n ? x->n : 1);
        for (int k = 0; k < x->n; k++) *(k < first ? &r->count : &r->size) *= x->d[k];
        for (int k = first; k < x->n; k++)
            put(r, x->d[k], step_along(scale, x, k), step_along(bias, x, k));
    } else {
        int64_t groups = x->d[1], plane = 1;
        fac_attr_get_int(p->node, "groups", &groups);
        for (int k = 2; k < x->n; k++) plane *= x->d[k];
        const int64_t channels = groups ? x->d[1] / groups : 0;
        r->count = x->d[0] * groups;
        r->size = channels * plane;
        r->mod = groups;
        for (int i = 0; i < 2; i++) { /* one for each channel, or one for each group */
            const fac_operand *q = i ? bias : scale;
            r->row[i] = q->type.dims.d[0] == x->d[1] ? channels : 1;
            if (q->type.dtype == FAC_NONE) r->row[i] = 0;
        }
        put(r, channels, r->row[0] == channels, r->row[1] == channels);
        put(r, plane, 0, 0);
    }
    if (!r->dims) {
        r->d[0] = 1;
        r->by[0][0] = r->by[1][0] = 0;
        r->dims = 1;
    }
}

/* No body, or one that casts the result to another type of floats, which the kernel stores as it
 * is. */
static bool casts_at_most(const fac_problem *p) {
    const fac_graph *body = p->node->body[0];
    if (!body) return true;
    return body->nodes == 1 && body->ninputs == 1 && FAC_IS(body->first, cast) &&
           fac_dtype_get(p->out[0].type.dtype)->kind == 'f';
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (!takes(p->node) || !casts_at_most(p) || !fac_cl_settle_operands_plain(o, p)) return false;
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static void option(fac_text *to, const char *name, const fac_operand *x) {
    if (x && x->type.dtype != FAC_NONE)
        fac_text_print(to, " -D%s=%s", name, fac_cl_tag(x->type.dtype));
}

/* The operand for the kernel, or the first input in place of one that is not there. */
static void add_in(fac_cl_call *c, const fac_problem *p, int i) {
    fac_cl_call_in(c, p, i < p->nin && p->in[i].type.dtype != FAC_NONE ? i : 0);
}
static void add_out(fac_cl_call *c, const fac_problem *p, int k) {
    fac_cl_call_out(c, p, k < p->nout && p->out[k].type.dtype != FAC_NONE ? k : 0);
}

/* Vectors of a GPU: of all that is read and written along a row. */
static int near_of(const fac_opencl *o, const fac_problem *p, const rows *r) {
    const fac_operand *x[] = { &p->in[0], &p->out[0], &p->in[0], &p->in[0] };
    int near;
    for (int i = 0; i < 2; i++) {
        if (r->by[i][r->dims - 1] > 1) return 1;
        if (p->nin > 1 + i && r->by[i][r->dims - 1] == 1) x[2 + i] = &p->in[1 + i];
    }
    near = fac_cl_near(o, x, 4);
    return r->d[r->dims - 1] % near ? 1 : near;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_dtype t = p->in[0].type.dtype, computing = t == FAC_F64 ? FAC_F64 : FAC_F32;
    double epsilon = 0;
    fac_text options = { 0 }, source = { 0 };
    fac_cl_call *c = NULL;
    fac_cl_fold f = { 0 };
    rows r;
    rows_of(p, &r);
    if (!r.count || !r.size) return FAC_OK;
    fac_attr_get_real(p->node, "epsilon", &epsilon);
    fac_cl_axes_put(&f.kept, r.count, r.size, r.size);
    fac_cl_axes_put(&f.reduced, r.size, 1, 0);
    f.near = near_of(o, p, &r);
    fac_cl_fold_settle(o, &f, computing);
    f.parts = 1;
    f.units = r.count;
    if (f.width > 1 && r.size == 1) f.width = 1;
    for (int i = 0; i < 2;
         i++) /* parameters neither side by side nor one for all: element by element */
        if (r.by[i][r.dims - 1] > 1) f.width = 1;
    /* of 16 bits a fold of the team costs as much as what lies between */
    const int held =
        fac_cl_fold_held(o, &f, f.width > FAC_CL_FEW / 4 ? 2 * FAC_CL_FEW : FAC_CL_FEW);
    fac_text_print(&options, "-DT=%s -DX=%s -DY=%s -DD=%d%s", fac_cl_computing(t), fac_cl_tag(t),
                   fac_cl_tag(p->out[0].type.dtype), r.dims,
                   FAC_IS(p->node, rms_norm) ? " -DRMS" : "");
    option(&options, "SCALE", p->nin > 1 ? &p->in[1] : NULL);
    option(&options, "BIAS", p->nin > 2 ? &p->in[2] : NULL);
    option(&options, "MEAN", p->nout > 1 ? &p->out[1] : NULL);
    option(&options, "INVERSE", p->nout > 2 ? &p->out[2] : NULL);
    if (r.mod == 1) fac_text_add(&options, " -DALIKE");
    f.columns = false;
    fac_text_print(&options, " -DV=%d%s -DG=%d -DC=%d", f.width, f.near > 1 ? " -DALIGNED" : "",
                   f.team, f.beside);
    fac_cl_fold_held_options(o, &f, held, computing == FAC_F32, &options);
    if (!held && o->limits.gpu) fac_text_add(&options, " -DSHIFTED");
    fac_cl_option_wide(p, &options);
    fac_text_add(&source, fac_kernel_team);
    fac_text_add(&source, fac_kernel_norm);
    options.failed |= source.failed;
    fac_status status = fac_cl_call_new(o, plan, source.s, &options, "norm", &c, err);
    fac_text_free(&options);
    fac_text_free(&source);
    FAC_TRY(status);
    fac_cl_call_in(c, p, 0);
    fac_cl_call_out(c, p, 0);
    add_in(c, p, 1);
    add_in(c, p, 2);
    add_out(c, p, 1);
    add_out(c, p, 2);
    fac_cl_call_number(c, r.count);
    fac_cl_call_number(c, r.size);
    fac_cl_call_real(c, epsilon, computing);
    fac_cl_call_number(c, r.mod);
    for (int i = 0; i < 2; i++) fac_cl_call_number(c, r.row[i]);
    for (int k = 0; k < r.dims; k++) fac_cl_call_number(c, r.d[k]);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < r.dims; k++) fac_cl_call_number(c, r.by[i][k]);
    fac_cl_fold_items(&f, c);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_norm = { .name = "norm",
                                 .rank = 230,
                                 .offer = offer,
                                 .make = make,
                                 .done = fac_cl_plan_done,
                                 .run = fac_cl_plan_run };
