/* Problems: a node without its data, as one line of text.  See facula/backend.h. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "facula/backend.h"
#include "graph/format.h"

/* ---- printing ---- */

static void print_operand(fac_printer *p, const fac_operand *o) {
    if (o->type.dtype == FAC_NONE) {
        fac_text_add(p->to, "-");
    } else if (o->known && !o->known->symbolic && o->type.dims.n <= 1) {
        const int64_t n = o->known->n;
        fac_text_print(p->to, "%s%c", fac_dtype_get(o->type.dtype)->name,
                       o->type.dims.n ? '{' : '(');
        for (int k = 0; k < n; k++)
            fac_text_print(p->to, k ? ",%lld" : "%lld", (long long)o->known->v[k]);
        fac_text_add(p->to, o->type.dims.n ? "}" : ")");
    } else
        fac_print_type(p, &o->type);
}

int fac_problem_print(const fac_problem *problem, char *to, size_t size) {
    const fac_node *n = problem->node;
    fac_text t = { 0 };
    fac_printer p = { .to = &t, .g = n->graph };
    int count = problem->nin;
    if (n->nin == n->nports)
        while (count && problem->in[count - 1].type.dtype == FAC_NONE) count--;
    fac_text_print(&t, "%s(", n->op->name);
    for (int i = 0; i < count; i++) {
        fac_text_add(&t, i ? ", " : "");
        print_operand(&p, &problem->in[i]);
    }
    fac_text_add(&t, ")");
    fac_print_tail(&p, n);
    const int length = t.failed || t.n > INT32_MAX ? -1 : snprintf(to, size, "%s", t.s);
    fac_text_free(&t);
    return length;
}

/* ---- reading ---- */

static fac_status no_names(fac_reader *r, fac_value **out) {
    (void)out;
    return fac_lex_fail(r->l, "an operand is a type, a constant or -");
}

static unsigned port_is(const fac_op *op, int i, bool *port) {
    int n = 0;
    while (op->in && op->in[n].name) n++;
    const bool variadic = n && (op->in[n - 1].is & FAC_VARIADIC);
    *port = i < n || variadic;
    if (!*port) return 0;
    return op->in[i < n ? i : n - 1].is;
}

/* An operand without contents is an input.  Parameters, where they are wanted, are what a model
 * would hold as such: operands of the op after the first; not those of its epilogue, and not what
 * steers shapes. */
static fac_status operand(fac_reader *r, const fac_type *type, fac_value **out) {
    const bool *params = r->self;
    bool port;
    const unsigned is = port_is(r->op, r->operand, &port);
    char name[24];
    if (*params && port && r->operand && type->dims.n && !(is & FAC_HOST) &&
        fac_dims_count(&type->dims) >= 0) {
        fac_tensor *t = NULL;
        snprintf(name, sizeof name, "w%d", r->operand);
        FAC_TRY(fac_tensor_new(NULL, type->dtype, type->dims, &t, r->l->err));
        *out = fac_param(r->g, name, t);
        fac_tensor_free(t);
    } else {
        snprintf(name, sizeof name, "x%d", r->operand);
        *out = fac_input(r->g, name, type->dtype, type->dims);
    }
    return fac_lex_graph(r->l, r->g);
}

static bool is_optional(const fac_op *op, int output) {
    for (const fac_port *p = op->out; p && p->name; p++, output--)
        if (output == 0 || (p->is & FAC_VARIADIC)) return p->is & FAC_OPTIONAL;
    return false;
}

fac_status fac_problem_graph(const char *text, bool params, fac_graph **out, fac_error *err) {
    if (!text) return fac_raise(err, FAC_E_ARGUMENT, "there is no problem text");
    fac_graph *g = fac_graph_new();
    if (!g) return fac_raise_memory(err, "a graph");
    fac_lexer l = { .s = text, .end = text + strlen(text), .err = err };
    fac_reader r = { .l = &l, .g = g, .name = no_names, .typed = operand, .self = &params };
    fac_node *n = NULL;
    fac_status s = fac_read_call(&r, NULL, &n);
    if (!s) s = fac_lex_end(&l);
    for (int k = 0; !s && k < n->nout; k++) {
        char name[24];
        if (n->out[k]->type.dtype == FAC_NONE)
            continue; /* an optional output that this node does not have */
        if (k > 0 && params && is_optional(n->op, k)) continue;
        snprintf(name, sizeof name, "y%d", k);
        fac_output(g, name, n->out[k]);
        s = fac_lex_graph(&l, g);
    }
    fac_table_free(&r.literals);
    fac_table_free(&l.nameless);
    if (s)
        fac_graph_free(g);
    else
        *out = g;
    return s;
}
