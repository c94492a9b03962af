/* Turns an elementwise node into a chain: see chain.h.  Registers are given out in the order of the
 * steps; the register of a value is free again after its last reader, and a loop may write over
 * its own argument. */
#include <string.h>
#include "backends/cpu/device/streams.h"
#include "backends/cpu/elementwise/chain.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "tensor/tensor_internal.h"

/* Where a value lies: `key` is the fac_value of a body, or the fac_operand of a single node. */
typedef struct place {
    const void *key;
    fac_dtype dtype, as;
    int slot;
} place;
typedef struct builder {
    fac_chain *c;
    const fac_simd *simd;
    bool single; /* one node, not the body of a `fused` */
    int places;
    place place[FAC_CHAIN_SOURCES + 2 * FAC_CHAIN_STEPS];
} builder;

enum { TEMP = 1 << 16 }; /* slots of steps while it is being built: TEMP + number of the step */

static char kind_of(fac_dtype t) { return fac_dtype_get(t)->kind; }

/* The type that values of an element type lie in: their own but for halves. */
static fac_dtype natural(fac_dtype t) { return kind_of(t) == 'f' && t != FAC_F64 ? FAC_F32 : t; }

static size_t bytes_of(fac_dtype t) { return (size_t)fac_dtype_get(t)->block_bytes; }

static bool computable(fac_dtype t) {
    return strchr("fiub", kind_of(t)) && kind_of(t) && t != FAC_BIT && !fac_dtype_is_stored(t);
}

static int put_source(builder *b, const void *key, int input, fac_dtype dtype, fac_dtype as,
                      uint64_t constant) {
    fac_chain *c = b->c;
    if (c->sources == FAC_CHAIN_SOURCES) return -1;
    c->source[c->sources] = (fac_chain_source){ input, constant, dtype, as, false };
    b->place[b->places++] = (place){ key, dtype, as, c->sources };
    return c->sources++;
}

static fac_chain_step *put_step(builder *b, const void *key, fac_dtype dtype, fac_dtype as) {
    fac_chain *c = b->c;
    if (c->steps == FAC_CHAIN_STEPS) return NULL;
    fac_chain_step *s = &c->step[c->steps];
    *s = (fac_chain_step){ .as = as, .out = TEMP + c->steps++ };
    b->place[b->places++] = (place){ key, dtype, as, s->out };
    return s;
}

static int put_conversion(builder *b, const void *key, fac_dtype dtype, int slot, fac_dtype from,
                          fac_dtype via, fac_dtype as) {
    fac_chain_step *s = put_step(b, key, dtype, as);
    if (!s) return -1;
    s->nin = 1;
    s->in[0] = slot;
    s->from = from;
    s->via = via;
    return s->out;
}

/* The slot of a value in the type that a loop wants.  An operand is loaded once for each such type.
 */
static int slot_of(builder *b, const void *key, fac_dtype as) {
    const place *any = NULL;
    for (int i = 0; i < b->places; i++)
        if (b->place[i].key == key) {
            if (b->place[i].as == as) return b->place[i].slot;
            any = &b->place[i];
        }
    if (!any) return -1;
    place from = *any;
    if (from.as == FAC_NONE) return put_source(b, key, from.slot, from.dtype, as, 0);
    if (from.slot < FAC_CHAIN_SOURCES) {
        fac_chain_source s = b->c->source[from.slot];
        return put_source(b, key, s.input, s.dtype, as, s.constant);
    }
    return put_conversion(b, key, from.dtype, from.slot, from.as, as, as);
}

static fac_loop *loop_of(const fac_map *m, fac_dtype as, int isa) {
    if (as == FAC_U64 || as == FAC_I64) return as == FAC_U64 && m->u64 ? m->u64 : m->i64;
    fac_loop *const *loops = as == FAC_F64 ? m->f64 : m->f32;
    while (isa > FAC_ISA_BASE && !loops[isa]) isa--;
    return loops[isa];
}

/* A loop that computes in type `as`, and what makes its result of it. */
static bool put_loop(builder *b, fac_chain_step step, const int *slots, fac_dtype as,
                     const void *key, fac_dtype result) {
    bool narrow = result != as && kind_of(result) != 'b';
    fac_chain_step *s = put_step(b, narrow ? (const void *)b->c : key, result, as);
    if (!s) return false;
    step.as = s->as;
    step.out = s->out;
    memcpy(step.in, slots, sizeof step.in);
    *s = step;
    return !narrow || put_conversion(b, key, result, s->out, as, result, natural(result)) >= 0;
}

