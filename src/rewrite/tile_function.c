/* Function mode: a tile of the result, with all that adds up along K, is the call of a function of
 * its row of A and its column of B.  Tiles of equal sizes have equal bodies and the same name, so a
 * file holds each once. */
#include "rewrite/tile.h"

static fac_value *copy_of(fac_graph *g, const char *name, int64_t k, const fac_value *v) {
    return fac_input(g, fac_arena_print(&g->arena, "%s%lld", name, (long long)k), v->type.dtype,
                     v->type.dims);
}

/* The same line of one tile alone. */
static fac_tile_line single(const fac_tile_line *c, int64_t i) {
    const int64_t rest = c->size - i * c->step;
    return (fac_tile_line){ rest < c->step ? rest : c->step, c->step, 1, c->align, c->pad };
}

/* The body: what one_tile makes of inputs instead of the operands. */
static fac_graph *body_of(fac_tiler *t, const fac_tile_job *j, int64_t i, int64_t l, int n,
                          fac_value *const in[]) {
    const fac_tile_product *p = j->p;
    fac_graph *body = fac_graph_new();
    fac_arena scratch = { 0 };
    fac_tile_matrix *a = fac_arena_alloc(&scratch, (size_t)p->parts * 2, sizeof *a),
                    *b = a ? a + p->parts : NULL;
    fac_value **parts = fac_arena_alloc(&scratch, (size_t)(p->parts * j->k.count), sizeof *parts);
    if (body && a && parts) {
        fac_tiler own = *t;
        fac_tile_product q = { a, b, p->parts, NULL, p->alpha, p->beta };
        fac_tile_job inner = { &own, &q, single(&j->m, i), single(&j->n, l), j->k, parts, NULL };
        own.to = body;
        bool good = true;
        for (int64_t s = 0; s < p->parts; s++) {
            a[s] = fac_tile_data(copy_of(body, "a", s, in[2 * s]), p->a->transposed);
            b[s] = fac_tile_data(copy_of(body, "b", s, in[2 * s + 1]), p->b->transposed);
            good = good && fac_tile_remember(&own, &a[s], 1, j->k.count) &&
                   fac_tile_remember(&own, &b[s], j->k.count, 1);
        }
        q.c = n > 2 * p->parts ? copy_of(body, "c", 0, in[n - 1]) : NULL;
        if (good)
            fac_output(body, "y", fac_tile_one(&inner, 0, 0));
        else
            fac_graph_raise(body, FAC_E_NOMEM, "no memory for the tiles of a function");
    }
    if (!a || !parts) {
        fac_graph_free(body);
        body = NULL;
    }
    fac_arena_free(&scratch);
    return body;
}

fac_value *fac_tile_called(const fac_tile_job *j, int64_t i, int64_t l) {
    fac_tiler *t = j->t;
    fac_graph *g = t->to;
    const fac_tile_product *p = j->p;
    fac_value *c = p->c ? fac_tile_part_of_c(j, i, l) : NULL, *out[1] = { NULL };
    const int n = (int)(2 * p->parts) + (c != NULL);
    const int64_t depth = (j->k.count - 1) * j->k.step + fac_tile_length(&j->k, j->k.count - 1);
    fac_value **in = fac_arena_alloc(&g->arena, (size_t)n, sizeof *in);
    if (!in) return fac_graph_raise(g, FAC_E_NOMEM, "no memory for the inputs of a function");
    for (int64_t s = 0; s < p->parts; s++) {
        in[2 * s] = fac_tile_part(t, &p->a[s], i * j->m.step, fac_tile_length(&j->m, i), 0, depth,
                                  (size_t)i);
        in[2 * s + 1] = fac_tile_part(t, &p->b[s], 0, depth, l * j->n.step,
                                      fac_tile_length(&j->n, l), (size_t)l);
    }
    if (c) in[n - 1] = c;
    fac_graph *body = body_of(t, j, i, l, n, in);
    if (!body || body->error.status) {
        fac_value *y =
            fac_graph_raise(g, body ? body->error.status : FAC_E_NOMEM,
                            "a product as a function: %s", body ? body->error.text : "no memory");
        fac_graph_free(body);
        return y;
    }
    const fac_dims *y = &body->outputs[0].value->type.dims;
    const char *name = fac_arena_print(
        &g->arena, "product_%lldx%lldx%lld_%016llx", (long long)y->d[0], (long long)y->d[1],
        (long long)p->a->cols, (unsigned long long)fac_graph_hash(body).a);
    fac_call(g, name, body, n, in, out);
    return out[0];
}
