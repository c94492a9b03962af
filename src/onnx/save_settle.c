/* Which opset a graph is written at, and the graph that is written: a copy in which every node can
 * be said there.
 *
 * A node that cannot is, in this order: computed in a wider element type, when ONNX has the op but
 * not for its type; expanded into simpler ops; refused.  Asked for no opset, the exporter takes the
 * oldest one from FAC_ONNX_USUAL on that refuses nothing. */
#include <string.h>
#include "base/error.h"
#include "base/text.h"
#include "facula/ops.h"
#include "onnx/export.h"

/* ---- element types ---- */

/* They move elements of any type that is not only stored. */
#define MOVERS                                                                                     \
    " Compress Concat DepthToSpace Expand Gather GatherElements GatherND ReverseSequence "         \
    "ScatterElements ScatterND Slice SpaceToDepth Split Tile Trilu Unique Where "
#define D(dtype) (1u << FAC_##dtype)
enum {
    HALVES = D(F16) | D(BF16),
    SIGNED = D(I8) | D(I16) | D(I32) | D(I64),
    UNSIGNED = D(U8) | D(U16) | D(U32) | D(U64),
    SMALL = D(I8) | D(I16) | D(U8) | D(U16),
    INTS = SIGNED | UNSIGNED,
    STORED = D(NONE) /* small floats and integers that quantized models store */
};

/* What ONNX operators do not take although ours do, up to an opset (0: so far).  From the type
 * constraints in ONNX's operator documentation (Operators.md, Changelog.md). */
static const struct {
    const char *types;
    int until;
    unsigned lacks;
} gaps[] = { { " Acos Acosh Asin Asinh Atan Atanh AveragePool Conv ConvTranspose Cos Cosh Elu "
               "EyeLike HardSigmoid HardSwish "
               "InstanceNormalization MaxPool Mish Round Selu Sin Sinh Softplus Softsign Tan "
               "ThresholdedRelu ",
               21, D(BF16) },
             { " GRU LSTM RNN ", 21, D(BF16) },
             { " GreaterOrEqual LessOrEqual LeakyRelu PRelu ", 15, D(BF16) },
             { " BatchNormalization ", 13, D(BF16) },
             { " IsInf ", 19, HALVES },
             { " CumSum ", 13, HALVES },
             { " CumSum CumProd ", 0, SMALL },
             { " MaxPool ", 0, INTS & ~(D(I8) | D(U8)) },
             { " Add Sub Mul Div ", 13, SMALL },
             { " Relu ", 13, SIGNED },
             { " Relu Neg ", 0, UNSIGNED },
             { " Pow ", 0, SMALL | D(U32) | D(U64) },
             { " MatMul Gemm PRelu ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean "
               "ReduceProd ReduceSum ReduceSumSquare ",
               0, SMALL },
             { " ReduceMax ReduceMin ", 0, D(I16) | D(U16) },
             { " ReduceMax ReduceMin ", 19, D(BOOL) },
             { " MaxUnpool ", 0, INTS },
             { " QuantizeLinear ", 18, HALVES },
             { " MeanVarianceNormalization ", 0, HALVES | D(F64) },
             { " Range ", 0, HALVES | D(I8) | UNSIGNED },
             { MOVERS, 0, STORED } };
#undef D

static bool takes(const char *type, int opset, fac_dtype dtype) {
    size_t n = strlen(type);
    for (size_t k = 0; k < sizeof gaps / sizeof *gaps; k++) {
        const bool lacks = ((uint64_t)gaps[k].lacks >> dtype & 1) ||
                           (gaps[k].lacks & STORED && fac_dtype_is_stored(dtype));
        if (!lacks || (gaps[k].until && opset > gaps[k].until)) continue;
        for (const char *at = gaps[k].types; (at = strstr(at, type)); at += n)
            if (at[-1] == ' ' && at[n] == ' ') return false;
    }
    return true;
}

/* The element type that an ONNX op has not: that of the first input, or of the result where the
 * first input is a condition.  FAC_NONE: it has both. */
static fac_dtype missing(const char *type, int opset, const fac_node *n) {
    if (!n->nin || !n->in[0]) return FAC_NONE;
    const fac_dtype first = n->in[0]->type.dtype, result = n->out[0]->type.dtype;
    if (!takes(type, opset, first)) return first;
    return first == FAC_BOOL && !takes(type, opset, result) ? result : FAC_NONE;
}

bool fac_export_takes(const char *type, int opset, const fac_node *n) {
    return !missing(type, opset, n);
}

/* A type that holds every number of this one, and in which sums and products are the same when they
 * are cut off again; up to three to choose from. */
