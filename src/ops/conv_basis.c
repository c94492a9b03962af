/* What conv2d_basis and conv2d_codes share: see conv_basis.h. */
#include <limits.h>
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/conv_basis.h"
#include "ops/pack_basis.h"

#define AT(field) offsetof(fac_conv_basis_attrs, field)
/* conv2d_basis has all but the last two. */
const fac_attr fac_conv_basis_table[] = {
    { "stride", FAC_A_INT, AT(conv.stride), 2, 1, 1, INT_MAX, NULL, "height, width" },
    { "pad", FAC_A_INT, AT(conv.pad), 4, 0, 0, INT_MAX, NULL, "top, left, bottom, right" },
    { "dilation", FAC_A_INT, AT(conv.dilation), 2, 1, 1, INT_MAX, NULL,
      "distance of kernel elements" },
    { "groups", FAC_A_INT, AT(conv.groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(conv.auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { "dims", FAC_A_DIMS, AT(dims), 0, 0, 0, 0, NULL, "of the weight" },
    { "relu", FAC_A_FLAG, AT(relu), 0, 0, 0, 0, NULL, "x below 0 is 0" },
    { "y_relu", FAC_A_FLAG, AT(y_relu), 0, 0, 0, 0, NULL, "y below 0 is 0" },
    { "q_relu", FAC_A_FLAG, AT(q_relu), 0, 0, 0, 0, NULL, "codes of y below 0 are those of 0" },
    { 0 }
};
#undef AT

static bool is_codes(const fac_type *x) { return x->dtype == FAC_U32; }

fac_dims fac_conv_basis_image(const fac_type *x, const fac_conv_basis_attrs *a) {
    const fac_dims *d = &x->dims;
    if (!is_codes(x)) return *d;
    return fac_shape(d->d[1], a->dims.d[1] * a->conv.groups, d->d[2], d->d[3]);
}

bool fac_conv_basis_geometry(const fac_node *n, fac_conv_geom *g) {
    const fac_conv_basis_attrs *a = n->attrs;
    const fac_dims x = fac_conv_basis_image(&n->in[0]->type, a);
    return fac_conv_geometry_of(2, &a->conv, &x, &a->dims, g);
}

/* ---- codes ---- */

void fac_code_levels(const fac_array *basis, bool single, fac_basis *to) {
    const double one = 1;
    const int bits = basis->f ? (int)basis->type.dims.d[0] : 1;
    fac_basis_of(basis->f ? basis->f : &one, 1, bits, basis->f != NULL, single, to);
}

/* Of signs 0 belongs to the upper level. */
unsigned fac_code_of(const fac_basis *b, double x) {
    if (!b->positive) return !(x < 0);
    return b->code[fac_basis_find(b, x)];
}

double fac_code_level(const fac_basis *b, unsigned code) {
    for (int k = 0; k < b->levels; k++)
        if (b->code[k] == code) return b->level[k];
    return 0;
}

/* ---- types ---- */

/* The node as a conv2d of numbers. */
typedef struct as_conv {
    fac_node node;
    fac_value x, w, *ins[3];
} as_conv;
static void as_conv_of(const fac_node *n, as_conv *to) {
    const fac_conv_basis_attrs *a = n->attrs;
    const fac_dtype dtype = n->in[FAC_CB_W_BASIS]->type.dtype;
    to->node = *n;
    to->x = *n->in[FAC_CB_X];
    to->w = *n->in[FAC_CB_BITS];
    to->x.type.dims = fac_conv_basis_image(&to->x.type, a);
    if (is_codes(&to->x.type)) to->x.type.dtype = dtype;
    to->w.type = (fac_type){ dtype, a->dims };
    to->ins[0] = &to->x;
    to->ins[1] = &to->w;
    to->ins[2] = n->in[FAC_CB_B];
    to->node.op = &fac_op_conv2d;
    to->node.in = to->ins;
    to->node.nin = to->node.nports = 3;
}

static bool codes_fit(fac_node *n) {
    const fac_conv_basis_attrs *a = n->attrs;
    const fac_type *x = &n->in[FAC_CB_X]->type;
    const fac_value *basis = n->in[FAC_CB_X_BASIS];
    const int64_t each = a->dims.d[1], groups = a->conv.groups;
    if (x->dims.n != 5) return fac_fail(n, FAC_E_SHAPE, "x of codes must be A,N,H,W,words");
    const int64_t planes = x->dims.d[0], words = x->dims.d[4];
    if (groups > 1 && each % FAC_WORD_BITS)
        return fac_fail(n, FAC_E_SHAPE, "a group of codes has whole words of channels");
    if (words >= 0 && words != fac_words_of(each * groups))
        return fac_fail(n, FAC_E_SHAPE, "x has %lld words for %lld channels", (long long)words,
                        (long long)(each * groups));
    const int64_t want = basis ? basis->type.dims.d[0] : 1;
    if (planes >= 0 && want >= 0 && planes != want)
        return fac_fail(n, FAC_E_SHAPE, "x has %lld planes, x_basis %lld numbers",
                        (long long)planes, (long long)want);
    return true;
}

static bool x_fits(fac_node *n) {
    const fac_value *x = n->in[FAC_CB_X], *basis = n->in[FAC_CB_X_BASIS];
    if (basis && (basis->type.dims.n != 1 || basis->type.dims.d[0] > FAC_BASIS_BITS))
        return fac_fail(n, FAC_E_SHAPE, "x_basis must have one dim of at most %d numbers",
                        FAC_BASIS_BITS);
    const fac_dtype dtype = n->in[FAC_CB_W_BASIS]->type.dtype;
    if (basis && basis->type.dtype != dtype)
        return fac_fail(n, FAC_E_DTYPE, "x_basis and w_basis differ in dtype");
    if (is_codes(&x->type)) return codes_fit(n);
    if (x->type.dtype != dtype)
        return fac_fail(n, FAC_E_DTYPE, "x must be floats like w_basis, or codes u32");
    return !basis || fac_basis_fits(n, x, basis, 0);
}

bool fac_conv_basis_infer(fac_node *n) {
    as_conv conv;
    const fac_value *s = n->in[FAC_CB_SCALE];
    const fac_dims *d = &((const fac_conv_basis_attrs *)n->attrs)->dims;
    const fac_type *bits = &n->in[FAC_CB_BITS]->type, *wb = &n->in[FAC_CB_W_BASIS]->type;
    const int64_t row = fac_pack_row(d);
    if (d->n != 4 || row < 0 || d->d[0] < 0)
        return fac_fail(n, FAC_E_SHAPE, "dims must be four known sizes, those of the weight");
    if (bits->dtype != FAC_U8 || bits->dims.n != 3 || wb->dims.n != 2)
        return fac_fail(n, FAC_E_SHAPE, "expected bits u8 M,K,B and w_basis M,K");
    const fac_dims want = fac_shape(wb->dims.d[0], d->d[0], (row + 7) / 8);
    if (!fac_dims_equal(&want, &bits->dims) || wb->dims.d[1] != d->d[0] || wb->dims.d[0] < 1 ||
        wb->dims.d[0] > FAC_BASIS_BITS)
        return fac_fail(n, FAC_E_SHAPE, "bits and w_basis do not fit the weight");
    if (!x_fits(n)) return false;
    as_conv_of(n, &conv);
    if (!fac_conv_infer(&conv.node)) return false;
    if (s && (s->type.dims.n != 1 || s->type.dims.d[0] != d->d[0]))
        return fac_fail(n, FAC_E_SHAPE, "scale must have one number for each output channel");
    return true;
}

void fac_conv_basis_cost(const fac_node *n, fac_cost *to) {
    as_conv conv;
    as_conv_of(n, &conv);
    fac_conv_macs(&conv.node, n->nout > 1 ? n->out[1] : n->out[0], to);
}

/* ---- the formula ---- */

static void spread_codes(const fac_array *x, const fac_dims *image, const fac_basis *b,
                         double *to) {
    const fac_dims *d = &x->type.dims;
    const int64_t plane = d->d[2] * d->d[3], each = image->d[1] * plane;
    const int64_t n = fac_dims_count(image);
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i % each / plane, row = i % plane / d->d[3], column = i % d->d[3];
        unsigned code = 0;
        for (int j = 0; j < b->bits; j++) {
            const int64_t at = fac_code_at(d, j, i / each, row, column, c / FAC_WORD_BITS);
            code |= (unsigned)(x->i[at] >> c % FAC_WORD_BITS & 1) << j;
        }
        to[i] = fac_code_level(b, code);
    }
}

static void spread(const fac_ref *r, const fac_dims *image, double *to) {
    const fac_conv_basis_attrs *a = r->attrs;
    const fac_array *x = &r->in[FAC_CB_X];
    fac_basis b;
    fac_code_levels(&r->in[FAC_CB_X_BASIS], r->in[FAC_CB_W_BASIS].type.dtype != FAC_F64, &b);
    if (is_codes(&x->type)) {
        spread_codes(x, image, &b, to);
        return;
    }
    const int64_t n = fac_dims_count(image);
    for (int64_t i = 0; i < n; i++) {
        double v = x->f[i];
        if (a->relu && v < 0) v = 0;
        to[i] = fac_code_level(&b, fac_code_of(&b, v));
    }
}

static void finish(const fac_ref *r, const fac_array *to) {
    const double *s = r->in[FAC_CB_SCALE].f, *b = r->in[FAC_CB_B].f;
    const fac_dims *d = &to->type.dims;
    const int64_t plane = d->d[2] * d->d[3], planes = d->d[0] * d->d[1];
    for (int64_t p = 0; p < planes; p++)
        for (int64_t i = 0; i < plane; i++) {
            double *y = &to->f[p * plane + i];
            if (s) *y *= s[p % d->d[1]];
            if (b) *y += b[p % d->d[1]];
        }
}

fac_status fac_conv_basis_ref(const fac_ref *r, const fac_array *y, fac_error *err) {
    const fac_conv_basis_attrs *a = r->attrs;
    const fac_dtype dtype = r->in[FAC_CB_W_BASIS].type.dtype;
    const fac_dims image = fac_conv_basis_image(&r->in[FAC_CB_X].type, a);
    const size_t pixels = (size_t)fac_dims_count(&image);
    const size_t weights = (size_t)fac_dims_count(&a->dims);
    double *numbers = fac_alloc(pixels + weights + 1, sizeof *numbers);
    if (!numbers)
        return fac_raise(err, FAC_E_NOMEM, "conv2d_basis: no memory for what is quantized");
    fac_array of[3] = { { .type = { dtype, image }, .f = numbers },
                        { .type = { dtype, a->dims }, .f = numbers + pixels },
                        { .f = NULL } };
    fac_array to = *y;
    spread(r, &image, numbers);
    fac_unpack(&r->in[FAC_CB_BITS], &r->in[FAC_CB_W_BASIS], &of[1]);
    fac_ref conv = { &a->conv, 3, 1, of, &to };
    const fac_status status = fac_conv2d_ref(&conv, err);
    if (!status) finish(r, y);
    fac_release(numbers);
    return status;
}
