/* The prepare part of a plan: what depends on parameters alone.  Results are kept by the device
 * under what they were made from, so programs that share parameters share them, and a parameter
 * that was written (a new version) makes them anew. Nodes are computed by the reference kernels on
 * the host. */
#include <string.h>
#include "backends/packed.h"
#include "base/error.h"
#include "base/memory.h"
#include "plan/plan.h"
#include "backends/transfer.h"
#include "backends/layout_copy.h"
#include "run/run.h"
#include "ref/ref.h"
#include "tensor/tensor_internal.h"

/* What a value is made from: storages with their versions, and the nodes over them. */
static fac_hash content(const fac_hash *hashes, const fac_value *v) {
    fac_hash h = fac_hash_start(17);
    if (v->tensor) {
        const fac_storage *s = fac_tensor_storage(v->tensor);
        h = fac_hash_int(h, (uint64_t)(uintptr_t)s);
        h = fac_hash_int(h, fac_tensor_version(v->tensor));
        h = fac_hash_int(h, (uint64_t)fac_tensor_at(v->tensor));
        for (int k = 0; k < v->type.dims.n; k++) {
            h = fac_hash_int(h, (uint64_t)v->type.dims.d[k]);
            h = fac_hash_int(h, (uint64_t)fac_tensor_strides(v->tensor)[k]);
        }
        return fac_hash_int(h, v->type.dtype);
    }
    if (!v->node) return v->known ? fac_hash_bytes(h, v->known, sizeof *v->known) : h;
    h = fac_node_hash(h, v->node);
    for (int i = 0; i < v->node->nin; i++)
        h = v->node->in[i] ? fac_hash_join(h, hashes[v->node->in[i]->id]) : fac_hash_int(h, 0);
    return fac_hash_int(h, (uint64_t)v->index);
}

/* Contents of early values, computed when they are first asked for. */
typedef struct early {
    fac_plan *plan;
    fac_tensor **tensors; /* by value id */
    fac_error *err;
} early;

static fac_status contents(early *e, const fac_value *v, fac_tensor **out);

static fac_status compute_with(early *e, const fac_node *n, fac_host *in, fac_host *out) {
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i]) continue;
        in[i] = (fac_host){ n->in[i]->type, NULL, n->in[i]->known };
        fac_tensor *t;
        if (n->in[i]->known && !n->in[i]->tensor) continue;
        FAC_TRY(contents(e, n->in[i], &t));
        in[i].data = fac_tensor_memory(t);
    }
    for (int k = 0; k < n->nout; k++) {
        fac_tensor *t;
        FAC_TRY(fac_tensor_new_on(NULL, NULL, n->out[k]->type, false, &t, e->err));
        e->tensors[n->out[k]->id] = t;
        void *data;
        FAC_TRY(fac_tensor_begin_write(t, &data, e->err));
        out[k] = (fac_host){ n->out[k]->type, data, NULL };
    }
    return fac_ref_node(n, in, out, NULL, e->err);
}

static fac_status compute(early *e, const fac_node *n) {
    enum { FEW = 16 };
    if (!fac_ref_able(n))
        return fac_raise(e->err, FAC_E_UNSUPPORTED, "%s of constants has no meaning", n->op->name);
    const size_t count = (size_t)n->nin + (size_t)n->nout;
    fac_host few[FEW] = { 0 }, *all = few;
    if (count > FEW && !(all = fac_alloc(count, sizeof *all)))
        return fac_raise_memory(e->err, "%zu operands", count);
    const fac_status status = compute_with(e, n, all, all + n->nin);
    if (all != few) fac_release(all);
    return status;
}

static bool may_be_view(const fac_node *n) {
    const fac_type *x = &n->in[0]->type, *y = &n->out[0]->type;
    const char kind = fac_dtype_get(x->dtype)->kind;
    return n->op->view && n->nout == 1 && x->dtype == y->dtype && kind != 't' && kind != 'q' &&
           fac_dims_count(&y->dims) > 0 && (n->in[0]->node || n->in[0]->tensor);
}

/* What only looks at its operand in another way is not computed, and not copied where it has no
 * gaps: a tile of a stack of weights.  *to stays NULL where the node is no view. */
