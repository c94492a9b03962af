/* The arithmetic of sliding windows, see window.h.  It has this name because headers are gathered
 * in the order of file names and the ops after it need the enum. */
#include <limits.h>
#include <string.h>
#include "ops/known.h"
#include "ops/window.h"

#if FAC_INTERFACE
/* Who chooses the padding of a sliding window: FAC_AUTO_NONE: the numbers in `pad`.  SAME: as much
 * as gives ceil(in / stride) outputs, the odd one of it after (upper) or in front (lower).  VALID:
 * none. */
typedef enum fac_auto_pad {
    FAC_AUTO_NONE,
    FAC_AUTO_SAME_UPPER,
    FAC_AUTO_SAME_LOWER,
    FAC_AUTO_VALID
} fac_auto_pad;
#endif

const char *const fac_auto_pad_names[] = { "none", "same_upper", "same_lower", "valid", NULL };

/* span = (kernel - 1) dilation + 1; false when it does not fit. */
static bool span_of(const fac_window *w, int64_t *span) {
    return w->kernel >= 1 && !__builtin_mul_overflow(w->kernel - 1, w->dilation, span) &&
           !__builtin_add_overflow(*span, 1, span);
}

const char *fac_window_settle(fac_window *w, fac_auto_pad how, bool ceil) {
    int64_t span, room;
    if (!span_of(w, &span)) return "an empty or absurdly large kernel";
    if (w->stride < 1 || w->dilation < 1) return "stride and dilation must be positive";
    if (how == FAC_AUTO_SAME_UPPER || how == FAC_AUTO_SAME_LOWER) {
        w->out = w->in / w->stride + (w->in % w->stride != 0);
        int64_t total = w->out > 0 ? (w->out - 1) * w->stride - w->in
                                   : 0; /* <= 0: the last window begins inside */
        total = total + span > 0 ? total + span : 0;
        w->pad = how == FAC_AUTO_SAME_UPPER ? total / 2 : total - total / 2;
        w->pad_end = total - w->pad;
        return NULL;
    }
    if (how == FAC_AUTO_VALID) w->pad = w->pad_end = 0;
    if (__builtin_add_overflow(w->in, w->pad, &room) ||
        __builtin_add_overflow(room, w->pad_end, &room))
        return "absurd padding";
    if (room < span) return "the kernel does not fit into the padded input";
    room -= span;
    w->out = room / w->stride + 1;
    if (ceil && room % w->stride && w->out * w->stride < w->in + w->pad) w->out++;
    return NULL;
}

bool fac_window_infer(fac_node *n, const char *dim, fac_window *w, fac_auto_pad how, bool ceil) {
    if (w->in >= 0 && w->kernel >= 0) {
        const char *wrong = fac_window_settle(w, how, ceil);
        if (!wrong) return true;
        return fac_fail(n, FAC_E_SHAPE,
                        "%s: %s (kernel %lld, dilation %lld, stride %lld, pad %lld and %lld)", dim,
                        wrong, (long long)w->kernel, (long long)w->dilation, (long long)w->stride,
                        (long long)w->pad, (long long)w->pad_end);
    }
    int64_t span = 0;
    bool same = how == FAC_AUTO_SAME_UPPER || how == FAC_AUTO_SAME_LOWER;
    if (w->kernel >= 0 && !span_of(w, &span))
        return fac_fail(n, FAC_E_SHAPE, "%s: an empty or absurdly large kernel", dim);
    if (w->in < 0 && w->stride == 1 &&
        (same || (w->kernel >= 0 && how == FAC_AUTO_NONE && w->pad + w->pad_end == span - 1))) {
        w->out = w->in;
        return true;
    }
    /* floor((in + add) / stride) + 1 */
    int64_t add = how == FAC_AUTO_NONE ? w->pad + w->pad_end - span : -span;
    if (same) add = -1;
    if (w->in >= 0 || w->kernel < 0 || ceil)
        w->out = fac_symbol(n->graph, NULL);
    else {
        fac_graph *g = n->graph;
        int64_t room = add < 0 ? fac_size_difference(g, w->in, -add) : fac_size_sum(g, w->in, add);
        w->out = fac_size_sum(g, fac_size_quotient(g, room, w->stride), 1);
    }
    return true;
}

