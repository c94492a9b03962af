/* What stays between two layers of few bits becomes bits: after conv2d_basis, a residual add, a
 * relu and the quantizer of the next layer go into the layer itself,
 *
 *     y = relu(conv2d_basis(x, w...) + z);   conv2d_basis(y, v...)
 *         -> q, y = conv2d_codes(x, w..., z, basis of the next);   conv2d_basis(q, v...)
 *
 * and a max pool in between goes after the quantizer, since levels keep the order of numbers.  A
 * concat of channels joins words instead, where all of its parts are such layers and but the last
 * one have whole words.  y is made where others read it, too.  Of one base of weights and even
 * levels of pixels without z the scale, the bias and the thresholds become whole numbers
 * (code_limits).  Done where accept(self, node) says that a kernel takes the layer. */
#include "facula/ops.h"
#include "graph/attr.h"
#include "ops/reshapes.h"
#include "op_list.h"
#include "ops/basis.h"
#include "ops/code_limits.h"
#include "ops/conv_basis.h"
#include "ops/max_pool_codes.h"
#include "passes/common/each.h"
#include "passes/passes.h"
#include "passes/common/single.h"

/* A part of a concat as codes: of which basis, and whether of what is above 0: where the concat is
 * read, and as codes. */
typedef struct part {
    fac_value *q, *basis;
    bool positive, codes_positive;
} part;

/* A concat on the way to codes. */
typedef struct join {
    const fac_node *node;
    part *parts;
    struct join *next;
} join;

typedef struct work {
    fac_graph *g;
    fac_accept *accept;
    void *self;
    join *joins;
} work;

static bool is_early(const fac_value *v) { return !v || v->time != FAC_RUN; }

/* ---- who reads a result ---- */

/* Images of one pixel as rows, and back. */
static bool is_row(const fac_value *v) {
    const fac_dims *d = &v->type.dims;
    return d->n == 2 || (d->n == 4 && d->d[2] == 1 && d->d[3] == 1);
}
static bool keeps_places(const fac_node *n) {
    if (!fac_node_reshapes(n) || !is_row(n->in[0]) || !is_row(n->out[0])) return false;
    return n->in[0]->type.dims.d[1] == n->out[0]->type.dims.d[1];
}

static bool is_pool(const fac_node *n) {
    return FAC_IS(n, max_pool2d) && !(n->nout > 1 && (n->out[1]->uses || n->out[1]->roots));
}

enum { DEEP = 16 };

static bool is_join(const fac_node *n, int deep);

/* Whether v is made by a layer that may give codes. */
static bool leads_to_layer(const fac_value *v, int deep) {
    const fac_node *n = v->node;
    if (!n || !deep) return false;
    if (FAC_IS(n, conv2d_basis) || (FAC_IS(n, conv2d_codes) && v == n->out[1])) return true;
    if (FAC_IS(n, add) && n->nin == 2)
        return FAC_IS(n->in[0]->node, conv2d_basis) || FAC_IS(n->in[1]->node, conv2d_basis);
    if (FAC_IS(n, concat)) return is_join(n, deep - 1);
    return (FAC_IS(n, relu) || is_pool(n)) && leads_to_layer(n->in[0], deep - 1);
}

/* A concat of channels whose parts may all be codes. */
static bool is_join(const fac_node *n, int deep) {
    const fac_type *t = &n->out[0]->type;
    if (!FAC_IS(n, concat) || t->dtype != FAC_F32 || t->dims.n != 4) return false;
    if (fac_axis(fac_attr_int(n, "axis", 0), 4) != 1) return false;
    for (int i = 0; i < n->nin; i++) {
        const int64_t channels = n->in[i]->type.dims.d[1];
        if (channels < 1 || (i + 1 < n->nin && channels % FAC_WORD_BITS)) return false;
        if (!leads_to_layer(n->in[i], deep)) return false;
    }
    return true;
}

static bool takes_codes(const fac_use *u) {
    const fac_node *n = u->node;
    const fac_conv_basis_attrs *a = n->attrs;
    if (!FAC_IS(n, conv2d_basis) || u->input != FAC_CB_X || !is_early(n->in[FAC_CB_X_BASIS]))
        return false;
    return a->conv.groups == 1 || a->dims.d[1] % FAC_WORD_BITS == 0;
}

static bool cuts(const fac_node *layer) {
    return ((const fac_conv_basis_attrs *)layer->attrs)->relu;
}

typedef struct readers {
    const fac_value *of;
    const fac_node *layer; /* whose quantizer joins; NULL: none                   */
    bool positive;         /* ... of what is above 0                              */
    fac_node *relu;        /* of the result itself                                */
    bool floats, raw;      /* something reads numbers; what is below 0 of something */
} readers;

static bool wants_same(const readers *r, const fac_node *n, bool positive) {
    return n->in[FAC_CB_X_BASIS] == r->layer->in[FAC_CB_X_BASIS] && positive == r->positive;
}

static void look(const fac_value *v, bool positive, readers *to);