static bool put_typed(builder *b, const fac_chain_typed *t, int nin, const void *const *in,
                      const void *key, fac_dtype result) {
    fac_chain_step step = { .loop = t->loop, .nin = nin };
    int slots[FAC_CHAIN_ARGS] = { 0 };
    for (int i = 0; i < nin; i++) {
        const fac_dtype as = i ? t->as : t->first;
        slots[i] = slot_of(b, in[t->swapped ? nin - 1 - i : i], as);
        if (slots[i] < 0) return false;
        step.apart |= bytes_of(as) != bytes_of(t->result);
    }
    return put_loop(b, step, slots, t->result, key, result);
}

static bool put_node(builder *b, const fac_op *op, const void *attrs, int nin,
                     const void *const *in, const fac_dtype *types, const void *key,
                     fac_dtype result) {
    if (!computable(result)) return false;
    for (int i = 0; i < nin; i++)
        if (!in[i] || !computable(types[i])) return false;
    if (!op->map) {
        if (op != &fac_op_cast || nin != 1) return false;
        const fac_dtype from = natural(types[0]);
        int slot = slot_of(b, in[0], from);
        return slot >= 0 &&
               put_conversion(b, key, result, slot, from, result, natural(result)) >= 0;
    }
    if (op->map->inputs != nin || nin > FAC_CHAIN_ARGS) return false;
    fac_chain_typed typed;
    const fac_integer_kernels *k = b->simd->streams->integers;
    if (fac_chain_typed_of(k, op, nin, types, &typed) ||
        (b->single && fac_chain_compares_f32(k, op, types, &typed)))
        return put_typed(b, &typed, nin, in, key, result);
    bool floats = false, doubles = false, integers = false, words = false;
    for (int i = 0; i < nin; i++) {
        char kind = kind_of(types[i]);
        floats |= kind == 'f';
        doubles |= types[i] == FAC_F64;
        words |= types[i] == FAC_U64;
        integers |= kind == 'i' || kind == 'u';
    }
    fac_dtype as = doubles || (floats && integers) ? FAC_F64
                   : floats                        ? FAC_F32
                   : words && op->map->u64         ? FAC_U64
                                                   : FAC_I64;
    fac_loop *loop = loop_of(op->map, as, b->simd->isa);
    int slots[FAC_CHAIN_ARGS] = { 0 };
    if (!loop) return false;
    for (int i = 0; i < nin; i++)
        if ((slots[i] = slot_of(b, in[i], as)) < 0) return false;
    return put_loop(b, (fac_chain_step){ .loop = loop, .params = attrs, .nin = nin }, slots, as,
                    key, result);
}

static bool put_body(builder *b, const fac_problem *p) {
    const fac_graph *g = p->node->body[0];
    if ((int)g->ninputs != p->nin || (int)g->noutputs != p->nout) return false;
    for (int i = 0; i < p->nin; i++)
        b->place[b->places++] = (place){ g->inputs[i], p->in[i].type.dtype, FAC_NONE, i };
    for (size_t i = 0; i < g->nconsts; i++) {
        const fac_value *v = g->consts[i];
        uint64_t element = 0;
        if (fac_dims_count(&v->type.dims) != 1 || !computable(v->type.dtype)) return false;
        if (!v->tensor || !fac_tensor_data(v->tensor)) return false;
        memcpy(&element, fac_tensor_data(v->tensor),
               (size_t)fac_dtype_get(v->type.dtype)->block_bytes);
        if (put_source(b, v, -1, v->type.dtype, natural(v->type.dtype), element) < 0) return false;
    }
    for (const fac_node *n = g->first; n; n = n->next) {
        const void *in[FAC_CHAIN_ARGS];
        fac_dtype types[FAC_CHAIN_ARGS];
        if (n->nin > FAC_CHAIN_ARGS || n->nout != 1 || n->body[0]) return false;
        for (int i = 0; i < n->nin; i++) {
            in[i] = n->in[i];
            types[i] = n->in[i] ? n->in[i]->type.dtype : FAC_NONE;
        }
        if (!put_node(b, n->op, n->attrs, n->nin, in, types, n->out[0], n->out[0]->type.dtype))
            return false;
    }
    return true;
}

