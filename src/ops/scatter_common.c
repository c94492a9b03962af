/* See scatter.h. */
#include "ops/scatter.h"
#include <math.h>
#include <string.h>
#include "ops/map_grad.h"
#include "ops/onnx_put.h"

const char *const fac_scatter_names[] = { "none", "add", "mul", "min", "max", NULL };

/* reduction came with opset 16, min and max with 18. */
bool fac_scatter_save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_attr *a = n->op->attrs;
    const bool elements = !strcmp(a->name, "axis");
    const int reduction = *(const int *)((const char *)n->attrs + a[elements].at);
    if (reduction != FAC_SCATTER_NONE &&
        w->opset < (reduction == FAC_SCATTER_ADD || reduction == FAC_SCATTER_MUL ? 16 : 18))
        return false;
    const char *in[] = { fac_onnx_name(w, n->in[0]), fac_onnx_indices(w, n->in[1]),
                         fac_onnx_name(w, n->in[2]) };
    if (!elements && n->in[1]->type.dtype == FAC_I32)
        in[1] = fac_onnx_cast(w, in[1], FAC_I64, NULL); /* ScatterND: i64 only */
    fac_onnx_put(w, n->op->onnx->type, 3, in, fac_onnx_name(w, n->out[0]));
    if (elements) fac_onnx_put_int(w, "axis", *(const int64_t *)((const char *)n->attrs + a->at));
    if (reduction != FAC_SCATTER_NONE)
        fac_onnx_put_text(w, "reduction", fac_scatter_names[reduction]);
    return true;
}

static double met_f(int reduction, double a, double b) {
    switch (reduction) {
    case FAC_SCATTER_ADD:
        return a + b;
    case FAC_SCATTER_MUL:
        return a * b;
    case FAC_SCATTER_MIN:
        return isnan(a) || a < b ? a : b;
    case FAC_SCATTER_MAX:
        return isnan(a) || a > b ? a : b;
    default:
        return b;
    }
}

static int64_t met_i(int reduction, bool is_unsigned, int64_t a, int64_t b) {
    const bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
    switch (reduction) {
    case FAC_SCATTER_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case FAC_SCATTER_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case FAC_SCATTER_MIN:
        return less ? a : b;
    case FAC_SCATTER_MAX:
        return less ? b : a;
    default:
        return b;
    }
}

bool fac_scatter_takes(fac_node *n, int reduction) {
    const fac_dtype dtype = n->in[0]->type.dtype;
    const bool moves = dtype == FAC_TEXT || fac_dtype_is_stored(dtype);
    if (!moves || reduction == FAC_SCATTER_NONE) return true;
    return fac_fail(n, FAC_E_DTYPE, "reduction=%s is not defined on %s",
                    fac_scatter_names[reduction], fac_dtype_get(dtype)->name);
}

void fac_scatter_put(int reduction, const fac_array *updates, int64_t from, fac_array *y,
                     int64_t at) {
    if (y->t)
        y->t[at] = updates->t[from];
    else if (y->f)
        y->f[at] = met_f(reduction, y->f[at], updates->f[from]);
    else
        y->i[at] = met_i(reduction, y->type.dtype == FAC_U64, y->i[at], updates->i[from]);
}

void fac_scatter_start(const fac_array *x, fac_array *y) {
    const size_t bytes = (size_t)fac_dims_count(&x->type.dims) * 8;
    if (!bytes) return;
    if (y->t)
        memcpy(y->t, x->t, bytes / 8 * sizeof *y->t);
    else if (y->f)
        memcpy(y->f, x->f, bytes);
    else
        memcpy(y->i, x->i, bytes);
}

int fac_scatter_load(const fac_onnx_node *n, fac_graph *g) {
    const char *name = fac_onnx_text(n, "reduction", "none");
    for (int k = 0; fac_scatter_names[k]; k++)
        if (!strcmp(fac_scatter_names[k], name)) return k;
    fac_fail_graph(g, FAC_E_FORMAT, "%s: reduction is \"%s\", expected none, add, mul, min or max",
                   n->type, name);
    return 0;
}

