/* Printing what graphs, bodies and problems have in common: types, small constants, calls. */
#include <string.h>
#include "graph/format.h"
#include "graph/number.h"

enum { MOST = FAC_LITERAL };

static void print_symbol(fac_printer *p, int64_t symbol) {
    const char *name = fac_symbol_name(p->g, symbol);
    if (!name) {
        fac_text_print(p->to, "%lld", (long long)symbol);
        return;
    }
    if (*name ==
        '?') { /* nameless ones are numbered as they appear, so equal graphs give equal text */
        uint32_t *number = p->fresh ? &p->fresh[fac_symbol_index(symbol)] : NULL;
        if (number && !*number) *number = ++p->nfresh;
        if (number)
            fac_text_print(p->to, "?%u", (unsigned)*number);
        else
            fac_text_add(p->to, name);
    } else if (fac_name_plain(name) && !strpbrk(name, "./"))
        fac_text_add(p->to, name);
    else
        fac_quote(name, p->to);
}

static void print_size(fac_printer *p, int64_t d) {
    if (p->g && fac_is_symbol(p->g, d))
        print_symbol(p, d);
    else
        fac_text_print(p->to, "%lld", (long long)d);
}

void fac_print_type(fac_printer *p, const fac_type *type) {
    fac_text_print(p->to, "%s[", fac_dtype_get(type->dtype)->name);
    for (int k = 0; k < type->dims.n; k++) {
        fac_text_add(p->to, k ? "," : "");
        print_size(p, type->dims.d[k]);
    }
    fac_text_add(p->to, "]");
}

bool fac_literal_fits(const fac_value *v) {
    if (v->leaf != FAC_CONST) return false;
    if (!v->tensor) return true;
    int64_t n = fac_dims_count(&v->type.dims);
    return v->type.dtype != FAC_BIT && n >= 0 && n <= MOST;
}

static void print_elements(fac_printer *p, const fac_value *v) {
    const fac_dtype dtype = v->type.dtype;
    const char kind = fac_dtype_get(dtype)->kind;
    const size_t n = (size_t)fac_dims_count(&v->type.dims);
    union {
        double f[MOST];
        int64_t i[MOST];
        char *t[MOST];
    } x;
    fac_tensor *wide = NULL;
    fac_status s =
        kind == 't' ? FAC_OK
                    : fac_tensor_convert(v->tensor, kind == 'f' ? FAC_F64 : FAC_I64, &wide, NULL);
    if (!s) s = fac_tensor_read(wide ? wide : v->tensor, &x, n * 8, NULL);
    if (s)
        p->to->failed = true; /* only without memory: a text with a wrong number would be worse */
    for (size_t k = 0; k < n && !s; k++) {
        fac_text_add(p->to, k ? "," : "");
        if (kind == 'f')
            fac_real_print(x.f[k], dtype, p->to);
        else if (kind == 't')
            fac_quote(x.t[k], p->to);
        else if (dtype == FAC_U64)
            fac_text_print(p->to, "%llu", (unsigned long long)x.i[k]);
        else
            fac_text_print(p->to, "%lld", (long long)x.i[k]);
    }
    fac_tensor_free(wide);
}

void fac_print_literal(fac_printer *p, const fac_value *v) {
    if (!v->tensor) {
        fac_text_print(p->to, "%s{", fac_dtype_get(v->type.dtype)->name);
        for (int k = 0; k < v->known->n; k++) {
            fac_text_add(p->to, k ? "," : "");
            if (v->known->symbolic >> k & 1)
                print_symbol(p, v->known->v[k]);
            else
                fac_text_print(p->to, "%lld", (long long)v->known->v[k]);
        }
        fac_text_add(p->to, "}");
        return;
    }
    const int rank = v->type.dims.n;
    if (rank < 2)
        fac_text_add(p->to, fac_dtype_get(v->type.dtype)->name);
    else
        fac_print_type(p, &v->type);
    fac_text_add(p->to, rank ? "{" : "(");
    print_elements(p, v);
    fac_text_add(p->to, rank ? "}" : ")");
}

/* A scalar that reads as a number where its type is clear. */
static bool is_number(const fac_value *v) {
    if (!v->tensor || v->type.dims.n || v->type.dtype == FAC_TEXT) return false;
    fac_text t = { 0 };
    fac_printer p = { .to = &t };
    print_elements(&p, v);
    const bool finite = !t.failed && !strpbrk(t.s, "in");
    fac_text_free(&t);
    return finite;
}

/* ---- calls ---- */

int fac_operands(const fac_node *n) {
    int count = n->nin;
    if (n->nin == n->nports)
        while (count && !n->in[count - 1]) count--;
    return count;
}

void fac_print_arguments(fac_printer *p, const fac_node *n) {
    const fac_value *first = NULL;
    const int count = fac_operands(n);
    for (int i = 0; i < count && !first; i++)
        if (n->in[i] && n->in[i]->leaf != FAC_CONST) first = n->in[i];
    for (int i = 0; i < count; i++) {
        const fac_value *v = n->in[i];
        fac_text_add(p->to, i ? ", " : "");
        if (!v)
            fac_text_add(p->to, "-");
        else if (!fac_literal_fits(v) || (v->name && !p->body))
            p->operand(p, n, i);
        else if (first && first->type.dtype == v->type.dtype && is_number(v))
            print_elements(p, v);
        else
            fac_print_literal(p, v);
    }
}

static bool same_type(const fac_graph *g, const fac_type *a, const fac_graph *body,
                      const fac_type *b) {
    if (a->dtype != b->dtype || !fac_dims_equal(&a->dims, &b->dims)) return false;
    for (int k = 0; k < a->dims.n; k++) {
        const char *x = fac_symbol_name(g, a->dims.d[k]), *y = fac_symbol_name(body, b->dims.d[k]);
        if (a->dims.d[k] < 0 && (!x || !y || strcmp(x, y))) return false;
    }
    return true;
}

/* Types of a body's inputs are those of the node's own inputs; where they are not they are written.
 */
static void print_header(fac_printer *p, const fac_node *n, const fac_graph *body) {
    bool same = body->ninputs == (size_t)n->nin;
    for (int i = 0; i < n->nin && same; i++) {
        const bool rankless =
            n->in[i] && n->in[i]->guess == FAC_RANKLESS && body->inputs[i]->guess == FAC_RANKLESS;
        same = rankless ||
               (n->in[i] && same_type(n->graph, &n->in[i]->type, body, &body->inputs[i]->type));
    }
    if (same) return;
    fac_printer inner = { .to = p->to, .g = body };
    fac_text_add(p->to, "(");
    for (size_t i = 0; i < body->ninputs; i++) {
        fac_text_add(p->to, i ? ", " : "");
        fac_print_type(&inner, &body->inputs[i]->type);
    }
    fac_text_add(p->to, ") ");
}

void fac_print_tail(fac_printer *p, const fac_node *n) {
    fac_attrs_put(n->op, n->attrs, p->body, p->to);
    for (int k = 0; k < 2; k++) {
        if (!n->body[k]) continue;
        fac_text_add(p->to, " {");
        if (n->op->is & FAC_OP_BODIES) print_header(p, n, n->body[k]);
        fac_body_print(n->body[k], p->to);
        fac_text_add(p->to, "}");
    }
}

void fac_print_call(fac_printer *p, const fac_node *n) {
    fac_text_print(p->to, "%s(", n->op->name);
    fac_print_arguments(p, n);
    fac_text_add(p->to, ")");
    fac_print_tail(p, n);
}
