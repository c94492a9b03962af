/* An export's records as ModelProto: one function a message, which nanopb calls twice, to count the
 * bytes and to write them. */
#include <stdlib.h>
#include <string.h>
#include "facula/version.h"
#include "onnx/export.h"
#include "onnx/source.h"

/* Field numbers, see onnx.proto. */
enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_DOMAIN = 4,
    MODEL_VERSION = 5,
    MODEL_DOC = 6,
    MODEL_OPSET = 8,
    MODEL_METADATA = 14,
    OPSET_DOMAIN = 1,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_TENSOR = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_TYPE = 4,
    NODE_ATTR = 5,
    NODE_DOMAIN = 7,
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10,
    MODEL_FUNCTION = 25,
    ATTR_NAME = 1,
    ATTR_KIND = 20,
    VALUE_NAME = 1,
    SHAPE_DIM = 1
};

static bool subgraph_body(pb_ostream_t *s, const void *self);

static bool attr_body(pb_ostream_t *s, const void *self) {
    const fac_record_attr *a = self;
    bool ok = fac_encode_text(s, ATTR_NAME, a->name) && fac_encode_int(s, ATTR_KIND, a->kind);
    switch (a->kind) {
    case FAC_PROTO_INT:
        return ok && fac_encode_int(s, FAC_PROTO_ATTR_I, a->i);
    case FAC_PROTO_FLOAT:
        return ok && fac_encode_real(s, FAC_PROTO_ATTR_F, a->f);
    case FAC_PROTO_STRING:
        return ok && fac_encode_text(s, FAC_PROTO_ATTR_S, a->text);
    case FAC_PROTO_TENSOR:
        return ok && fac_encode_message(s, FAC_PROTO_ATTR_T, fac_encode_tensor_body,
                                        &(fac_encode_tensor){ .t = a->tensor });
    case FAC_PROTO_GRAPH:
        return ok && fac_encode_message(s, FAC_PROTO_ATTR_G, subgraph_body, a->graph);
    default:
        for (int k = 0; k < a->n && ok; k++)
            ok = a->ints    ? fac_encode_int(s, FAC_PROTO_ATTR_INTS, a->ints[k])
                 : a->reals ? fac_encode_real(s, FAC_PROTO_ATTR_FLOATS, a->reals[k])
                            : fac_encode_text(s, FAC_PROTO_ATTR_TEXTS, a->texts[k]);
        return ok;
    }
}

static bool node_body(pb_ostream_t *s, const void *self) {
    const fac_record_node *n = self;
    bool ok = true;
    for (int k = 0; k < n->nin && ok; k++) ok = fac_encode_text(s, NODE_INPUT, n->in[k]);
    for (const fac_record_out *o = &n->out; o && ok; o = o->next)
        ok = fac_encode_text(s, NODE_OUTPUT, o->name);
    ok = ok && fac_encode_text(s, NODE_NAME, n->name) && fac_encode_text(s, NODE_TYPE, n->type);
    for (const fac_record_attr *a = n->attrs; a && ok; a = a->next)
        ok = fac_encode_message(s, NODE_ATTR, attr_body, a);
    return ok && fac_encode_text(s, NODE_DOMAIN, n->domain);
}

/* An input or output: what is said of it, and under which name. */
typedef struct port {
    const fac_graph *g;
    const fac_value *v;
    const char *name;
    int dim;
} port;

static bool dim_body(pb_ostream_t *s, const void *self) {
    const port *p = self;
    int64_t size = p->v->type.dims.d[p->dim];
    if (size >= 0) return fac_encode_int(s, FAC_PROTO_DIM_VALUE, size);
    const char *name = fac_symbol_name(p->g, size);
    return !name || *name == '?' ||
           fac_encode_text(s, FAC_PROTO_DIM_PARAM, name); /* a nameless one: nothing is known */
}

static bool shape_body(pb_ostream_t *s, const void *self) {
    port p = *(const port *)self;
    bool ok = true;
    for (p.dim = 0; p.dim < p.v->type.dims.n && ok; p.dim++)
        ok = fac_encode_message(s, SHAPE_DIM, dim_body, &p);
    return ok;
}

static bool dense_body(pb_ostream_t *s, const void *self) {
    const port *p = self;
    const bool ok = fac_encode_int(s, 1, fac_proto_dtype_number(p->v->type.dtype));
    if (p->v->guess != FAC_CERTAIN)
        return ok; /* a shape that may turn out otherwise is better not said */
    return ok && fac_encode_message(s, FAC_PROTO_DENSE_SHAPE, shape_body, p);
}

static bool type_body(pb_ostream_t *s, const void *self) {
    return fac_encode_message(s, FAC_PROTO_TYPE_DENSE, dense_body, self);
}

