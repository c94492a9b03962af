/* A function of one number between dequantize_linear and quantize_linear is a table of 256 bytes:
 *
 *     quantize(erf(div(dequantize(x), 1.4)))   ->   byte_table(x, table)
 *
 * The table is what these ops give for each byte, so the results are those of floats that are
 * rounded.  It is computed with the constants, or prepared with the parameters. */
#include "facula/ops.h"
#include "op_list.h"
#include "passes/quantized/quantized.h"

enum { ENTRIES = 256, MOST_OPS = 16 };

typedef struct build {
    fac_coded x;
    fac_value *numbers; /* what each byte of x stands for */
    int ops;
} build;

static fac_value *every_byte(fac_graph *g, fac_dtype t) {
    unsigned char all[ENTRIES];
    fac_tensor *b = NULL;
    for (int k = 0; k < ENTRIES; k++) all[k] = (unsigned char)k;
    if (fac_tensor_new(NULL, t, fac_shape(ENTRIES), &b, NULL)) return NULL;
    fac_value *v = fac_tensor_write(b, all, sizeof all, NULL) ? NULL : fac_const(g, b);
    fac_tensor_free(b);
    return v;
}

static bool is_numbers(const fac_value *v, build *b, fac_value **to) {
    fac_coded x;
    if (!fac_coded_whole(v, &x)) return false;
    *to = NULL;
    if (!b->numbers) {
        fac_value *all = every_byte(v->graph, x.q->type.dtype);
        b->x = x;
        b->numbers = all ? fac_dequantize_linear(all, x.scale, x.zero, NULL) : NULL;
    }
    if (b->x.q == x.q && fac_coded_alike(&b->x, &x)) *to = b->numbers;
    return true;
}

/* The same of every byte.  NULL: something else is in it. */
static fac_value *of_every_byte(const fac_value *v, build *b) {
    enum { INPUTS = 4 };
    fac_value *in[INPUTS], *y;
    const fac_node *n = v->node;
    if (v->time != FAC_RUN)
        return fac_dims_count(&v->type.dims) == 1 ? (fac_value *)(uintptr_t)v : NULL;
    if (!n || n->body[0]) return NULL;
    if (is_numbers(v, b, &y)) return y;
    if (!n->op->map || n->nout != 1 || n->nin > INPUTS || v->type.dtype != FAC_F32) return NULL;
    if (++b->ops > MOST_OPS) return NULL;
    for (int k = 0; k < n->nin; k++) {
        in[k] = n->in[k] ? of_every_byte(n->in[k], b) : NULL;
        if (n->in[k] && !in[k]) return NULL;
    }
    return fac_emit(n->op, n->attrs, n->nin, in);
}

fac_value *fac_coded_table(const fac_value *v, const fac_coded *y) {
    build b = { .numbers = NULL };
    fac_value *f = of_every_byte(v, &b);
    if (!f || !b.numbers || b.x.q->time != FAC_RUN || f->time == FAC_RUN) return NULL;
    if (y->scale->time == FAC_RUN || y->zero->time == FAC_RUN) return NULL;
    if (!fac_dims_equal(&v->type.dims, &b.x.q->type.dims)) return NULL;
    fac_value *table = fac_quantize_linear(f, y->scale, y->zero, NULL);
    if (table->type.dims.n != 1) table = fac_reshape(table, fac_shape(ENTRIES));
    return fac_emit(&fac_op_byte_table, NULL, 2, (fac_value *[]){ b.x.q, table });
}
