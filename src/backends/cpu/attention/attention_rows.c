/* Queries, keys and masks of attention: see attention_rows.h. */
#include <math.h>
#include <string.h>
#include "base/clamp.h"
#include "backends/cpu/attention/attention_rows.h"
#include "graph/attr.h"

enum {
    MOST_KEYS = 1 << 24, /* f32 indexes no more keys exactly */
    MOST_SIZE = 1 << 20  /* elements per head */
};

/* ---- shapes ---- */

fac_attention_place fac_attention_place_of(const fac_operand *o, int64_t heads) {
    const int64_t *s = o->layout.stride, *d = o->type.dims.d;
    if (o->type.dims.n == 4) return (fac_attention_place){ s[0], s[1], s[2] };
    return (fac_attention_place){ s[0], d[2] / heads, s[1] };
}

static fac_dims heads_of(const fac_operand *o, int64_t heads) {
    const int64_t *d = o->type.dims.d;
    return o->type.dims.n == 4 ? o->type.dims : fac_shape(d[0], heads, d[1], d[2] / heads);
}

void fac_attention_want_rows(fac_operand *o) {
    const fac_layout *l = &o->layout;
    int last = o->type.dims.n - 1;
    if (l->block || (l->stride[last] != 1 && o->type.dims.d[last] != 1))
        o->layout = fac_layout_plain(&o->type.dims);
}

static void read_mask(const fac_operand *mask, fac_attention_shape *a) {
    const fac_dims *m = &mask->type.dims;
    a->mask_type = mask->type.dtype;
    if (!a->mask_type) return;
    int64_t step = a->mask_keys = m->d[m->n - 1];
    for (int i = 2, k = m->n - 2; i >= 0; i--, k--) {
        const int64_t n = k >= 0 ? m->d[k] : 1;
        a->mask_step[i] = n == 1 ? 0 : step;
        step *= n;
    }
    a->mask_each = m->n == 5 ? m->d[1] : a->B;
    a->mask_group = m->n == 5 && m->d[0] > 1 ? step : 0;
}

/* Where the mask of a sequence begins. */
static int64_t mask_of_sequence(const fac_attention_shape *a, int64_t batch) {
    return batch / a->mask_each * a->mask_group + batch % a->mask_each * a->mask_step[0];
}

bool fac_attention_shape_of(const fac_problem *p, const fac_cpu *cpu, const fac_operand *mask,
                            int64_t past, fac_attention_shape *to) {
    int64_t q_heads = 0, kv_heads = 0;
    fac_attention_shape a = { .cpu = cpu, .past = past };
    fac_attr_get_int(p->node, "q_heads", &q_heads);
    fac_attr_get_int(p->node, "kv_heads", &kv_heads);
    fac_attr_get_real(p->node, "scale", &a.scale);
    a.causal = fac_attr_flag(p->node, "causal");
    const fac_dims q = heads_of(&p->in[0], q_heads), k = heads_of(&p->in[1], kv_heads),
                   v = heads_of(&p->in[2], kv_heads);
    a.B = q.d[0];
    a.H = q.d[1];
    a.Q = q.d[2];
    a.D = q.d[3];
    a.G = k.d[1];
    a.E = v.d[3];
    a.T = past + k.d[2];
    if (fac_dims_count(&q) == 0 || a.T == 0 || a.E == 0 || a.T > MOST_KEYS || a.D >= MOST_SIZE ||
        a.E >= MOST_SIZE)
        return false;
    if (a.scale == 0) a.scale = 1 / sqrt((double)a.D);
    a.rows = a.H / a.G * a.Q;
    read_mask(mask, &a);
    *to = a;
    return a.B * a.G < INT32_MAX / a.rows;
}

/* ---- queries ---- */

void fac_attention_each(const fac_attention_queries *t, const fac_attention_place *at, float *base,
                        fac_attention_run *f, void *arg) {
    const fac_attention_shape *a = t->a;
    for (int64_t i = 0, n; i < t->n; i += n) {
        const int64_t row = t->first + i, q = row % a->Q,
                      head = t->group * (a->H / a->G) + row / a->Q;
        n = at->head == a->Q * at->row || t->n - i < a->Q - q ? t->n - i : a->Q - q;
        f(t, arg, base + t->batch * at->batch + head * at->head + q * at->row, at->row, n, i);
    }
}