static bool value_body(pb_ostream_t *s, const void *self) {
    const port *p = self;
    return fac_encode_text(s, VALUE_NAME, p->name) &&
           fac_encode_message(s, FAC_PROTO_VALUE_TYPE, type_body, p);
}

/* What the caller says of the model, else what the graph has as a note, else `usual`. */
static const char *said(const fac_export *ex, const char *given, const char *key,
                        const char *usual) {
    const char *note = fac_graph_note(ex->g, key);
    if (given) return given;
    return note ? note : usual;
}

static bool value_attr_body(pb_ostream_t *s, const void *self) {
    return fac_encode_text(s, ATTR_NAME, "value") &&
           fac_encode_int(s, ATTR_KIND, FAC_PROTO_TENSOR) &&
           fac_encode_message(s, FAC_PROTO_ATTR_T, fac_encode_tensor_body, self);
}

static bool constant_body(pb_ostream_t *s, const void *self) {
    const fac_encode_tensor *t = self;
    return fac_encode_text(s, NODE_OUTPUT, t->name) && fac_encode_text(s, NODE_TYPE, "Constant") &&
           fac_encode_message(s, NODE_ATTR, value_attr_body, t);
}

/* The Constant nodes among the tensors, or all of them: functions have no initializers. */
static bool constants(pb_ostream_t *s, const fac_record_tensor *t, int field, bool all) {
    bool ok = true;
    for (; t && ok; t = t->next)
        if (t->node || all) ok = fac_encode_message(s, (uint32_t)field, constant_body, &t->is);
    return ok;
}

static bool initializers(pb_ostream_t *s, const fac_record_tensor *t) {
    bool ok = true;
    for (; t && ok; t = t->next)
        if (!t->node) ok = fac_encode_message(s, GRAPH_TENSOR, fac_encode_tensor_body, &t->is);
    return ok;
}

static bool subgraph_body(pb_ostream_t *s, const void *self) {
    const fac_record_graph *r = self;
    bool ok = constants(s, r->tensors, GRAPH_NODE, false);
    for (const fac_record_node *n = r->nodes; n && ok; n = n->next)
        ok = fac_encode_message(s, GRAPH_NODE, node_body, n);
    ok = ok && fac_encode_text(s, GRAPH_NAME, r->name) && initializers(s, r->tensors);
    for (int k = 0; k < r->nin && ok; k++)
        ok = fac_encode_message(s, GRAPH_INPUT, value_body,
                                &(port){ r->g, r->g->inputs[k], r->in[k], 0 });
    for (size_t k = 0; k < r->g->noutputs && ok; k++)
        ok = fac_encode_message(s, GRAPH_OUTPUT, value_body,
                                &(port){ r->g, r->g->outputs[k].value, r->out[k], 0 });
    return ok;
}

static bool graph_body(pb_ostream_t *s, const void *self) {
    const fac_export *ex = self;
    const fac_graph *g = ex->g;
    bool ok = constants(s, ex->tensors, GRAPH_NODE, false);
    for (const fac_record_node *n = ex->nodes; n && ok; n = n->next)
        ok = fac_encode_message(s, GRAPH_NODE, node_body, n);
    ok = ok && fac_encode_text(s, GRAPH_NAME, said(ex, ex->opts->name, FAC_NOTE_NAME, "graph")) &&
         initializers(s, ex->tensors);
    for (size_t k = 0; k < g->ninputs && ok; k++)
        ok = fac_encode_message(s, GRAPH_INPUT, value_body,
                                &(port){ g, g->inputs[k], g->inputs[k]->name, 0 });
    for (size_t k = 0; k < g->noutputs && ok; k++)
        ok = fac_encode_message(s, GRAPH_OUTPUT, value_body,
                                &(port){ g, g->outputs[k].value, g->outputs[k].name, 0 });
    return ok;
}

static bool opset_body(pb_ostream_t *s, const void *self) {
    const fac_export *ex = self;
    return fac_encode_text(s, OPSET_DOMAIN, "") && fac_encode_int(s, OPSET_VERSION, ex->opset);
}

static bool own_opset_body(pb_ostream_t *s, const void *self) {
    (void)self;
    return fac_encode_text(s, OPSET_DOMAIN, FAC_ONNX_FUNCTIONS) &&
           fac_encode_int(s, OPSET_VERSION, 1);
}

static bool other_opset_body(pb_ostream_t *s, const void *self) {
    const fac_record_domain *d = self;
    return fac_encode_text(s, OPSET_DOMAIN, d->name) &&
           fac_encode_int(s, OPSET_VERSION, d->version);
}

static bool other_opsets(pb_ostream_t *s, const fac_export *ex, int field) {
    bool ok = true;
    for (int k = 0; k < ex->ndomains && ok; k++)
        ok = fac_encode_message(s, (uint32_t)field, other_opset_body, &ex->domains[k]);
    return ok;
}

