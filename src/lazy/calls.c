/* Bodies: graphs that a binding calls again and again, such as an op with its attributes or its
 * gradient.
 *
 * As long as a segment is nothing but calls, it has no graph: a call is its body, the numbers of
 * its inputs and the cells of its results.  A segment that repeats is found by its key, and no node
 * of it is ever made.  Where a node has to be there - its program is planned, an op is recorded by
 * itself, something looks at what is known of a value - fac_segment_open writes the calls out. */
#include "base/error.h"
#include "base/memory.h"
#include "graph/attr.h"
#include "graph/build.h"
#include "lazy/lazy_internal.h"
#include "op_list.h"

enum { NO_ALIAS = -1, NO_AXIS = -1 };

/* One result of a body: a value of its own, or an input or an earlier result once more. */
typedef struct body_result {
    int input; /* NO_ALIAS: it is none                                             */
    int cell;  /* else the place among the results of its own                      */
    fac_type type;
    int axis;   /* of a concat of two, which may grow (room.c); NO_AXIS: it is none */
    int joined; /* the input that such a concat begins with; NO_ALIAS: none         */
} body_result;

struct fac_lazy_body {
    atomic_uint refs;
    fac_recorder *r;
    fac_graph *g;
    fac_hash key;
    int n, nout, cells; /* inputs, results, results of their own                    */
    bool plain;         /* all sizes of results are known                           */
    fac_type *in;
    bool *read; /* is this input?                                                   */
    body_result *out;
};

/* ---- bodies ---- */

static void drop_body(void *at) {
    fac_lazy_body *b = at;
    fac_graph_free(b->g);
    fac_release(b->in);
    fac_release(b->read);
    fac_release(b->out);
    fac_release(b);
}

void fac_lazy_body_free(fac_lazy_body *b) {
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1) drop_body(b);
}

static int input_number(const fac_graph *g, const fac_value *v) {
    for (size_t i = 0; i < g->ninputs; i++)
        if (g->inputs[i] == v) return (int)i;
    return NO_ALIAS;
}

static body_result result_of(const fac_lazy_body *b, size_t k) {
    const fac_value *v = b->g->outputs[k].value;
    const fac_node *n = v->node;
    body_result y = { input_number(b->g, v), NO_ALIAS, v->type, NO_AXIS, NO_ALIAS };
    if (n && n->op == &fac_op_concat && n->nin == 2 && n->in[0] && n->in[1]) {
        y.axis = (int)fac_attr_int(n, "axis", 0);
        if (y.axis < 0) y.axis += v->type.dims.n;
        y.joined = input_number(b->g, n->in[0]);
    }
    return y;
}

static void describe(fac_lazy_body *b) {
    const fac_graph *g = b->g;
    b->plain = true;
    for (int i = 0; i < b->n; i++) {
        b->in[i] = g->inputs[i]->type;
        b->read[i] = g->inputs[i]->uses != NULL;
    }
    for (int k = 0; k < b->nout; k++) {
        body_result *y = &b->out[k];
        *y = result_of(b, (size_t)k);
        for (int j = 0; j < k && y->cell < 0; j++)
            if (g->outputs[j].value == g->outputs[k].value) y->cell = b->out[j].cell;
        if (y->input < 0 && y->cell < 0) y->cell = b->cells++;
        if (y->input >= 0) b->read[y->input] = true;
        if (fac_dims_count(&y->type.dims) < 0) b->plain = false;
    }
}

fac_status fac_lazy_body_new(fac_recorder *r, const fac_graph *g, fac_lazy_body **out,
                             fac_error *err) {
    if (!r || !g || !out)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "fac_lazy_body_new: the recorder, the graph or out is NULL");
    FAC_TRY(fac_graph_usable(g, "fac_lazy_body_new", err));
    if (g->nparams || g->nsymbols || !g->noutputs)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "fac_lazy_body_new: a body has results, and neither parameters, states "
                         "nor symbols; this graph has %zu, %zu and %zu",
                         g->noutputs, g->nparams, g->nsymbols);
    fac_lazy_body *b = fac_alloc(1, sizeof *b);
    if (!b) return fac_raise_memory(err, "a body");
    atomic_init(&b->refs, 1);
    b->r = r;
    b->n = (int)g->ninputs;
    b->nout = (int)g->noutputs;
    b->g = fac_graph_clone(g);
    b->in = fac_alloc(g->ninputs + 1, sizeof *b->in);
    b->read = fac_alloc(g->ninputs + 1, sizeof *b->read);
    b->out = fac_alloc(g->noutputs, sizeof *b->out);
    if (!b->g || !b->in || !b->read || !b->out) {
        drop_body(b);
        return fac_raise_memory(err, "a body");
    }
    describe(b);
    b->key = fac_graph_hash(b->g);
    *out = b;
    return FAC_OK;
}

