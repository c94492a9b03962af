#include "ops/host_list.h"
#include "ops/shape.h"
#include "graph/graph_internal.h"

#if FAC_INTERFACE
/* The elements of x in the same order under other dims; a view where possible.  A dim of 0 copies
 * x's dim at that place, one dim may be -1: what is left.  dims may be symbols. */
fac_value *fac_reshape(fac_value *x, fac_dims dims);
fac_value *fac_reshape_to(fac_value *x, fac_value *shape); /* the same, dims from an i64[n] */
fac_value *fac_reshape_exactly(fac_value *x,
                               fac_value *shape); /* the same, but a dim of 0 is a size */
fac_value *fac_reshape_sizes(
    fac_value *x, fac_dims dims); /* exactly these sizes, of which any may be 0; symbols, no -1 */
fac_value *fac_reshape_like(fac_value *x,
                            fac_value *like); /* the dims of like, of which no data are needed */
#endif

typedef struct attrs {
    bool allowzero;
} attrs;
static const fac_attr table[] = { { "allowzero", FAC_A_FLAG, offsetof(attrs, allowzero), 0, 0, 0, 0,
                                    NULL, "a dim of 0 is a size and does not copy x's" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, 0 }, { "shape", FAC_INTS, FAC_HOST }, { 0 } };

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* What -1 stands for: the product of the dims in `a` over that of the dims in `b`; equal symbols
 * cancel first. */
static bool quotient(fac_node *n, fac_dims a, fac_dims b, int64_t *size) {
    int64_t over = 1, under = 1, rest = 1;
    bool open = false;
    for (int j = 0; j < b.n; j++)
        for (int i = 0; i < a.n && b.d[j] < 0; i++)
            if (a.d[i] == b.d[j]) a.d[i] = b.d[j] = 1;
    for (int j = 0; j < b.n; j++) {
        if (b.d[j] < 0)
            open = true;
        else
            under = fac_size_product(n->graph, under, b.d[j]);
    }
    for (int i = 0; i < a.n; i++)
        if (a.d[i] >= 0) over = fac_size_product(n->graph, over, a.d[i]);
    if (under == 0) return fac_fail(n, FAC_E_SHAPE, "-1 beside a dim of 0 could be any size");
    int64_t common = gcd(over, under);
    if (common > 1) {
        over /= common;
        under /= common;
    }
    for (int i = 0; i < a.n; i++)
        if (a.d[i] < 0) rest = fac_size_product(n->graph, rest, a.d[i]);
    if (rest == 1 && !open && under != 1)
        return fac_fail(n, FAC_E_SHAPE,
                        "the elements do not divide evenly among the dims beside -1");
    *size = open ? fac_symbol(n->graph, NULL)
                 : fac_size_quotient(n->graph, fac_size_product(n->graph, rest, over), under);
    return true;
}

static int64_t count(fac_graph *g, const fac_dims *d) {
    int64_t all = 1;
    for (int k = 0; k < d->n; k++) all = fac_size_product(g, all, d->d[k]);
    return all;
}

/* A size that turns out to be 0 means "copy", which gives other dims when another one may be 0,
 * too: [N,-1] of x[6,N] is [N,6], but [6,0] where N is 0.  So it does where nothing says that x has
 * as many elements: [N,6] of x[2,6] is [2,6] where N is 0. */
