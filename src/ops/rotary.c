/* Rotary position embeddings (Su et al. 2021, https://arxiv.org/abs/2104.09864): pairs of elements
 * of a head are rotated by an angle that grows with the position. */
#include <limits.h>
#include "graph/onnx_write.h"
#include "ops/fusions.h"
#include "ops/known.h"
#include "ops/shape.h"

#if FAC_INTERFACE
typedef struct fac_rotary_opts {
    int64_t heads;    /* of an x with three dims */
    int64_t width;    /* elements of a head that are rotated, even; 0: all */
    bool interleaved; /* pairs are neighbours, not the same places of two halves */
} fac_rotary_opts;

/* y1 = x1 cos - x2 sin,  y2 = x2 cos + x1 sin  for each pair x1, x2 of a head, whose other elements
 * stay. x B,H,S,D or B,S,HD    cos, sin P,width/2 with positions i64 B,S; or B,S,width/2 and
 * positions NULL.   Floats. */
fac_value *fac_rotary(fac_value *x, fac_value *cos, fac_value *sin, fac_value *positions,
                      const fac_rotary_opts *opts);
#endif

#define AT(field) offsetof(fac_rotary_opts, field)
static const fac_attr table[] = {
    { "heads", FAC_A_INT, AT(heads), 0, 0, 0, INT_MAX, NULL, "of an x with three dims" },
    { "width", FAC_A_INT, AT(width), 0, 0, 0, INT_MAX, NULL,
      "elements of a head that are rotated; 0: all" },
    { "interleaved", FAC_A_FLAG, AT(interleaved), 0, 0, 0, 0, NULL, "pairs are neighbours" },
    { 0 }
};
#undef AT
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "cos", FAC_FLOATS, 0 },
                               { "sin", FAC_FLOATS, 0 },
                               { "positions", FAC_INTS, FAC_OPTIONAL },
                               { 0 } };

/* Elements of a head, a number or a symbol. */
static int64_t head_size(const fac_node *n) {
    const fac_rotary_opts *o = n->attrs;
    const fac_dims *d = &n->in[0]->type.dims;
    return d->n == 4 ? d->d[3] : fac_size_quotient(n->graph, d->d[2], o->heads);
}

static int64_t width_of(const fac_node *n) {
    const fac_rotary_opts *o = n->attrs;
    return o->width ? o->width : head_size(n);
}

static bool infer(fac_node *n) {
    const fac_rotary_opts *o = n->attrs;
    const fac_dims *d = &n->in[0]->type.dims, *c = &n->in[1]->type.dims;
    if (d->n != 3 && d->n != 4) return fac_fail(n, FAC_E_SHAPE, "x has %d dims, not 3 or 4", d->n);
    if (d->n == 3 && !o->heads) return fac_fail(n, FAC_E_ARGUMENT, "heads of an x with three dims");
    if (d->n == 3 && d->d[2] >= 0 && d->d[2] % o->heads)
        return fac_fail(n, FAC_E_SHAPE, "%lld elements are not %lld heads", (long long)d->d[2],
                        (long long)o->heads);
    const int64_t size = head_size(n), width = width_of(n);
    if (width >= 0 && (width % 2 || (size >= 0 && width > size)))
        return fac_fail(n, FAC_E_SHAPE, "a width of %lld, heads have %lld", (long long)width,
                        (long long)size);
    bool alike = c->n == (n->in[3] ? 2 : 3) && c->n == n->in[2]->type.dims.n;
    for (int k = 0; alike && k < c->n; k++) alike = !fac_differ(c->d[k], n->in[2]->type.dims.d[k]);
    if (!alike)
        return fac_fail(n, FAC_E_SHAPE,
                        "cos and sin must be P,W with positions, else B,S,W, with W "
                        "half of what is rotated of a head");
    if (width >= 0 && c->d[c->n - 1] >= 0 && c->d[c->n - 1] != width / 2)
        return fac_fail(n, FAC_E_SHAPE, "cos has %lld columns for a width of %lld",
                        (long long)c->d[c->n - 1], (long long)width);
    const fac_dims *rows = n->in[3] ? &n->in[3]->type.dims : c; /* begin with B,S */
    const int64_t batch = d->d[0], length = d->d[d->n == 3 ? 1 : 2];
    if ((n->in[3] && rows->n != 2) || fac_differ(rows->d[0], batch) ||
        fac_differ(rows->d[1], length))
        return fac_fail(n, FAC_E_SHAPE, "%s, of the batch and the length of x",
                        n->in[3] ? "positions must be B,S" : "cos and sin must be B,S,width/2");
    n->out[0]->type = n->in[0]->type;
    return true;
}

/* width: a symbol where all of a head of open size is rotated. */
static fac_value *part(fac_value *x, int64_t width, bool interleaved, int which) {
    fac_value *halves[2];
    if (interleaved) return fac_slice(x, 3, which, width < 0 ? INT64_MAX : width, 2);
    if (width < 0) {
        fac_split(x, 3, 2, halves);
        return halves[which];
    }
    return fac_slice(x, 3, which * (width / 2), (which + 1) * (width / 2), 1);
}