static const char *const onnx_names[] = { "NOTSET", "SAME_UPPER", "SAME_LOWER",
                                          "VALID" }; /* as fac_auto_pad */

static fac_value *ints(const fac_onnx_node *n, fac_graph *g, const char *attr, int want,
                       int64_t least, int64_t *to) {
    int64_t v[6];
    int have = fac_onnx_ints_long(n, attr, v, 6);
    if (have < 0) return NULL;
    if (have != want)
        return fac_fail_graph(g, FAC_E_FORMAT, "%s: %s has %d numbers, expected %d", n->type, attr,
                              have, want);
    for (int k = 0; k < want; k++) {
        if (v[k] < least || v[k] > INT_MAX)
            return fac_fail_graph(g, FAC_E_FORMAT, "%s: %s holds %lld", n->type, attr,
                                  (long long)v[k]);
        to[k] = v[k];
    }
    return NULL;
}

fac_value *fac_window_load(const fac_onnx_node *n, fac_graph *g, int rank, fac_window_onnx *to) {
    fac_window_onnx w = { { 0 }, { 1, 1, 1 }, { 1, 1, 1 }, { 0 }, FAC_AUTO_NONE };
    fac_value *wrong = NULL;
    if ((wrong = ints(n, g, "kernel_shape", rank, 1, w.kernel)) ||
        (wrong = ints(n, g, "strides", rank, 1, w.stride)) ||
        (wrong = ints(n, g, "dilations", rank, 1, w.dilation)) ||
        (wrong = ints(n, g, "pads", 2 * rank, 0, w.pad)))
        return wrong;
    const char *how = fac_onnx_text(n, "auto_pad", "NOTSET");
    int k = 0;
    while (k < 4 && strcmp(how, onnx_names[k])) k++;
    if (k == 4) return fac_fail_graph(g, FAC_E_FORMAT, "%s: auto_pad is \"%s\"", n->type, how);
    w.auto_pad = (fac_auto_pad)k;
    *to = w;
    return NULL;
}

static const fac_attr *attr_of(const fac_node *n, const char *name) {
    for (const fac_attr *a = n->op->attrs; a->name; a++)
        if (!strcmp(a->name, name)) return a;
    return NULL;
}

static bool all_ones(const fac_attr *a, const int64_t *list) {
    int k = 0;
    while (k < a->count && list[k] == 1) k++;
    return a->count ? k == a->count : *list == 1;
}

void fac_window_save(const fac_onnx_writer *w, const fac_node *n) {
    static const struct {
        const char *ours, *onnx;
    } lists[] = { { "kernel", "kernel_shape" },       { "stride", "strides" },
                  { "dilation", "dilations" },        { "pad", "pads" },
                  { "output_pad", "output_padding" }, { "output_size", "output_shape" } };
    const fac_attr *kernel = attr_of(n, "kernel"), *groups = attr_of(n, "groups"),
                   *how = attr_of(n, "auto_pad");
    const char *attrs = n->attrs;
    const int auto_pad = *(const int *)(attrs + how->at);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const fac_attr *a = attr_of(n, lists[k].ours);
        if (!a || (auto_pad != FAC_AUTO_NONE && !strcmp(a->name, "pad"))) continue;
        const int64_t *list = (const int64_t *)(attrs + a->at);
        if (!strcmp(a->name, "stride") && *list == 0)
            list = (const int64_t *)(attrs + kernel->at); /* pooling: the kernel */
        bool usual = strcmp(a->name, "dilation") ? !strcmp(a->name, "output_size") && !*list
                                                 : all_ones(a, list);
        if (!usual) fac_onnx_put_ints(w, lists[k].onnx, a->count ? a->count : 1, list);
    }
    if (groups) fac_onnx_put_int(w, "group", *(const int64_t *)(attrs + groups->at));
    if (auto_pad != FAC_AUTO_NONE) fac_onnx_put_text(w, "auto_pad", onnx_names[auto_pad]);
}