/* ---- leaves of calls ---- */

static fac_lazy *plain_cell(fac_lazy *x) {
    while (x->made->kind == FAC_MADE_ALIAS) x = x->made->in[0];
    return x;
}

static void give_number(fac_recorder *r, fac_lazy *x) {
    x->value = NULL; /* of an earlier segment */
    x->epoch = r->epoch;
    x->id = ++r->ids;
}

/* The number of x; what is not of the segment becomes a leaf. */
static fac_status number_of(fac_lazy *x, uint32_t *out, fac_error *err) {
    x = plain_cell(x);
    fac_recorder *r = x->made->r;
    if (x->epoch != r->epoch || !x->id) {
        if (!x->tensor && x->made->kind != FAC_MADE_NUMBER) return fac_lazy_lost(x, err);
        if (!fac_reserve(&r->leaves, &r->room_leaves, r->nleaves + 1, sizeof *r->leaves))
            return fac_raise_memory(err, "a value");
        give_number(r, x);
        r->leaves[r->nleaves++] = fac_lazy_use(x);
        r->key = fac_segment_leaf_key(fac_hash_int(r->key, x->id), x);
    }
    *out = x->id;
    return FAC_OK;
}

/* ---- one call ---- */

static fac_status reserve(fac_recorder *r, const fac_lazy_body *b, fac_error *err) {
    if (fac_reserve(&r->calls, &r->room_calls, r->ncalls + 1, sizeof *r->calls) &&
        fac_reserve(&r->read, &r->room_read, r->nread + (size_t)b->n, sizeof *r->read) &&
        fac_reserve(&r->pending, &r->room_pending, r->npending + 1, sizeof *r->pending))
        return FAC_OK;
    return fac_raise_memory(err, "a call");
}

/* May it be the beginning of something that grows? */
static void note_growth(fac_made *m, const body_result *y, fac_lazy *const in[]) {
    if (y->axis == NO_AXIS) return;
    const fac_lazy *first = y->joined >= 0 ? plain_cell(in[y->joined]) : NULL;
    m->axis = y->axis;
    m->grows = first && first->made->grows == FAC_GROWS_NEVER ? FAC_GROWS_NEVER : FAC_GROWS_MAYBE;
}

static fac_made *cells_of(fac_recorder *r, const fac_lazy_body *b, fac_lazy *const in[],
                          fac_lazy *out[]) {
    fac_made *m = fac_made_again(r, FAC_MADE_OP, b->cells);
    if (!m) return NULL;
    m->epoch = r->epoch;
    m->serial = ++r->serials;
    atomic_init(&m->refs, (unsigned)b->cells);
    for (int k = 0; k < b->nout; k++) {
        const body_result *y = &b->out[k];
        if (y->input >= 0) continue;
        fac_lazy *x = &m->cell[y->cell];
        out[k] = x;
        if (x->id) { /* an earlier result once more */
            fac_lazy_use(x);
            continue;
        }
        give_number(r, x);
        x->type = y->type;
        atomic_init(&x->users, 1);
        note_growth(m, y, in);
    }
    return m;
}

/* The caller's memory is not touched before all is there. */
static fac_status record_call(fac_recorder *r, fac_lazy_body *b, fac_lazy *const in[],
                              fac_lazy *out[], fac_error *err) {
    fac_made *m = NULL;
    FAC_TRY(reserve(r, b, err));
    uint32_t *read = r->read + r->nread;
    for (int i = 0; i < b->n && b->cells; i++) {
        read[i] = 0;
        if (b->read[i]) FAC_TRY(number_of(in[i], &read[i], err));
    }
    const uint32_t first = r->ids + 1;
    if (b->cells && !(m = cells_of(r, b, in, out))) return fac_raise_memory(err, "a value");
    for (int k = 0; k < b->nout; k++)
        if (b->out[k].input >= 0) out[k] = fac_lazy_use(plain_cell(in[b->out[k].input]));
    r->stat.recorded++;
    if (!m) return FAC_OK;
    atomic_store(&m->pending, true);
    m->place = r->npending;
    r->pending[r->npending++] = m;
    r->key = fac_hash_join(r->key, b->key);
    for (int i = 0; i < b->n; i++) r->key = fac_hash_int(r->key, read[i]);
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    r->calls[r->ncalls++] = (fac_body_call){ b, r->nread, first };
    r->nread += (size_t)b->n;
    r->call_nodes += (size_t)b->g->nodes;
    return FAC_OK;
}

