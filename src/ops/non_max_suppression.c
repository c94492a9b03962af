/* Of boxes that overlap, those of the highest scores.  How many are left is data: the kernel fills
 * a list as long as it may become, and says how many there are; a slice that steers the shape takes
 * these. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/boxes.h"
#include "ops/fusions.h"
#include "ops/host_list.h"
#include "ops/known.h"
#include "op_list.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* boxes [B,N,4], scores [B,C,N], floats -> i64 [how many, 3]: numbers of image, class and box; by
 * image and class, the highest score first, of equal ones the lower number.  Boxes are y1, x1, y2,
 * x2 of two corners; with centers center x, center y, width, height.  most: an i64, so many at most
 * for each class of each image; NULL: none.  iou: a float, boxes that overlap by more than this are
 * left out; NULL: 0.  score: a float, boxes of no larger score are left out; NULL: none is. */
fac_value *fac_non_max_suppression(fac_value *boxes, fac_value *scores, fac_value *most,
                                   fac_value *iou, fac_value *score, bool centers);
#endif

typedef struct attrs {
    bool centers;
} attrs;
static const fac_attr table[] = { { "centers", FAC_A_FLAG, offsetof(attrs, centers), 0, 0, 0, 0,
                                    NULL, "boxes are centers and sizes" },
                                  { 0 } };
