/* Changing graphs: replacing, sweeping, rebuilding, bodies, and random edits. */
#include "graph_check.h"

static void replace_after(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2)), *p = param(g, "p", fac_shape(2));
    fac_value *y = neg(x), *u = neg(y), *w = add(y, u);
    fac_output(g, "y", y);
    fac_output(g, "w", w);
    fac_update(p, y);
    fac_value *r = neg(y); /* after y */
    fac_replace(y, r);
    assert_ok(g);
    assert_sound(g);
    assert_ptr_equal(r->node->in[0], y);
    assert_ptr_equal(u->node->in[0], r);
    assert_ptr_equal(w->node->in[0], r);
    assert_ptr_equal(fac_graph_output(g, 0), r);
    assert_ptr_equal(p->next, r);
    /* again at the same place, so often that the room between neighbours is used up */
    for (int k = 0; k < 100; k++) {
        fac_value *more = neg(y);
        fac_replace(y, more);
        assert_sound(g);
    }
    assert_int_equal(g->nodes, 104);
    /* a leaf, by something that is not made from it */
    fac_replace(x, p);
    assert_ptr_equal(y->node->in[0], p);
    assert_sound(g);
    fac_graph_sweep(g);
    assert_ok(g);
    assert_sound(g);
    assert_int_equal(g->nodes, 104);
    fac_graph_free(g);
}

/* A value that an earlier edit moved a reader to: the reader is old, what it reads is new. */
static void replace_keeps_order(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2));
    fac_value *a = neg(x), *u = neg(a), *old = neg(x), *q = neg(old);
    fac_output(g, "q", q);
    fac_output(g, "u", u);
    fac_value *late = neg(old);
    fac_replace(a, late); /* u now reads late, which reads old */
    assert_sound(g);
    fac_value *with = neg(u); /* made from u, late, old */
    fac_replace(old, with);   /* so late keeps reading old */
    assert_ok(g);
    assert_sound(g);
    assert_ptr_equal(late->node->in[0], old);
    assert_ptr_equal(q->node->in[0], with);
    fac_graph_free(g);
}

static void sweep_drops(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2)), *p = param(g, "p", fac_shape(2));
    fac_value *dead = neg(neg(p)), *y = neg(x);
    fac_value_name_set(dead, "dead");
    fac_output(g, "y", y);
    fac_input(g, "unused", FAC_F32, scalar);
    fac_number(g, FAC_F32, 1);
    fac_graph_sweep(g);
    assert_ok(g);
    assert_sound(g);
    assert_int_equal(g->nodes, 1);
    assert_int_equal(fac_graph_inputs(g), 2); /* the signature stays */
    assert_int_equal(fac_graph_params(g), 0);
    assert_int_equal(g->nconsts, 0);
    assert_null(fac_graph_find(g, "dead"));
    assert_null(fac_graph_find(g, "p"));
    assert_ptr_equal(add(y, dead), g->poison);
    assert_error(g, FAC_E_ARGUMENT, "tadd: input 1 was dropped from the graph before");
    fac_graph_free(g);
}

/* ---- rebuilding ---- */

/* neg(neg(x)) is x */
static bool no_double_neg(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                          fac_value *out[]) {
    (void)self;
    (void)to;
    if (n->op != &tneg || !in[0]->node || in[0]->node->op != &tneg) return false;
    out[0] = in[0]->node->in[0];
    return true;
}

static fac_value *bind_five(void *self, fac_graph *to, const fac_value *v) {
    fac_dims d = v->type.dims;
    (void)self;
    if (v->leaf == FAC_CONST && v->known && v->known->symbolic) {
        d = fac_shape(0);
        d.n = v->known->n;
        for (int k = 0; k < d.n; k++) d.d[k] = v->known->symbolic >> k & 1 ? 5 : v->known->v[k];
        return fac_ints(to, d);
    }
    if (v->leaf != FAC_INPUT) return NULL;
    for (int k = 0; k < d.n; k++)
        if (d.d[k] < 0) d.d[k] = 5;
    return fac_input(to, v->name, v->type.dtype, d);
}