typedef struct gradients {
    const fac_node *n;
    fac_scatter_pick *pick;
    fac_scatter_again *put;
    fac_value *dy, **dx;
} gradients;

static fac_value *zeros(fac_value *like) {
    return fac_full(fac_shape_of(like), like->type.dtype, 0);
}
static fac_value *is(fac_value *v, double number) {
    return fac_equal(v, fac_grad_number(v, number));
}

/* The last one stays.  Which one that was is found by sending the numbers of the updates the same
 * way. */
static void replaced(const gradients *a) {
    fac_value *x = a->n->in[0], *u = a->n->in[2];
    fac_graph *g = a->n->graph;
    if (fac_needs(a->n, 0)) a->dx[0] = a->put(a->n, a->dy, zeros(u), FAC_SCATTER_NONE);
    if (!fac_needs(a->n, 2)) return;
    fac_value *list =
        fac_arange(fac_ints(g, fac_shape(0)), fac_size_of(u), fac_ints(g, fac_shape(1)));
    fac_value *order = fac_reshape_like(list, u);
    fac_value *last =
        a->pick(a->n, a->put(a->n, fac_full(fac_shape_of(x), FAC_I64, 0), order, FAC_SCATTER_NONE));
    a->dx[2] = fac_grad_where(fac_equal(last, order), a->pick(a->n, a->dy));
}

/* The product of all other factors: that of the factors that are not zero, over the own one, unless
 * another one is zero. */
static void multiplied(const gradients *a) {
    fac_value *x = a->n->in[0], *u = a->n->in[2], *one = fac_grad_number(x, 1);
    fac_value *x_zero = fac_cast(is(x, 0), x->type.dtype),
              *u_zero = fac_cast(is(u, 0), u->type.dtype);
    fac_value *x_safe = fac_where(is(x, 0), one, x), *u_safe = fac_where(is(u, 0), one, u);
    fac_value *zeros_there = a->put(a->n, x_zero, u_zero, FAC_SCATTER_ADD);
    fac_value *along = fac_mul(a->dy, a->put(a->n, x_safe, u_safe, FAC_SCATTER_MUL));
    if (fac_needs(a->n, 0))
        a->dx[0] = fac_grad_where(fac_equal(zeros_there, x_zero), fac_div(along, x_safe));
    if (fac_needs(a->n, 2))
        a->dx[2] = fac_grad_where(fac_equal(a->pick(a->n, zeros_there), u_zero),
                                  fac_div(a->pick(a->n, along), u_safe));
}

/* All that are equal to the smallest (or largest) share alike, as in torch. */
static void extreme(const gradients *a) {
    fac_value *x = a->n->in[0], *u = a->n->in[2], *y = a->n->out[0];
    fac_value *from_x = fac_equal(x, y), *from_u = fac_equal(u, a->pick(a->n, y));
    fac_value *many = a->put(a->n, fac_cast(from_x, x->type.dtype), fac_cast(from_u, u->type.dtype),
                             FAC_SCATTER_ADD);
    fac_value *share = fac_div(a->dy, many);
    if (fac_needs(a->n, 0)) a->dx[0] = fac_grad_where(from_x, share);
    if (fac_needs(a->n, 2)) a->dx[2] = fac_grad_where(from_u, a->pick(a->n, share));
}

void fac_scatter_grad(const fac_node *n, int reduction, fac_scatter_pick *pick,
                      fac_scatter_again *put, fac_value *dy, fac_value *dx[]) {
    const gradients a = { n, pick, put, dy, dx };
    if (reduction == FAC_SCATTER_NONE) {
        replaced(&a);
    } else if (reduction == FAC_SCATTER_MUL) {
        multiplied(&a);
    } else if (reduction == FAC_SCATTER_ADD) {
        if (fac_needs(n, 0)) dx[0] = dy;
        if (fac_needs(n, 2)) dx[2] = pick(n, dy);
    } else {
        extreme(&a);
    }
}
