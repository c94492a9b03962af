/* Every op of the table: its descriptor is complete, its cases have edges, its view is its move. */
#include "op_trial.h"
#include "base/table.h"
#include "op_list.h"
#include "passes/passes.h"

/* ---- the descriptors ---- */

static void descriptors_are_complete(void **state) {
    (void)state;
    for (const fac_op *const *p = fac_ops; *p; p++) {
        const fac_op *op = *p;
        if (!op->name || !op->doc || !*op->doc) fail_msg("%s has no text", op->name);
        if (p[1] && strcmp(op->name, p[1]->name) >= 0) fail_msg("%s is not sorted", op->name);
        if (fac_op_find(op->name) != op) fail_msg("%s is not found by its name", op->name);
        bool bodies = op->is & FAC_OP_BODIES;
        if (!op->infer || !op->out || !ports(op->out)) fail_msg("%s has no results", op->name);
        if (!bodies && !op->map && !op->move && !op->ref && !op->host && !op->expand)
            fail_msg("%s has no meaning", op->name);
        if (op->map && ports(op->in) != op->map->inputs)
            fail_msg("%s: its expression has other inputs than the op", op->name);
        if (op->map && !op->map->f32[0] != !op->map->f64[0])
            fail_msg("%s has one float loop only", op->name);
        if (!op->cases || !op->cases->problem) fail_msg("%s has no case", op->name);
        for (const fac_attr *a = op->attrs; a && a->name; a++)
            if (a->at >= op->attrs_size || !a->help)
                fail_msg("%s: attribute %s", op->name, a->name);
        for (const fac_onnx *o = op->onnx; o && o->type; o++)
            if (!o->domain || o->since < 1 || (o->until && o->until < o->since))
                fail_msg("%s: ONNX %s", op->name, o->type);
    }
}

/* Ops with float results say how they round, or that no rule knows; `verify` takes nothing for
 * exact by mistake. */
static void floats_say_how_they_round(void **state) {
    (void)state;
    for (const fac_op *const *p = fac_ops; *p; p++) {
        const fac_rounding *r = &(*p)->rounding;
        bool floats = false;
        for (const fac_port *o = (*p)->out; o && o->name; o++)
            floats |= (o->takes & FAC_FLOATS) != 0;
        if (floats && r->rule == FAC_ROUND_UNSAID)
            fail_msg("%s does not say how it rounds", (*p)->name);
        if (r->rule >= FAC_ROUNDS) fail_msg("%s: rounding %d", (*p)->name, (int)r->rule);
        if ((r->rule == FAC_ROUND_SMOOTH) != (r->slope > 0))
            fail_msg("%s: slope %g", (*p)->name, r->slope);
        if (r->times_x && r->rule != FAC_ROUND_SMOOTH)
            fail_msg("%s: times_x without a slope", (*p)->name);
    }
}

/* No two ops may claim one ONNX operator of one opset. */
static void onnx_names_are_unique(void **state) {
    (void)state;
    for (const fac_op *const *p = fac_ops; *p; p++)
        for (const fac_onnx *a = (*p)->onnx; a && a->type; a++)
            for (const fac_op *const *q = fac_ops; *q; q++)
                for (const fac_onnx *b = (*q)->onnx; b && b->type; b++)
                    if (a != b && !strcmp(a->type, b->type) && !strcmp(a->domain, b->domain) &&
                        a->since <= (b->until ? b->until : 9999) &&
                        b->since <= (a->until ? a->until : 9999))
                        fail_msg("%s and %s both load %s", (*p)->name, (*q)->name, a->type);
}