static void rebuild(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new(), *h;
    const int64_t n = fac_symbol(g, "N");
    fac_graph_push(g, "a");
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(n, 4)), *y = neg(neg(neg(x)));
    fac_graph_pop(g);
    fac_value *z = resize(y, shape(add(y, x)));
    fac_value *s = resize(y, fac_ints(g, fac_shape(n, 2, 2)));
    fac_value_name_set(z, "z");
    ((fac_node *)y->node)->name = "third";
    fac_output(g, "out", z);
    fac_output(g, "sym", s);
    neg(z); /* dead */
    fac_value **map = NULL;

    h = fac_graph_rebuild(g, &(fac_rebuild){ .visit = no_double_neg }, &map);
    assert_ok(h);
    assert_sound(h);
    assert_int_equal(h->nodes, 5);
    assert_ptr_equal(map[z->id], fac_graph_find(h, "z"));
    const fac_value *second = y->node->in[0], *first = second->node->in[0];
    assert_ptr_equal(map[second->id], map[x->id]);
    assert_null(map[first->id]); /* nothing needs it any more */
    assert_string_equal(map[y->id]->node->scope, "a");
    assert_null(map[z->id]->node->scope);
    assert_null(h->scope);
    fac_graph_free(h);

    h = fac_graph_rebuild(g, &(fac_rebuild){ .leaf = bind_five }, &map);
    assert_ok(h);
    assert_type(fac_graph_find(h, "out"), "f32[5,4]");
    assert_type(fac_graph_find(h, "sym"), "f32[5,2,2]");
    assert_string_equal(map[y->id]->node->name, "third");
    assert_int_equal(h->nodes, g->nodes - 1);
    fac_graph_free(h);

    h = fac_graph_clone(g);
    assert_ok(h);
    assert_int_equal(h->nodes, g->nodes);
    assert_int_equal(h->nsymbols, g->nsymbols);
    assert_true(fac_hash_equal(fac_graph_hash(g), fac_graph_hash(h)));
    fac_output(h, "more", neg(fac_graph_find(h, "z")));
    assert_false(fac_hash_equal(fac_graph_hash(g), fac_graph_hash(h)));
    fac_graph_free(h);
    fac_graph_free(g);
}

static fac_value *bind_wrong(void *self, fac_graph *to, const fac_value *v) {
    (void)self;
    return v->leaf == FAC_INPUT ? fac_input(to, v->name, v->type.dtype,
                                            *v->name == 'x' ? fac_shape(2) : fac_shape(3))
                                : NULL;
}

static void rebuild_reports(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    const int64_t n = fac_symbol(g, "N");
    fac_graph_push(g, "head");
    fac_output(
        g, "z",
        add(fac_input(g, "x", FAC_F32, fac_shape(n)), fac_input(g, "y", FAC_F32, fac_shape(n))));
    fac_graph *h = fac_graph_rebuild(g, &(fac_rebuild){ .leaf = bind_wrong }, NULL);
    assert_error(h, FAC_E_SHAPE,
                 "head: tadd: [2] and [3] cannot be broadcast: 2 against 3 (x f32[2], y f32[3])");
    fac_graph_free(h);
    fac_graph_free(g);
}

/* ---- bodies ---- */

static fac_graph *neg_body(fac_dims dims, bool two) {
    fac_graph *b = fac_graph_new();
    fac_value *x = fac_input(b, "x0", FAC_F32, dims);
    if (two) x = add(x, fac_input(b, "x1", FAC_F32, dims));
    fac_output(b, "y", neg(x));
    return b;
}

