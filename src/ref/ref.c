/* See ref.h.  One function per way an op can have a meaning: map (ref_map.c), move, ref, body. */
#include "ref/ref.h"
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/index.h"
#include "ref/ref_map.h"
#include "tensor/convert_text.h"
#include "tensor/tensor_internal.h"

/* ---- scratch: a bump allocator; the same walk worked out the size of its memory before ---- */

typedef struct scratch {
    char *memory;
    size_t used;
    bool overflow;
} scratch;

static void *take(scratch *s, size_t n, size_t size) {
    size_t bytes, next;
    if (!fac_size_mul(n, size, &bytes) || !fac_size_add(bytes, 63, &bytes) ||
        !fac_size_add(s->used, bytes & ~(size_t)63, &next)) {
        s->overflow = true;
        return NULL;
    }
    void *p = s->memory ? s->memory + s->used : NULL;
    s->used = next;
    return p;
}

static size_t count_of(const fac_type *t) {
    int64_t n = fac_dims_count(&t->dims);
    return n < 0 ? 0 : (size_t)n;
}
/* In f64: weights in blocks are numbers, too. */
static bool is_float(fac_dtype d) {
    const char kind = fac_dtype_get(d)->kind;
    return kind == 'f' || kind == 'q';
}

/* ---- arrays in the compute type ---- */

/* The array of an operand; contents converted when `fill`.  Sizes only (s->memory NULL) leaves the
 * pointers NULL. texts: texts are left as they lie. */
static fac_array array_of(scratch *s, const fac_host *h, bool wanted, bool fill, bool texts,
                          fac_error *err) {
    fac_array a = { .type = h->type };
    size_t n = count_of(&h->type);
    if (h->type.dtype == FAC_NONE || !wanted || (!h->data && !h->known)) return a;
    if (texts && h->type.dtype == FAC_TEXT) {
        a.t = h->data;
        return a;
    }
    void *p = take(s, n ? n : 1, 8);
    if (!p) return a;
    if (is_float(h->type.dtype) || h->type.dtype == FAC_TEXT)
        a.f = p;
    else
        a.i = p;
    if (!fill) return a;
    if (h->type.dtype == FAC_TEXT) {
        if (fac_texts_parse(FAC_F64, p, h->data, n, err)) a.f = NULL;
    } else if (h->data) {
        fac_convert(a.f ? FAC_F64 : FAC_I64, p, h->type.dtype, h->data, n);
    } else {
        for (size_t k = 0; k < n && k < (size_t)h->known->n; k++) {
            if (a.f)
                a.f[k] = (double)h->known->v[k];
            else
                a.i[k] = h->known->v[k];
        }
    }
    return a;
}

enum { FEW = 24 }; /* operands that fit in an array on the stack */

static fac_status run_ref(const fac_node *n, const fac_host *in, const fac_host *out, scratch *s,
                          bool dry, fac_error *err) {
    fac_array few[FEW], *a = few;
    size_t need = (size_t)n->nports + (size_t)n->nout;
    if (need > FEW && !(a = fac_alloc(need, sizeof *a)))
        return fac_raise_memory(err, "%zu operands", need);
    fac_status status = FAC_OK;
    const bool texts = n->op->is & FAC_OP_TEXTS;
    for (int i = 0; i < n->nports; i++) {
        a[i] = array_of(s, &in[i], !(fac_port_flags(n, i) & FAC_SHAPE_ONLY), !dry, texts, err);
        if (!dry && !texts && in[i].type.dtype == FAC_TEXT && !a[i].f) status = FAC_E_FORMAT;
    }
    for (int k = 0; k < n->nout; k++)
        a[n->nports + k] = array_of(s, &out[k], true, false, texts, err);
    if (!dry && !status) {
        fac_ref r = { n->attrs, n->nports, n->nout, a, a + n->nports };
        status = n->op->ref(&r, err);
        for (int k = 0; !status && k < n->nout; k++)
            if (out[k].data && !(texts && out[k].type.dtype == FAC_TEXT)) {
                const fac_array *y = &a[n->nports + k];
                fac_convert(out[k].type.dtype, out[k].data, y->f ? FAC_F64 : FAC_I64,
                            y->f ? (void *)y->f : (void *)y->i, count_of(&out[k].type));
            }
    }
    if (a != few) fac_release(a);
    return status;
}

