/* Making sequences and taking them apart, when a file is read: SequenceConstruct and its like. */
#include "base/error.h"
#include "graph/graph_internal.h"
#include "facula/ops.h"
#include "graph/list.h"

static fac_value **room(fac_graph *g, int n) {
    fac_value **to = fac_arena_alloc(&g->arena, (size_t)n + 1, sizeof *to);
    if (!to) fac_fail_graph(g, FAC_E_NOMEM, "no memory for a sequence of %d", n);
    return to;
}

static void construct(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                      fac_value *out[]) {
    for (int k = 0; k < n->nin; k++)
        if (!in[k] || fac_is_list(in[k])) {
            fac_fail_graph(g, FAC_E_FORMAT, "SequenceConstruct: its input %d must be a tensor", k);
            return;
        }
    out[0] = fac_list_new(g, n->nin, in);
}

static void empty(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    (void)n, (void)in;
    out[0] = fac_list_new(g, 0, NULL);
}

static void length(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_value *list = fac_list_in(n, g, in, 0);
    if (list) out[0] = fac_number(g, FAC_I64, fac_list_count(list));
}

/* Of equal types: which one may be data. */
static bool alike(const fac_value *list) {
    for (int k = 1; k < fac_list_count(list); k++) {
        const fac_type *a = &fac_list_item(list, 0)->type, *b = &fac_list_item(list, k)->type;
        if (a->dtype != b->dtype || !fac_dims_equal(&a->dims, &b->dims)) return false;
    }
    return fac_list_count(list) > 0;
}

static fac_value *stacked(fac_graph *g, const fac_value *list, int axis) {
    fac_value **all = room(g, fac_list_count(list));
    for (int k = 0; all && k < fac_list_count(list); k++)
        all[k] = fac_unsqueeze(fac_list_item(list, k), fac_shape(axis));
    return all ? fac_concat(all, fac_list_count(list), axis) : g->poison;
}

static void at(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_value *list = fac_list_in(n, g, in, 0);
    fac_contents c;
    if (!list) return;
    if (!fac_known_numbers(in[1], &c) && alike(list)) {
        out[0] = fac_gather(stacked(g, list, 0), fac_reshape(in[1], (fac_dims){ 0 }), 0);
        return;
    }
    const int k = fac_list_position(n, list, in[1], 0);
    if (k >= 0) out[0] = fac_list_item(list, k);
}

static void insert(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_value *list = fac_list_in(n, g, in, 0);
    if (!list) return;
    const int count = fac_list_count(list),
              k = n->nin > 2 && in[2] ? fac_list_position(n, list, in[2], 1) : count;
    fac_value **all = room(g, count + 1);
    if (k < 0 || !all) return;
    for (int i = 0; i <= count; i++) all[i] = i == k ? in[1] : fac_list_item(list, i - (i > k));
    out[0] = fac_list_new(g, count + 1, all);
}

static void erase(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_value *list = fac_list_in(n, g, in, 0);
    if (!list) return;
    const int count = fac_list_count(list), last = count - 1;
    const int k = n->nin > 1 && in[1] ? fac_list_position(n, list, in[1], 0) : last;
    fac_value **all = room(g, count);
    if (k < 0 || !all) return;
    for (int i = 0; i < last; i++) all[i] = fac_list_item(list, i + (i >= k));
    out[0] = fac_list_new(g, last, all);
}

static void concat(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_value *list = fac_list_in(n, g, in, 0);
    const int64_t axis = fac_onnx_int(n, "axis", 0);
    const bool fresh = fac_onnx_int(n, "new_axis", 0) != 0;
    if (!list || !fac_list_count(list)) {
        if (list) fac_fail_graph(g, FAC_E_ARGUMENT, "ConcatFromSequence of no elements");
        return;
    }
    const int place = fac_axis(axis, fac_list_item(list, 0)->type.dims.n + fresh);
    if (place < 0)
        fac_fail_graph(g, FAC_E_SHAPE, "ConcatFromSequence along axis %lld", (long long)axis);
    else
        out[0] = fresh ? stacked(g, list, place)
                       : fac_concat(list->node->in, fac_list_count(list), place);
}

/* ---- SplitToSequence ---- */

/* Sizes of the parts, `count` of them; -1 after an error of the graph. */
static int sizes_of(fac_graph *g, const fac_value *x, int axis, const fac_value *split,
                    int64_t **sizes) {
    enum { MOST = 1 << 16 };
    fac_contents c = { .n = 1, .v = { 1 } };
    const int64_t whole = x->type.dims.d[axis];
    const bool list = split && split->type.dims.n == 1;
    if ((split && !fac_known_numbers(split, &c)) || (!list && (whole < 0 || whole > MOST))) {
        fac_fail_graph(g, FAC_E_UNSUPPORTED,
                       "SplitToSequence: sizes must be known when the file is read");
        return -1;
    }
    if (!list && c.v[0] < 1)
        return fac_fail_graph(g, FAC_E_ARGUMENT, "SplitToSequence into parts of %lld",
                              (long long)c.v[0]),
               -1;
    const int count = list ? c.n : (int)((whole + c.v[0] - 1) / c.v[0]);
    *sizes = fac_arena_alloc(&g->arena, (size_t)count + 1, sizeof **sizes);
    if (!*sizes) return fac_fail_graph(g, FAC_E_NOMEM, "no memory for a sequence"), -1;
    for (int k = 0; k < count; k++) (*sizes)[k] = c.v[list ? k : 0];
    if (!list && count) (*sizes)[count - 1] = whole - (int64_t)(count - 1) * c.v[0];
    return count;
}

static void split(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_value *by = n->nin > 1 ? in[1] : NULL;
    const int axis = fac_axis(fac_onnx_int(n, "axis", 0), in[0]->type.dims.n);
    const bool keep = fac_onnx_int(n, "keepdims", 1) != 0 || by;
    int64_t *sizes = NULL, from = 0;
    if (axis < 0) {
        fac_fail_graph(g, FAC_E_SHAPE, "SplitToSequence of %d dims", in[0]->type.dims.n);
        return;
    }
    const int count = sizes_of(g, in[0], axis, by, &sizes);
    fac_value **all = count < 0 ? NULL : room(g, count);
    if (!all) return;
    for (int k = 0; k < count; from += sizes[k++]) {
        all[k] = fac_slice(in[0], axis, from, from + sizes[k], 1);
        if (!keep) all[k] = fac_squeeze(all[k], fac_shape(axis));
    }
    out[0] = fac_list_new(g, count, all);
}

static const fac_onnx_attr dtype[] = { { "dtype", NULL }, { 0 } },
                           keepdims[] = { { "keepdims", NULL }, { 0 } };
const fac_onnx fac_reads_sequences[] = { { "", "SequenceConstruct", 11, 0, NULL, construct, 1 },
                                         { "", "SequenceEmpty", 11, 0, dtype, empty, 0 },
                                         { "", "SequenceLength", 11, 0, NULL, length, 1 },
                                         { "", "SequenceAt", 11, 0, NULL, at, 2 },
                                         { "", "SequenceInsert", 11, 0, NULL, insert, 2 },
                                         { "", "SequenceErase", 11, 0, NULL, erase, 1 },
                                         { "", "ConcatFromSequence", 11, 0, NULL, concat, 1 },
                                         { "", "SplitToSequence", 11, 0, keepdims, split, 1 },
                                         { 0 } };