static fac_status view(early *e, const fac_node *n, fac_tensor **to) {
    if (!may_be_view(n)) return FAC_OK;
    const fac_layout plain = fac_layout_plain(&n->in[0]->type.dims);
    fac_layout at = { 0 };
    fac_tensor *whole, *part = NULL;
    if (!n->op->view(n, &plain, &at) || at.block) return FAC_OK;
    FAC_TRY(contents(e, n->in[0], &whole));
    FAC_TRY(fac_tensor_view(whole, n->out[0]->type.dims, at.stride, at.offset, &part, e->err));
    if (fac_tensor_contiguous(part)) {
        *to = part;
        return FAC_OK;
    }
    const fac_status status = fac_tensor_copy_contiguous(part, to, e->err);
    fac_tensor_free(part);
    return status;
}

static fac_status contents(early *e, const fac_value *v, fac_tensor **out) {
    fac_tensor **slot = &e->tensors[v->id];
    if (!*slot && v->node && !v->tensor) FAC_TRY(view(e, v->node, slot));
    if (!*slot) {
        if (v->tensor && fac_tensor_contiguous(v->tensor) && fac_tensor_data(v->tensor))
            *slot = fac_tensor_retain(v->tensor);
        else if (v->tensor)
            FAC_TRY(fac_tensor_copy_contiguous(v->tensor, slot, e->err));
        else if (v->node)
            FAC_TRY(compute(e, v->node));
        else
            return fac_raise(e->err, FAC_E_INTERNAL, "%s has no contents",
                             v->name ? v->name : "a value");
    }
    *out = *slot;
    return FAC_OK;
}

/* The values were computed on the host, which is where pack() of a host device reads; to others
 * they are brought first. */
static fac_status pack_item(early *e, const fac_item *item, const void *from, fac_span to) {
    fac_device *d = e->plan->device;
    const void *plan = e->plan->steps[item->step].plan;
    const size_t bytes = fac_type_bytes(&item->value->type);
    fac_span source = { (void *)(uintptr_t)from, 0 };
    if (fac_in_sight(d)) return item->solver->pack(plan, d, item->input, source, to, e->err);
    FAC_TRY(d->backend->alloc(d, bytes ? bytes : 1, &source.memory, e->err));
    fac_status status = d->backend->write(d, source, from, bytes, e->err);
    if (!status) status = item->solver->pack(plan, d, item->input, source, to, e->err);
    d->backend->free(d, source.memory, bytes ? bytes : 1);
    return status;
}

static fac_status fill(early *e, const fac_item *item, fac_pack *pack) {
    fac_plan *plan = e->plan;
    fac_device *d = plan->device;
    fac_tensor *t;
    FAC_TRY(contents(e, item->value, &t));
    const void *from = fac_tensor_data(t);
    fac_span to = { pack->memory, 0 };
    if (item->solver) {
        const fac_solver *s = item->solver;
        const uint64_t own =
            s->pack_key ? s->pack_key(plan->steps[item->step].plan, item->input) : 0;
        fac_hash key;
        const bool lasts =
            fac_packed_key(d, &item->value->type, from, s, item->input, own, pack->bytes, &key);
        if (lasts && fac_packed_find(d, key, pack)) return FAC_OK;
        FAC_TRY(pack_item(e, item, from, to));
        if (lasts) fac_packed_keep(d, key, pack);
        return FAC_OK;
    }
    void *host = d->backend->host ? d->backend->host(d, pack->memory) : NULL;
    fac_layout plain = fac_layout_plain(&item->value->type.dims);
    if (host) {
        memset(host, 0, item->bytes);
        fac_copy_layout(&item->value->type, from, &plain, host, &item->layout);
        return FAC_OK;
    }
    void *staging = fac_alloc(item->bytes, 1);
    if (!staging) return fac_raise_memory(e->err, "%zu bytes", item->bytes);
    fac_copy_layout(&item->value->type, from, &plain, staging, &item->layout);
    fac_status status = d->backend->write(d, to, staging, item->bytes, e->err);
    fac_release(staging);
    return status;
}

/* What a solver packs belongs to one step.  A value alone belongs to none: there may be no step at
 * all. */
static const char *name_of(const fac_plan *plan, const fac_item *item) {
    const fac_value *v = item->value;
    if (item->solver && item->step < plan->nsteps) return plan->steps[item->step].label;
    if (v->name) return v->name;
    if (!v->node) return "a constant";
    return v->node->name ? v->node->name : v->node->op->name;
}