/* The coordinate that is not one of its dim: an index that counted from the end was added to it. */
static fac_status bad_index(const fac_dims *d, const int64_t *from, fac_error *err) {
    int k = 0;
    while (k < d->n - 1 && from[k] >= 0 && from[k] < d->d[k]) k++;
    return fac_raise_index(from[k] < 0 ? from[k] - d->d[k] : from[k], d->d[k], err);
}

static bool picks(const fac_node *n) {
    bool any = false;
    for (int i = 0; i < n->nports; i++) any |= (fac_port_flags(n, i) & FAC_INDEX) != 0;
    return any;
}

/* Operands that do not fit together, which an op let pass, must not be read past their ends. */
static bool is_inside(const fac_dims *d, const int64_t *from) {
    for (int k = 0; k < d->n; k++)
        if (from[k] < 0 || from[k] >= d->d[k]) return false;
    return true;
}

/* Rows of blocks are moved block by block: only whole ones may be. */
static fac_dims units(const fac_type *t) {
    fac_dims d = t->dims;
    if (fac_dtype_get(t->dtype)->kind == 'q' && d.n)
        d.d[d.n - 1] /= fac_dtype_get(t->dtype)->block_elements;
    return d;
}

/* out[to] = in[*input][from]: bytes only, so every dtype, text included (its elements are borrowed
 * pointers).  What is nowhere is zero; of movers that pick by indices it is an error. */
static fac_status run_move(const fac_node *n, const fac_host *in, const fac_host *out, scratch *s,
                           bool dry, fac_error *err) {
    fac_array few[FEW], *a = few;
    if (n->nports > FEW && !(a = fac_alloc((size_t)n->nports, sizeof *a)))
        return fac_raise_memory(err, "%d operands", n->nports);
    for (int i = 0; i < n->nports; i++) {
        a[i] = array_of(s, &in[i], fac_port_flags(n, i) & (FAC_INDEX | FAC_HOST), !dry, false, err);
        a[i].type.dims = units(&in[i].type);
    }
    fac_status status = FAC_OK;
    const bool indexed = picks(n);
    for (int k = 0; !dry && k < n->nout; k++) {
        if (!out[k].data) continue;
        fac_move m = { n->attrs, n->nports, k, a, units(&out[k].type) };
        int64_t to[FAC_DIMS] = { 0 }, from[FAC_DIMS] = { 0 };
        size_t size = (size_t)fac_dtype_get(out[k].type.dtype)->block_bytes,
               total = (size_t)fac_dims_count(&m.out);
        char *y = out[k].data;
        for (size_t e = 0; e < total && !status; e++, y += size) {
            int input = 0;
            if (n->op->move(&m, to, &input, from)) {
                const fac_dims *d = &a[input].type.dims;
                int64_t at = 0;
                if (!is_inside(d, from)) {
                    status = fac_raise(err, FAC_E_SHAPE, "%s: its operands do not fit together",
                                       n->op->name);
                    break;
                }
                for (int j = 0; j < d->n; j++) at = at * d->d[j] + from[j];
                memcpy(y, (const char *)in[input].data + (size_t)at * size, size);
            } else if (indexed) {
                status = bad_index(&in[input].type.dims, from, err);
            } else if (out[k].type.dtype == FAC_TEXT) {
                static const char *const empty = "";
                memcpy(y, &empty, sizeof empty);
            } else {
                memset(y, 0, size);
            }
            for (int j = m.out.n - 1; j >= 0; j--) {
                if (++to[j] < m.out.d[j]) break;
                to[j] = 0;
            }
        }
    }
    if (a != few) fac_release(a);
    return status;
}

