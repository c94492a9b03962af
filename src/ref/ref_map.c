/* See ref_map.h.  The result is walked in runs; every input's run is converted to the compute type,
 * broadcast where its stride is 0, put through the op's own loop, and converted to the result's
 * type. */
#include "ref/ref_map.h"
#include <string.h>
#include "base/error.h"
#include "tensor/tensor_internal.h"

enum { RUN = 512, INPUTS = 4 };

size_t fac_ref_map_scratch(int inputs) { return (size_t)(inputs + 1) * RUN * 8; }

/* Strides of an operand seen with the result's rank; 0 along a broadcast dim. */
static void strides_of(const fac_dims *d, const fac_dims *out, int64_t *stride) {
    int64_t step = 1;
    for (int k = out->n - 1; k >= 0; k--) {
        int j = k - (out->n - d->n);
        stride[k] = j >= 0 && d->d[j] != 1 ? step : 0;
        if (j >= 0) step *= d->d[j];
    }
}

/* Merges dims that all operands walk alike, so that runs are long: [N,C,H,W] + [C,1,1] becomes
 * [N,C,HW]. */
static int collapse(int n, int64_t *d, int inputs, int64_t stride[][FAC_DIMS]) {
    int m = 0;
    for (int k = 0; k < n; k++) {
        if (d[k] == 1) continue;
        bool merge = m > 0;
        for (int i = 0; i < inputs && merge; i++) merge = stride[i][m - 1] == stride[i][k] * d[k];
        if (!merge) m++;
        d[m - 1] = merge ? d[m - 1] * d[k] : d[k];
        for (int i = 0; i < inputs; i++) stride[i][m - 1] = stride[i][k];
    }
    return m;
}

/* Comparisons of texts: x op y is strcmp(x, y) op 0, so the loops for integers serve. */
static fac_status compare_texts(const fac_node *n, const fac_host *in, const fac_host *out,
                                fac_error *err) {
    if (n->nports != 2 || in[1].type.dtype != FAC_TEXT || out->type.dtype != FAC_BOOL)
        return fac_raise(err, FAC_E_DTYPE, "%s: not defined on text", n->op->name);
    int64_t stride[2][FAC_DIMS], index[FAC_DIMS] = { 0 };
    const fac_dims *d = &out->type.dims;
    for (int i = 0; i < 2; i++) strides_of(&in[i].type.dims, d, stride[i]);
    for (int64_t e = 0, total = fac_dims_count(d); e < total; e++) {
        int64_t at[2] = { 0 }, order, zero = 0, result;
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < d->n; k++) at[i] += index[k] * stride[i][k];
        order = strcmp(((char *const *)in[0].data)[at[0]], ((char *const *)in[1].data)[at[1]]);
        n->op->map->i64(1, (const void *[]){ &order, &zero }, n->attrs, &result);
        ((uint8_t *)out->data)[e] = result != 0;
        for (int k = d->n - 1; k >= 0 && ++index[k] == d->d[k]; k--) index[k] = 0;
    }
    return FAC_OK;
}

/* Texts where the condition holds, else others: the pointers are picked, not what they point to. */
static fac_status pick_texts(const fac_node *n, const fac_host *in, const fac_host *out,
                             fac_error *err) {
    if (n->nports != 3 || in[0].type.dtype != FAC_BOOL || in[2].type.dtype != FAC_TEXT)
        return fac_raise(err, FAC_E_DTYPE, "%s: not defined on text", n->op->name);
    int64_t stride[3][FAC_DIMS], index[FAC_DIMS] = { 0 };
    const fac_dims *d = &out->type.dims;
    for (int i = 0; i < 3; i++) strides_of(&in[i].type.dims, d, stride[i]);
    for (int64_t e = 0, total = fac_dims_count(d); e < total; e++) {
        int64_t at[3] = { 0 };
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < d->n; k++) at[i] += index[k] * stride[i][k];
        const int from = ((const uint8_t *)in[0].data)[at[0]] ? 1 : 2;
        ((char **)out->data)[e] = ((char *const *)in[from].data)[at[from]];
        for (int k = d->n - 1; k >= 0 && ++index[k] == d->d[k]; k--) index[k] = 0;
    }
    return FAC_OK;
}