static void epilogues(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 3));
    fac_value *y = fac_emit_body(g, &tbias, NULL, 1, 1, &x, neg_body(fac_shape(2, 3), false), NULL);
    fac_value *z = fac_emit_body(g, &tbias, NULL, 3, 2, (fac_value *[]){ x, NULL, y },
                                 neg_body(fac_shape(2, 3), true), NULL);
    fac_output(g, "z", z);
    assert_ok(g);
    assert_sound(g);
    assert_int_equal(z->node->nin, 3);
    assert_int_equal(z->node->nports, 2);
    fac_graph *copy = fac_graph_clone(g);
    assert_ok(copy);
    assert_true(fac_hash_equal(fac_graph_hash(g), fac_graph_hash(copy)));
    assert_ptr_not_equal(fac_graph_find(copy, "z")->node->body[0], z->node->body[0]);
    fac_graph_free(copy);
    fac_graph_sweep(g);
    assert_ok(g);
    fac_emit_body(g, &tbias, NULL, 1, 1, &x, neg_body(fac_shape(2, 4), false), NULL);
    assert_error(g, FAC_E_SHAPE,
                 "tbias: input x0 of the epilogue has another type than the value that feeds it (x "
                 "f32[2,3])");
    fac_emit_body(g, &tbias, NULL, 1, 1, &x, neg_body(fac_shape(2, 4), false),
                  neg_body(fac_shape(1), true));
    fac_graph_free(g);
    /* a body that failed */
    g = fac_graph_new();
    x = fac_input(g, "x", FAC_F32, fac_shape(2, 3));
    fac_graph *bad = fac_graph_new();
    fac_fail_graph(bad, FAC_E_DTYPE, "no good");
    assert_ptr_equal(fac_emit_body(g, &tbias, NULL, 1, 1, &x, bad, NULL), g->poison);
    assert_error(g, FAC_E_DTYPE, "tbias: body: no good (x f32[2,3])");
    fac_graph_free(g);
    /* inputs for an epilogue that is not there; a graph that is not there */
    g = fac_graph_new();
    x = fac_input(g, "x", FAC_F32, fac_shape(2, 3));
    assert_ptr_equal(fac_emit_body(g, &tneg, NULL, 2, 1, (fac_value *[]){ x, x }, NULL, NULL),
                     g->poison);
    assert_error(
        g, FAC_E_ARGUMENT,
        "tneg: inputs or a body for an epilogue, but no epilogue (x f32[2,3], body x1 f32[2,3])");
    fac_graph_free(g);
    assert_null(fac_emit_body(NULL, &tneg, NULL, 0, 0, NULL, neg_body(fac_shape(1), false), NULL));
}

/* ---- fresh random edits ---- */

static void random_edits(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t i = 0;
        fac_graph *g = fac_graph_new();
        enum { MOST = 400 };
        fac_value *v[MOST] = { fac_input(g, "x", FAC_F32, fac_shape(2)),
                               param(g, "p", fac_shape(2)) };
        size_t n = 2;
        while (n < MOST) {
            fac_value *a = v[fac_random_bits(seed, 0, i++) % n],
                      *b = v[fac_random_bits(seed, 0, i++) % n];
            switch (fac_random_bits(seed, 0, i++) % 4) {
            case 0:
                v[n++] = neg(a);
                break;
            case 1:
                v[n++] = add(a, b);
                break;
            case 2:
                fac_replace(a, b);
                break;
            case 3:
                fac_replace(a, v[n++] = neg(a));
                break;
            }
            if (g->error.status) fail_msg("seed %d: %s", (int)seed, g->error.text);
        }
        assert_sound(g);
        fac_output(g, "y", v[n - 1]);
        fac_output(g, "z", v[n / 2]);
        fac_graph *h = fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL);
        fac_graph_sweep(g);
        assert_ok(g);
        assert_sound(g);
        assert_sound(h);
        assert_int_equal(h->nodes, g->nodes);
        assert_true(fac_hash_equal(fac_graph_hash(g), fac_graph_hash(h)));
        fac_graph_free(h);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replace_after),   cmocka_unit_test(replace_keeps_order),
        cmocka_unit_test(sweep_drops),     cmocka_unit_test(rebuild),
        cmocka_unit_test(rebuild_reports), cmocka_unit_test(epilogues),
        cmocka_unit_test(random_edits),
    };
    return cmocka_run_group_tests_name("graph edit", tests, NULL, NULL);
}