static bool may_copy(fac_graph *g, const fac_dims *x, const fac_dims *y, const fac_contents *c) {
    int maybe = 0;
    bool other = false;
    for (int k = 0; k < c->n; k++) {
        const bool symbol = c->symbolic >> k & 1;
        maybe += symbol || c->v[k] <= 0;
        other |= symbol && k < x->n && c->v[k] != x->d[k];
    }
    return other && (maybe > 1 || count(g, x) != count(g, y));
}

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    const bool allowzero = ((const attrs *)n->attrs)->allowzero;
    fac_dims y = { 0 }, left = *x, others = { 0 };
    fac_contents c;
    int open = -1;
    if (fac_list_is_open(n->in[1])) return fac_rankless(n->out[0], n->in[0]->type.dtype), true;
    y.n = fac_host_length(n->in[1]);
    if (y.n < 0 || y.n > FAC_DIMS)
        return fac_fail(n, FAC_E_SHAPE, "the shape must be a list of at most %d dims", FAC_DIMS);
    if (!fac_known(n->in[1], &c)) {
        for (int k = 0; k < y.n; k++) y.d[k] = fac_symbol(n->graph, NULL);
    } else {
        for (int k = 0; k < y.n; k++) {
            y.d[k] = c.v[k];
            if (c.symbolic >> k & 1) {
                others.d[others.n++] = y.d[k];
            } else if (c.v[k] == 0 && !allowzero) {
                if (k >= x->n)
                    return fac_fail(n, FAC_E_SHAPE,
                                    "dim %d is 0, which copies a dim that x does not have", k);
                y.d[k] = x->d[k];
                left.d[k] = 1; /* cancels, also when it is 0 */
            } else if (c.v[k] == -1) {
                if (open >= 0) return fac_fail(n, FAC_E_ARGUMENT, "more than one dim is -1");
                open = k;
            } else if (c.v[k] < 0) {
                return fac_fail(n, FAC_E_ARGUMENT, "dim %d is %lld", k, (long long)c.v[k]);
            } else {
                others.d[others.n++] = c.v[k];
            }
        }
        if (open >= 0 && !quotient(n, left, others, &y.d[open])) return false;
        if (!allowzero && may_copy(n->graph, x, &y, &c)) n->out[0]->guess = FAC_ASSUMED;
    }
    int64_t a = fac_dims_count(x), b = fac_dims_count(&y);
    if (a >= 0 && b >= 0 && a != b)
        return fac_fail(n, FAC_E_SHAPE, "%lld elements do not fit in a shape of %lld", (long long)a,
                        (long long)b);
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, y };
    return fac_knows_same(n);
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    dx[0] = fac_reshape_like(dy[0], n->in[0]);
}

static void load_old(const fac_onnx_node *n, fac_graph *g, fac_value *const in_[],
                     fac_value *out[]) {
    (void)g;
    out[0] = fac_reshape(in_[0], fac_onnx_ints(n, "shape"));
}
static const fac_onnx_attr names[] = { { "shape", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "Reshape", 5, 0, NULL, NULL, 0 },
                                 { "", "Reshape", 1, 4, names, load_old, 1 },
                                 { 0 } };
/* Without a 0 among the dims it does not matter what one means, which opsets before 14 cannot
 * choose. */
static bool may_be_empty(const fac_value *shape) {
    fac_contents c;
    bool any = !fac_known_numbers(shape, &c);
    for (int k = 0; k < c.n && !any; k++) any = c.v[k] == 0;
    return any;
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const bool allowzero = ((const attrs *)n->attrs)->allowzero && may_be_empty(n->in[1]);
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_list_of(w, n->in[1]) };
    if (allowzero && w->opset < 14) return false;
    fac_onnx_put(w, "Reshape", 2, ins, fac_onnx_name(w, n->out[0]));
    if (allowzero) fac_onnx_put_int(w, "allowzero", 1);
    return true;
}

static const fac_case cases[] = { { "reshape(f32[2,3,4], i64{4,6})", -4, 4, 0 },
                                  { "reshape(f32[2,3,4], i64{0,-1})", -4, 4, 0 },
                                  { "reshape(i64[6], i64{1,2,1,3})", -9, 9, 0 },
                                  { "reshape(f16[1], i64{})", -4, 4, 0 },
                                  { "reshape(f32[], i64{1,1})", -4, 4, 0 },
                                  { "reshape(f32[0,3], i64{3,0}) allowzero", 0, 0, 0 },
                                  { "reshape(bool[4,2], i64{-1})", 0, 1, 0 },
                                  { 0 } };

const fac_op fac_op_reshape = {
    .name = "reshape",
    .doc = "the same elements under other dims",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_KNOWS,
    .infer = infer,
    .move = fac_move_flat,
    .view = fac_view_flat,
    .onnx = onnx,
    .save = save,
    .grad = grad,
    .cases = cases,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_reshape_to(fac_value *x, fac_value *shape) {
    return fac_emit(&fac_op_reshape, NULL, 2, (fac_value *[]){ x, shape });
}
fac_value *fac_reshape_exactly(fac_value *x, fac_value *shape) {
    return fac_emit(&fac_op_reshape, &(attrs){ .allowzero = true }, 2, (fac_value *[]){ x, shape });
}
fac_value *fac_reshape_sizes(fac_value *x, fac_dims dims) {
    bool empty = false;
    for (int k = 0; k < dims.n; k++) empty |= dims.d[k] <= 0;
    fac_value *shape = fac_ints(fac_value_graph(x), dims);
    return empty ? fac_reshape_exactly(x, shape) : fac_reshape_to(x, shape);
}
fac_value *fac_reshape_like(fac_value *x, fac_value *like) {
    return fac_reshape_exactly(x, fac_shape_of(like));
}
fac_value *fac_reshape(fac_value *x, fac_dims dims) {
    return fac_reshape_to(x, fac_ints(fac_value_graph(x), dims));
}