static bool put_single(builder *b, const fac_problem *p) {
    const void *in[FAC_CHAIN_ARGS];
    fac_dtype types[FAC_CHAIN_ARGS];
    if (p->nin > FAC_CHAIN_ARGS || p->nout != 1 || p->node->body[0]) return false;
    for (int i = 0; i < p->nin; i++) {
        in[i] = &p->in[i];
        types[i] = p->in[i].type.dtype;
        b->place[b->places++] = (place){ in[i], types[i], FAC_NONE, i };
    }
    return put_node(b, p->node->op, p->node->attrs, p->nin, in, types, &p->out[0],
                    p->out[0].type.dtype);
}

static bool put_outs(builder *b, const fac_problem *p) {
    fac_chain *c = b->c;
    if (p->nout > FAC_CHAIN_OUTS) return false;
    for (int k = 0; k < p->nout; k++) {
        const void *key =
            p->node->body[0] ? (const void *)p->node->body[0]->outputs[k].value : &p->out[k];
        const place *at = NULL;
        for (int i = 0; i < b->places && !at; i++)
            if (b->place[i].key == key && b->place[i].as != FAC_NONE) at = &b->place[i];
        fac_dtype dtype = p->out[k].type.dtype, as = at ? at->as : natural(dtype);
        int slot =
            at ? at->slot : slot_of(b, key, as); /* not there yet: an input that is passed on */
        if (slot < 0 || !computable(dtype)) return false;
        if (slot < FAC_CHAIN_SOURCES) c->source[slot].copy = true;
        c->outs++;
        c->out[k].slot = slot;
        c->out[k].as = as;
        c->out[k].dtype = dtype;
    }
    return true;
}

/* TEMP + step becomes a register; c->slots counts sources and registers. */
static void give_registers(fac_chain *c) {
    int last[FAC_CHAIN_STEPS], at[FAC_CHAIN_STEPS] = { 0 };
    bool taken[FAC_CHAIN_STEPS] = { false };
    for (int i = 0; i < c->steps; i++) last[i] = i;
    for (int i = 0; i < c->steps; i++)
        for (int k = 0; k < c->step[i].nin; k++)
            if (c->step[i].in[k] >= TEMP) last[c->step[i].in[k] - TEMP] = i;
    for (int k = 0; k < c->outs; k++)
        if (c->out[k].slot >= TEMP) last[c->out[k].slot - TEMP] = c->steps;
    c->slots = c->sources;
    for (int i = 0; i < c->steps; i++) {
        fac_chain_step *s = &c->step[i];
        for (int pass = 0; pass < 2; pass++) {
            /* A conversion may widen, so it must not write over what it reads: it takes its
             * register first. */
            if ((pass == 0) == (s->loop != NULL && !s->apart)) {
                for (int k = 0; k < s->nin; k++)
                    if (s->in[k] >= TEMP && last[s->in[k] - TEMP] == i)
                        taken[at[s->in[k] - TEMP]] = false;
            } else {
                int r = 0;
                while (taken[r]) r++;
                taken[r] = true;
                at[i] = r;
                if (c->sources + r + 1 > c->slots) c->slots = c->sources + r + 1;
            }
        }
    }
    for (int i = 0; i < c->steps; i++) {
        fac_chain_step *s = &c->step[i];
        s->out = c->sources + at[s->out - TEMP];
        for (int k = 0; k < s->nin; k++)
            if (s->in[k] >= TEMP) s->in[k] = c->sources + at[s->in[k] - TEMP];
    }
    for (int k = 0; k < c->outs; k++)
        if (c->out[k].slot >= TEMP) c->out[k].slot = c->sources + at[c->out[k].slot - TEMP];
}

bool fac_chain_build(const fac_problem *p, const fac_simd *simd, fac_chain *c) {
    bool fused = FAC_IS(p->node, fused) && p->node->body[0];
    builder b = { .c = c, .simd = simd, .single = !fused };
    c->sources = c->steps = c->outs = 0;
    if (p->nin > FAC_CHAIN_SOURCES / 2 || !(fused ? put_body(&b, p) : put_single(&b, p)) ||
        !put_outs(&b, p))
        return false;
    c->width = 1;
    for (int i = 0; i < c->sources; i++)
        if (bytes_of(c->source[i].as) > c->width) c->width = bytes_of(c->source[i].as);
    for (int i = 0; i < c->steps; i++)
        if (bytes_of(c->step[i].as) > c->width) c->width = bytes_of(c->step[i].as);
    c->is_adam = fac_chain_is_adam(c, simd->isa, &c->adam);
    give_registers(c);
    return true;
}
