/* Building a node: its inputs and attributes checked against the op's tables, its outputs inferred.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/optional.h"
#include "graph/build.h"
#include "graph/rankless.h"
#include "op_list.h"

enum { MAX_OPERANDS = 1 << 20, MAX_OUTPUTS = 1 << 16 };

static int port_count(const fac_port *p) {
    int n = 0;
    while (p && p[n].name) n++;
    return n;
}

/* ---- errors of a node ---- */

static void print_operand(const fac_node *n, int i, int ports, fac_text *t) {
    const fac_port *p = n->op->in;
    fac_text_add(t, t->n ? ", " : "");
    if (i >= n->nports)
        fac_text_print(t, "body x%d ", i - n->nports + 1);
    else if (ports && i < ports - 1)
        fac_text_print(t, "%s ", p[i].name);
    else if (ports && (p[ports - 1].is & FAC_VARIADIC))
        fac_text_print(t, "%s[%d] ", p[ports - 1].name, i - ports + 1);
    else
        fac_text_print(t, "%s ", i < ports ? p[i].name : "?");
    fac_type_print(n->graph, &n->in[i]->type, t);
}

bool fac_fail(fac_node *n, fac_status status, const char *format, ...) {
    fac_graph *g = n->graph;
    if (g->error.status) return false;
    char what[sizeof g->error.text], name[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    /* Long lists of operands (concat) must not push the message out of the fixed text. */
    fac_text types = { 0 };
    const int ports = port_count(n->op->in);
    for (int i = 0; i < n->nin && types.n < 300; i++)
        if (n->in[i]) print_operand(n, i, ports, &types);
    const char *scope = fac_text_or(n->scope, ""), *own = fac_text_or(n->name, "");
    snprintf(name, sizeof name, "%s%s%s%s", scope, fac_text_if(n->scope && n->name, "."), own,
             fac_text_if(*scope || *own, ": "));
    fac_raise(&g->error, status, types.n && !types.failed ? "%s%s: %s (%s)" : "%s%s: %s%s", name,
              n->op->name, what, types.n && !types.failed ? types.s : "");
    fac_text_free(&types);
    return false;
}

/* ---- making ---- */

static void outputs_in(fac_node *n, fac_value **out, fac_value *values, int count) {
    for (int k = 0; k < count; k++) {
        values[k] = (fac_value){ .node = n, .index = k, .graph = n->graph };
        out[k] = &values[k];
    }
    n->out = out;
    n->nout = count;
}

bool fac_node_outputs(fac_node *n, int count) {
    fac_graph *g = n->graph;
    if (count == n->nout) return true;
    const int ports = port_count(n->op->out);
    if (count < ports || count > MAX_OUTPUTS || !ports ||
        !(n->op->out[ports - 1].is & FAC_VARIADIC))
        return fac_fail(n, FAC_E_ARGUMENT, "cannot have %d outputs", count);
    fac_value **out = fac_arena_alloc(&g->arena, (size_t)count, sizeof *out);
    fac_value *values = fac_arena_alloc(&g->arena, (size_t)count, sizeof *values);
    if (!out || !values) return fac_fail(n, FAC_E_NOMEM, "no memory for %d outputs", count);
    outputs_in(n, out, values, count);
    return true;
}

/* One piece of memory: the node, the uses, in[], out[], the outputs, the attributes.  All parts are
 * multiples of 8 bytes. */
static fac_node *node_alloc(fac_graph *g, const fac_emission *e, int ports, bool variadic) {
    const fac_op *op = e->op;
    const int own = variadic || e->nports > ports ? e->nports : ports;
    const int nin = own + (e->n - e->nports), nout = port_count(op->out);
    /* in[] of any port may be read, so also a variadic op without inputs has its first ones. */
    const int room = nin < ports ? ports : nin;
    fac_node *n = fac_arena_alloc(
        &g->arena, 1,
        sizeof *n + (size_t)nin * sizeof(fac_use) + (size_t)room * sizeof(fac_value *) +
            (size_t)nout * (sizeof(fac_value *) + sizeof(fac_value)) + op->attrs_size);
    if (!n) {
        fac_graph_raise(g, FAC_E_NOMEM, "%s: no memory for a node", op->name);
        return NULL;
    }
    fac_use *uses = fac_node_uses(n);
    for (int i = 0; i < nin; i++) uses[i] = (fac_use){ n, i, NULL };
    n->op = op;
    n->graph = g;
    n->nin = nin;
    n->nports = own;
    n->stage = g->stage;
    n->scope = g->scope;
    n->in = (fac_value **)(uses + nin);
    for (int i = 0; i < e->n; i++) n->in[i < e->nports ? i : i - e->nports + own] = e->in[i];
    fac_value **out = n->in + room;
    fac_value *values = (fac_value *)(out + nout);
    outputs_in(n, out, values, nout);
    void *attrs = values + nout;
    if (op->attrs_size && e->attrs) memcpy(attrs, e->attrs, op->attrs_size);
    n->attrs = attrs;
    return n;
}

static unsigned class_of(fac_dtype dtype) {
    if (fac_dtype_is_stored(dtype)) return FAC_SMALL;
    switch (fac_dtype_get(dtype)->kind) {
    case 'f':
        return FAC_FLOATS;
    case 'i':
    case 'u':
        return FAC_INTS;
    case 'b':
        return FAC_BOOLS;
    case 't':
        return FAC_TEXTS;
    case 'q':
        return FAC_BLOCKS;
    default:
        return 0;
    }
}

static const char *class_names(unsigned takes, char *to, size_t size) {
    static const char *const name[] = { "floats", "integers", "bools",
                                        "texts",  "blocks",   "small types" };
    if (takes == FAC_ANY) return "any element type";
    size_t at = 0;
    *to = 0;
    for (unsigned k = 0; k < sizeof name / sizeof *name; k++)
        if (takes >> k & 1 && at < size)
            at += (size_t)snprintf(to + at, size - at, "%s%s", at ? " or " : "", name[k]);
    return to;
}

/* Words of 64, each row by itself: kernels count elements in bytes. */
static const char bits_are_stored[] =
    "which no op computes with: fac_tensor_convert makes bools of bits, and bits of bools";

static bool check_ports(fac_node *n, int given, int ports, bool variadic) {
    const fac_op *op = n->op;
    if (n->nports > ports && !variadic)
        return fac_fail(n, FAC_E_ARGUMENT, "%d inputs were given, it takes %s%d", given,
                        ports ? "at most " : "", ports);
    for (int i = n->nports; variadic && i < ports; i++)
        if (!(op->in[i].is & FAC_OPTIONAL))
            return fac_fail(n, FAC_E_ARGUMENT, "input %s is missing", op->in[i].name);
    for (int i = 0; i < n->nports; i++) {
        const fac_port *p = &op->in[i < ports ? i : ports - 1];
        if (!n->in[i]) {
            if (p->is & FAC_OPTIONAL) continue;
            return fac_fail(n, FAC_E_ARGUMENT, "input %s is missing", p->name);
        }
        if (n->in[i]->type.dtype == FAC_BIT)
            return fac_fail(n, FAC_E_DTYPE, "input %s is bit, %s", p->name, bits_are_stored);
        if (!(class_of(n->in[i]->type.dtype) & p->takes)) {
            char text[64];
            return fac_fail(n, FAC_E_DTYPE, "input %s is %s, it takes %s", p->name,
                            fac_dtype_get(n->in[i]->type.dtype)->name,
                            class_names(p->takes, text, sizeof text));
        }
    }
    for (int i = n->nports; i < n->nin; i++)
        if (!n->in[i])
            return fac_fail(n, FAC_E_ARGUMENT, "input x%d of the epilogue is missing",
                            i - n->nports + 1);
    return true;
}

/* ---- output types ---- */

static bool check_outputs(fac_node *n, int ports) {
    for (int k = 0; k < n->nout; k++) {
        const fac_port *p = &n->op->out[k < ports ? k : ports - 1];
        const fac_type *type = &n->out[k]->type;
        if (type->dtype == FAC_NONE && !(p->is & FAC_OPTIONAL))
            return fac_fail(n, FAC_E_INTERNAL, "its infer gives output %s no type", p->name);
        if (type->dtype == FAC_BIT)
            return fac_fail(n, FAC_E_DTYPE, "output %s would be bit, %s", p->name, bits_are_stored);
        if (!fac_dims_valid(n->graph, &type->dims)) {
            fac_text t = { 0 };
            if (type->dims.n >= 0 && type->dims.n <= FAC_DIMS) fac_type_print(n->graph, type, &t);
            fac_fail(n, FAC_E_SHAPE, "output %s would be %s, which is no possible shape", p->name,
                     t.n ? t.s : "of too many dims");
            fac_text_free(&t);
            return false;
        }
    }
    return true;
}

/* The epilogue maps output 0 to what readers see.  Its graph has symbols of its own, so dims it
 * does not change stay ours. */
static bool apply_epilogue(fac_node *n, const fac_graph *body) {
    fac_type *y = &n->out[0]->type;
    if (body->ninputs != (size_t)(n->nin - n->nports + 1) || body->noutputs != 1 || body->nparams)
        return fac_fail(
            n, FAC_E_ARGUMENT,
            "an epilogue with %zu inputs, %zu outputs and %zu parameters; it needs %d, 1 and 0",
            body->ninputs, body->noutputs, body->nparams, n->nin - n->nports + 1);
    for (int i = 0; i < (int)body->ninputs; i++) {
        const fac_type *outside = i ? &n->in[n->nports + i - 1]->type : y;
        if (!fac_type_fits(&body->inputs[i]->type, outside))
            return fac_fail(
                n, FAC_E_SHAPE,
                "input x%d of the epilogue has another type than the value that feeds it", i);
    }
    const fac_type *from = &body->inputs[0]->type, *to = &body->outputs[0].value->type;
    y->dtype = to->dtype;
    if (!fac_dims_equal(&from->dims, &to->dims)) {
        y->dims.n = to->dims.n;
        for (int k = 0; k < to->dims.n; k++)
            y->dims.d[k] = to->dims.d[k] < 0 ? fac_symbol(n->graph, NULL) : to->dims.d[k];
    }
    n->out[0]->known = NULL;
    return true;
}

static bool take_types(fac_node *n, const fac_node *like) {
    if (like->nout != n->nout && !fac_node_outputs(n, like->nout)) return false;
    for (int k = 0; k < n->nout; k++) {
        n->out[k]->type = like->out[k]->type;
        n->out[k]->guess = like->out[k]->guess;
        if (like->out[k]->known) fac_knows(n->out[k], like->out[k]->known);
    }
    return !n->graph->error.status;
}

fac_node *fac_node_build(fac_graph *g, const fac_emission *e) {
    const fac_op *op = e->op;
    if (!op) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "there is no such op");
        return NULL;
    }
    if (e->n < 0 || e->n > MAX_OPERANDS || e->nports < 0 || e->nports > e->n || (e->n && !e->in)) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "%s: %d inputs, %d of them for ports", op->name, e->n,
                        e->nports);
        return NULL;
    }
    for (int i = 0; i < e->n; i++) {
        fac_value *v = e->in[i];
        if (!v) continue;
        if (v->graph != g && v->graph->error.status) {
            fac_graph_raise(g, FAC_E_ARGUMENT,
                            "%s: input %d belongs to another graph, which is poisoned: %s",
                            op->name, i, v->graph->error.text);
        } else if (v->graph != g) {
            fac_graph_raise(g, FAC_E_ARGUMENT, "%s: its inputs belong to different graphs",
                            op->name);
            fac_graph_raise(v->graph, FAC_E_ARGUMENT, "%s: its inputs belong to different graphs",
                            op->name);
        } else if (v->leaf == FAC_POISON && !g->error.status)
            fac_graph_raise(g, FAC_E_ARGUMENT, "%s: input %d was dropped from the graph before",
                            op->name, i);
    }
    if (g->error.status) return NULL;

    const int ports = port_count(op->in);
    const bool variadic = ports && (op->in[ports - 1].is & FAC_VARIADIC);
    fac_node *n = node_alloc(g, e, ports, variadic);
    if (!n) return NULL;
    for (int k = 0; k < 2; k++) {
        n->body[k] = e->body[k];
        if (!e->body[k]) continue;
        if (e->body[k]->error.status)
            fac_fail(n, e->body[k]->error.status, "body: %s", e->body[k]->error.text);
        else if (e->body[k]->depth >= FAC_BODY_DEPTH)
            fac_fail(n, FAC_E_UNSUPPORTED, "bodies are nested more than %d deep", FAC_BODY_DEPTH);
        if (g->error.status) return NULL;
    }
    const bool epilogue = e->body[0] && !(op->is & FAC_OP_BODIES);
    bool ok = check_ports(n, e->n, ports, variadic) && fac_attrs_fill(n, (void *)n->attrs);
    if (ok && !op->infer) ok = fac_fail(n, FAC_E_INTERNAL, "the op has no infer");
    if (ok && !epilogue && !(op->is & FAC_OP_BODIES) && (n->nin > n->nports || e->body[1]))
        ok = fac_fail(n, FAC_E_ARGUMENT, "inputs or a body for an epilogue, but no epilogue");
    if (ok && e->like)
        ok = take_types(n, e->like);
    else if (ok) {
        const fac_guess guess = fac_guess_of_inputs(n);
        ok = (guess == FAC_RANKLESS ? fac_infer_rankless(n) : op->infer(n)) && !g->error.status;
        if (ok) fac_guess_pass_on(n, guess);
        if (!ok && !g->error.status)
            fac_fail(n, FAC_E_INTERNAL, "its infer failed without a message");
        ok = ok && (!epilogue || apply_epilogue(n, e->body[0]));
        if (ok && !n->nout) ok = fac_fail(n, FAC_E_INTERNAL, "the op has no output");
        ok = ok && check_outputs(n, port_count(op->out));
    }
    if (ok && g->ids > UINT32_MAX - (uint32_t)n->nout - 1)
        ok = fac_fail(n, FAC_E_NOMEM, "the graph has 2^32 values");
    for (int k = 0; k < 2;
         k++) /* infer may have put another body in place of the one that was given */
        if (n->body[k] != e->body[k]) fac_graph_free(ok ? e->body[k] : n->body[k]);
    return ok ? n : NULL;
}

