/* One node that is an op: through the tables of the op's descriptor, or through its load(). */
#include <string.h>
#include "base/error.h"
#include "graph/attr.h"
#include "graph/list.h"
#include "onnx/import.h"

enum { LONG = 64 }; /* numbers of an attribute that fills an array */

/* ---- attributes by the op's table ----
 * Errors go to the graph, as those of load() do: it leads them with the node's name. */

static void put(void *attrs, const fac_attr *to, const void *value, size_t size) {
    memcpy((char *)attrs + to->at, value, size);
}

/* 0 in the struct means the default.  Where the default is another number, a 0 of the file cannot
 * be said. */
static bool sayable(fac_graph *g, const fac_attr *to, const char *name, double x) {
    if (x != 0 || to->zero_means == 0) return true;
    fac_fail_graph(g, FAC_E_UNSUPPORTED, "attribute %s = 0 is not supported", name);
    return false;
}

static void fill_array(const fac_onnx_node *n, fac_graph *g, const fac_attr *to, const char *name,
                       void *attrs) {
    int64_t numbers[LONG];
    int count = fac_onnx_ints_long(n, name, numbers, LONG);
    if (count < 0) return;
    if (count != to->count || to->kind != FAC_A_INT) {
        fac_fail_graph(g, FAC_E_SHAPE, "attribute %s has %d numbers, not %d", name, count,
                       to->count);
        return;
    }
    for (int k = 0; k < count; k++)
        if (!sayable(g, to, name, (double)numbers[k])) return;
    put(attrs, to, numbers, (size_t)count * sizeof *numbers);
}

static void fill_choice(const fac_onnx_node *n, fac_graph *g, const fac_attr *to, const char *name,
                        void *attrs) {
    const char *text = fac_onnx_text(n, name, NULL);
    if (!text) return;
    for (int k = 0; to->choices[k]; k++)
        if (!strcmp(to->choices[k], text)) {
            put(attrs, to, &k, sizeof k);
            return;
        }
    fac_fail_graph(g, FAC_E_UNSUPPORTED, "attribute %s = \"%s\" is not supported", name, text);
}

static void fill(const fac_onnx_node *n, fac_graph *g, const fac_attr *to, const char *name,
                 void *attrs) {
    int64_t i;
    double x;
    fac_dims d;
    fac_dtype dtype;
    const char *text;
    if (to->count && (to->kind == FAC_A_INT || to->kind == FAC_A_REAL)) {
        fill_array(n, g, to, name, attrs);
        return;
    }
    switch (to->kind) {
    case FAC_A_INT:
        i = fac_onnx_int(n, name, 0);
        if (sayable(g, to, name, (double)i)) put(attrs, to, &i, sizeof i);
        return;
    case FAC_A_REAL:
        x = fac_onnx_real(n, name, 0);
        if (sayable(g, to, name, x)) put(attrs, to, &x, sizeof x);
        return;
    case FAC_A_FLAG:
        put(attrs, to, &(bool){ fac_onnx_int(n, name, 0) != 0 }, sizeof(bool));
        return;
    case FAC_A_ENUM:
        fill_choice(n, g, to, name, attrs);
        return;
    case FAC_A_DTYPE:
        dtype = fac_onnx_dtype(n, name, FAC_NONE);
        put(attrs, to, &dtype, sizeof dtype);
        return;
    case FAC_A_DIMS:
        d = fac_onnx_ints(n, name);
        put(attrs, to, &d, sizeof d);
        return;
    case FAC_A_REALS: {
        fac_reals list = { 0 };
        list.n = fac_onnx_reals(n, name, list.v, FAC_REALS);
        if (list.n < 0) list.n = 0;
        if (list.n > FAC_REALS)
            fac_fail_graph(g, FAC_E_UNSUPPORTED, "%s: %s has %d elements, at most %d are possible",
                           n->type, name, list.n, FAC_REALS);
        else
            put(attrs, to, &list, sizeof list);
        return;
    }
    case FAC_A_TEXT:
        text = fac_onnx_text(n, name, NULL);
        put(attrs, to, &text, sizeof text);
        return;
    }
}

/* Ours for an ONNX attribute.  false: unknown; *ours NULL: known and ignored. */
static bool renamed(const fac_onnx *how, const char *name, const char **ours) {
    for (const fac_onnx_attr *r = how->rename; r && r->onnx; r++)
        if (!strcmp(r->onnx, name)) {
            *ours = r->ours;
            return true;
        }
    return false;
}

/* Files of opsets 1 to 5 list the inputs whose memory may be reused, which says nothing about
 * results. */
