/* quantize_linear/bytes, dequantize_linear/bytes, byte_table/bytes: f32 and bytes with one scale,
 * and bytes by a table of bytes, in whatever dense order they lie. */
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/bytes/bytes_internal.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "cpu_solvers.h"
#include "op_list.h"
#include "ops/quant.h"
#include "tensor/dtype.h"

enum { X, SCALE, ZERO, TABLE = 1, ITEM = 16 << 10 };

typedef struct plan {
    const fac_cpu *cpu;
    int64_t n, x, y; /* elements; where they begin, in bytes */
    bool table, sign,
        zero; /* there is a table, else a scale; bytes are i8; there is a zero point */
    fac_task *item;
} plan;

typedef struct job {
    const plan *p;
    fac_byte_scale scale;
    const uint8_t *table;
    const char *x;
    char *y;
} job;

/* One scale, and one zero point of the type of the bytes. */
static bool is_whole(const fac_problem *p, fac_dtype bytes) {
    const fac_operand *s = &p->in[SCALE], *z = &p->in[ZERO];
    if (s->type.dtype != FAC_F32 || fac_dims_count(&s->type.dims) != 1 || !fac_is_byte(bytes))
        return false;
    return z->type.dtype == FAC_NONE ||
           (z->type.dtype == bytes && fac_dims_count(&z->type.dims) == 1);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o, double bytes) {
    fac_operand *x = &p->in[X], *y = &p->out[0];
    if (p->node->body[0] || fac_dims_count(&x->type.dims) <= 0) return false;
    if (!fac_byte_dense(&x->layout, &x->type.dims)) x->layout = fac_layout_plain(&x->type.dims);
    x->layout.offset = 0;
    y->layout = x->layout;
    for (int k = 1; k < p->nin; k++)
        if (p->in[k].type.dtype != FAC_NONE)
            p->in[k].layout = fac_layout_plain(&p->in[k].type.dims);
    o->seconds =
        fac_cpu_seconds(fac_cpu_of(d), 0, 1, bytes * (double)fac_dims_count(&y->type.dims));
    return true;
}

static bool quantize_offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_quantize_opts *a = p->node->attrs;
    /* the division is made in the scale's own type, also where it was widened for this kernel */
    const fac_dtype scale = p->node->in[SCALE]->type.dtype;
    if (a->precision == FAC_NONE && fac_dtype_is_half(scale)) return false;
    if (p->in[X].type.dtype != FAC_F32 || a->block || !is_whole(p, p->out[0].type.dtype))
        return false;
    if (a->precision != FAC_NONE && a->precision != FAC_F32) return false;
    return offer(d, p, o, 5);
}

static bool dequantize_offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_dequantize_opts *a = p->node->attrs;
    if (p->out[0].type.dtype != FAC_F32 || a->block || !is_whole(p, p->in[X].type.dtype))
        return false;
    return offer(d, p, o, 5);
}

static bool table_offer(fac_device *d, fac_problem *p, fac_offer *o) { return offer(d, p, o, 2); }

/* ---- running ---- */

static size_t part_of(const job *j, int i) {
    const int64_t left = j->p->n - (int64_t)i * ITEM;
    return (size_t)(left < ITEM ? left : ITEM);
}

static void quantize_item(void *arg, int i, int thread) {
    const job *j = arg;
    const int64_t at = (int64_t)i * ITEM;
    (void)thread;
    j->p->cpu->bytes->quantize(&j->scale, part_of(j, i), (const float *)(const void *)j->x + at,
                               j->y + at);
}

static void dequantize_item(void *arg, int i, int thread) {
    const job *j = arg;
    const int64_t at = (int64_t)i * ITEM;
    (void)thread;
    j->p->cpu->bytes->dequantize(&j->scale, part_of(j, i), j->x + at, (float *)(void *)j->y + at);
}

static void table_item(void *arg, int i, int thread) {
    const job *j = arg;
    const int64_t at = (int64_t)i * ITEM;
    (void)thread;
    j->p->cpu->bytes->table(j->table, part_of(j, i), (const uint8_t *)j->x + at,
                            (uint8_t *)j->y + at);
}

static fac_byte_scale scale_of(const plan *p, const fac_span *in) {
    fac_byte_scale s = { .sign = p->sign };
    memcpy(&s.scale, fac_span_bytes(in[SCALE]), sizeof s.scale);
    if (!p->zero) return s;
    const char *z = fac_span_bytes(in[ZERO]);
    s.zero = p->sign ? *(const int8_t *)z : *(const uint8_t *)z;
    return s;
}

static fac_task *item_of(const fac_node *n) {
    if (FAC_IS(n, byte_table)) return table_item;
    return FAC_IS(n, quantize_linear) ? quantize_item : dequantize_item;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    const fac_operand *x = &p->in[X], *y = &p->out[0];
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    *q = (plan){ .cpu = fac_cpu_of(d),
                 .n = fac_dims_count(&x->type.dims),
                 .x = x->layout.offset * fac_dtype_get(x->type.dtype)->block_bytes,
                 .y = y->layout.offset * fac_dtype_get(y->type.dtype)->block_bytes,
                 .table = FAC_IS(p->node, byte_table),
                 .sign = x->type.dtype == FAC_I8 || y->type.dtype == FAC_I8,
                 .zero = p->nin > ZERO && p->in[ZERO].type.dtype != FAC_NONE,
                 .item = item_of(p->node) };
    *out = q;
    return FAC_OK;
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    (void)d, (void)work, (void)err;
    job j = { .p = p, .x = fac_span_bytes(in[X]) + p->x, .y = fac_span_bytes(out[0]) + p->y };
    if (p->table)
        j.table = (const uint8_t *)fac_span_bytes(in[TABLE]);
    else
        j.scale = scale_of(p, in);
    fac_parallel(&p->cpu->pool, (int)((p->n + ITEM - 1) / ITEM), p->item, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_quantize_linear = { .name = "quantize_linear/bytes",
                                             .op = &fac_op_quantize_linear,
                                             .rank = 1061,
                                             .offer = quantize_offer,
                                             .make = make,
                                             .done = fac_solver_done,
                                             .run = run };
const fac_solver fac_cpu_dequantize_linear = { .name = "dequantize_linear/bytes",
                                               .op = &fac_op_dequantize_linear,
                                               .rank = 1062,
                                               .offer = dequantize_offer,
                                               .make = make,
                                               .done = fac_solver_done,
                                               .run = run };
const fac_solver fac_cpu_byte_table = { .name = "byte_table/bytes",
                                        .op = &fac_op_byte_table,
                                        .rank = 1063,
                                        .offer = table_offer,
                                        .make = make,
                                        .done = fac_solver_done,
                                        .run = run };