fac_status fac_ref_map(const fac_node *n, const fac_host *in, const fac_host *out, void *scratch,
                       fac_error *err) {
    const fac_map *map = n->op->map;
    fac_dtype type = FAC_I64;
    if (map->inputs > INPUTS || n->nports != map->inputs)
        return fac_raise(err, FAC_E_INTERNAL, "%s: %d operands for an expression of %d",
                         n->op->name, n->nports, map->inputs);
    if (in[0].type.dtype == FAC_TEXT) return compare_texts(n, in, out, err);
    if (out->type.dtype == FAC_TEXT) return pick_texts(n, in, out, err);
    for (int i = 0; i < map->inputs; i++) {
        if (fac_dtype_get(in[i].type.dtype)->kind == 'f') type = FAC_F64;
        if (in[i].type.dtype == FAC_U64 && type == FAC_I64 && map->u64) type = FAC_U64;
    }
    fac_loop *loop = type == FAC_F64   ? map->f64[FAC_ISA_BASE]
                     : type == FAC_U64 ? map->u64
                                       : map->i64;
    if (!loop)
        return fac_raise(err, FAC_E_DTYPE, "%s: not defined on %s", n->op->name,
                         fac_dtype_get(in[0].type.dtype)->name);

    fac_dims d = out->type.dims;
    int64_t stride[INPUTS][FAC_DIMS], index[FAC_DIMS] = { 0 }, at[INPUTS] = { 0 };
    for (int i = 0; i < map->inputs; i++) strides_of(&in[i].type.dims, &d, stride[i]);
    if (fac_dims_count(&d) == 0) return FAC_OK;
    int rank = collapse(d.n, d.d, map->inputs, stride);
    int64_t inner = rank ? d.d[rank - 1] : 1, rows = 1, y = 0;
    for (int k = 0; k + 1 < rank; k++) rows *= d.d[k];

    char *buffer = scratch, *result = buffer + (size_t)map->inputs * RUN * 8;
    const void *arg[INPUTS];
    for (int i = 0; i < map->inputs; i++) arg[i] = buffer + (size_t)i * RUN * 8;
    size_t out_size = (size_t)fac_dtype_get(out->type.dtype)->block_bytes;

    for (int64_t row = 0; row < rows; row++) {
        for (int64_t x = 0; x < inner; x += RUN) {
            size_t m = inner - x < RUN ? (size_t)(inner - x) : RUN;
            for (int i = 0; i < map->inputs; i++) {
                size_t size = (size_t)fac_dtype_get(in[i].type.dtype)->block_bytes;
                int64_t step = rank ? stride[i][rank - 1] : 0;
                char *to = buffer + (size_t)i * RUN * 8;
                const char *from = (const char *)in[i].data + (size_t)(at[i] + x * step) * size;
                if (step == 1) {
                    fac_convert(type, to, in[i].type.dtype, from, m);
                } else {
                    /* after collapsing the innermost stride is 1 or 0 */
                    fac_convert(type, to, in[i].type.dtype, from, 1);
                    for (size_t k = 1; k < m; k++) ((uint64_t *)to)[k] = *(uint64_t *)to;
                }
            }
            loop(m, arg, n->attrs, result);
            fac_convert(out->type.dtype, (char *)out->data + (size_t)(y + x) * out_size, type,
                        result, m);
        }
        y += inner;
        for (int k = rank - 2; k >= 0; k--) {
            bool wrap = ++index[k] == d.d[k];
            for (int i = 0; i < map->inputs; i++)
                at[i] += wrap ? -(d.d[k] - 1) * stride[i][k] : stride[i][k];
            if (!wrap) break;
            index[k] = 0;
        }
    }
    return FAC_OK;
}