static fac_status all_items(fac_plan *plan, fac_prepared *p, fac_hash *hashes, early *e) {
    fac_device *d = plan->device;
    const fac_graph *g = plan->graph;
    for (size_t i = 0; i < g->nparams; i++)
        hashes[g->params[i]->id] = content(hashes, g->params[i]);
    for (size_t i = 0; i < g->nconsts; i++)
        hashes[g->consts[i]->id] = content(hashes, g->consts[i]);
    for (const fac_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nout && n->out[0]->time != FAC_RUN; k++)
            hashes[n->out[k]->id] = content(hashes, n->out[k]);
    for (int i = 0; i < plan->nitems; i++) {
        const fac_item *item = &plan->items[i];
        fac_hash h = fac_hash_int(hashes[item->value->id], item->bytes);
        if (item->solver) {
            h = fac_hash_text(h, item->solver->name);
            h = fac_hash_int(h, (uint64_t)item->input);
            h = fac_hash_int(h,
                             item->solver->pack_key
                                 ? item->solver->pack_key(plan->steps[item->step].plan, item->input)
                                 : 0);
        } else {
            for (int k = 0; k < item->value->type.dims.n; k++)
                h = fac_hash_int(h, (uint64_t)item->layout.stride[k]);
            h = fac_hash_int(h, (uint64_t)item->layout.block << 8 | (uint64_t)item->layout.axis);
        }
        bool fresh;
        FAC_TRY(fac_pack_get(d, h, item->bytes ? item->bytes : 1, &p->packs[i], &fresh, e->err));
        fac_status status = fresh ? fill(e, item, p->packs[i]) : FAC_OK;
        if (status) {
            p->packs[i]->key = fac_hash_start(0); /* nobody may find what was not filled */
            p->packs[i]->key.a ^= (uint64_t)(uintptr_t)p->packs[i];
            return fac_raise_in(e->err, status, "preparing %s", name_of(plan, item));
        }
    }
    return FAC_OK;
}

static bool current(const fac_plan *plan) {
    const fac_graph *g = plan->graph;
    if (!plan->prepared) return false;
    for (size_t i = 0; i < g->nparams; i++)
        /* those of the run time change in each run, and nothing is prepared from them but rows of
         * what has gaps */
        if ((g->params[i]->time != FAC_RUN || !fac_tensor_contiguous(g->params[i]->tensor)) &&
            plan->prepared->versions[i] != fac_tensor_version(g->params[i]->tensor))
            return false;
    return true;
}

fac_status fac_prepare(fac_plan *plan, fac_prepared **out, fac_error *err) {
    const fac_graph *g = plan->graph;
    if (plan->nitems == 0 && plan->prepared) {
        plan->prepared->refs++;
        *out = plan->prepared;
        return FAC_OK;
    }
    if (!current(plan)) {
        fac_prepared *p = fac_alloc(1, sizeof *p);
        fac_hash *hashes = fac_alloc(g->ids + 1, sizeof *hashes);
        early e = { plan, fac_alloc(g->ids + 1, sizeof *e.tensors), err };
        fac_status status = FAC_OK;
        if (p) {
            p->refs = 1;
            p->versions = fac_alloc(g->nparams + 1, sizeof *p->versions);
            p->packs = fac_alloc((size_t)plan->nitems + 1, sizeof *p->packs);
        }
        if (!p || !hashes || !e.tensors || !p->versions || !p->packs)
            status = fac_raise(err, FAC_E_NOMEM, "no memory to prepare a plan");
        for (size_t i = 0; i < g->nparams && !status; i++)
            p->versions[i] = fac_tensor_version(g->params[i]->tensor);
        if (!status) {
            pthread_mutex_lock(&plan->device->lock);
            status = all_items(plan, p, hashes, &e);
            pthread_mutex_unlock(&plan->device->lock);
        }
        for (uint32_t i = 0; e.tensors && i < g->ids; i++) fac_tensor_free(e.tensors[i]);
        fac_release(e.tensors);
        fac_release(hashes);
        if (status) {
            fac_prepared_put(plan, p);
            return status;
        }
        fac_prepared_put(plan, plan->prepared);
        plan->prepared = p;
        plan->packed_bytes = 0;
        for (int i = 0; i < plan->nitems; i++) plan->packed_bytes += p->packs[i]->bytes;
    }
    plan->prepared->refs++;
    *out = plan->prepared;
    return FAC_OK;
}

void fac_prepared_put(fac_plan *plan, fac_prepared *p) {
    if (!p || --p->refs > 0) return;
    for (int i = 0; p->packs && i < plan->nitems; i++) fac_pack_put(plan->device, p->packs[i]);
    fac_release(p->packs);
    fac_release(p->versions);
    fac_release(p);
}