static fac_dtype wider(const char *type, int opset, fac_dtype dtype) {
    static const struct {
        fac_dtype of, to[3];
    } wide[] = { { FAC_F16, { FAC_F32 } },
                 { FAC_BF16, { FAC_F32 } },
                 { FAC_BOOL, { FAC_U8 } },
                 { FAC_I8, { FAC_I64, FAC_F32 } },
                 { FAC_U8, { FAC_I64, FAC_F32 } },
                 { FAC_I16, { FAC_I64, FAC_F32, FAC_I32 } },
                 { FAC_U16, { FAC_I64, FAC_F32, FAC_I32 } },
                 { FAC_I32, { FAC_I64, FAC_F64 } },
                 { FAC_U32, { FAC_I64, FAC_F64 } },
                 { FAC_U64, { FAC_I64 } },
                 /* without infinities, which a cast back would lose */
                 { FAC_F8E4M3, { FAC_F32 } },
                 { FAC_F8E4M3UZ, { FAC_F32 } },
                 { FAC_F8E5M2UZ, { FAC_F32 } },
                 { FAC_F8E8M0, { FAC_F32 } },
                 { FAC_F4E2M1, { FAC_F32 } },
                 { FAC_I4, { FAC_I8 } },
                 { FAC_U4, { FAC_U8 } },
                 { FAC_I2, { FAC_I8 } },
                 { FAC_U2, { FAC_U8 } } };
    for (size_t k = 0; k < sizeof wide / sizeof *wide; k++)
        for (int i = 0; wide[k].of == dtype && i < 3 && wide[k].to[i]; i++)
            if (takes(type, opset, wide[k].to[i])) return wide[k].to[i];
    return FAC_NONE;
}

/* The node between casts, where ONNX's op (ex->lacking) has not its type; false when it has no
 * wider one either. */
static bool widened(fac_export *ex, fac_graph *to, const fac_node *n, fac_value *const in[],
                    fac_value *out[]) {
    const fac_dtype dtype = missing(ex->lacking, ex->opset, n);
    const fac_dtype wide = wider(ex->lacking, ex->opset, dtype);
    fac_value **args = wide && n->nin == n->nports
                           ? fac_arena_alloc(&to->arena, (size_t)n->nin, sizeof *args)
                           : NULL;
    if (!args) return false;
    for (int i = 0; i < n->nin; i++) {
        bool operand = in[i] && in[i]->type.dtype == dtype && !(fac_port_flags(n, i) & FAC_INDEX);
        args[i] = operand ? fac_cast(in[i], wide) : in[i];
        /* an opset that has not the type has no cast of it either */
        if (operand && args[i]->node && !fac_export_can(ex, args[i]->node)) return false;
    }
    fac_node_copy(to, n, args, out);
    for (int k = 0; k < n->nout; k++)
        if (n->out[k]->type.dtype == dtype) out[k] = fac_cast(out[k], dtype);
    return true;
}

/* ---- one opset ---- */

enum { DEEPEST = 16, MOST = 24 };

typedef struct settling {
    fac_export *ex;
    bool again, changed; /* something was put that must be looked at too; anything was put at all */
    const fac_op *refused[MOST]; /* each once */
    int nrefused;
} settling;

static void refuse(settling *s, const fac_op *op) {
    for (int k = 0; k < s->nrefused; k++)
        if (s->refused[k] == op) return;
    if (s->nrefused < MOST) s->refused[s->nrefused++] = op;
}

static fac_graph *settled(settling *s, const fac_graph *from);

/* The same for the bodies of a node, which must be sayable as well.  false: one is not. */
static bool settle_bodies(settling *s, fac_graph *to, const fac_node *n, fac_value *const in[],
                          fac_value *out[], bool *changed) {
    settling inner = { .ex = s->ex };
    fac_node copy = *n;
    for (int k = 0; k < 2; k++) {
        if (!n->body[k]) continue;
        copy.body[k] = settled(&inner, n->body[k]);
        if (!copy.body[k])
            s->ex->failed = true;
        else if (copy.body[k]->error.status)
            fac_graph_raise(to, copy.body[k]->error.status, "%s", copy.body[k]->error.text);
    }
    const bool can = !inner.nrefused && !s->ex->failed && !to->error.status;
    *changed = can && inner.changed;
    if (*changed) fac_node_copy(to, &copy, in, out);
    for (int k = 0; k < 2; k++)
        if (n->body[k]) fac_graph_free(copy.body[k]);
    for (int k = 0; k < inner.nrefused && !fac_node_expands(n); k++) refuse(s, inner.refused[k]);
    return can;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    settling *s = self;
    bool bodies = false;
    if (fac_export_can(s->ex, n) &&
        (!(n->op->is & FAC_OP_FLOW) || settle_bodies(s, to, n, in, out, &bodies))) {
        s->changed |= bodies;
        return bodies;
    }
    if (s->ex->failed || to->error.status) return false;
    bool changed = s->ex->lacking && widened(s->ex, to, n, in, out);
    if (!changed && fac_node_expands(n) &&
        fac_node_guess(n) == FAC_CERTAIN) { /* an expansion goes by the dims */
        fac_node_expand(to, n, in, out);
        changed = true;
    }
    s->again |= changed;
    s->changed |= changed;
    if (!changed && !(n->op->is & FAC_OP_FLOW && s->nrefused)) refuse(s, n->op);
    return changed;
}