/* Where there are nodes already. */
static void inline_body(void *self, fac_graph *g, fac_value *const in[], fac_value *y[]) {
    const fac_lazy_body *b = self;
    fac_body_inline(g, b->g, in, y);
}

static fac_status check_call(const fac_recorder *r, const fac_lazy_body *b, fac_lazy *const in[],
                             fac_lazy *out[], fac_error *err) {
    if (!r || !b || !out || (!in && b->n))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "fac_record_body: the recorder, the body or a list is NULL");
    if (b->r != r)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_record_body: the body is another recorder's");
    for (int i = 0; i < b->n; i++) {
        if (!in[i] && !b->read[i]) continue;
        if (!in[i]) return fac_raise(err, FAC_E_ARGUMENT, "fac_record_body: input %d is NULL", i);
        if (in[i]->made->r != r)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "fac_record_body: input %d belongs to another recorder", i);
        if (in[i]->type.dtype != b->in[i].dtype ||
            !fac_dims_equal(&in[i]->type.dims, &b->in[i].dims))
            return fac_raise(err, FAC_E_SHAPE,
                             "fac_record_body: input %d has another type than the body's", i);
    }
    return FAC_OK;
}

fac_status fac_record_body(fac_recorder *r, fac_lazy_body *b, fac_lazy *const in[], fac_lazy *out[],
                           fac_error *err) {
    FAC_TRY(check_call(r, b, in, out, err));
    if (fac_recorder_eager(r))
        return fac_record_graph(r, inline_body, b, b->n, in, FAC_RECORD_NO_GRAD, b->nout, out, err);
    fac_recorder_hold(r);
    const bool calls =
        b->plain && !r->g && !r->nassigned && !fac_room_concerns(b->n, in, FAC_RECORD_NO_GRAD);
    const fac_status status = calls ? record_call(r, b, in, out, err)
                                    : fac_record_graph_held(r, inline_body, b, b->n, in,
                                                            FAC_RECORD_NO_GRAD, b->nout, out, err);
    if (!status && calls && r->call_nodes >= (size_t)r->opts.most_nodes && !r->walking)
        fac_flush_held(r, NULL);
    fac_recorder_let_go(r);
    return status;
}

/* ---- writing them out ---- */

static fac_status inline_call(fac_recorder *r, const fac_body_call *c, fac_value **of,
                              fac_error *err) {
    const fac_lazy_body *b = c->body;
    fac_value **in = fac_arena_alloc(&r->g->arena, (size_t)(b->n + b->nout), sizeof *in);
    if (!in) return fac_raise_memory(err, "a call");
    fac_value **out = in + b->n;
    for (int i = 0; i < b->n; i++) in[i] = of[r->read[c->read + (size_t)i]];
    fac_body_inline(r->g, b->g, in, out);
    if (r->g->error.status) return fac_segment_error(r, err);
    for (int k = 0; k < b->nout; k++)
        if (b->out[k].cell >= 0) of[c->first + (uint32_t)b->out[k].cell] = out[k];
    return FAC_OK;
}

static fac_status name_cells(fac_recorder *r, fac_value *const *of, fac_error *err) {
    for (size_t i = 0; i < r->npending; i++) {
        fac_made *m = r->pending[i];
        for (int k = 0; m && k < m->nout; k++) {
            fac_lazy *x = &m->cell[k];
            if (x->epoch == r->epoch && x->id) FAC_TRY(fac_segment_name(r, x, of[x->id], err));
        }
    }
    return FAC_OK;
}

fac_status fac_calls_write_out(fac_recorder *r, fac_error *err) {
    fac_value **of = fac_alloc((size_t)r->ids + 1, sizeof *of);
    fac_status status = of ? FAC_OK : fac_raise_memory(err, "calls");
    for (size_t i = 0; i < r->nleaves && !status; i++)
        status = fac_segment_place(r, r->leaves[i], &of[r->leaves[i]->id], err);
    for (size_t i = 0; i < r->ncalls && !status; i++)
        status = inline_call(r, &r->calls[i], of, err);
    if (!status) status = name_cells(r, of, err);
    fac_release(of);
    fac_calls_drop(r);
    return status;
}

void fac_calls_drop(fac_recorder *r) {
    for (size_t i = 0; i < r->ncalls; i++) {
        fac_lazy_body *b = r->calls[i].body;
        if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
            fac_recorder_later(r, b, drop_body);
    }
    r->ncalls = r->nread = r->call_nodes = 0;
}