typedef struct function {
    const fac_export *ex;
    const fac_record_graph *is;
} function;

static bool function_body(pb_ostream_t *s, const void *self) {
    const function *f = self;
    const fac_record_graph *r = f->is;
    bool ok = fac_encode_text(s, FUNCTION_NAME, r->name);
    for (int k = 0; k < r->nin && ok; k++) ok = fac_encode_text(s, FUNCTION_INPUT, r->in[k]);
    for (size_t k = 0; k < r->g->noutputs && ok; k++)
        ok = fac_encode_text(s, FUNCTION_OUTPUT, r->out[k]);
    ok = ok && constants(s, r->tensors, FUNCTION_NODE, true);
    for (const fac_record_node *n = r->nodes; n && ok; n = n->next)
        ok = fac_encode_message(s, FUNCTION_NODE, node_body, n);
    return ok && fac_encode_message(s, FUNCTION_OPSET, opset_body, f->ex) &&
           fac_encode_message(s, FUNCTION_OPSET, own_opset_body, NULL) &&
           other_opsets(s, f->ex, FUNCTION_OPSET) &&
           fac_encode_text(s, FUNCTION_DOMAIN, FAC_ONNX_FUNCTIONS);
}

static bool functions(pb_ostream_t *s, const fac_export *ex) {
    bool ok = !ex->written || fac_encode_message(s, MODEL_OPSET, own_opset_body, NULL);
    for (const fac_record_graph *f = ex->written; f && ok; f = f->next)
        ok = fac_encode_message(s, MODEL_FUNCTION, function_body, &(function){ ex, f });
    return ok;
}

/* The IR version that came out with an opset, as ONNX's Versioning.md lists them. */
static int ir_of(int opset) {
    static const struct {
        int opset, ir;
    } since[] = { { 25, 13 }, { 24, 12 }, { 23, 11 }, { 21, 10 }, { 19, 9 }, { 15, 8 } };
    for (size_t k = 0; k < sizeof since / sizeof *since; k++)
        if (opset >= since[k].opset) return since[k].ir;
    return 7;
}

/* Pairs: the caller's, and the graph's under other keys that are no fields. */
static bool metadata(pb_ostream_t *s, const fac_export *ex) {
    static const char *const fields[] = { FAC_NOTE_NAME,     FAC_NOTE_DOC,
                                          FAC_NOTE_PRODUCER, FAC_NOTE_PRODUCER_VERSION,
                                          FAC_NOTE_DOMAIN,   FAC_NOTE_VERSION };
    const fac_onnx_save_opts *o = ex->opts;
    bool ok = true;
    for (int k = 0; k < o->n && ok; k++)
        ok = fac_encode_message(s, MODEL_METADATA, fac_encode_pair_body,
                                &(fac_encode_pair){ o->keys[k], o->values[k] });
    for (size_t i = 0; i < ex->g->nnotes && ok; i++) {
        const fac_note *n = &ex->g->notes[i];
        bool said_already = false;
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
            said_already |= !strcmp(fields[k], n->key);
        for (int k = 0; k < o->n; k++) said_already |= !strcmp(o->keys[k], n->key);
        if (!said_already)
            ok = fac_encode_message(s, MODEL_METADATA, fac_encode_pair_body,
                                    &(fac_encode_pair){ n->key, n->text });
    }
    return ok;
}

bool fac_export_message(pb_ostream_t *s, const fac_export *ex) {
    const fac_onnx_save_opts *o = ex->opts;
    const char *producer = said(ex, o->producer, FAC_NOTE_PRODUCER, NULL),
               *version = fac_graph_note(ex->g, FAC_NOTE_VERSION);
    const char *of_producer = o->producer ? NULL
                              : producer  ? fac_graph_note(ex->g, FAC_NOTE_PRODUCER_VERSION)
                                          : FACULA_VERSION;
    return fac_encode_int(s, MODEL_IR, ir_of(ex->opset)) &&
           fac_encode_text(s, MODEL_PRODUCER, producer ? producer : "facula") &&
           fac_encode_text(s, MODEL_PRODUCER_VERSION, of_producer) &&
           fac_encode_text(s, MODEL_DOMAIN, fac_graph_note(ex->g, FAC_NOTE_DOMAIN)) &&
           (!version || fac_encode_int(s, MODEL_VERSION, strtoll(version, NULL, 10))) &&
           fac_encode_text(s, MODEL_DOC, said(ex, o->doc, FAC_NOTE_DOC, NULL)) &&
           fac_encode_message(s, FAC_PROTO_MODEL_GRAPH, graph_body, ex) &&
           fac_encode_message(s, MODEL_OPSET, opset_body, ex) && other_opsets(s, ex, MODEL_OPSET) &&
           functions(s, ex) && metadata(s, ex);
}