static const fac_port in[] = { { "boxes", FAC_FLOATS, 0 },
                               { "scores", FAC_FLOATS, 0 },
                               { "most", FAC_INTS, FAC_OPTIONAL },
                               { "iou", FAC_FLOATS, FAC_OPTIONAL },
                               { "score", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };
enum { MOST = 2, IOU, SCORE };
static const fac_port out[] = { { "selected", FAC_INTS, 0 }, { "count", FAC_INTS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *b = &n->in[0]->type.dims, *s = &n->in[1]->type.dims;
    if (b->n != 3 || s->n != 3 || (b->d[2] >= 0 && b->d[2] != 4))
        return fac_fail(n, FAC_E_SHAPE, "boxes must be B,N,4 and scores B,C,N");
    if (b->d[0] >= 0 && s->d[0] >= 0 && b->d[0] != s->d[0])
        return fac_fail(n, FAC_E_SHAPE, "boxes and scores of other batches");
    if (b->d[1] >= 0 && s->d[2] >= 0 && b->d[1] != s->d[2])
        return fac_fail(n, FAC_E_SHAPE, "boxes and scores of other numbers");
    for (int k = MOST; k <= SCORE; k++)
        if (n->in[k] && !fac_may_be_one(n->in[k]))
            return fac_fail(n, FAC_E_SHAPE, "%s must be one number", in[k].name);
    fac_graph *g = n->graph;
    const int64_t rows = fac_size_product(g, fac_size_product(g, s->d[0], s->d[1]), s->d[2]);
    n->out[0]->type = (fac_type){ FAC_I64, fac_shape(rows, 3) };
    n->out[1]->type = (fac_type){ FAC_I64, fac_shape(1) };
    return true;
}

typedef struct rule {
    bool centers;
    int64_t most;
    double iou, score;
} rule;

static rule rule_of(const fac_ref *r) {
    const fac_array *most = &r->in[MOST], *iou = &r->in[IOU], *score = &r->in[SCORE];
    rule to = { ((const attrs *)r->attrs)->centers, 0, 0, -INFINITY };
    if (most->i) to.most = most->i[0];
    if (iou->f) to.iou = iou->f[0];
    if (score->f) to.score = score->f[0];
    return to;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_dims *s = &r->in[1].type.dims;
    const rule how = rule_of(r);
    const int64_t n = s->d[2];
    fac_box_candidate *all = fac_alloc((size_t)n + 1, sizeof *all);
    fac_box *boxes = fac_alloc((size_t)n + 1, sizeof *boxes),
            *kept = fac_alloc((size_t)n + 1, sizeof *kept);
    int64_t *left = fac_alloc((size_t)n + 1, sizeof *left), rows = 0;
    const bool room = all && boxes && kept && left;
    for (int64_t b = 0; b < s->d[0] && room; b++) {
        for (int64_t k = 0; k < n; k++)
            boxes[k] = fac_box_at(r->in[0].f + (b * n + k) * 4, how.centers);
        for (int64_t c = 0; c < s->d[1]; c++) {
            const double *scores = r->in[1].f + (b * s->d[1] + c) * n;
            int64_t count = 0;
            for (int64_t k = 0; k < n; k++)
                if (scores[k] > how.score) all[count++] = (fac_box_candidate){ scores[k], k };
            count = fac_boxes_choose(boxes, how.most, how.iou, all, count, kept, left);
            for (int64_t k = 0; k < count; k++, rows++) {
                int64_t *to = r->out[0].i + 3 * rows;
                to[0] = b;
                to[1] = c;
                to[2] = left[k];
            }
        }
    }
    const int64_t whole = fac_dims_count(&r->out[0].type.dims);
    for (int64_t k = 3 * rows; k < whole; k++) r->out[0].i[k] = -1;
    r->out[1].i[0] = rows;
    fac_release(all);
    fac_release(boxes);
    fac_release(kept);
    fac_release(left);
    return room ? FAC_OK : fac_raise_memory(err, "%lld boxes", (long long)n);
}

/* ---- ONNX ---- */

/* What is there with no elements is absent. */
static fac_value *some(const fac_onnx_node *n, fac_value *const x[], int k) {
    fac_value *v = fac_onnx_in(n, x, k);
    return v && fac_dims_count(&v->type.dims) != 0 ? v : NULL;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = fac_non_max_suppression(x[0], x[1], some(n, x, MOST), some(n, x, IOU), some(n, x, SCORE),
                                   fac_onnx_int(n, "center_point_box", 0) != 0);
}
static const fac_onnx_attr names[] = { { "center_point_box", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "NonMaxSuppression", 10, 0, names, load, 0 }, { 0 } };

/* All who read the list cut it at its length. */
static bool only_cut(const fac_node *n) {
    fac_contents first, axis;
    if (n->out[0]->roots) return false;
    for (const fac_use *u = n->out[0]->uses; u; u = u->next) {
        const fac_node *m = u->node;
        if (!FAC_IS(m, slice) || u->input || m->in[2] != n->out[1] || m->in[4] ||
            !fac_host_numbers(m, 1, &first) || first.v[0] || !fac_host_numbers(m, 3, &axis) ||
            axis.v[0])
            return false;
    }
    return true;
}

/* As many rows of -1 as are missing. */
static const char *filled(const fac_onnx_writer *w, const fac_node *n, const char *found,
                          const char *count, const char *list) {
    const int64_t none = 0, columns[] = { -1, 3 };
    const char *zero = fac_onnx_list(w, 1, &none), *scores = fac_onnx_name(w, n->in[1]);
    const char *sizes = fac_onnx_put(w, "Shape", 1, &scores, NULL);
    const char *rows = fac_onnx_put(w, "ReduceProd", 1, &sizes, NULL);
    const char *missing = fac_onnx_put(w, "Sub", 2, (const char *[]){ rows, count }, NULL);
    const char *by =
        fac_onnx_put(w, "Concat", 4, (const char *[]){ zero, zero, missing, zero }, NULL);
    fac_onnx_put_int(w, "axis", 0);
    const char *all = fac_onnx_put(
        w, "Pad", 3, (const char *[]){ found, by, fac_onnx_number(w, FAC_I64, -1) }, NULL);
    return fac_onnx_put(w, "Reshape", 2, (const char *[]){ all, fac_onnx_list(w, 2, columns) },
                        list);
}

/* The list and its length. */
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const int64_t none = 0, one = 1;
    if (w->opset < 11) return false;
    const char *ins[5];
    for (int k = 0; k < 5; k++) ins[k] = k < MOST ? fac_onnx_name(w, n->in[k]) : NULL;
    if (n->in[MOST]) ins[MOST] = fac_onnx_list_of(w, n->in[MOST]);
    for (int k = IOU; k <= SCORE; k++)
        if (n->in[k]) ins[k] = fac_onnx_ranked(w, n->in[k], 1);
    const char *list = fac_onnx_name(w, n->out[0]);
    const bool whole = list && !only_cut(n);
    const char *found = fac_onnx_put(w, "NonMaxSuppression", 5, ins, whole ? NULL : list);
    if (((const attrs *)n->attrs)->centers) fac_onnx_put_int(w, "center_point_box", 1);
    const char *zero = fac_onnx_list(w, 1, &none);
    const char *first[] = { fac_onnx_put(w, "Shape", 1, &found, NULL), zero,
                            fac_onnx_list(w, 1, &one) };
    const char *count = fac_onnx_put(w, "Slice", 3, first, fac_onnx_name(w, n->out[1]));
    if (whole) filled(w, n, found, count, list);
    return true;
}

static const fac_case cases[] = {
    { "non_max_suppression(f32[2,9,4], f32[2,3,9], i64(4), f32(0.3), f32(0.1))", 0, 1, 0 },
    { "non_max_suppression(f32[1,9,4], f32[1,2,9], i64(9), f32(0.1), -) centers", 0, 1, 0 },
    { "non_max_suppression(f32[1,0,4], f32[1,2,0], i64(9), -, -)", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_non_max_suppression = {
    .name = "non_max_suppression",
    .doc = "of boxes that overlap, those of the highest scores",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_non_max_suppression(fac_value *boxes, fac_value *scores, fac_value *most,
                                   fac_value *iou, fac_value *score, bool centers) {
    fac_value *const in_[] = { boxes, scores, most, iou, score };
    fac_value *list = fac_emit(&fac_op_non_max_suppression, &(attrs){ centers }, 5, in_);
    fac_value *zero = fac_ints(list->graph, fac_shape(0)), *count = fac_value_other(list, 1);
    return fac_emit(&fac_op_slice, NULL, 4, (fac_value *[]){ list, zero, count, zero });
}
