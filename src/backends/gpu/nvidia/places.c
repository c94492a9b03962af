/* Reading where the operands of a product lie: see places.h. */
#include <string.h>
#include "backends/gpu/nvidia/places.h"
#include "tensor/dtype.h"
#include "tensor/tensor_internal.h"

static bool is_known(fac_dtype t) { return t == FAC_F32 || fac_dtype_is_half(t); }

static double reach_of(const fac_nv_place *p, const int64_t *size) {
    const int32_t step[] = { p->image, p->channel, p->depth, p->row, p->column };
    double reach = 0;
    for (int k = 0; k < 5; k++)
        reach += (double)(size[k] - 1) * (double)(step[k] < 0 ? -step[k] : step[k]);
    return reach;
}

bool fac_nv_place_of(const fac_operand *x, const fac_dims *result, fac_nv_place *to) {
    int64_t step[FAC_DIMS], size[5] = { 1, 1, 1, 1, 1 };
    const int rank = result->n - 2;
    memset(to, 0, sizeof *to);
    if (rank < 1 || rank > 3 || !fac_gpu_strides(x, result, step)) return false;
    for (int k = 0; k < result->n; k++) {
        if (result->d[k] == 1) step[k] = 0;
        if (step[k] > INT32_MAX || step[k] < -INT32_MAX) return false;
    }
    int32_t *const spatial[] = { &to->depth, &to->row, &to->column };
    to->at = x->layout.offset;
    to->image = (int32_t)step[0];
    to->channel = (int32_t)step[1];
    size[0] = result->d[0];
    size[1] = result->d[1];
    for (int k = 0; k < rank; k++) {
        *spatial[3 - rank + k] = (int32_t)step[2 + k];
        size[5 - rank + k] = result->d[2 + k];
    }
    return reach_of(to, size) < INT32_MAX;
}

bool fac_nv_in_fours(const fac_nv_place *p) {
    return p->channel == 1 && !((p->at | p->image | p->depth | p->row | p->column) & 3);
}

fac_nv_run fac_nv_run_of(const fac_nv_place *p) {
    if (p->channel == 0) return FAC_NV_PIXELS;
    if (!fac_nv_in_fours(p)) return FAC_NV_ANYHOW;
    return fac_nv_is_still(p) ? FAC_NV_CHANNELS : FAC_NV_FOURS;
}

void fac_nv_lay_last(fac_operand *x) {
    const fac_dims *d = &x->type.dims;
    x->layout = fac_layout_plain(d);
    if (d->n < 3) return;
    int64_t step = d->d[1];
    x->layout.stride[1] = 1;
    for (int k = d->n - 1; k >= 2; k--) {
        x->layout.stride[k] = step;
        step *= d->d[k];
    }
    x->layout.stride[0] = step;
}

static bool same_size(const fac_dims *a, const fac_dims *b) {
    return a->n == b->n && !memcmp(a->d, b->d, (size_t)a->n * sizeof *a->d);
}

/* A byte for the channels of each four of a pixel, one after the other. */
static bool place_bits(fac_operand *x, fac_nv_place *at) {
    const fac_dims *d = &x->type.dims;
    for (int turn = 0; turn < 2; turn++) {
        if (turn) fac_nv_lay_last(x);
        if (fac_nv_place_of(x, d, at) && (at->channel == 1 || d->d[1] == 1)) return true;
    }
    return false;
}

bool fac_nv_ends_read(fac_problem *p, const fac_gpu_product *r, const fac_nv_unlike *unlike,
                      fac_nv_ends *e) {
    fac_operand *y = &p->out[0];
    const fac_dims *d = &y->type.dims;
    memset(e, 0, sizeof *e);
    if (!is_known(r->result)) return false;
    if (!fac_nv_place_of(y, d, &e->p[0]) || !fac_nv_in_fours(&e->p[0])) {
        fac_nv_lay_last(y);
        if (!fac_nv_place_of(y, d, &e->p[0]) || !fac_nv_in_fours(&e->p[0])) return false;
    }
    for (int i = 0; i < r->extras; i++) {
        fac_operand *x = &p->in[r->input[i]];
        fac_nv_place *at = &e->p[1 + i];
        if (i == unlike->bits) {
            if (x->type.dtype != FAC_U8 || !place_bits(x, at)) return false;
            continue;
        }
        if (!is_known(x->type.dtype)) return false;
        if ((r->biased && i == 0) || (!r->body && x->type.dims.n == 1)) { /* one number a channel */
            if (x->layout.block || x->layout.stride[0] > INT32_MAX / (d->d[1] + 1)) return false;
            *at = (fac_nv_place){ .at = x->layout.offset, .channel = (int32_t)x->layout.stride[0] };
            continue;
        }
        const fac_dims *own = i == unlike->thin && unlike->apart > 1
                                  ? &x->type.dims
                                  : d; /* its own pixels are counted */
        const bool placed = fac_nv_place_of(x, own, at);
        const bool good = placed && fac_nv_run_of(at) != FAC_NV_ANYHOW;
        if (!good && same_size(&x->type.dims, own))
            fac_nv_lay_last(x);
        else if (!placed)
            x->layout = fac_layout_plain(&x->type.dims);
        if (!good && !fac_nv_place_of(x, own, at)) return false;
        if (own != d) at->apart = unlike->apart;
    }
    return true;
}