/* ---- bodies ---- */

static fac_status run_any(const fac_node *n, const fac_host *in, const fac_host *out, scratch *s,
                          bool dry, fac_error *err);

/* Every value gets memory of its own; value->mark is not used, so that many threads may run one
 * graph: host k belongs to id k. */
static fac_status run_body(const fac_graph *g, const fac_host *in, const fac_host *out, scratch *s,
                           bool dry, fac_error *err) {
    fac_host *at = take(s, g->ids, sizeof *at), nothing = { 0 };
    fac_host *dry_at = NULL;
    if (dry && !(at = dry_at = fac_alloc(g->ids, sizeof *at)))
        return fac_raise_memory(err, "a body of %u values", g->ids);
    memset(at, 0, g->ids * sizeof *at);
    for (size_t i = 0; i < g->ninputs; i++) at[g->inputs[i]->id] = in[i];
    for (size_t i = 0; i < g->nconsts; i++) {
        fac_value *c = g->consts[i];
        at[c->id] =
            (fac_host){ c->type, c->tensor ? fac_tensor_memory(c->tensor) : NULL, c->known };
    }
    for (size_t i = 0; i < g->nparams; i++)
        at[g->params[i]->id] =
            (fac_host){ g->params[i]->type, fac_tensor_memory(g->params[i]->tensor), NULL };
    for (size_t i = 0; i < g->noutputs; i++)
        if (g->outputs[i].value->node) at[g->outputs[i].value->id] = out[i];

    fac_status status = FAC_OK;
    for (const fac_node *n = g->first; n && !status; n = n->next) {
        fac_host few[FEW], *h = few;
        size_t need = (size_t)n->nin + (size_t)n->nout;
        if (need > FEW && !(h = fac_alloc(need, sizeof *h))) {
            status = fac_raise_memory(err, "%zu operands", need);
            break;
        }
        for (int i = 0; i < n->nin; i++) h[i] = n->in[i] ? at[n->in[i]->id] : nothing;
        for (int k = 0; k < n->nout; k++) {
            fac_value *v = n->out[k];
            if (!at[v->id].data) {
                size_t bytes = fac_type_bytes(&v->type);
                void *p = take(s, bytes ? bytes : 1, 1);
                at[v->id] = (fac_host){ v->type, dry ? (void *)s : p,
                                        v->known }; /* dry: any address, never followed */
            }
            h[n->nin + k] = at[v->id];
        }
        status = run_any(n, h, h + n->nin, s, dry, err);
        if (h != few) fac_release(h);
    }
    for (size_t i = 0; i < g->noutputs && !status && !dry; i++) {
        fac_value *v = g->outputs[i].value;
        if (out[i].data && at[v->id].data != out[i].data)
            memcpy(out[i].data, at[v->id].data, fac_type_bytes(&v->type));
    }
    fac_release(dry_at);
    return status;
}

static fac_status run_alone(const fac_node *n, const fac_host *in, const fac_host *out, scratch *s,
                            bool dry, fac_error *err) {
    if (n->op->map) {
        void *work = take(s, 1, fac_ref_map_scratch(n->nports));
        return dry ? FAC_OK : fac_ref_map(n, in, &out[0], work, err);
    }
    if (n->op->move) return run_move(n, in, out, s, dry, err);
    if (n->op->ref) return run_ref(n, in, out, s, dry, err);
    return fac_raise(err, FAC_E_UNSUPPORTED, "%s has no reference kernel", n->op->name);
}

static bool has_meaning(const fac_op *op) { return op->map || op->move || op->ref; }

