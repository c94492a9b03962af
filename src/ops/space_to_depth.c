#include <string.h>
#include "ops/shape.h"
#include "ops/onnx_put.h"

#if FAC_INTERFACE
/* x N,C,H b,W b -> y N,C b b,H,W: the opposite of fac_depth_to_space. */
fac_value *fac_space_to_depth(fac_value *x, int64_t block, bool channels_first);
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
    for (int k = 2; k < 4; k++)
        if (d[k] >= 0 && d[k] % b)
            return fac_fail(n, FAC_E_SHAPE, "dim %d is %lld, no multiple of %lld", k,
                            (long long)d[k], (long long)b);
    n->out[0]->type = (fac_type){ x->dtype, fac_shape(d[0], fac_size_product(g, d[1], b * b),
                                                      fac_size_quotient(g, d[2], b),
                                                      fac_size_quotient(g, d[3], b)) };
    return true;
}

static bool move(const fac_move *m, const int64_t *to, int *input, int64_t *from) {
    const attrs *a = m->attrs;
    const int64_t b = a->block, channels = m->in[0].type.dims.d[1];
    const int64_t place = a->channels_first ? to[1] % (b * b) : to[1] / channels;
    from[0] = to[0];
    from[1] = a->channels_first ? to[1] / (b * b) : to[1] % channels;
    from[2] = to[2] * b + place / b;
    from[3] = to[3] * b + place % b;
    *input = 0;
    return true;
}

static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const attrs *a = n->attrs;
    dx[0] = fac_depth_to_space(dy[0], a->block, a->channels_first);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const char *mode = fac_onnx_text(n, "mode", "DCR");
    const bool crd = !strcmp(mode, "CRD");
    if (!crd && strcmp(mode, "DCR"))
        out[0] = fac_fail_graph(g, FAC_E_FORMAT,
                                "SpaceToDepth: mode is \"%s\", expected DCR or CRD", mode);
    else
        out[0] = fac_space_to_depth(in[0], fac_onnx_int(n, "blocksize", 0), crd);
}
static const fac_onnx_attr names[] = { { "blocksize", NULL }, { "mode", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "SpaceToDepth", 1, 0, names, load, 0 }, { 0 } };
/* ONNX has row, column, channel only.  The other order is that with the channels transposed: N,b
 * b,C,H W -> N,C,b b,H W. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs *a = n->attrs;
    const int64_t channels = n->in[0]->type.dims.d[1], taps = a->block * a->block;
    const fac_dims *to = &n->out[0]->type.dims;
    const char *y = fac_onnx_name(w, n->out[0]);
    if (a->channels_first && channels < 0) return false;
    const char *d =
        fac_onnx_unary(w, "SpaceToDepth", fac_onnx_name(w, n->in[0]), a->channels_first ? NULL : y);
    fac_onnx_put_int(w, "blocksize", a->block);
    if (!a->channels_first) return true;
    const int64_t plane = to->d[2] >= 0 && to->d[3] >= 0 ? to->d[2] * to->d[3] : -1;
    const char *transposed = fac_onnx_binary(
        w, "Reshape", d, fac_onnx_list(w, 4, (int64_t[]){ 0, taps, channels, plane }), NULL);
    transposed = fac_onnx_unary(w, "Transpose", transposed, NULL);
    fac_onnx_put_ints(w, "perm", 4, (int64_t[]){ 0, 2, 1, 3 });
    return fac_onnx_binary(w, "Reshape", transposed, fac_onnx_unary(w, "Shape", d, NULL), y) !=
           NULL;
}

static const fac_case cases[] = { { "space_to_depth(f32[2,2,6,4]) block=2", -4, 4, 0 },
                                  { "space_to_depth(f32[1,2,6,6]) block=3 channels_first", -4, 4,
                                    0 },
                                  { "space_to_depth(u8[1,1,2,2]) block=2", 0, 9, 0 },
                                  { "space_to_depth(f16[0,4,2,2]) block=2", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_space_to_depth = {
    .name = "space_to_depth",
    .doc = "blocks of pixels become channels",
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
fac_value *fac_space_to_depth(fac_value *x, int64_t block, bool channels_first) {
    return fac_emit(&fac_op_space_to_depth, &(attrs){ block, channels_first }, 1, &x);
}
