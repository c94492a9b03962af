/* A graph as TensorFlow's GraphDef, the form that TensorBoard draws.
 *
 *   GraphDef  1 node..., 4 versions { 1 producer }
 *   NodeDef   1 name, 2 op, 3 input... ("name", "name:k" for output k), 5 map of attributes { 1
 *             key, 2 AttrValue }
 *   AttrValue 1 list { 7 shape... }, 2 s;   TensorShapeProto 2 dim { 1 size }, -1 where it is not
 *       known
 *
 * The parts of a name between '/' become boxes that open, so "encoder.3.conv" is written as
 * "encoder/3/conv". */
#include <stdio.h>
#include <string.h>
#include "graph/graph_internal.h"
#include "base/optional.h"
#include "view/view_internal.h"

enum { GRAPH_NODE = 1, GRAPH_VERSIONS = 4, VERSIONS_PRODUCER = 1, PRODUCER = 22 };
enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_ATTR = 5, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { ATTR_LIST = 1, ATTR_S = 2, LIST_SHAPE = 7, SHAPE_DIM = 2, DIM_SIZE = 1 };

typedef struct drawing {
    const fac_graph *g;
    fac_proto *to;
    fac_arena arena;
    fac_table taken;   /* names that are in use */
    const char **name; /* by value id */
    bool failed;
} drawing;

/* In the letters that TensorFlow allows; and different from all others. */
static const char *unique(drawing *d, const char *label) {
    while (*label == '/' || *label == '.') label++;
    char *plain = fac_arena_print(&d->arena, "%s", *label ? label : "unnamed");
    for (char *p = plain; p && *p; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                      (*p >= '0' && *p <= '9') || *p == '_' || *p == '-';
        if (*p == '.')
            *p = '/';
        else if (!letter && *p != '/')
            *p = '_';
    }
    char *name = plain;
    for (int k = 1; name && fac_table_get(&d->taken, name); k++)
        name = fac_arena_print(&d->arena, "%s_%d", plain, k);
    if (name && fac_table_put(&d->taken, name, name)) return name;
    d->failed = true;
    return "";
}

static void put_attr(fac_proto *node, const char *key, int field, fac_proto *inner) {
    fac_proto entry = { 0 }, value = { 0 };
    fac_put_message(&value, field, inner);
    fac_put_text(&entry, ENTRY_KEY, key);
    fac_put_message(&entry, ENTRY_VALUE, &value);
    fac_put_message(node, NODE_ATTR, &entry);
}

static void put_shapes(fac_proto *node, int n, fac_value *const values[]) {
    fac_proto list = { 0 };
    for (int i = 0; i < n; i++) {
        fac_proto shape = { 0 };
        const fac_dims *dims = &values[i]->type.dims;
        for (int k = 0; k < dims->n; k++) {
            fac_proto dim = { 0 };
            fac_put_int(&dim, DIM_SIZE, dims->d[k] < 0 ? -1 : dims->d[k]);
            fac_put_message(&shape, SHAPE_DIM, &dim);
        }
        fac_put_message(&list, LIST_SHAPE, &shape);
    }
    put_attr(node, "_output_shapes", ATTR_LIST, &list);
}

static void put_dtype(fac_proto *node, const fac_value *v) {
    fac_text text = { 0 };
    fac_text_add(&text, fac_dtype_get(v->type.dtype)->name);
    put_attr(node, "dtype", ATTR_S, &text);
}

static void put_leaf(drawing *d, fac_value *v, const char *op, const char *label) {
    fac_proto node = { 0 };
    d->name[v->id] = unique(d, label);
    fac_put_text(&node, NODE_NAME, d->name[v->id]);
    fac_put_text(&node, NODE_OP, op);
    put_dtype(&node, v);
    put_shapes(&node, 1, &v);
    fac_put_message(d->to, GRAPH_NODE, &node);
}

/* Constants have no name: they stand beside the node that reads them first.  TensorBoard knows this
 * name, and draws a dot. */
static void put_const(drawing *d, fac_value *v) {
    const fac_use *first = v->uses;
    if (!first) return;
    while (first->next) first = first->next;
    char label[512];
    const char *scope = first->node->scope;
    snprintf(label, sizeof label, "%s%sconst_%u", fac_text_or(scope, ""), fac_text_if(scope, "."),
             (unsigned)v->id);
    put_leaf(d, v, "Const", label);
}

static void put_node(drawing *d, const fac_node *n) {
    fac_proto node = { 0 };
    fac_text attrs = { 0 };
    char label[512];
    const char *name = unique(d, fac_node_label(n, label, sizeof label));
    for (int k = 0; k < n->nout; k++) {
        d->name[n->out[k]->id] = k ? fac_arena_print(&d->arena, "%s:%d", name, k) : name;
        d->failed |= !d->name[n->out[k]->id];
    }
    if (d->failed) return;
    fac_put_text(&node, NODE_NAME, name);
    fac_put_text(&node, NODE_OP, n->op->name);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && d->name[n->in[i]->id])
            fac_put_text(&node, NODE_INPUT, d->name[n->in[i]->id]);
    fac_attrs_print(n->op, n->attrs, &attrs);
    if (attrs.n) put_attr(&node, "attributes", ATTR_S, &attrs);
    fac_text_free(&attrs);
    if (n->nout) put_dtype(&node, n->out[0]);
    put_shapes(&node, n->nout, n->out);
    fac_put_message(d->to, GRAPH_NODE, &node);
}

static void put_output(drawing *d, const fac_graph_out *o) {
    fac_proto node = { 0 };
    char label[512];
    snprintf(label, sizeof label, "output.%s", o->name);
    fac_put_text(&node, NODE_NAME, unique(d, label));
    fac_put_text(&node, NODE_OP, "output");
    if (d->name[o->value->id]) fac_put_text(&node, NODE_INPUT, d->name[o->value->id]);
    put_shapes(&node, 1, &(fac_value *){ o->value });
    fac_put_message(d->to, GRAPH_NODE, &node);
}

void fac_graph_def(const fac_graph *g, fac_proto *to) {
    drawing d = { .g = g, .to = to };
    d.name = fac_arena_alloc(&d.arena, (size_t)g->ids + 1, sizeof *d.name);
    d.failed = !d.name;
    for (size_t i = 0; i < g->ninputs && !d.failed; i++)
        put_leaf(&d, g->inputs[i], "input", g->inputs[i]->name);
    for (size_t i = 0; i < g->nparams && !d.failed; i++)
        put_leaf(&d, g->params[i], g->params[i]->leaf == FAC_STATE ? "state" : "parameter",
                 g->params[i]->name);
    for (size_t i = 0; i < g->nconsts && !d.failed; i++) put_const(&d, g->consts[i]);
    for (const fac_node *n = g->first; n && !d.failed; n = n->next) put_node(&d, n);
    for (size_t i = 0; i < g->noutputs && !d.failed; i++) put_output(&d, &g->outputs[i]);
    fac_proto versions = { 0 };
    fac_put_int(&versions, VERSIONS_PRODUCER, PRODUCER);
    fac_put_message(to, GRAPH_VERSIONS, &versions);
    to->failed |= d.failed;
    fac_table_free(&d.taken);
    fac_arena_free(&d.arena);
}
