#include <string.h>
#include "ops/shape.h"

#if FAC_INTERFACE
/* x N,C b b,H,W -> y N,C,H b,W b: pixel shuffle.  Of x's channels the row in the block, the column
 * in the block and the channel of y are the digits, in this order ("DCR"); channels_first: channel,
 * row, column ("CRD", as PyTorch has it). */
fac_value *fac_depth_to_space(fac_value *x, int64_t block, bool channels_first);
#endif

typedef struct attrs {
    int64_t block;
    bool channels_first;
} attrs;
static const fac_attr table[] = { { "block", FAC_A_INT, offsetof(attrs, block), 0, 1, 1, 1 << 15,
                                    NULL, "rows and columns of a block" },
                                  { "channels_first", FAC_A_FLAG, offsetof(attrs, channels_first),
                                    0, 0, 0, 0, NULL,
                                    "channel, row, column instead of row, column, channel" },
                                  { 0 } };

static bool infer(fac_node *n) {
    const int64_t b = ((const attrs *)n->attrs)->block;
    const fac_type *x = &n->in[0]->type;
    const int64_t *d = x->dims.d;
    fac_graph *g = n->graph;
    if (x->dims.n != 4) return fac_fail(n, FAC_E_SHAPE, "x has %d dims, not 4", x->dims.n);
    if (d[1] >= 0 && d[1] % (b * b))
        return fac_fail(n, FAC_E_SHAPE, "%lld channels are not blocks of %lld x %lld",
                        (long long)d[1], (long long)b, (long long)b);
    n->out[0]->type = (fac_type){ x->dtype, fac_shape(d[0], fac_size_quotient(g, d[1], b * b),
                                                      fac_size_product(g, d[2], b),
                                                      fac_size_product(g, d[3], b)) };
    return true;
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const attrs *a = m->attrs;
    const int64_t b = a->block, row = to[2] % b, column = to[3] % b;
    from[0] = to[0];
    from[1] = a->channels_first ? (to[1] * b + row) * b + column
                                : (row * b + column) * m->out.d[1] + to[1];
    from[2] = to[2] / b;
    from[3] = to[3] / b;
    *input = 0;
    return true;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    dx[0] = fac_space_to_depth(dy[0], a->block, a->channels_first);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const char *mode = fac_onnx_text(n, "mode", "DCR");
    const bool crd = !strcmp(mode, "CRD");
    if (!crd && strcmp(mode, "DCR"))
        out[0] = fac_fail_graph(g, FAC_E_FORMAT,
                                "DepthToSpace: mode is \"%s\", expected DCR or CRD", mode);
    else
        out[0] = fac_depth_to_space(in[0], fac_onnx_int(n, "blocksize", 0), crd);
}
static const fac_onnx_attr names[] = { { "blocksize", NULL }, { "mode", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "DepthToSpace", 1, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    fac_onnx_put(w, "DepthToSpace", 1, (const char *[]){ fac_onnx_name(w, n->in[0]) },
                 fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "blocksize", a->block);
    fac_onnx_put_text(w, "mode", a->channels_first ? "CRD" : "DCR");
    return true;
}

static const fac_case cases[] = { { "depth_to_space(f32[2,8,3,2]) block=2", -4, 4, 0 },
                                  { "depth_to_space(f32[1,18,2,2]) block=3 channels_first", -4, 4,
                                    0 },
                                  { "depth_to_space(u8[1,4,1,1]) block=2", 0, 9, 0 },
                                  { "depth_to_space(f16[0,4,2,2]) block=2", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_depth_to_space = {
    .name = "depth_to_space",
    .doc = "channels become blocks of pixels",
    .in = fac_ports_any_x,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .move = move,
    .onnx = onnx,
    .save = save,
    .grad = grad,
    .cases = cases,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_MOVES },
};
fac_value *fac_depth_to_space(fac_value *x, int64_t block, bool channels_first) {
    return fac_emit(&fac_op_depth_to_space, &(attrs){ block, channels_first }, 1, &x);
}