/* x B,H,S,D; cos and sin B,1,S,width/2 */
static fac_value *rotated(fac_value *x, fac_value *cos, fac_value *sin, int64_t width,
                          bool interleaved) {
    fac_value *a = part(x, width, interleaved, 0), *b = part(x, width, interleaved, 1);
    fac_value *first = fac_sub(fac_mul(a, cos), fac_mul(b, sin)),
              *second = fac_add(fac_mul(b, cos), fac_mul(a, sin)), *y;
    if (interleaved) {
        fac_value *const pair[] = { fac_unsqueeze(first, fac_shape(4)),
                                    fac_unsqueeze(second, fac_shape(4)) };
        y = fac_concat(pair, 2, 4);
        y = width < 0 ? fac_reshape_like(y, x) : fac_reshape(y, fac_shape(0, 0, 0, width));
    } else
        y = fac_concat((fac_value *[]){ first, second }, 2, 3);
    if (x->type.dims.d[3] == width) return y;
    return fac_concat((fac_value *[]){ y, fac_slice(x, 3, width, INT64_MAX, 1) }, 2, 3);
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_rotary_opts *o = n->attrs;
    const bool flat = n->in[0]->type.dims.n == 3;
    const fac_dims swap = fac_shape(0, 2, 1, 3);
    const fac_dtype t = n->in[0]->type.dtype;
    fac_value *x = n->in[0], *cos = fac_cast(n->in[1], t), *sin = fac_cast(n->in[2], t);
    if (n->in[3]) {
        cos = fac_gather(cos, n->in[3], 0);
        sin = fac_gather(sin, n->in[3], 0);
    }
    cos = fac_unsqueeze(cos, fac_shape(1));
    sin = fac_unsqueeze(sin, fac_shape(1));
    if (flat) x = fac_transpose(fac_reshape(x, fac_shape(0, 0, o->heads, -1)), swap);
    out[0] = rotated(x, cos, sin, width_of(n), o->interleaved);
    if (flat) out[0] = fac_reshape(fac_transpose(out[0], swap), fac_shape(0, 0, -1));
}

/* ---- ONNX ---- */

static fac_rotary_opts options(const fac_onnx_node *n) {
    return (fac_rotary_opts){ fac_onnx_int(n, "num_heads", 0),
                              fac_onnx_int(n, "rotary_embedding_dim", 0),
                              fac_onnx_int(n, "interleaved", 0) != 0 };
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    const fac_rotary_opts o = options(n);
    y[0] = fac_rotary(x[0], x[1], x[2], fac_onnx_in(n, x, 3), &o);
}

/* ONNX Runtime's: positions come second, and one number counts as the first position of all rows.
 */
static void load_ms(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_rotary_opts o = options(n);
    fac_value *positions = fac_cast(x[1], FAC_I64);
    const fac_dims *d = &x[0]->type.dims, *columns = &x[2]->type.dims;
    const int64_t size = o.width ? 0 : 2 * columns->d[columns->n - 1];
    if (d->n == 3 && !o.heads && size > 0 && d->d[2] > 0) o.heads = d->d[2] / size;
    if (fac_onnx_int(n, "is_packed_batching", 0) || fac_onnx_real(n, "scale", 1) != 1) {
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED,
                              "RotaryEmbedding: packed batches and scales are not supported");
        return;
    }
    if (x[1]->type.dims.n < 2) {
        fac_value *shape = fac_shape_of(x[0]), *one = fac_number(g, FAC_I64, 1);
        fac_value *batch = fac_slice(shape, 0, 0, 1, 1),
                  *length = fac_slice(shape, 0, d->n - 2, d->n - 1, 1);
        fac_value *steps =
            fac_arange(fac_number(g, FAC_I64, 0), fac_squeeze(length, fac_shape(0)), one);
        positions = fac_expand_to(fac_add(steps, fac_reshape(positions, fac_shape(1))),
                                  fac_concat((fac_value *[]){ batch, length }, 2, 0));
    }
    y[0] = fac_rotary(x[0], x[2], x[3], positions, &o);
}

static const fac_onnx_attr names[] = {
    { "interleaved", NULL },        { "num_heads", NULL }, { "rotary_embedding_dim", NULL },
    { "is_packed_batching", NULL }, { "scale", NULL },     { 0 }
};
static const fac_onnx onnx[] = { { "", "RotaryEmbedding", 23, 0, names, load, 0 },
                                 { "com.microsoft", "RotaryEmbedding", 1, 0, names, load_ms, 4 },
                                 { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const fac_rotary_opts *o = n->attrs;
    if (w->opset < 23) return false;
    const char *ins[] = { fac_onnx_name(w, n->in[0]), fac_onnx_name(w, n->in[1]),
                          fac_onnx_name(w, n->in[2]), fac_onnx_name(w, n->in[3]) };
    fac_onnx_put(w, "RotaryEmbedding", 4, ins, fac_onnx_name(w, n->out[0]));
    if (o->interleaved) fac_onnx_put_int(w, "interleaved", 1);
    if (o->heads) fac_onnx_put_int(w, "num_heads", o->heads);
    if (o->width) fac_onnx_put_int(w, "rotary_embedding_dim", o->width);
    return true;
}

static const fac_case cases[] = {
    { "rotary(f32[2,3,5,8], f32[9,4], f32[9,4], i64[2,5])", -1, 4, 1e-5 },
    { "rotary(f32[2,5,12], f32[2,5,2], f32[2,5,2], -) heads=3 interleaved", -1, 1, 1e-5 },
    { "rotary(f32[1,2,3,10], f32[7,3], f32[7,3], i64[1,3]) width=6", -1, 4, 1e-5 },
    { "rotary(f16[1,2,3,4], f16[7,2], f16[7,2], i64[1,3]) interleaved", -1, 4, 1e-2 },
    { 0 }
};

const fac_op fac_op_rotary = {
    .name = "rotary",
    .doc = "pairs of elements rotated by their position",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_rotary_opts),
    .infer = infer,
    .expand = expand,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_rotary(fac_value *x, fac_value *cos, fac_value *sin, fac_value *positions,
                      const fac_rotary_opts *opts) {
    return fac_emit(&fac_op_rotary, opts, 4, (fac_value *[]){ x, cos, sin, positions });
}
