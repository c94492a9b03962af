/* What must hold of every sound graph, and how its errors are compared. */
#ifndef FACULA_TESTS_GRAPH_CHECK_H
#define FACULA_TESTS_GRAPH_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "base/rng.h"
#include "graph/graph_internal.h"
#include "graph_ops.h"

static const fac_dims scalar = { 0 };

static inline void assert_ok(const fac_graph *g) {
    fac_error err = { 0 };
    if (fac_graph_check(g, &err)) fail_msg("%s: %s", fac_status_name(err.status), err.text);
}

static inline void assert_error(const fac_graph *g, fac_status status, const char *text) {
    fac_error err = { 0 };
    assert_int_equal(fac_graph_check(g, &err), status);
    assert_string_equal(err.text, text);
}

static inline void assert_type(const fac_value *v, const char *text) {
    fac_text t = { 0 };
    fac_type_print(v->graph, &v->type, &t);
    assert_string_equal(t.s, text);
    fac_text_free(&t);
}

/* What must hold of every sound graph: order, use lists, back pointers. */
static inline void assert_sound(const fac_graph *g) {
    uint64_t order = 0;
    int nodes = 0;
    size_t listed = 0, uses = 0;
    const fac_node *before = NULL;
    for (const fac_node *n = g->first; n; before = n, n = n->next, nodes++) {
        assert_ptr_equal(n->prev, before);
        assert_true(n->order > order);
        order = n->order;
        fac_time time = FAC_COMPILE;
        for (int i = 0; i < n->nin; i++) {
            const fac_value *v = n->in[i];
            if (!v) continue;
            assert_ptr_equal(v->graph, g);
            assert_int_not_equal(v->leaf, FAC_POISON);
            if (v->node) assert_true(v->node->order < n->order);
            bool found = false;
            for (const fac_use *u = v->uses; u; u = u->next)
                found = found || (u->node == n && u->input == i);
            assert_true(found);
            if (v->time > time) time = v->time;
            uses++;
        }
        for (int k = 0; k < n->nout; k++) {
            assert_ptr_equal(n->out[k]->node, n);
            assert_true(n->out[k]->time >=
                        time); /* fac_replace may leave it later than needed, never earlier */
            for (const fac_use *u = n->out[k]->uses; u; u = u->next) listed++;
        }
    }
    for (size_t i = 0; i < g->ninputs; i++)
        for (const fac_use *u = g->inputs[i]->uses; u; u = u->next) listed++;
    for (size_t i = 0; i < g->nparams; i++)
        for (const fac_use *u = g->params[i]->uses; u; u = u->next) listed++;
    for (size_t i = 0; i < g->nconsts; i++)
        for (const fac_use *u = g->consts[i]->uses; u; u = u->next) listed++;
    assert_int_equal(listed, uses);
    assert_int_equal(nodes, g->nodes);
    assert_ptr_equal(g->last, before);
}
#endif