/* Elementwise ops and movers must show that they do nothing wrong with empty and 0-d tensors. */
static void cases_have_edges(void **state) {
    (void)state;
    for (const fac_op *const *p = fac_ops; *p; p++) {
        bool empty = false, scalar = false;
        for (const fac_case *c = (*p)->cases; c && c->problem; c++) {
            empty = empty || strstr(c->problem, "[0") || strstr(c->problem, ",0") ||
                    strstr(c->problem, "{0");
            scalar = scalar || strstr(c->problem, "[]");
        }
        if ((*p)->map && !(empty && scalar))
            fail_msg("%s: no case of an empty or of a 0-d tensor", (*p)->name);
    }
}

/* ---- views ---- */

static int64_t place(const fac_layout *l, const fac_dims *d, const int64_t *i) {
    int64_t at = l->offset;
    for (int k = 0; k < d->n; k++) at += i[k] * l->stride[k];
    return at;
}

static void next_index(const fac_dims *d, int64_t *i) {
    for (int k = d->n - 1; k >= 0; k--) {
        if (++i[k] < d->d[k]) return;
        i[k] = 0;
    }
}

/* view() says where an element of the result lies, move() where it comes from: the same place,
 * whatever the input's layout. */
static int view_agrees(const fac_node *n, const fac_layout *layout, const char *text) {
    fac_layout out[OPERANDS];
    fac_array in[OPERANDS] = { 0 };
    assert_true(n->nin <= OPERANDS && n->nout <= OPERANDS);
    memset(out, 0, sizeof out);
    if (!n->op->view(n, layout, out)) return 0;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]) {
            in[i].type = n->in[i]->type;
            in[i].i = n->in[i]->known ? n->in[i]->known->v : NULL;
        }
    for (int k = 0; k < n->nout; k++) {
        const fac_dims *d = &n->out[k]->type.dims;
        fac_move m = { n->attrs, n->nin, k, in, *d };
        int64_t to[FAC_DIMS] = { 0 }, from[FAC_DIMS] = { 0 }, count = fac_dims_count(d);
        for (int64_t e = 0; e < count; e++, next_index(d, to)) {
            int input = 0;
            if (n->op->ref && !n->op->move)
                memcpy(from, to, sizeof from); /* cast to the same dtype */
            else
                assert_true(n->op->move(&m, to, &input, from) && input == 0);
            if (place(&out[k], d, to) != place(layout, &in[0].type.dims, from))
                fail_msg("%s: the view disagrees at %lld", text, (long long)e);
        }
    }
    return 1;
}

static void views_agree_with_moves(void **state) {
    (void)state;
    int views = 0;
    for (const fac_op *const *p = fac_ops; *p; p++)
        for (const fac_case *c = (*p)->cases; (*p)->view && c && c->problem; c++) {
            fac_graph *g = NULL;
            OK(fac_problem_graph(c->problem, false, &g, &err));
            const fac_node *n = g->last;
            const fac_dims *d = &n->in[0]->type.dims;
            fac_layout plain = fac_layout_plain(d), odd = { .offset = 5 }, still = { .offset = 3 };
            int64_t step = 3;
            for (int k = 0; k < d->n; k++) {
                odd.stride[k] = step;
                step *= d->d[k] + 1;
            }
            if (n->op == *p && !view_agrees(n, &plain, c->problem) && !strstr(c->problem, "-1}") &&
                !strstr(c->problem, "-2}") && strncmp(c->problem, "cast", 4))
                fail_msg("%s is no view of a contiguous input", c->problem);
            views += view_agrees(n, &plain, c->problem) + view_agrees(n, &odd, c->problem) +
                     view_agrees(n, &still, c->problem);
            if (d->n == 4)
                assert_true(FAC_IS(n, identity) || FAC_IS(n, stop) || FAC_IS(n, cast) ||
                            !n->op->view(n, &(fac_layout){ .block = 8, .axis = 1 }, &odd));
            fac_graph_free(g);
        }
    assert_true(views > 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_are_complete), cmocka_unit_test(floats_say_how_they_round),
        cmocka_unit_test(onnx_names_are_unique),    cmocka_unit_test(cases_have_edges),
        cmocka_unit_test(views_agree_with_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