static void look_at(const fac_use *u, bool positive, readers *to) {
    fac_node *n = u->node;
    const bool codes = takes_codes(u), above = codes && (positive || cuts(n));
    if (codes && !to->layer) {
        to->layer = n;
        to->positive = above;
    }
    if (codes && wants_same(to, n, above))
        to->raw |= !above;
    else if (FAC_IS(n, relu)) {
        if (u->node->in[0] == to->of && !to->relu) to->relu = n;
        look(n->out[0], true, to);
    } else if (keeps_places(n) || is_pool(n) || is_join(n, DEEP))
        look(n->out[0], positive, to);
    else {
        to->floats = true;
        to->raw |= !positive;
    }
}

static void look(const fac_value *v, bool positive, readers *to) {
    if (v->roots) to->floats = true;
    if (v->roots && !positive) to->raw = true;
    for (const fac_use *u = v->uses; u; u = u->next) look_at(u, positive, to);
}

/* ---- readers take codes ---- */

static void name_as(fac_value *v, const fac_node *n) {
    if (!v->node) return;
    fac_node_stands_for(v->node, n);
}

static void take_codes(fac_node *n, fac_value *q) {
    fac_conv_basis_attrs a = *(const fac_conv_basis_attrs *)n->attrs;
    fac_value *in[FAC_CB_PORTS];
    for (int i = 0; i < FAC_CB_PORTS; i++) in[i] = n->in[i];
    in[FAC_CB_X] = q;
    a.relu = false;
    fac_value *y = fac_emit(n->op, &a, FAC_CB_PORTS, in);
    if (!y->node) return;
    name_as(y, n);
    fac_replace(n->out[0], y);
}

/* ---- concats ---- */

static join *join_of(work *k, const fac_node *n) {
    join *j = k->joins;
    while (j && j->node != n) j = j->next;
    if (j) return j;
    j = fac_arena_alloc(&k->g->arena, 1, sizeof *j);
    part *parts = j ? fac_arena_alloc(&k->g->arena, (size_t)n->nin, sizeof *parts) : NULL;
    if (!parts) {
        fac_graph_raise(k->g, FAC_E_NOMEM, "no memory for a pass");
        return NULL;
    }
    *j = (join){ n, parts, k->joins };
    k->joins = j;
    return j;
}

/* All parts are codes of one basis.  all: what of the readers of the concat may take them. */
static bool is_whole(const join *j, readers *all, bool *positive) {
    bool raw = true;
    *positive = all->positive = true;
    for (int i = 0; i < j->node->nin; i++) {
        const part *p = &j->parts[i];
        if (!p->q || p->basis != j->parts[0].basis) return false;
        *positive &= p->positive;
        all->positive &= p->codes_positive;
        raw &= p->codes_positive == p->positive;
    }
    if (!all->positive) *positive = false;
    return all->positive || raw;
}

static fac_value *joined(const work *k, const join *j) {
    fac_value **q = fac_arena_alloc(&k->g->arena, (size_t)j->node->nin, sizeof *q);
    if (!q) return fac_graph_raise(k->g, FAC_E_NOMEM, "no memory for a pass");
    for (int i = 0; i < j->node->nin; i++) q[i] = j->parts[i].q;
    fac_value *v = fac_concat(q, j->node->nin, 4);
    name_as(v, j->node);
    return v;
}

static void rewire(work *k, const fac_value *v, fac_value *q, bool positive, const readers *r);

/* One more part of a concat; the last one joins them. */
static void take_part(work *k, const fac_use *u, fac_value *q, bool positive, const readers *r) {
    readers all = { .layer = r->layer };
    bool above;
    join *j = join_of(k, u->node);
    if (!j) return;
    j->parts[u->input] = (part){ q, r->layer->in[FAC_CB_X_BASIS], positive, r->positive };
    if (!is_whole(j, &all, &above)) return;
    fac_value *v = joined(k, j);
    if (v->node) rewire(k, u->node->out[0], v, above, &all);
}

/* Those that read v, which q has the codes of. */
static void rewire(work *k, const fac_value *v, fac_value *q, bool positive, const readers *r) {
    for (const fac_use *u = v->uses, *next; u && !k->g->error.status; u = next) {
        fac_node *n = u->node;
        next = u->next;
        if (takes_codes(u) && wants_same(r, n, positive || cuts(n)))
            take_codes(n, q);
        else if (FAC_IS(n, relu))
            rewire(k, n->out[0], q, true, r);
        else if (keeps_places(n))
            rewire(k, n->out[0], q, positive, r);
        else if (is_join(n, DEEP))
            take_part(k, u, q, positive, r);
        else if (is_pool(n)) {
            fac_value *in[] = { q, r->layer->in[FAC_CB_X_BASIS] };
            fac_value *pooled = fac_emit(&fac_op_max_pool_codes, n->attrs, 2, in);
            if (pooled->node) name_as(pooled, n);
            if (pooled->node) rewire(k, n->out[0], pooled, positive, r);
        }
    }
}

