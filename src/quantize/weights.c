/* Weights as rows of output channels, and their 8 bits. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "op_list.h"
#include "quantize/quantize.h"
#include "tensor/tensor_internal.h"

/* ---- rows ---- */

static bool is_constant(const fac_value *v) {
    return v && v->tensor && !v->next && v->type.dtype == FAC_F32 && v->leaf != FAC_INPUT &&
           fac_dims_count(&v->type.dims) > 0;
}

/* Its first dim counts the output channels; else the last one does. */
static bool rows_first(const fac_node *n) {
    return !FAC_IS(n, matmul) && !(FAC_IS(n, gemm) && !((const fac_gemm_opts *)n->attrs)->trans_b);
}

bool fac_is_weighted(const fac_node *n) {
    if (n->body[0] || n->nin < 2 || !is_constant(n->in[1]) || n->in[0]->type.dtype != FAC_F32)
        return false;
    if (FAC_IS(n, conv2d)) return n->in[1]->type.dims.n == 4;
    if (FAC_IS(n, gemm)) {
        const fac_gemm_opts *o = n->attrs;
        return o->alpha == 1 && o->beta == 1 && !o->trans_a;
    }
    return (FAC_IS(n, linear) || FAC_IS(n, matmul)) && n->in[1]->type.dims.n == 2;
}

bool fac_is_transposed(const fac_node *n) {
    return FAC_IS(n, linear) && n->in[0]->type.dims.n != 2;
}

fac_status fac_rows_of(const fac_node *n, fac_rows *to, fac_error *err) {
    const fac_dims *d = &n->in[1]->type.dims;
    const int64_t all = fac_dims_count(d);
    *to = (fac_rows){ 0 };
    FAC_TRY(fac_tensor_convert(n->in[1]->tensor, FAC_F32, &to->tensor, err));
    to->at = fac_tensor_data(to->tensor);
    const bool first = rows_first(n);
    to->rows = d->d[first ? 0 : 1];
    to->terms = all / to->rows;
    to->row_step = first ? to->terms : 1;
    to->term_step = first ? 1 : to->rows;
    return FAC_OK;
}

void fac_rows_free(fac_rows *r) {
    fac_tensor_free(r->tensor);
    *r = (fac_rows){ 0 };
}

/* ---- tensors ---- */

void *fac_quantize_tensor(fac_dtype dtype, fac_dims dims, fac_tensor **out, fac_error *err) {
    if (fac_tensor_new(NULL, dtype, dims, out, err)) return NULL;
    return fac_tensor_memory(*out);
}

fac_value *fac_quantize_const(fac_graph *to, fac_tensor *t, const char *name, const char *suffix) {
    fac_value *v = fac_const(to, t);
    char *text = fac_arena_print(&to->arena, "%s_%s", name, suffix);
    if (text) fac_value_name_set(v, text);
    return v;
}

const char *fac_weight_name(const fac_integer_work *l) {
    const char *own = l->node->in[1]->name;
    return own ? own : l->is.name;
}

double fac_decibels(double signal, double error) {
    return error > 0 ? 10 * log10(signal / error) : INFINITY;
}

/* ---- 8 bits ---- */

static double largest(const fac_rows *w, int64_t r) {
    double most = 0;
    for (int64_t k = 0; k < w->terms; k++) { /* with fmax gcc 12 for aarch64 gives up */
        const double x = fabs((double)w->at[r * w->row_step + k * w->term_step]);
        if (x > most) most = x;
    }
    return most;
}

/* One scale for each row, or the same for all. */
static void choose(const fac_integers *how, const fac_rows *w, const double *least, float *scale) {
    const double levels = how->reduce_range ? 64 : 127;
    double most = 0;
    for (int64_t r = 0; r < w->rows; r++) {
        double s = largest(w, r) / levels;
        if (least && least[r] > s) s = least[r];
        if (s < FLT_MIN) s = how->per_tensor ? 0 : 1;
        scale[r] = (float)s;
        if (s > most) most = s;
    }
    for (int64_t r = 0; r < w->rows && how->per_tensor; r++)
        scale[r] = (float)(most > 0 ? most : 1);
}

static fac_status check_finite(const fac_rows *w, const fac_node *n, fac_error *err) {
    for (int64_t r = 0; r < w->rows; r++)
        for (int64_t k = 0; k < w->terms; k++)
            if (!isfinite(w->at[r * w->row_step + k * w->term_step]))
                return fac_raise(err, FAC_E_ARGUMENT,
                                 "weight %s: row %lld has a number that is not finite",
                                 n->in[1]->name ? n->in[1]->name : "without a name", (long long)r);
    return FAC_OK;
}

static double fill(const fac_integers *how, const fac_rows *w, const float *scale, bool transposed,
                   int8_t *q) {
    const float most = how->reduce_range ? 64 : 127;
    double signal = 0, error = 0;
    for (int64_t r = 0; r < w->rows; r++)
        for (int64_t k = 0; k < w->terms; k++) {
            const int64_t at = r * w->row_step + k * w->term_step;
            const float code = nearbyintf(w->at[at] / scale[r]);
            const float inside = fminf(fmaxf(code, -most), most);
            const double off = (double)w->at[at] - (double)inside * (double)scale[r];
            q[transposed ? k * w->rows + r : at] = (int8_t)inside;
            signal += (double)w->at[at] * (double)w->at[at];
            error += off * off;
        }
    return fac_decibels(signal, error);
}

static fac_status build(const fac_integers *how, const fac_rows *w, fac_dims dims, bool transposed,
                        const double *least, fac_bytes_weight *to, fac_error *err) {
    const fac_dims counts = how->per_tensor ? (fac_dims){ 0 } : fac_shape(w->rows);
    fac_tensor *all;
    float *scale = fac_quantize_tensor(FAC_F32, fac_shape(w->rows), &all, err);
    if (!scale) return err->status;
    choose(how, w, least, scale);
    int8_t *q = fac_quantize_tensor(FAC_I8, dims, &to->q, err);
    float *part = q ? fac_quantize_tensor(FAC_F32, counts, &to->scale, err) : NULL;
    if (part && fac_quantize_tensor(FAC_I8, counts, &to->zero, err)) {
        memcpy(part, scale, (size_t)fac_dims_count(&counts) * sizeof *part);
        to->sqnr = fill(how, w, scale, transposed, q);
    }
    fac_tensor_free(all);
    return to->zero ? FAC_OK : err->status;
}

fac_status fac_bytes_weight_new(const fac_integers *how, const fac_node *n, const double *least,
                                bool transposed, fac_bytes_weight *to, fac_error *err) {
    fac_rows w;
    *to = (fac_bytes_weight){ 0 };
    FAC_TRY(fac_rows_of(n, &w, err));
    const fac_dims dims = transposed ? fac_shape(w.terms, w.rows) : n->in[1]->type.dims;
    fac_status status = check_finite(&w, n, err);
    if (!status) status = build(how, &w, dims, transposed, least, to, err);
    fac_rows_free(&w);
    if (status) fac_bytes_weight_free(to);
    return status;
}

void fac_bytes_weight_free(fac_bytes_weight *w) {
    fac_tensor_free(w->q);
    fac_tensor_free(w->scale);
    fac_tensor_free(w->zero);
    *w = (fac_bytes_weight){ 0 };
}
