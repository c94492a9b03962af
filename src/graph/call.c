/* Reading a call: op(operands) attributes {bodies}.  Whole graphs, bodies and problems differ only
 * in what a name and a bare type mean as an operand. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/format.h"

/* A number waits for the type of the operand that gives it one. */
typedef struct pending {
    const char *s;
    size_t n;
} pending;
typedef struct operands {
    fac_value **v;
    pending *number;
    int n;
    size_t room_v, room_number;
    bool typed; /* dtype is that of the first operand that is no constant */
    fac_dtype dtype;
} operands;

static bool number_follows(const fac_lexer *l) {
    if (l->s == l->end) return false;
    const char c = *l->s, next = l->end - l->s > 1 ? l->s[1] : 0;
    return (c >= '0' && c <= '9') || c == '.' ||
           (c == '-' && ((next >= '0' && next <= '9') || next == '.'));
}

/* Does a type begin here, and not a name? */
static bool type_follows(const fac_lexer *l) {
    fac_lexer look = *l;
    char word[16];
    look.err = NULL;
    if (!fac_lex_letter(&look) || fac_lex_word(&look, "", word, sizeof word) ||
        fac_dtype_find(word) == FAC_NONE)
        return false;
    return look.s < look.end && (*look.s == '[' || *look.s == '{' || *look.s == '(');
}

/* One operand; a bare number is put into *number instead. */
static fac_status read_one(fac_reader *r, fac_value **out, pending *number) {
    fac_lexer *l = r->l;
    fac_lex_space(l);
    *out = NULL;
    *number = (pending){ 0 };
    if (type_follows(l)) {
        fac_type type;
        FAC_TRY(fac_read_literal(r, &type, out));
        return *out ? FAC_OK : r->typed(r, &type, out);
    }
    if (!number_follows(l)) return fac_lex_is(l, '-') ? FAC_OK : r->name(r, out);
    number->s = l->s;
    while (l->s < l->end && *l->s && strchr("+-.0123456789eE", *l->s)) l->s++;
    number->n = (size_t)(l->s - number->s);
    return FAC_OK;
}

fac_status fac_read_operand(fac_reader *r, fac_value **out) {
    pending number;
    FAC_TRY(read_one(r, out, &number));
    if (number.s)
        return fac_lex_fail(r->l, "a number needs a type here: f32(%.*s)",
                            (int)(number.n > 40 ? 40 : number.n), number.s);
    return FAC_OK;
}

static fac_status push(fac_reader *r, operands *o, fac_value *v, pending number) {
    if (!fac_reserve(&o->v, &o->room_v, (size_t)o->n + 1, sizeof *o->v) ||
        !fac_reserve(&o->number, &o->room_number, (size_t)o->n + 1, sizeof *o->number))
        return fac_raise_memory(r->l->err, "the operands of %s", r->op->name);
    o->v[o->n] = v;
    o->number[o->n++] = number;
    if (v && v->leaf != FAC_CONST && !o->typed) {
        o->typed = true;
        o->dtype = v->type.dtype;
    }
    return FAC_OK;
}

/* After '('. */
static fac_status read_operands(fac_reader *r, operands *o) {
    if (!fac_lex_is(r->l, ')'))
        for (;;) {
            fac_value *v;
            pending number;
            r->operand = o->n;
            FAC_TRY(read_one(r, &v, &number));
            FAC_TRY(push(r, o, v, number));
            if (fac_lex_is(r->l, ')')) break;
            FAC_TRY(fac_lex_need(r->l, ','));
        }
    for (int i = 0; i < o->n; i++) {
        if (!o->number[i].s) continue;
        if (!o->typed)
            return fac_lex_fail(r->l, "%s: its numbers need types, as in f32(2)", r->op->name);
        FAC_TRY(fac_read_number(r, o->number[i].s, o->number[i].n, o->dtype, &o->v[i]));
    }
    return FAC_OK;
}

/* ---- bodies ---- */

static fac_status body_input(fac_reader *r, fac_graph *body, fac_type type) {
    char name[24];
    snprintf(name, sizeof name, "x%zu", body->ninputs);
    fac_input(body, name, type.dtype, type.dims);
    return fac_lex_graph(r->l, body);
}

/* "(f32[2,3], i64[])": where the types are not those of the node's operands. */
static fac_status read_header(fac_reader *r, fac_graph *body) {
    if (fac_lex_is(r->l, ')')) return FAC_OK;
    for (;;) {
        fac_type type;
        FAC_TRY(fac_read_type(r->l, body, &type));
        FAC_TRY(body_input(r, body, type));
        if (fac_lex_is(r->l, ')')) return FAC_OK;
        FAC_TRY(fac_lex_need(r->l, ','));
    }
}

