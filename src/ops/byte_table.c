/* Bytes by a table: what a function of one number is where its argument and its result are bytes.
 * Made by src/passes/quantized/quantized_table.c.  Has no prototype.
 *
 *     y = table[x], x u8; of an i8 x the bytes are taken as u8.  table u8 or i8 256   y its dtype
 */
#include "ops/cost.h"
#include "ops/quant.h"

enum { X, TABLE, ENTRIES = 256 };

static const fac_port in[] = { { "x", FAC_INTS, 0 }, { "table", FAC_INTS, 0 }, { 0 } };
static const fac_port out[] = { { "y", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    if (!fac_quant_bytes(n, X, "x") || !fac_quant_bytes(n, TABLE, "table")) return false;
    const fac_dims *t = &n->in[TABLE]->type.dims;
    if (t->n != 1 || (t->d[0] >= 0 && t->d[0] != ENTRIES))
        return fac_fail(n, FAC_E_SHAPE, "table must have 256 entries");
    n->out[0]->type = (fac_type){ n->in[TABLE]->type.dtype, n->in[X]->type.dims };
    return true;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const int64_t n = fac_dims_count(&r->in[X].type.dims);
    for (int64_t k = 0; k < n; k++) r->out[0].i[k] = r->in[TABLE].i[r->in[X].i[k] & 255];
    return FAC_OK;
}

static void expand(const fac_node *n, fac_value *y[]) {
    fac_value *at = fac_cast(n->in[X], FAC_I64);
    at = fac_bitwise_and(at, fac_number(n->graph, FAC_I64, ENTRIES - 1));
    y[0] = fac_gather(n->in[TABLE], at, 0);
}

static void cost(const fac_node *n, fac_cost *to) {
    fac_cost_bytes(n, to);
    to->macs = 0;
    to->other = 0;
}

static const fac_case cases[] = {
    { "byte_table(u8[3,70], u8[256])", 0, 255, 0 }, { "byte_table(i8[2,5,7], u8[256])", 0, 127, 0 },
    { "byte_table(u8[129], i8[256])", 0, 127, 0 },  { "byte_table(u8[], i8[256])", 0, 99, 0 },
    { "byte_table(i8[0,3], u8[256])", 0, 0, 0 },    { 0 }
};

extern const fac_op fac_op_byte_table;
const fac_op fac_op_byte_table = {
    .name = "byte_table",
    .doc = "bytes by a table of 256",
    .in = in,
    .out = out,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .is = FAC_OP_NO_GRAD,
    .rounding = { .rule = FAC_ROUND_NONE },
};
