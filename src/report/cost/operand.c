/* What a layer reads and writes, operand by operand: data of a run, weights, biases, buffers, and
 * what only says how. Constants that are no tensors of floats (the limits of a clip, axes, shapes)
 * are settings: they are nobody's weights. */
#include <string.h>
#include "base/error.h"
#include "graph/attr.h"
#include "op_list.h"
#include "report/cost/report.h"

const char *fac_role_name(fac_role role) {
    static const char *const names[] = { "data", "weight", "bias", "buffer", "setting" };
    return names[role];
}

/* Of ports: the last one repeats. */
static const char *port_of(const fac_port *ports, int i) {
    int k = 0;
    if (!ports || !ports[0].name) return "";
    while (k < i && ports[k + 1].name) k++;
    return ports[k].name;
}

static bool is_floats(const fac_value *v) {
    return v->type.dims.n > 0 && fac_dtype_get(v->type.dtype)->kind == 'f';
}

/* One number of the file in every element, as exporters write a bias that is not there.  (What
 * ConstantOfShape makes has no such number: it stands for weights in models that are shipped
 * without them.) */
bool fac_is_fill(const fac_value *v) {
    if (!FAC_IS(v->node, expand) || v->time == FAC_RUN) return false;
    const fac_value *number = v->node->in[0];
    return number->type.dims.n == 0 && number->name;
}

/* The parameter or state after ops that only prepare it; NULL: there is none. */
static const fac_value *stored(const fac_value *v) {
    while (v && v->leaf == FAC_NOT_LEAF && v->node && v->node->nin && v->time != FAC_RUN)
        v = v->node->in[0];
    return v;
}

bool fac_is_statistic(const fac_node *n, int i) {
    const char *port = port_of(n->op->in, i);
    return FAC_IS(n, batch_norm) && (!strcmp(port, "mean") || !strcmp(port, "var"));
}

static bool is_bias(const fac_node *n, int i) {
    const char *port = port_of(n->op->in, i);
    if (FAC_IS(n, gemm)) return i == 2;
    return i > 1 && (!strcmp(port, "b") || !strcmp(port, "bias"));
}

fac_role fac_role_of(const fac_node *n, int i) {
    const fac_value *v = n->in[i], *leaf = stored(v);
    if (fac_is_data(v)) return FAC_ROLE_DATA;
    if (!is_floats(v) || fac_is_fill(v) || (fac_port_flags(n, i) & (FAC_HOST | FAC_SHAPE_ONLY)))
        return FAC_ROLE_SETTING;
    if (fac_is_statistic(n, i) || (leaf && leaf->leaf == FAC_STATE)) return FAC_ROLE_BUFFER;
    return is_bias(n, i) ? FAC_ROLE_BIAS : FAC_ROLE_WEIGHT;
}

static const char *name_of(fac_arena *a, const fac_value *v) {
    char label[256];
    const fac_value *leaf = v->name ? v : stored(v);
    if (leaf && leaf->name) return fac_arena_text(a, leaf->name);
    if (!v->node) return "";
    fac_node_label(v->node, label, sizeof label);
    return v->index ? fac_arena_print(a, "%s:%d", label, v->index) : fac_arena_text(a, label);
}

static fac_layer_value operand(fac_arena *a, const fac_value *v, const char *port, fac_role role) {
    fac_layer_value o = { .name = name_of(a, v), .port = port, .role = role };
    if (fac_is_unknown(v)) return o;
    o.type = v->type;
    o.bytes = fac_data_bytes(v);
    return o;
}

/* Opaque nodes have the shapes of their results in front: these are no operands of the file. */
static int first_of(const fac_node *n) { return fac_is_opaque(n) ? n->nout : 0; }

static bool is_result(const fac_value *v) { return v->index == 0 || v->uses || v->roots; }

fac_status fac_take_operands(fac_analysis *a, const fac_node *n, fac_layer *l, fac_error *err) {
    fac_layer_value *in = fac_arena_alloc(&a->memory, (size_t)n->nin + 1, sizeof *in);
    fac_layer_value *out = fac_arena_alloc(&a->memory, (size_t)n->nout + 1, sizeof *out);
    bool good = in && out;
    for (int i = first_of(n); good && i < n->nin; i++) {
        if (!n->in[i]) continue;
        in[l->nin] = operand(&a->memory, n->in[i], port_of(n->op->in, i), fac_role_of(n, i));
        good = in[l->nin++].name != NULL;
    }
    for (int k = 0; good && k < n->nout; k++) {
        if (!is_result(n->out[k])) continue;
        out[l->nout] = operand(&a->memory, n->out[k], port_of(n->op->out, k), FAC_ROLE_DATA);
        good = out[l->nout++].name != NULL;
    }
    l->inputs = in;
    l->outputs = out;
    return good ? FAC_OK : fac_raise_memory(err, "the operands of a layer");
}

void fac_take_bytes(fac_layer *l, const fac_node *n) {
    for (int i = first_of(n); i < n->nin; i++) {
        const fac_value *v = n->in[i];
        if (!v || fac_is_unread(n, i)) continue;
        const fac_role role = fac_role_of(n, i);
        if (role == FAC_ROLE_DATA)
            l->read += fac_data_bytes(v);
        else if (role != FAC_ROLE_SETTING)
            l->weights += fac_data_bytes(v);
    }
    for (int k = 0; k < n->nout; k++)
        if (is_result(n->out[k])) l->written += fac_data_bytes(n->out[k]);
}