/* After '{'.  first: the type of input 0 of an epilogue; the other inputs are in[from..n). */
static fac_status read_body(fac_reader *r, const operands *o, const fac_type *first, int from,
                            fac_graph **out) {
    fac_lexer *l = r->l;
    fac_graph *body = fac_graph_new();
    if (!body) return fac_raise_memory(l->err, "a body");
    fac_status s = FAC_OK;
    const fac_table outside = l->nameless;
    l->nameless = (fac_table){ 0 };
    if (++l->depth > FAC_BODY_DEPTH)
        s = fac_lex_fail(l, "bodies are nested more than %d deep", FAC_BODY_DEPTH);
    if (!s && !first && fac_lex_is(l, '(')) {
        s = read_header(r, body);
    } else if (!s) {
        s = fac_symbols_copy(body, r->g) ? FAC_OK : fac_lex_graph(l, body);
        if (!s && first) s = body_input(r, body, *first);
        for (int i = from; i < o->n && !s; i++) {
            s = o->v[i] ? body_input(r, body, o->v[i]->type)
                        : fac_lex_fail(l, "operand %d is absent and cannot feed a body", i);
            if (!s) body->inputs[body->ninputs - 1]->guess = o->v[i]->guess;
        }
    }
    if (!s) s = fac_read_body(l, body);
    if (!s) s = fac_lex_need(l, '}');
    l->depth--;
    fac_table_free(&l->nameless);
    l->nameless = outside;
    if (s)
        fac_graph_free(body);
    else
        *out = body;
    return s;
}

static int port_count(const fac_op *op, bool *variadic) {
    int n = 0;
    while (op->in && op->in[n].name) n++;
    *variadic = n && (op->in[n - 1].is & FAC_VARIADIC);
    return n;
}

/* ---- the call ---- */

static fac_status read_bodies(fac_reader *r, const operands *o, const void *attrs, int *nports,
                              fac_graph *body[2]) {
    const fac_op *op = r->op;
    bool variadic;
    const int ports = port_count(op, &variadic);
    *nports = o->n;
    if (!fac_lex_is(r->l, '{')) return FAC_OK;
    if (op->is & FAC_OP_BODIES) {
        FAC_TRY(read_body(r, o, NULL, 0, &body[0]));
        return fac_lex_is(r->l, '{') ? read_body(r, o, NULL, 0, &body[1]) : FAC_OK;
    }
    /* An epilogue works on what the op alone would give: a trial node, which stays out of the
     * graph, says what that is. */
    if (!variadic && o->n > ports) *nports = ports;
    const fac_node *trial = fac_node_build(
        r->g, &(fac_emission){ op, attrs, *nports, *nports, o->v, { NULL, NULL }, NULL });
    if (!trial) return fac_lex_graph(r->l, r->g);
    const fac_type type = trial->out[0]->type;
    return read_body(r, o, &type, *nports, &body[0]);
}

static fac_status read_rest(fac_reader *r, operands *o, fac_value *implied, fac_node **out) {
    fac_lexer *l = r->l;
    const fac_op *op = r->op;
    if (!implied || (l->s < l->end && *l->s == '(')) {
        FAC_TRY(fac_lex_need(l, '('));
        FAC_TRY(read_operands(r, o));
    } else
        FAC_TRY(push(r, o, implied, (pending){ 0 }));
    void *attrs = fac_arena_alloc(&r->g->arena, 1, op->attrs_size);
    if (!attrs) return fac_raise_memory(l->err, "the attributes of %s", op->name);
    FAC_TRY(fac_attrs_lex(l, op, r->body, &r->g->arena, attrs));
    fac_graph *body[2] = { NULL, NULL };
    int nports;
    fac_status s = read_bodies(r, o, attrs, &nports, body);
    fac_node *n =
        s ? NULL
          : fac_node_build(
                r->g, &(fac_emission){ op, attrs, o->n, nports, o->v, { body[0], body[1] }, NULL });
    if (!n) {
        for (int k = 0; k < 2; k++) fac_graph_free(body[k]);
        return s ? s : fac_lex_graph(l, r->g);
    }
    fac_node_link(n);
    *out = n;
    return FAC_OK;
}

fac_status fac_read_call(fac_reader *r, fac_value *implied, fac_node **out) {
    char name[128];
    FAC_TRY(fac_lex_word(r->l, "an op", name, sizeof name));
    r->op = fac_op_find(name);
    if (!r->op) return fac_lex_fail(r->l, "there is no op '%s'", name);
    operands o = { 0 };
    const fac_op *op = r->op;
    fac_status s = read_rest(r, &o, implied, out);
    r->op = op;
    fac_release(o.v);
    fac_release(o.number);
    return s;
}
