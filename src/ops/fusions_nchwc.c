/* Operators of images in blocks of channels (domain com.microsoft.nchwc), as ONNX Runtime's
 * optimizer saves them for the machine that it runs on.
 *
 * An image's dims stay N,C,H,W there, with channels filled up to whole blocks; only its memory is
 * in another order, which no other operator sees.  So images are read as ordinary ones with these
 * channels, and weights, whose memory is in blocks of outputs and, but where a convolution reads an
 * ordinary image or one channel a group, of inputs, are brought in order. */
#include "ops/fusions.h"
#include "ops/interpolate.h"
#include "ops/shape.h"

const fac_onnx_attr fac_names_reorder[] = { { "channels", NULL },
                                            { "channels_last", NULL },
                                            { 0 } };
const fac_onnx_attr fac_names_nchwc_upsample[] = {
    { "mode", NULL }, { "scales", NULL }, { "coordinate_transformation_mode", NULL }, { 0 }
};

/* K,C,R,S of weights whose memory is [K / block][C / inner][R][S][inner][block]. */
static fac_value *in_order(fac_value *w, int64_t block, int64_t inner) {
    const fac_dims d = w->type.dims;
    const int64_t K = d.d[0] / block, C = d.d[1] / inner;
    w = fac_reshape(w, fac_shape(K, C, d.d[2], d.d[3], inner, block));
    return fac_reshape(fac_transpose(w, fac_shape(0, 5, 1, 4, 2, 3)), d);
}

void fac_load_nchwc_conv(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                         fac_value *y[]) {
    const int64_t block = fac_onnx_channel_block(n), groups = fac_onnx_int(n, "group", 1);
    const fac_dims *d = &x[1]->type.dims;
    fac_value *in[FAC_ONNX_ROOM] = { 0 };
    if (d->n != 4 || fac_dims_count(d) < 0 || d->d[0] % block) {
        y[0] = fac_fail_graph(g, FAC_E_FORMAT,
                              "Conv of com.microsoft.nchwc: expected weights K,C,R,S with K whole "
                              "blocks of %lld",
                              (long long)block);
        return;
    }
    const bool depthwise = groups > 1 && d->d[1] == 1 && d->d[0] == groups;
    const bool plain = depthwise || (groups == 1 && d->d[1] < block);
    if (!plain && d->d[1] % block) {
        y[0] = fac_fail_graph(g, FAC_E_FORMAT,
                              "Conv of com.microsoft.nchwc: %lld channels are no whole blocks of "
                              "%lld",
                              (long long)d->d[1], (long long)block);
        return;
    }
    for (int k = 0; k < n->nin && k < FAC_ONNX_ROOM; k++) in[k] = x[k];
    in[1] = in_order(x[1], block, plain ? 1 : block);
    fac_load_fused_conv(n, g, in, y);
}

/* An ordinary image, or one with its channels last, with whole blocks of channels. */
void fac_load_reorder_input(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                            fac_value *y[]) {
    const int64_t block = fac_onnx_channel_block(n);
    const bool last = fac_onnx_int(n, "channels_last", 0) != 0;
    const fac_dims *d = &x[0]->type.dims;
    const int place = last ? 3 : 1;
    const int64_t channels = d->n == 4 ? d->d[place] : -1;
    if (channels < 0) {
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED,
                              "ReorderInput: expected an image of four dims and known channels");
        return;
    }
    const int64_t more = (block - channels % block) % block;
    const int64_t pads[8] = { [5] = more };
    y[0] = last ? fac_transpose(x[0], fac_shape(0, 3, 1, 2)) : x[0];
    if (more) y[0] = fac_pad(y[0], fac_ints_long(g, pads, 8), NULL, NULL, FAC_PAD_CONSTANT);
}

/* The first `channels` channels, last or not. */
void fac_load_reorder_output(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                             fac_value *y[]) {
    const int64_t channels = fac_onnx_int(n, "channels", 0);
    if (x[0]->type.dims.n != 4 || channels < 1) {
        y[0] = fac_fail_graph(g, FAC_E_FORMAT,
                              "ReorderOutput: expected an image of four dims and `channels`");
        return;
    }
    y[0] = fac_slice(x[0], 1, 0, channels, 1);
    if (fac_onnx_int(n, "channels_last", 0)) y[0] = fac_transpose(y[0], fac_shape(0, 2, 3, 1));
}

void fac_load_nchwc_upsample(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                             fac_value *y[]) {
    int64_t scales[4] = { 0 };
    const int given = fac_onnx_ints_long(n, "scales", scales, 4);
    fac_interpolate_opts o = { .rounding = FAC_INTERPOLATE_FLOOR, .scales.n = 4 };
    for (int k = 0; k < 4; k++) o.scales.v[k] = given > 0 ? (double)scales[k] : 1;
    if ((given > 0 && given != 4) ||
        !fac_interpolate_choice(n, g, "mode", "nearest", fac_interpolate_modes, &o.mode) ||
        !fac_interpolate_choice(n, g, "coordinate_transformation_mode", "asymmetric",
                                fac_interpolate_places, &o.coordinates))
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "Upsample of com.microsoft.nchwc");
    else
        y[0] = fac_interpolate(x[0], NULL, &o);
}