static bool about_memory(const fac_onnx_node *n, const char *name) {
    return n->opset < 6 && !*n->domain && !strcmp(name, "consumed_inputs");
}

static void load_by_tables(const fac_onnx_node *n, fac_graph *g, const fac_spelling *s,
                           fac_value *const in[], fac_value *out[]) {
    const fac_proto_node *proto = ((const fac_import_node *)n->self)->proto;
    void *attrs = fac_arena_alloc(&g->arena, 1, s->op->attrs_size);
    if (!attrs) {
        fac_fail_graph(g, FAC_E_NOMEM, "no memory for attributes");
        return;
    }
    for (size_t k = 0; k < proto->attrs.n && !g->error.status; k++) {
        const char *name = proto->attrs.at[k].name, *ours = name;
        if (!fac_onnx_has(n, name) || (renamed(s->how, name, &ours) && !ours)) continue;
        if (about_memory(n, name)) continue;
        const fac_attr *to = fac_attr_find(s->op, ours);
        if (to)
            fill(n, g, to, name, attrs);
        else
            fac_fail_graph(g, FAC_E_UNSUPPORTED, "attribute %s of %s is not supported", name,
                           n->type);
    }
    fac_value *y = g->error.status ? g->poison
                                   : fac_emit_body(g, s->op, attrs, n->nin, n->nin, in, NULL, NULL);
    int port = 0;
    bool listed = s->op->out != NULL; /* a file may name more outputs than there are ports */
    for (int k = 0; k < n->nout; k++, port++) {
        while (listed && s->op->out[port].name && (s->op->out[port].is & FAC_INTERNAL)) port++;
        listed = listed && s->op->out[port].name;
        if (y->leaf == FAC_POISON)
            out[k] = y;
        else if (y->node && port < y->node->nout)
            out[k] = y->node->out[port];
    }
}

/* What load() never looked at would change the meaning of the node without a word. */
static void refuse_unasked(const fac_import_node *self, fac_graph *g, const fac_onnx *how) {
    const char *ours;
    for (size_t k = 0; k < self->proto->attrs.n; k++) {
        const char *name = self->proto->attrs.at[k].name;
        if (!self->asked[k] && !renamed(how, name, &ours) && !about_memory(&self->pub, name))
            fac_fail_graph(g, FAC_E_UNSUPPORTED, "attribute %s of %s is not supported", name,
                           self->pub.type);
    }
}

/* Those whose load() does not ask how many dims an input has; load_by_tables never does. */
static bool takes_any_rank(const char *type) {
    static const char *const names[] = { "ArgMax",
                                         "ArgMin",
                                         "BatchNormalization",
                                         "BitShift",
                                         "Cast",
                                         "CastLike",
                                         "Celu",
                                         "Clip",
                                         "ConstantOfShape",
                                         "Conv",
                                         "ConvTranspose",
                                         "DepthToSpace",
                                         "Elu",
                                         "Flatten",
                                         "GRU",
                                         "Gelu",
                                         "Gemm",
                                         "GroupNormalization",
                                         "HardSigmoid",
                                         "Hardmax",
                                         "If",
                                         "InstanceNormalization",
                                         "IsInf",
                                         "LRN",
                                         "LSTM",
                                         "LayerNormalization",
                                         "LeakyRelu",
                                         "LogSoftmax",
                                         "Max",
                                         "Mean",
                                         "Min",
                                         "Mod",
                                         "NonZero",
                                         "OneHot",
                                         "Pad",
                                         "Pow",
                                         "RMSNormalization",
                                         "RNN",
                                         "ReduceLogSum",
                                         "ReduceLogSumExp",
                                         "ReduceMax",
                                         "ReduceMean",
                                         "ReduceMin",
                                         "ReduceProd",
                                         "ReduceSum",
                                         "ReduceSumSquare",
                                         "Reshape",
                                         "Scatter",
                                         "ScatterElements",
                                         "ScatterND",
                                         "Selu",
                                         "Shape",
                                         "Slice",
                                         "Softmax",
                                         "SpaceToDepth",
                                         "Split",
                                         "Squeeze",
                                         "Sum",
                                         "Swish",
                                         "ThresholdedRelu",
                                         "TopK",
                                         "Trilu",
                                         "Unsqueeze",
                                         NULL };
    for (const char *const *name = names; *name; name++)
        if (!strcmp(*name, type)) return true;
    return false;
}

