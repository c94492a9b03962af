/* Slice as ONNX means it: backwards from before the first element there is that element, where
 * Python has none. */
#include "op_list.h"
#include "ops/host_list.h"
#include "ops/onnx_in.h"
#include "ops/onnx_put.h"
#include "ops/shape.h"
#include "ops/slice.h"

enum { STARTS = 1, ENDS, AXES, STEPS };

/* Steps of which some may be negative. */
static bool may_go_back(const fac_value *steps) {
    fac_contents c;
    if (!steps) return false;
    bool back = !fac_known_numbers(steps, &c);
    for (int k = 0; k < c.n && !back; k++) back = c.v[k] < 0;
    return back;
}

/* The size of axis k of a list, or of dim k without one; -1: not known. */
static int64_t size_of(const fac_value *x, const fac_value *axes, int k) {
    const fac_dims *d = &x->type.dims;
    fac_contents c;
    if (x->guess == FAC_RANKLESS || (axes && !fac_known_numbers(axes, &c))) return -1;
    const int axis = axes ? fac_axis(c.v[k], d->n) : k;
    return axis >= 0 && axis < d->n && d->d[axis] >= 0 ? d->d[axis] : -1;
}

/* Whether start k lies before the first element: 0 no, 1 yes, -1 not known. */
static int is_before(const fac_value *x, const fac_value *starts, const fac_value *axes, int k) {
    fac_contents c;
    if (!fac_known_numbers(starts, &c)) return -1;
    if (c.v[k] >= -1) return 0; /* of no elements there is nothing before the first one */
    const int64_t size = size_of(x, axes, k);
    return size < 0 ? -1 : c.v[k] < -size;
}

/* The places that are not known to be after the first element, of those that go back. */
static bool any_before(const fac_value *x, fac_value *const in[]) {
    fac_contents steps;
    const int count = fac_host_length(in[STARTS]);
    if (!may_go_back(in[STEPS])) return false;
    if (count < 0 || !fac_known_numbers(in[STEPS], &steps) || steps.n != count) return true;
    for (int k = 0; k < count; k++)
        if (steps.v[k] < 0 && is_before(x, in[STARTS], in[AXES], k)) return true;
    return false;
}

/* The numbers of a list that is known, without the nodes that made it. */
static fac_value *settled(fac_value *v) {
    fac_contents c;
    if (!fac_known_numbers(v, &c)) return v;
    fac_value *list = fac_ints_long(v->graph, c.v, c.n);
    return v->type.dtype == FAC_I64 ? list : fac_cast(list, v->type.dtype);
}

static fac_value *goes_back(fac_value *steps) { return fac_less(steps, fac_number_as(steps, 0)); }

/* No start of those that go back is before the first element. */
static fac_value *begun(fac_value *x, fac_value *const in[]) {
    fac_value *starts = in[STARTS], *axes = in[AXES];
    fac_graph *g = starts->graph;
    if (!axes)
        axes =
            fac_arange(fac_number(g, FAC_I64, 0), fac_dim_of(starts, 0), fac_number(g, FAC_I64, 1));
    fac_value *sizes = fac_cast(fac_gather(fac_shape_of(x), axes, 0), starts->type.dtype);
    return settled(fac_where(goes_back(in[STEPS]), fac_max(starts, fac_neg(sizes)), starts));
}

/* Opset 10 says that the largest number is the end of a dim, also of one that is sliced backwards;
 * later ones have the smallest number there. */
static fac_value *ended(fac_value *const in[]) {
    fac_value *ends = in[ENDS];
    const fac_dtype dtype = ends->type.dtype;
    fac_value *least = fac_number(ends->graph, dtype, dtype == FAC_I64 ? -0x1p63 : INT32_MIN);
    fac_value *last = fac_equal(ends, fac_number(ends->graph, dtype, INT32_MAX));
    if (dtype == FAC_I64)
        last = fac_or(last, fac_equal(ends, fac_ints(ends->graph, fac_shape(INT64_MAX))));
    return settled(fac_where(fac_and(goes_back(in[STEPS]), last), least, ends));
}

void fac_load_slice(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_value *in[5];
    (void)g;
    for (int k = 0; k < 5; k++) in[k] = fac_onnx_in(n, x, k);
    if (any_before(in[0], in)) in[STARTS] = begun(in[0], in);
    if (n->opset == 10 && may_go_back(in[STEPS])) in[ENDS] = ended(in);
    y[0] = fac_emit(&fac_op_slice, NULL, 5, in);
}

/* Where a start that goes back is before the first element nothing is taken: from 0 to 0. */
bool fac_save_slice(const fac_onnx_writer *w, const fac_node *n) {
    const int64_t first = 0;
    const char *ins[5];
    if (w->opset < 10) return false;
    if (!any_before(n->in[0], n->in)) return fac_onnx_plain(w, n);
    for (int k = 0; k < 5; k++)
        ins[k] = k && n->in[k] ? fac_onnx_list_of(w, n->in[k]) : fac_onnx_name(w, n->in[k]);
    const char *sizes = fac_onnx_unary(w, "Shape", ins[0], NULL),
               *none = fac_onnx_list(w, 1, &first);
    if (ins[AXES])
        sizes = fac_onnx_binary(w, "Gather", sizes, ins[AXES], NULL);
    else {
        const char *part[] = { sizes, none, fac_onnx_unary(w, "Shape", ins[STARTS], NULL) };
        sizes = fac_onnx_put(w, "Slice", 3, part, NULL);
    }
    const char *before =
        fac_onnx_binary(w, "Less", ins[STARTS], fac_onnx_unary(w, "Neg", sizes, NULL), NULL);
    const char *back = fac_onnx_binary(w, "Less", ins[STEPS], none, NULL);
    before = fac_onnx_binary(w, "And", before, back, NULL);
    for (int k = STARTS; k <= ENDS; k++)
        ins[k] = fac_onnx_put(w, "Where", 3, (const char *[]){ before, none, ins[k] }, NULL);
    fac_onnx_put(w, "Slice", 5, ins, fac_onnx_name(w, n->out[0]));
    return true;
}