static fac_status run_any(const fac_node *n, const fac_host *in, const fac_host *out, scratch *s,
                          bool dry, fac_error *err) {
    size_t mark = s->used;
    fac_status status;
    if (!n->body[0]) {
        status = run_alone(n, in, out, s, dry, err);
    } else if (!has_meaning(n->op)) {
        status = run_body(n->body[0], in, out, s, dry, err);
    } else {
        /* an epilogue: the op's own result is the body's input 0 */
        fac_host own[FEW], inputs[FEW];
        int extra = n->nin - n->nports;
        if (n->nout > FEW || extra + 1 > FEW)
            return fac_raise(err, FAC_E_UNSUPPORTED, "an epilogue with %d operands", extra);
        for (int k = 0; k < n->nout; k++) own[k] = out[k];
        own[0].type = n->body[0]->inputs[0]->type;
        void *p = take(s, fac_type_bytes(&own[0].type), 1);
        own[0].data = dry ? (void *)s : p;
        status = run_alone(n, in, own, s, dry, err);
        inputs[0] = own[0];
        for (int i = 0; i < extra; i++) inputs[i + 1] = in[n->nports + i];
        if (!status) status = run_body(n->body[0], inputs, out, s, dry, err);
    }
    if (!dry) s->used = mark; /* the dry walk adds up, so it is an upper bound */
    return status;
}

/* Formulas are about numbers: text goes through movers, comparisons and, as the input of a cast,
 * through parsing. */
static bool formula_on_text(const fac_node *n) {
    if (!n->graph || n->op->map || n->op->move || !n->op->ref || n->op->is & FAC_OP_TEXTS)
        return false;
    for (int k = 0; k < n->nout; k++)
        if (n->out[k] && n->out[k]->type.dtype == FAC_TEXT) return true; /* not an unused one */
    return false;
}

bool fac_ref_able(const fac_node *n) {
    if ((n->op->is & FAC_OP_FLOW) || (!n->body[0] && !has_meaning(n->op)) || formula_on_text(n))
        return false;
    for (const fac_node *m = n->body[0] ? n->body[0]->first : NULL; m; m = m->next)
        if (!fac_ref_able(m)) return false;
    return true;
}

size_t fac_ref_scratch(const fac_node *n, const fac_host *in, const fac_host *out) {
    scratch s = { NULL, 0, false };
    fac_host few[FEW] = { 0 }, *h = few;
    const int count = n->nin + n->nout;
    if (count > FEW && !(h = fac_alloc((size_t)count, sizeof *h))) return SIZE_MAX;
    for (int i = 0; i < count; i++) {
        h[i] = i < n->nin ? in[i] : out[i - n->nin];
        if (h[i].type.dtype != FAC_NONE)
            h[i].data = few; /* present operands must be seen as such; it is never followed */
    }
    fac_status status = run_any(n, h, h + n->nin, &s, true, NULL);
    if (h != few) fac_release(h);
    return status || s.overflow ? SIZE_MAX : s.used;
}

fac_status fac_ref_node(const fac_node *n, const fac_host *in, const fac_host *out, void *memory,
                        fac_error *err) {
    void *own = NULL;
    if (!memory) {
        size_t bytes = fac_ref_scratch(n, in, out);
        if (bytes == SIZE_MAX && !fac_ref_able(n))
            return fac_raise(err, FAC_E_UNSUPPORTED, "%s has no reference kernel", n->op->name);
        if (bytes == SIZE_MAX || !(own = fac_alloc_aligned(bytes ? bytes : 1)))
            return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %zu bytes of scratch",
                             n->op->name, bytes);
        memory = own;
    }
    scratch s = { memory, 0, false };
    fac_status status = run_any(n, in, out, &s, false, err);
    fac_release_aligned(own);
    return status;
}

fac_status fac_ref_graph(const fac_graph *g, const fac_host *in, const fac_host *out,
                         fac_error *err) {
    scratch dry = { NULL, 0, false };
    FAC_TRY(run_body(g, in, out, &dry, true, err));
    char *memory = dry.overflow ? NULL : fac_alloc_aligned(dry.used);
    if (!memory) return fac_raise_memory(err, "%zu bytes of values", dry.used);
    scratch s = { memory, 0, false };
    fac_status status = run_body(g, in, out, &s, false, err);
    fac_release_aligned(memory);
    return status;
}