static fac_status check_ranks(const fac_onnx_node *n, const fac_spelling *s, fac_value *const in[],
                              fac_error *err) {
    if (!s->how->load || takes_any_rank(n->type)) return FAC_OK;
    for (int i = 0; i < n->nin; i++)
        if (in[i] && in[i]->guess == FAC_RANKLESS)
            return fac_raise(err, FAC_E_UNSUPPORTED,
                             "%s must know how many dims its input %d has, which an If decides in "
                             "the run",
                             n->type, i);
    return FAC_OK;
}

/* ---- nodes ---- */

static int count_of(const fac_proto_names *names) { /* without absent ones at the end */
    size_t n = names->n;
    while (n && !*names->at[n - 1]) n--;
    return (int)n;
}

/* How many inputs must be there: what load() relies on, which no load() has to check again. */
static int needs_of(const fac_spelling *s) {
    const fac_port *p = s->op ? s->op->in : NULL;
    int n = 0;
    if (s->how->needs) return s->how->needs;
    while (p && p[n].name && !(p[n].is & FAC_OPTIONAL)) n++;
    return n;
}

static fac_status check_inputs(const fac_onnx_node *n, const fac_spelling *s, fac_value *const in[],
                               fac_error *err) {
    static const char *const ordinals[] = { "first", "second", "third",   "fourth",
                                            "fifth", "sixth",  "seventh", "eighth" };
    const int needs = needs_of(s);
    for (int k = 0; k < needs; k++) {
        if (k < n->nin && in[k]) continue;
        if (k < (int)(sizeof ordinals / sizeof *ordinals))
            return fac_raise(err, FAC_E_FORMAT, "%s lacks its %s input", n->type, ordinals[k]);
        return fac_raise(err, FAC_E_FORMAT, "%s lacks its input %d", n->type, k + 1);
    }
    return FAC_OK;
}

/* Sequences go to the operators that are made for them, and to those that hand them on. */
static bool takes_lists(const char *type) {
    static const char *const names[] = { "SequenceConstruct",
                                         "SequenceEmpty",
                                         "SequenceLength",
                                         "SequenceAt",
                                         "SequenceInsert",
                                         "SequenceErase",
                                         "ConcatFromSequence",
                                         "Optional",
                                         "OptionalHasElement",
                                         "OptionalGetElement",
                                         "SequenceMap",
                                         "Loop",
                                         "If",
                                         "CastMap",
                                         "DictVectorizer",
                                         NULL };
    for (const char *const *name = names; *name; name++)
        if (!strcmp(*name, type)) return true;
    return false;
}

static fac_status check_lists(const fac_onnx_node *n, fac_value *const in[], fac_error *err) {
    for (int i = 0; i < n->nin; i++)
        if (fac_is_list(in[i]) && !takes_lists(n->type))
            return fac_raise(err, FAC_E_DTYPE, "%s cannot take a sequence, which its input %d is",
                             n->type, i);
    return FAC_OK;
}

fac_status fac_import_op(fac_body *b, const fac_proto_node *n, fac_value *const in[],
                         fac_value *out[], fac_error *err) {
    if (n->in.n && fac_is_list(in[0]) && !*fac_import_domain(n->domain) &&
        !strcmp(n->type, "Identity"))
        return out[0] = in[0], FAC_OK;
    fac_import *im = b->im;
    int64_t opset = fac_import_opset(im, b->opsets, n->domain);
    const fac_spelling *s = fac_import_spelling(im, n, opset);
    fac_import_node self = { .body = b, .proto = n };
    self.pub = (fac_onnx_node){ .type = n->type,
                                .name = n->name,
                                .domain = fac_import_domain(n->domain),
                                .opset = (int)opset,
                                .nin = count_of(&n->in),
                                .nout = count_of(&n->out),
                                .self = &self };
    self.asked = fac_arena_alloc(&im->arena, n->attrs.n, sizeof *self.asked);
    if (!s && fac_import_lenient(im))
        return fac_raise(err, FAC_E_UNSUPPORTED, "op %s is not ours", n->type);
    if (!s) return fac_import_unsupported(im, n, opset, err);
    if (!self.asked) return fac_raise_memory(err, "a node");
    FAC_TRY(check_inputs(&self.pub, s, in, err));
    FAC_TRY(check_lists(&self.pub, in, err));
    FAC_TRY(check_ranks(&self.pub, s, in, err));
    if (!s->how->load)
        load_by_tables(&self.pub, b->g, s, in, out);
    else {
        s->how->load(&self.pub, b->g, in, out);
        if (!b->g->error.status) refuse_unasked(&self, b->g, s->how);
    }
    return fac_graph_check(b->g, err);
}
