/* Recognises bodies of convolutions and matrix products:  [add(_, bias)] [add(_, x1)]  then any
 * chain of elementwise ops of one operand, of which a first relu or clip is done in registers;  or
 * [add(_, x1)]  then  where(x2 > lo, _, 0). */
#include <math.h>
#include <string.h>
#include "backends/cpu/elementwise/epilogue.h"
#include "graph/graph_internal.h"
#include "op_list.h"

/* A constant number in the graph: what fac_number made. */
static bool number(const fac_value *v, float *to) {
    if (!v || v->leaf != FAC_CONST || !v->tensor || v->type.dtype != FAC_F32 ||
        fac_dims_count(&v->type.dims) != 1)
        return false;
    const float *data = fac_tensor_data(v->tensor);
    if (data) *to = *data;
    return data != NULL;
}

bool fac_cpu_is_clip(const fac_node *n, float *lo, float *hi) {
    *lo = -INFINITY;
    *hi = INFINITY;
    if (FAC_IS(n, relu)) return *lo = 0, true;
    if (FAC_IS(n, max)) return n->nin == 2 && number(n->in[1], lo);
    if (FAC_IS(n, min)) return n->nin == 2 && number(n->in[1], hi);
    return FAC_IS(n, clip) && n->nin == 3 && number(n->in[1], lo) && number(n->in[2], hi);
}

/* An elementwise op of one operand. */
static bool add_loop(const fac_node *n, const fac_simd *simd, fac_epilogue *e) {
    const fac_map *m = n->op->map;
    if (!m || m->inputs != 1 || !m->f32[simd->isa] || e->loops == FAC_EPILOGUE_LOOPS ||
        n->op->attrs_size > sizeof e->loop[0].p)
        return false;
    e->loop[e->loops].f = m->f32[simd->isa];
    if (n->op->attrs_size) memcpy(e->loop[e->loops].p, n->attrs, n->op->attrs_size);
    e->loops++;
    return true;
}

/* The problem's input that v of its body is, of the type of what the node itself made; -1: it is
 * none. */
static int operand_of(const fac_problem *p, const fac_value *v) {
    const fac_graph *body = p->node->body[0];
    const fac_type *own = &fac_graph_input(body, 0)->type;
    if (v->leaf != FAC_INPUT || v->type.dtype != own->dtype ||
        !fac_dims_equal(&v->type.dims, &own->dims))
        return -1;
    for (int k = 1; k < fac_graph_inputs(body); k++)
        if (fac_graph_input(body, k) == v) return p->node->nports + k - 1;
    return -1;
}

/* where(mask <= lo, 0, now) */
static bool add_mask(const fac_problem *p, const fac_node *n, const fac_value *now,
                     fac_epilogue *e) {
    const fac_node *test = n->in[0]->node;
    float zero;
    if (n->in[2] != now || !number(n->in[1], &zero) || zero != 0 || !test ||
        !FAC_IS(test, less_or_equal))
        return false;
    e->mask = operand_of(p, test->in[0]);
    return e->mask >= 0 && number(test->in[1], &e->mask_lo);
}

/* Which biases a kernel knows: one number for each channel of an image, for each column. */
typedef enum biases { NONE, CHANNELS, COLUMNS } biases;

/* The problem's input that v of its body is, with a number for each channel or column; -1: it is
 * none. */
static int bias_of(const fac_problem *p, const fac_value *v, biases known) {
    const fac_graph *body = p->node->body[0];
    const fac_dims *own = &fac_graph_input(body, 0)->type.dims, *d = &v->type.dims;
    const int inner = known == CHANNELS ? 3 : 1; /* dims from the axis of the bias on */
    if (known == NONE || v->leaf != FAC_INPUT || v->type.dtype != FAC_F32) return -1;
    if ((known == CHANNELS && own->n != 4) || own->n < inner || d->n < inner || d->n > own->n)
        return -1;
    if (known == COLUMNS && fac_dims_equal(own, d)) return -1; /* one row: a residual */
    const int64_t n = own->d[own->n - inner];
    if (d->d[d->n - inner] != n || fac_dims_count(d) != n) return -1;
    for (int k = 1; k < fac_graph_inputs(body); k++)
        if (fac_graph_input(body, k) == v) return p->node->nports + k - 1;
    return -1;
}

static bool recognized(const fac_problem *p, const fac_simd *simd, biases known, fac_epilogue *e);

bool fac_cpu_epilogue_masked(const fac_problem *p, const fac_simd *simd, fac_epilogue *e) {
    return recognized(p, simd, NONE, e);
}

bool fac_cpu_epilogue_biased(const fac_problem *p, const fac_simd *simd, fac_epilogue *e) {
    return recognized(p, simd, CHANNELS, e) && (e->mask < 0 || e->bias < 0);
}

bool fac_cpu_epilogue_columns(const fac_problem *p, const fac_simd *simd, fac_epilogue *e) {
    return recognized(p, simd, COLUMNS, e) && e->mask < 0;
}

bool fac_cpu_epilogue(const fac_problem *p, const fac_simd *simd, fac_epilogue *e) {
    return fac_cpu_epilogue_masked(p, simd, e) && e->mask < 0;
}

static bool recognized(const fac_problem *p, const fac_simd *simd, biases known, fac_epilogue *e) {
    *e = (fac_epilogue){ .residual = -1, .bias = -1, .lo = -INFINITY, .hi = INFINITY, .mask = -1 };
    const fac_graph *body = p->node->body[0];
    if (!body) return true;
    if (fac_graph_outputs(body) != 1) return false;
    const fac_value *now = fac_graph_input(body, 0);
    bool clipped = false;
    for (const fac_node *n = body->first; n; n = n->next) {
        const fac_node *next = n->next;
        if (FAC_IS(n, less_or_equal) && next && FAC_IS(next, where) && next->in[0] == n->out[0])
            continue;
        if (n->nout != 1 || n->nin < 1 || n->out[0]->type.dtype != FAC_F32 || e->mask >= 0)
            return false;
        if (!fac_dims_equal(&n->out[0]->type.dims, &now->type.dims)) return false;
        float lo, hi;
        if (FAC_IS(n, add) && n->nin == 2) {
            const fac_value *other = fac_other_input(n, now);
            if (!other || other == now || clipped || e->loops) return false;
            const int bias = e->bias < 0 ? bias_of(p, other, known) : -1;
            if (bias >= 0)
                e->bias = bias;
            else if (e->residual >= 0 || (e->residual = operand_of(p, other)) < 0)
                return false;
        } else if (FAC_IS(n, where)) {
            if (clipped || e->loops || !add_mask(p, n, now, e)) return false;
        } else if (n->in[0] != now)
            return false;
        else if (!clipped && !e->loops && fac_cpu_is_clip(n, &lo, &hi)) {
            e->lo = lo;
            e->hi = hi;
            clipped = true;
        } else if (!add_loop(n, simd, e))
            return false;
        now = n->out[0];
    }
    return fac_graph_output(body, 0) == now;
}