/* The graph at ex->opset; NULL when memory is gone. */
static fac_graph *settled(settling *s, const fac_graph *from) {
    fac_graph *g = NULL;
    s->again = true;
    for (int i = 0; s->again; i++) {
        s->again = false;
        fac_graph *next = fac_graph_rebuild(
            g ? g : from, &(fac_rebuild){ .self = s, .visit = visit, .blind = true }, NULL);
        fac_graph_free(g);
        g = next;
        if (!g || g->error.status) break;
        if (i == DEEPEST) fac_graph_raise(g, FAC_E_INTERNAL, "expansions that do not end");
    }
    return g;
}

/* ---- a batch size ---- */

typedef struct binding {
    int64_t symbol, size;
} binding;

static fac_dims bound(const binding *b, fac_dims d) {
    for (int k = 0; k < d.n; k++)
        if (d.d[k] == b->symbol) d.d[k] = b->size;
    return d;
}

static fac_value *bind_leaf(void *self, fac_graph *to, const fac_value *v) {
    const binding *b = self;
    if (v->leaf == FAC_INPUT) return fac_input(to, v->name, v->type.dtype, bound(b, v->type.dims));
    if (v->leaf != FAC_CONST || v->tensor || v->known->n > FAC_DIMS) return NULL;
    fac_dims list = { .n = v->known->n };
    memcpy(list.d, v->known->v, (size_t)list.n * sizeof *list.d);
    return fac_ints(to, bound(b, list));
}

/* A copy with the batch size that was asked for; *own stays NULL when there is nothing to bind. */
static fac_status bind_batch(const fac_export *ex, const fac_graph *from, fac_graph **own,
                             fac_error *err) {
    const int64_t size = ex->opts->batch;
    const fac_dims *d = from->ninputs ? &from->inputs[0]->type.dims : &(fac_dims){ 0 };
    if (!size || (d->n && d->d[0] == size)) return FAC_OK;
    if (size < 0 || !d->n || d->d[0] >= 0)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "a batch of %lld, but the first dim of the first input is not open",
                         (long long)size);
    binding b = { d->d[0], size };
    *own = fac_graph_rebuild(from, &(fac_rebuild){ .self = &b, .leaf = bind_leaf }, NULL);
    return *own ? fac_graph_check(*own, err) : fac_raise_memory(err, "a copy of the graph");
}

/* ---- all opsets ---- */

static fac_status refusal(const settling *s, fac_error *err) {
    fac_text text = { 0 };
    for (int k = 0; k < s->nrefused; k++)
        fac_text_print(&text, "%s%s", k ? ", " : "", s->refused[k]->name);
    fac_status status =
        text.failed ? fac_raise_memory(err, "a message")
                    : fac_raise(err, FAC_E_UNSUPPORTED, "ONNX opset %d has no way to say: %s",
                                s->ex->opset, text.s);
    fac_text_free(&text);
    return status;
}

static fac_status choose(fac_export *ex, const fac_graph *from, fac_error *err) {
    const int asked = ex->opts->opset;
    for (ex->opset = asked ? asked : FAC_ONNX_USUAL;; ex->opset++) {
        settling s = { .ex = ex };
        fac_graph *g = settled(&s, from);
        if (!g) return fac_raise_memory(err, "a copy of the graph");
        fac_status status =
            ex->failed ? fac_raise_memory(err, "the nodes") : fac_graph_check(g, err);
        if (!status && s.nrefused && (asked || ex->opset == FAC_ONNX_NEWEST))
            status = refusal(&s, err);
        if (!status && !s.nrefused) {
            ex->g = g;
            return FAC_OK;
        }
        fac_graph_free(g);
        if (status) return status;
    }
}

fac_status fac_export_settle(fac_export *ex, const fac_graph *from, fac_error *err) {
    fac_graph *own = NULL;
    fac_status status = bind_batch(ex, from, &own, err);
    if (!status) status = choose(ex, own ? own : from, err);
    fac_graph_free(own);
    return status;
}
