/* Parts of the tail of a graph as nodes: alone, in groups, after a matrix product.  See updates.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include "base/memory.h"
#include "facula/ops.h"
#include "op_list.h"
#include "graph/build.h"
#include "passes/training/updates.h"

enum { BYTES = 16 << 20 }; /* of what a group reads that was computed */

/* A part as a node of `to`, whose inputs are in[]; the node takes the body. */
static fac_node *emit_part(fac_graph *to, fac_tail_part *p, fac_value *const in[]) {
    fac_graph *body = p->body;
    p->body = NULL;
    return fac_emit_body(to, &fac_op_fused, NULL, p->nin, p->nin, in, body, NULL)->node;
}

static fac_value *now(const fac_tail *t, fac_value *v) {
    return t->became[v->id] ? t->became[v->id] : v;
}

/* Would a kernel take this part?  Asked of a node in a graph of its own. */
bool fac_tail_accepts(fac_tail *t, fac_tail_part *p) {
    fac_graph *trial = fac_graph_new();
    fac_tail_part copy = *p;
    fac_value *in[FAC_TAIL_INPUTS];
    bool ok = false;
    if (trial && (copy.body = fac_graph_clone(p->body))) {
        for (int i = 0; i < p->nin; i++) {
            char name[16];
            snprintf(name, sizeof name, "x%d", i);
            in[i] = fac_input(trial, name, p->in[i]->type.dtype, p->in[i]->type.dims);
        }
        const fac_node *n = emit_part(trial, &copy, in);
        ok = n && t->accept(t->self, n);
    }
    fac_graph_free(trial);
    return ok;
}

static void later(fac_node **after, fac_node *n) {
    if (n && (!*after || n->order > (*after)->order)) *after = n;
}

/* Everybody else who reads v, or a view of it. */
static void after_readers(const fac_tail *t, fac_tail_part *p, const fac_value *v) {
    for (const fac_use *u = v->uses; u; u = u->next) {
        if (u->node->id < t->ids && fac_in_tail(t, u->node)) continue;
        later(&p->after, u->node);
        for (int k = 0; k < u->node->nout && u->node->op->view && u->input == 0; k++)
            after_readers(t, p, u->node->out[k]);
    }
}

/* What is known of a part when those of the levels below are placed. */
static void find_place(const fac_tail *t, fac_tail_part *p) {
    p->after = NULL;
    p->bytes = 0;
    for (int i = 0; i < p->nin; i++) {
        const fac_value *v = now(t, p->in[i]);
        later(&p->after, v->node);
        if (v->node) p->bytes += fac_type_bytes(&v->type);
    }
    for (int k = 0; k < p->nout; k++)
        if (t->owner[p->out[k]->id]) after_readers(t, p, t->owner[p->out[k]->id]);
}

static int by_place(const void *a, const void *b) {
    const fac_tail_part *x = *(fac_tail_part *const *)a, *y = *(fac_tail_part *const *)b;
    const uint64_t i = x->after ? x->after->order : 0;
    const uint64_t k = y->after ? y->after->order : 0;
    return i != k ? (i > k) - (i < k) : (x->number > y->number) - (x->number < y->number);
}

/* The node and its values are what the parts' outputs are from now on; it stands after the last of
 * what they wait for. */
static void take_over(fac_tail *t, fac_node *n, fac_tail_part *const *of, int count) {
    fac_node *after = NULL;
    int k = 0;
    n->name = "update";
    for (int i = 0; i < count; i++) {
        later(&after, of[i]->after);
        for (int j = 0; j < of[i]->nout; j++) t->became[of[i]->out[j]->id] = n->out[k++];
    }
    if (after) fac_node_move(n, after);
}

static void emit_alone(fac_tail *t, fac_tail_part *p) {
    fac_value *in[FAC_TAIL_INPUTS];
    for (int i = 0; i < p->nin; i++) in[i] = now(t, p->in[i]);
    fac_node *n = emit_part(t->g, p, in);
    if (n) take_over(t, n, &p, 1);
}

/* The parts inside the body of a group; outer[] receives what its inputs stand for.  How many those
 * are, or -1. */
static int fill_group(fac_tail *t, fac_graph *body, fac_tail_part *const *of, int count,
                      fac_value **outer) {
    int n = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < of[i]->nin; k++) of[i]->in[k]->mark = NULL;
    for (int i = 0; i < count; i++) {
        fac_tail_part copy = *of[i];
        fac_value *in[FAC_TAIL_INPUTS];
        char name[24];
        for (int k = 0; k < copy.nin; k++) {
            fac_value *v = copy.in[k];
            if (!v->mark) {
                snprintf(name, sizeof name, "x%d", n);
                v->mark = fac_input(body, name, v->type.dtype, v->type.dims);
                outer[n++] = now(t, v);
            }
            in[k] = v->mark;
        }
        copy.body = fac_graph_clone(copy.body);
        const fac_node *m = copy.body ? emit_part(body, &copy, in) : NULL;
        if (!m) return -1;
        for (int k = 0; k < m->nout; k++) {
            snprintf(name, sizeof name, "y%zu", body->noutputs);
            fac_output(body, name, m->out[k]);
        }
    }
    return n;
}

/* The matrix product that only p reads, and whose result has the shape of its parts; NULL.  *input:
 * which input of p that is. */
