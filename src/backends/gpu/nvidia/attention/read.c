/* What attention and its gradient are asked for: see attention.h. */
#include <math.h>
#include "graph/attr.h"
#include "backends/gpu/nvidia/attention/attention.h"

enum { WIDEST = 128, MOST_GROUPS = 65535, MOST_ROWS = 1 << 30 };

fac_nv_heads fac_nv_heads_of(const fac_operand *o, int64_t heads) {
    const int64_t *s = o->layout.stride, *d = o->type.dims.d;
    const bool four = o->type.dims.n == 4;
    int64_t size = heads ? d[2] / heads : 0;
    if (four) size = d[3];
    fac_nv_heads h =
        four ? (fac_nv_heads){ s[0], s[1], s[2], .heads = d[1], .rows = d[2], .size = size }
             : (fac_nv_heads){ s[0], size, s[1], .heads = heads, .rows = d[1], .size = size };
    const int64_t all = h.batch | h.head | h.row | o->layout.offset;
    h.aligned = all % (16 / fac_dtype_get(o->type.dtype)->block_bytes) == 0;
    h.pairs = (all | h.size) % 2 == 0;
    h.chunks = h.aligned && h.size % (16 / fac_dtype_get(o->type.dtype)->block_bytes) == 0;
    return h;
}

/* What maps can say: sizes below 2^32, strides below 2^40 bytes and not backwards. */
bool fac_nv_heads_mapped(const fac_nv_heads *h) {
    const int64_t most = (int64_t)1 << 38, least = h->batch < h->head ? h->batch : h->head;
    return h->chunks && least > 0 && h->row > 0 && h->batch < most && h->head < most &&
           h->row < most;
}

void fac_nv_heads_want(fac_operand *o) {
    const int last = o->type.dims.n - 1;
    const bool gaps = o->layout.stride[last] != 1 && o->type.dims.d[last] != 1;
    if (o->layout.block || gaps) o->layout = fac_layout_plain(&o->type.dims);
    o->layout.halo = 0;
}

/* A mask broadcasts to B, H, Q, T, or with five dims, groups and sequences of each, to those. */
static fac_nv_mask mask_of(fac_operand *o, int64_t B) {
    fac_nv_mask m = { .type = o->type.dtype };
    int64_t *const step[] = { &m.key, &m.row, &m.head, &m.batch, &m.group };
    if (o->layout.block) o->layout = fac_layout_plain(&o->type.dims);
    const int n = o->type.dims.n;
    m.each = n == 5 ? o->type.dims.d[1] : B;
    for (int k = 0; k < n && k < 5; k++)
        *step[k] = o->type.dims.d[n - 1 - k] == 1 ? 0 : o->layout.stride[n - 1 - k];
    return m;
}

bool fac_nv_attention_read(fac_problem *p, int mask, fac_operand *y, int maps,
                           fac_nv_attention *a) {
    int64_t q_heads = 0, kv_heads = 0;
    *a = (fac_nv_attention){ .dtype = p->in[0].type.dtype };
    if (p->node->body[0] || !fac_nv_mode_of(a->dtype, p->precision, &a->mode)) return false;
    if (a->mode == FAC_NV_3XTF32 && p->precision == FAC_PRECISION_HIGHEST)
        return false; /* errors up to 8e-6 */
    fac_attr_get_int(p->node, "q_heads", &q_heads);
    fac_attr_get_int(p->node, "kv_heads", &kv_heads);
    fac_attr_get_real(p->node, "scale", &a->scale);
    a->causal = fac_attr_flag(p->node, "causal");
    for (int i = 0; i < 3; i++) fac_nv_heads_want(&p->in[i]);
    fac_nv_heads_want(y);
    a->q = fac_nv_heads_of(&p->in[0], q_heads);
    a->k = fac_nv_heads_of(&p->in[1], kv_heads);
    a->v = fac_nv_heads_of(&p->in[2], kv_heads);
    a->y = fac_nv_heads_of(y, q_heads);
    a->B = p->in[0].type.dims.d[0];
    a->H = a->q.heads;
    a->Q = a->q.rows;
    a->D = a->q.size;
    a->G = a->k.heads;
    a->T = a->k.rows;
    a->E = a->v.size;
    a->d = (int)fac_gpu_parts(a->D, 16) * 16;
    a->e = (int)fac_gpu_parts(a->E, 16) * 16;
    if (a->B < 1 || a->H < 1 || a->G < 1 || a->Q < 1 || a->T < 1 || a->D < 1 || a->E < 1)
        return false;
    if (a->D > WIDEST || a->E > WIDEST) return false;
    if (a->B * a->H > MOST_GROUPS || a->Q > MOST_ROWS || a->T > MOST_ROWS) return false;
    if (a->scale == 0) a->scale = 1 / sqrt((double)a->D);
    if (!(a->scale > 0)) return false; /* the largest product is the largest score */
    if (p->in[mask].type.dtype != FAC_NONE) {
        a->mask = mask_of(&p->in[mask], a->B);
        const int64_t keys = p->in[mask].type.dims.d[p->in[mask].type.dims.n - 1];
        if (keys < a->T) a->T = keys; /* a shorter mask lets the keys after it take no part */
    }
    const bool mapped =
        fac_nv_heads_mapped(&a->q) && fac_nv_heads_mapped(&a->k) && fac_nv_heads_mapped(&a->v);
    a->chunks = a->y.chunks;
    a->maps = mapped && a->dtype != FAC_F32 ? maps : 0;
    return a->T > 0;
}

bool fac_nv_attention_forward(fac_problem *p, int maps, fac_nv_attention *a) {
    const fac_dtype *precision = fac_attr_at(p->node, "precision", FAC_A_DTYPE);
    double softcap = 0;
    fac_attr_get_real(p->node, "softcap", &softcap);
    int64_t window = 0;
    fac_attr_get_int(p->node, "window", &window);
    if (window) return false;
    if (softcap > 0 || (precision && *precision == FAC_F64)) return false;
    for (int i = FAC_NV_PAST_KEY; i <= FAC_NV_LENGTHS; i++)
        if (p->in[i].type.dtype != FAC_NONE) return false;
    for (int k = 1; k < FAC_NV_LSE; k++)
        if (p->out[k].type.dtype != FAC_NONE) return false;
    if (p->out[0].type.dtype == FAC_NONE ||
        !fac_nv_attention_read(p, FAC_NV_MASK, &p->out[0], maps, a))
        return false;
    fac_operand *lse = &p->out[FAC_NV_LSE];
    if (lse->type.dtype != FAC_NONE) lse->layout = fac_layout_plain(&lse->type.dims);
    return true;
}