/* ---- the layer gives codes ---- */

/* How much of the least number of a basis all of them are: 1 of one; 0: it is not constant, or its
 * numbers are no whole multiples. */
static int64_t multiples_of(const fac_value *x) {
    float u[FAC_BASIS_BITS];
    int times[FAC_BASIS_BITS], unit;
    if (!x || x->type.dims.d[0] == 1) return 1;
    const int bits = (int)x->type.dims.d[0];
    if (x->leaf != FAC_CONST || !x->tensor || x->type.dtype != FAC_F32) return 0;
    if (fac_tensor_read(x->tensor, u, (size_t)bits * sizeof *u, NULL)) return 0;
    if (!fac_basis_multiples(u, bits, times, &unit)) return 0;
    int64_t sum = 0;
    for (int k = 0; k < bits; k++) sum += times[k];
    return sum;
}

/* No sum is larger than the weights of a window are many, times what pixels count. */
static fac_value *limits_of(const fac_node *conv, fac_value *basis, bool relu) {
    const fac_conv_basis_attrs *a = conv->attrs;
    fac_value *x = conv->in[FAC_CB_X_BASIS];
    const int64_t times = multiples_of(x);
    const double reach =
        (double)a->dims.d[1] * (double)a->dims.d[2] * (double)a->dims.d[3] * (double)times;
    fac_value *in[] = { conv->in[FAC_CB_W_BASIS], x, conv->in[FAC_CB_SCALE], conv->in[FAC_CB_B],
                        basis };
    const bool one = in[0]->type.dims.d[0] == 1 && times;
    if (!one || reach < 1 || reach > 1e8) return NULL;
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        if (!is_early(in[i])) return NULL;
    const fac_code_limits_attrs limits = { (int64_t)reach, relu };
    return fac_emit(&fac_op_code_limits, &limits, 5, in);
}

/* conv, z added, as the readers want it; NULL: no kernel takes it. */
static fac_node *with_codes(const work *k, const fac_node *conv, fac_value *z, const readers *r) {
    fac_conv_basis_attrs a = *(const fac_conv_basis_attrs *)conv->attrs;
    fac_value *in[FAC_CC_PORTS] = { NULL };
    for (int i = 0; i < FAC_CB_PORTS; i++) in[i] = conv->in[i];
    a.y_relu = r->relu && !r->raw;
    a.q_relu = r->positive && !a.y_relu;
    in[FAC_CB_Z] = z;
    in[FAC_CB_Y_BASIS] = r->layer->in[FAC_CB_X_BASIS];
    if (!z && !r->floats)
        in[FAC_CB_LIMITS] = limits_of(conv, in[FAC_CB_Y_BASIS], a.y_relu || a.q_relu);
    fac_value *q = fac_emit(&fac_op_conv2d_codes, &a, FAC_CC_PORTS, in);
    if (!q->node || !k->accept(k->self, q->node)) return NULL;
    name_as(q, conv);
    return q->node;
}

/* The add that alone reads v, whose other operand becomes z. */
static fac_node *add_of(const fac_value *v, fac_value **z) {
    fac_node *n = fac_used_once(v) ? v->uses->node : NULL;
    if (!n || !FAC_IS(n, add) || n->nin != 2 || n->in[0] == n->in[1]) return NULL;
    *z = n->in[n->in[0] == v];
    const bool alike = fac_dims_equal(&(*z)->type.dims, &v->type.dims);
    return alike && (*z)->type.dtype == v->type.dtype ? n : NULL;
}

static void fuse(work *k, fac_node *conv) {
    fac_value *z = NULL, *v = conv->out[0];
    const fac_node *add = v->type.dtype == FAC_F32 ? add_of(v, &z) : NULL;
    if (add)
        v = add->out[0];
    else
        z = NULL;
    readers r = { .of = v };
    look(v, false, &r);
    if (!r.layer || v->type.dtype != FAC_F32) return;
    fac_node *made = with_codes(k, conv, z, &r);
    if (!made) return;
    rewire(k, v, made->out[0], false, &r);
    const bool cut = ((const fac_conv_basis_attrs *)made->attrs)->y_relu;
    if (cut) fac_replace(r.relu->out[0], made->out[1]);
    fac_replace(v, made->out[1]);
}

static bool is_any(const fac_graph *g) {
    int layers = 0;
    for (const fac_node *n = g->first; n; n = n->next) layers += FAC_IS(n, conv2d_basis);
    return layers > 1;
}

fac_graph *fac_pass_bits_between(const fac_graph *g, fac_accept *accept, void *self) {
    if (!is_any(g)) return (fac_graph *)(uintptr_t)g;
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL);
    work k = { to, accept, self, NULL };
    /* what a layer becomes lies after it, and so do the new readers of its codes: each is seen */
    for (fac_node *n = to ? to->first : NULL; n && !to->error.status; n = n->next)
        if (FAC_IS(n, conv2d_basis)) fuse(&k, n);
    if (to && !to->error.status) fac_graph_sweep(to);
    return to;
}