static fac_node *product_of(const fac_tail *t, const fac_tail_part *p, int *input) {
    enum { LEAST = 128 << 10 };
    for (int i = 0; i < p->nin; i++) {
        const fac_value *v = p->in[i];
        fac_node *n = v->node;
        if (!n || n->op != &fac_op_matmul || n->body[0] || v->roots ||
            fac_type_bytes(&v->type) < LEAST)
            continue;
        bool own = fac_dims_equal(&v->type.dims, &p->out[0]->type.dims);
        for (const fac_use *u = v->uses; u && own; u = u->next)
            own = u->node->id >= t->ids || fac_tail_part_with(t, u->node->out[0]) == p;
        for (int k = 0; k < 2 && own; k++)
            own =
                n->in[k]->type.dims.n == 2 && !fac_dims_equal(&n->in[k]->type.dims, &v->type.dims);
        *input = i;
        if (own) return n;
    }
    return NULL;
}

/* A part with the product that it begins with, as one node; false when there is none, or no kernel
 * takes it. */
static bool emit_product(fac_tail *t, fac_tail_part *p) {
    int input, n = 2;
    const fac_node *product = product_of(t, p, &input);
    fac_graph *trial = product ? fac_graph_new() : NULL;
    fac_graph *body = product ? fac_graph_new() : NULL;
    fac_value *outer[FAC_TAIL_INPUTS + 1], *in[FAC_TAIL_INPUTS], *args[FAC_TAIL_INPUTS],
        *made[FAC_TAIL_OUTPUTS], *operand[2];
    fac_tail_part copy = *p;
    copy.body = product ? fac_graph_clone(p->body) : NULL;
    if (!trial || !body || !copy.body) {
        fac_graph_free(trial);
        fac_graph_free(body);
        fac_graph_free(copy.body);
        return false;
    }
    char name[16];
    for (int k = 0; k < 2; k++) {
        outer[k] = now(t, product->in[k]);
        snprintf(name, sizeof name, "x%d", k);
        operand[k] = fac_input(body, name, outer[k]->type.dtype, outer[k]->type.dims);
    }
    fac_value *result = fac_matmul(operand[0], operand[1]);
    for (int i = 0; i < p->nin; i++) {
        snprintf(name, sizeof name, "x%d", i);
        in[i] = fac_input(trial, name, p->in[i]->type.dtype, p->in[i]->type.dims);
        snprintf(name, sizeof name, "x%d", n);
        args[i] =
            i == input ? result : fac_input(body, name, p->in[i]->type.dtype, p->in[i]->type.dims);
        if (i != input) outer[n++] = now(t, p->in[i]);
    }
    const fac_node *m = emit_part(trial, &copy, in);
    if (m) fac_node_expand(body, m, args, made);
    for (int k = 0; m && k < m->nout; k++) {
        snprintf(name, sizeof name, "y%d", k);
        fac_output(body, name, made[k]);
    }
    fac_graph_sweep(body); /* what was expanded */
    fac_graph_free(trial);
    fac_node *node = NULL;
    if (!m || body->error.status)
        fac_graph_free(body);
    else
        node = fac_emit_body(t->g, &fac_op_fused_matmul, NULL, n, n, outer, body, NULL)->node;
    if (!node || !t->accept(t->self, node)) return false; /* what nothing reads is swept away */
    take_over(t, node, &p, 1);
    return true;
}

/* Parts of one level as one node; false when no kernel takes it, or memory is gone. */
static bool emit_group(fac_tail *t, fac_tail_part *const *of, int count) {
    fac_graph *body = fac_graph_new();
    fac_value **outer = fac_alloc((size_t)count * FAC_TAIL_INPUTS, sizeof *outer);
    int n = body && outer ? fill_group(t, body, of, count, outer) : -1;
    fac_node *group = NULL;
    if (n < 0)
        fac_graph_free(body);
    else
        group = fac_emit_body(t->g, &fac_op_group, NULL, n, n, outer, body, NULL)->node;
    fac_release(outer);
    if (!group || !t->accept(t->self, group)) return false; /* what nothing reads is swept away */
    take_over(t, group, of, count);
    return true;
}

/* All parts of one level, which do not read each other, in groups by their places. */
static void emit_level(fac_tail *t, fac_tail_part **of, int count) {
    int left = 0;
    for (int i = 0; i < count; i++) {
        find_place(t, of[i]);
        if (!emit_product(t, of[i])) of[left++] = of[i];
    }
    count = left;
    qsort(of, (size_t)count, sizeof *of, by_place);
    for (int first = 0, last; first < count; first = last) {
        size_t bytes = 0;
        for (last = first; last < count && (last == first || bytes + of[last]->bytes <= BYTES);
             last++)
            bytes += of[last]->bytes;
        if (last - first > 1 && emit_group(t, of + first, last - first)) continue;
        for (int i = first; i < last; i++) emit_alone(t, of[i]);
    }
}

bool fac_tail_emit(fac_tail *t) {
    fac_tail_part **of = fac_alloc((size_t)t->nparts + 1, sizeof *of);
    if (!of) return false;
    for (int level = 0, left = t->nparts; left > 0; level++) {
        int count = 0;
        for (int i = 0; i < t->nparts; i++)
            if (t->parts[i].level == level) of[count++] = &t->parts[i];
        left -= count;
        emit_level(t, of, count);
    }
    fac_release(of);
    return true;
}

void fac_tail_relink(fac_tail *t) {
    for (size_t i = 0; i < t->g->nparams; i++) {
        fac_value *p = t->g->params[i], *with = p->next ? t->became[p->next->id] : NULL;
        if (!with) continue;
        p->next->roots--;
        with->roots++;
        p->next = with;
    }
}