void fac_node_link(fac_node *n) {
    fac_graph *g = n->graph;
    fac_use *uses = fac_node_uses(n);
    fac_time time = FAC_COMPILE;
    for (int i = 0; i < n->nin; i++) {
        fac_value *v = n->in[i];
        if (!v) continue;
        uses[i].next = v->uses;
        v->uses = &uses[i];
        if (v->time > time) time = v->time;
    }
    n->id = g->ids++;
    for (int k = 0; k < n->nout; k++) {
        n->out[k]->id = g->ids++;
        n->out[k]->time = time;
    }
    n->prev = g->last;
    n->order = (g->last ? g->last->order : 0) + FAC_ORDER_STEP;
    *(g->last ? &g->last->next : &g->first) = n;
    g->last = n;
    g->nodes++;
    for (int k = 0; k < 2; k++)
        if (n->body[k] && n->body[k]->depth >= g->depth)
            g->depth = (uint16_t)(n->body[k]->depth + 1);
}

/* ---- for ops and their users ---- */

fac_value *fac_emit_body(fac_graph *g, const fac_op *op, const void *attrs, int n, int nports,
                         fac_value *const in[], fac_graph *then_body, fac_graph *else_body) {
    fac_node *node =
        g ? fac_node_build(
                g, &(fac_emission){ op, attrs, n, nports, in, { then_body, else_body }, NULL })
          : NULL;
    if (node) {
        fac_node_link(node);
        return node->out[0];
    }
    fac_graph_free(then_body);
    fac_graph_free(else_body);
    return g ? g->poison : NULL;
}

fac_value *fac_emit(const fac_op *op, const void *attrs, int n, fac_value *const in[]) {
    fac_graph *g = NULL;
    for (int i = 0; i < n && !g; i++)
        if (in[i]) g = in[i]->graph;
    return fac_emit_body(g, op, attrs, n, n, in, NULL, NULL);
}

fac_value *fac_apply(fac_graph *g, const fac_op *op, const char *attrs, int n,
                     fac_value *const in[]) {
    if (!g) return NULL;
    if (g->error.status) return g->poison;
    if (!op) return fac_graph_raise(g, FAC_E_ARGUMENT, "there is no such op");
    void *values = fac_arena_alloc(&g->arena, 1, op->attrs_size);
    if (!values) return fac_graph_raise(g, FAC_E_NOMEM, "%s: no memory for attributes", op->name);
    fac_error err = { 0 };
    if (fac_attrs_parse(op, attrs, &g->arena, values, &err))
        return fac_graph_raise(g, err.status, "%s: %s", op->name, err.text);
    return fac_emit_body(g, op, values, n, n, in, NULL, NULL);
}
