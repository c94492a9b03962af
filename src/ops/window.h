/* Sliding windows: the arithmetic that convolution and pooling share. */
#ifndef FACULA_OPS_WINDOW_H
#define FACULA_OPS_WINDOW_H
#include "facula/op.h"
#include "facula/ops.h"

/* One spatial dim.  Tap k of output i lies at input i stride + k dilation - pad. */
typedef struct fac_window {
    int64_t in, kernel, stride, dilation;
    int64_t pad, pad_end; /* zeros (or nothing, for pools) before and after the input */
    int64_t out;
} fac_window;

extern const char *const fac_auto_pad_names[];

/* Settles pad, pad_end and out of a window whose other fields are set:
 *   span = (kernel - 1) dilation + 1,   out = floor((in + pad + pad_end - span) / stride) + 1
 * ceil: round up instead, but drop a last window that would begin after input and first pad, where
 * it sees nothing. NULL, or what is wrong.  All fields must be numbers. */
const char *fac_window_settle(fac_window *w, fac_auto_pad how, bool ceil);

/* The same for infer, where `in` may be a symbol: out is then the same symbol if the window
 * provably keeps the size, else a symbol named after the formula, so that two windows that shrink
 * one size alike agree. */
bool fac_window_infer(fac_node *n, const char *dim, fac_window *w, fac_auto_pad how, bool ceil);

/* What ONNX says of a window: kernel_shape, strides, dilations, pads, auto_pad for `rank` spatial
 * dims.  kernel[0] is 0 when kernel_shape is absent.  NULL, or the poison value after an error of
 * the graph. */
typedef struct fac_window_onnx {
    int64_t kernel[3], stride[3], dilation[3], pad[6];
    fac_auto_pad auto_pad;
} fac_window_onnx;
fac_value *fac_window_load(const fac_onnx_node *n, fac_graph *g, int rank, fac_window_onnx *to);

/* The inverse, for the ONNX node that was put last: every attribute of the op's own table that
 * tells of its window. */
void fac_window_save(const fac_onnx_writer *w, const fac_node *n);

/* Outputs first..last-1 whose tap k lies inside the input. */
static inline void fac_window_inside(const fac_window *w, int64_t k, int64_t *first,
                                     int64_t *last) {
    int64_t at = w->pad - k * w->dilation; /* output i reads input i stride - at */
    int64_t lo = at > 0 ? (at + w->stride - 1) / w->stride : 0;
    int64_t hi = w->in + at > 0 ? (w->in + at - 1) / w->stride + 1 : 0;
    *first = lo < w->out ? lo : w->out;
    *last = hi < w->out ? hi : w->out;
    if (*last < *first) *last = *first;
}

/* Taps first..last-1 of output i that lie inside the input, and how many do not reach after the
 * end of the padding. */
static inline int64_t fac_window_taps(const fac_window *w, int64_t i, int64_t *first,
                                      int64_t *last) {
    int64_t at = i * w->stride - w->pad, end = w->in + w->pad_end;
    *first = at < 0 ? (-at + w->dilation - 1) / w->dilation : 0;
    *last = w->in > at ? (w->in - 1 - at) / w->dilation + 1 : 0;
    if (*last > w->kernel) *last = w->kernel;
    if (*first > *last) *first = *last;
    int64_t padded = end > at ? (end - 1 - at) / w->dilation + 1 : 0;
    return padded < w->kernel ? padded : w->kernel;
}
#endif