typedef struct transposed {
    float *at;
    int64_t columns;
} transposed;

static void turn_in(const fac_attention_queries *t, void *arg, float *row, int64_t step, int64_t n,
                    int64_t lane) {
    const transposed *to = arg;
    t->a->cpu->simd->transpose(row, step, to->at + lane, t->wide, n, to->columns);
}
static void turn_out(const fac_attention_queries *t, void *arg, float *row, int64_t step, int64_t n,
                     int64_t lane) {
    const transposed *from = arg;
    t->a->cpu->simd->transpose(from->at + lane, t->wide, row, step, from->columns, n);
}

void fac_attention_turn_in(const fac_attention_queries *t, const fac_attention_place *at,
                           const float *base, float *to, int64_t columns) {
    transposed r = { to, columns };
    if (t->n < t->wide) memset(to, 0, (size_t)(t->wide * columns) * sizeof *to);
    fac_attention_each(t, at, (float *)(uintptr_t)base, turn_in, &r);
}
void fac_attention_turn_out(const fac_attention_queries *t, const fac_attention_place *at,
                            float *base, const float *from, int64_t columns) {
    transposed r = { (float *)(uintptr_t)from, columns };
    fac_attention_each(t, at, base, turn_out, &r);
}

int64_t fac_attention_last(const fac_attention_queries *t, int64_t before, int64_t length,
                           float *last, float *least) {
    const fac_attention_shape *a = t->a;
    int64_t keys = 0;
    for (int64_t i = 0; i < t->wide; i++) {
        const int64_t own = before + (t->first + i) % a->Q,
                      to = a->causal && own < length - 1 ? own : length - 1;
        last[i] = i < t->n ? (float)to : 0;
        if (i == 0 || (i < t->n && last[i] < *least)) *least = last[i];
        if (i < t->n && to + 1 > keys) keys = to + 1;
    }
    return keys;
}

/* ---- masks ---- */

/* The mask of some keys for one query. */
static void mask_row(const fac_attention_queries *t, const void *mask, int64_t i, int64_t first,
                     int64_t keys, float *to) {
    const fac_attention_shape *a = t->a;
    const int64_t row = t->first + (i < t->n ? i : 0), heads = a->H / a->G;
    const int64_t head = t->group * heads + row / a->Q, *step = a->mask_step;
    const int64_t at = mask_of_sequence(a, t->batch) + head * step[1] + row % a->Q * step[2];
    int64_t there = a->mask_keys - first;
    there = fac_clamp(there, 0, keys);
    const float *numbers = (const float *)mask + at + first;
    const uint8_t *bits = (const uint8_t *)mask + at + first;
    if (a->mask_type == FAC_BOOL)
        for (int64_t k = 0; k < there; k++) to[k] = bits[k] ? 0 : -INFINITY;
    else
        memcpy(to, numbers, (size_t)there * sizeof *to);
    for (int64_t k = there; k < keys; k++) to[k] = -INFINITY;
}

static bool sees_any(const float *mask, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        if (mask[k] != -INFINITY) return true;
    return false;
}

bool fac_attention_mask(const fac_attention_queries *t, const void *mask, int64_t first,
                        int64_t keys, float *bias, float *rows, float *stage,
                        fac_attention_block *b) {
    const fac_attention_shape *a = t->a;
    const bool alike = a->mask_step[2] == 0 && (a->mask_step[1] == 0 || a->H == a->G);
    bool any = false;
    if (!mask) return true;
    if (alike) {
        mask_row(t, mask, 0, first, keys, bias);
        b->bias = bias;
        return sees_any(bias, keys);
    }
    b->mask = rows;
    if (a->mask_type == FAC_F32 && first + keys <= a->mask_keys) { /* as it lies */
        const fac_attention_place at = { 0, a->mask_step[1], a->mask_step[2] };
        fac_attention_turn_in(t, &at, (const float *)mask + mask_of_sequence(a, t->batch) + first,
                              rows, keys);
        return true;
    }
    for (int64_t i = 0; i < t->wide; i++) {
        float *row = stage + i * keys;
        mask_row(t, mask, i, first, keys, row);
        any = any || sees_any(row, keys);
    }
    a->cpu->simd->transpose(stage, keys, rows, t->wide, t->wide, keys);
    return any;
}
