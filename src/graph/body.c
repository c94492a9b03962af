/* The body of a node in one line.
 *
 *   chain    relu                              each step takes what came before; _ in a list of
 *            operands add(_, x1) relu clip(_, 0, 6)     xk is input k of the body
 *   general  t0 = exp(x0); t1 = mul(t0, x1); t1, t0       results last */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/format.h"
#include "graph/number.h"

/* ---- printing ---- */

typedef struct names {
    const fac_graph *body;
    const fac_value *last;
    uint32_t *place;
} names;

static long input_index(const fac_graph *body, const fac_value *v) {
    for (size_t i = 0; i < body->ninputs; i++)
        if (body->inputs[i] == v) return (long)i;
    return -1;
}

static void print_value(fac_printer *p, const fac_value *v) {
    const names *self = p->self;
    if (v == self->last)
        fac_text_add(p->to, "_");
    else if (v->leaf == FAC_INPUT)
        fac_text_print(p->to, "x%ld", input_index(self->body, v));
    else if (v->leaf == FAC_CONST && fac_literal_fits(v))
        fac_print_literal(p, v);
    else if (v->leaf)
        fac_print_type(p, &v->type); /* a large constant: its contents are no part of the text */
    else
        fac_text_print(p->to, "t%u", (unsigned)self->place[v->id]);
}

static void print_operand(fac_printer *p, const fac_node *n, int i) { print_value(p, n->in[i]); }

/* Every node works on the result of the one before and on inputs and constants only. */
static bool is_chain(const fac_graph *body) {
    if (!body->ninputs || !body->first || body->noutputs != 1) return false;
    const fac_value *last = body->inputs[0];
    for (const fac_node *n = body->first; n; n = n->next) {
        bool linked = false;
        for (int i = 0; i < n->nin; i++) {
            const fac_value *v = n->in[i];
            linked = linked || v == last;
            if (v && v != last && !v->leaf) return false;
        }
        if (!linked || n->nout != 1) return false;
        last = n->out[0];
    }
    return body->outputs[0].value == last;
}

static void print_chain(fac_printer *p, names *self) {
    self->last = self->body->inputs[0];
    for (const fac_node *n = self->body->first; n; n = n->next) {
        fac_text_add(p->to, n == self->body->first ? "" : " ");
        if (fac_operands(n) == 1) {
            fac_text_add(p->to, n->op->name);
            fac_print_tail(p, n);
        } else
            fac_print_call(p, n);
        self->last = n->out[0];
    }
}

static void print_general(fac_printer *p, names *self) {
    uint32_t next = 0;
    for (const fac_node *n = self->body->first; n; n = n->next) {
        for (int k = 0; k < n->nout; k++) {
            self->place[n->out[k]->id] = next;
            fac_text_print(p->to, k ? ", t%u" : "t%u", (unsigned)next++);
        }
        fac_text_add(p->to, " = ");
        fac_print_call(p, n);
        fac_text_add(p->to, "; ");
    }
    for (size_t i = 0; i < self->body->noutputs; i++) {
        fac_text_add(p->to, i ? ", " : "");
        print_value(p, self->body->outputs[i].value);
    }
}

void fac_body_print(const fac_graph *body, fac_text *to) {
    names self = { .body = body, .place = fac_alloc(body->ids, sizeof *self.place) };
    fac_printer p = { .to = to, .g = body, .body = true, .operand = print_operand, .self = &self };
    if (!self.place)
        to->failed = true;
    else if (is_chain(body))
        print_chain(&p, &self);
    else
        print_general(&p, &self);
    fac_release(self.place);
}

/* ---- reading ---- */

typedef struct scope {
    fac_value *last, **t;
    size_t nt, room;
} scope;

/* "x12" or "t3": the number, else -1. */
static int64_t numbered(const char *word, char kind) {
    int64_t k;
    const char *s = word + 1;
    return word[0] == kind && word[1] >= '0' && word[1] <= '9' &&
                   fac_int_parse(&s, word + strlen(word), &k) && !*s
               ? k
               : -1;
}

static fac_status find(fac_reader *r, fac_value **out) {
    const scope *self = r->self;
    char word[32];
    FAC_TRY(fac_lex_word(r->l, "an operand", word, sizeof word));
    const int64_t x = numbered(word, 'x'), t = numbered(word, 't');
    if (!strcmp(word, "_") && self->last)
        *out = self->last;
    else if (x >= 0 && (uint64_t)x < r->g->ninputs)
        *out = r->g->inputs[x];
    else if (t >= 0 && (uint64_t)t < self->nt)
        *out = self->t[t];
    else
        return fac_lex_fail(r->l, "there is no '%s' in this body", word);
    return FAC_OK;
}

static fac_status zeros(fac_reader *r, const fac_type *type, fac_value **out) {
    fac_tensor *t = NULL;
    FAC_TRY(fac_read_zeros(r->l, type, &t));
    *out = fac_const(r->g, t);
    fac_tensor_free(t);
    return fac_lex_graph(r->l, r->g);
}

static bool at_end(fac_lexer *l) {
    fac_lex_space(l);
    return l->s == l->end || *l->s == '}';
}

static fac_status output(fac_reader *r, fac_value *v) {
    char name[24];
    snprintf(name, sizeof name, "y%zu", r->g->noutputs);
    fac_output(r->g, name, v);
    return fac_lex_graph(r->l, r->g);
}

static fac_status read_chain(fac_reader *r, scope *self) {
    while (!at_end(r->l)) {
        fac_node *n = NULL;
        FAC_TRY(fac_read_call(r, self->last, &n));
        self->last = n->out[0];
    }
    return output(r, self->last);
}

/* "t0, t1 = call;" after whose '=' the lexer is; the names must be the next ones. */
static fac_status read_statement(fac_reader *r, scope *self, size_t labels) {
    fac_node *n = NULL;
    FAC_TRY(fac_read_call(r, NULL, &n));
    if (labels > (size_t)n->nout)
        return fac_lex_fail(r->l, "%s has only %d output%s", n->op->name, n->nout,
                            n->nout > 1 ? "s" : "");
    if (!fac_reserve(&self->t, &self->room, self->nt + labels, sizeof *self->t))
        return fac_raise_memory(r->l->err, "a body");
    for (size_t k = 0; k < labels; k++) self->t[self->nt++] = n->out[k];
    return fac_lex_need(r->l, ';');
}

/* Is this "t0 =" or "t0, t1 ="?  Then the lexer moves after it. */
static bool labels_follow(fac_reader *r, const scope *self, size_t *labels) {
    fac_lexer look = *r->l;
    char word[32];
    look.err = NULL;
    *labels = 0;
    do {
        if (fac_lex_word(&look, "", word, sizeof word) ||
            numbered(word, 't') != (int64_t)(self->nt + *labels))
            return false;
        ++*labels;
    } while (fac_lex_is(&look, ','));
    if (!fac_lex_is(&look, '=')) return false;
    r->l->s = look.s;
    return true;
}

static fac_status read_general(fac_reader *r, scope *self) {
    size_t labels;
    self->last = NULL;
    while (labels_follow(r, self, &labels)) FAC_TRY(read_statement(r, self, labels));
    if (at_end(r->l)) return FAC_OK;
    do {
        fac_value *v;
        FAC_TRY(fac_read_operand(r, &v));
        if (!v) return fac_lex_fail(r->l, "a result cannot be absent");
        FAC_TRY(output(r, v));
    } while (fac_lex_is(r->l, ','));
    return FAC_OK;
}

/* A chain begins with the name of an op that is not a type with contents. */
static bool chain_follows(const fac_reader *r) {
    fac_lexer look = *r->l;
    char word[128];
    look.err = NULL;
    if (!r->g->ninputs || !fac_lex_letter(&look) || fac_lex_word(&look, "", word, sizeof word))
        return false;
    return fac_op_find(word) ||
           (numbered(word, 't') < 0 && numbered(word, 'x') < 0 && fac_dtype_find(word) == FAC_NONE);
}

fac_status fac_read_body(fac_lexer *l, fac_graph *g) {
    scope self = { .last = g->ninputs ? g->inputs[0] : NULL };
    fac_reader r = { .l = l, .g = g, .body = true, .name = find, .typed = zeros, .self = &self };
    fac_status s = chain_follows(&r) ? read_chain(&r, &self) : read_general(&r, &self);
    fac_release(self.t);
    fac_table_free(&r.literals);
    return s;
}

fac_graph *fac_body_parse(const char *text, size_t n, int ninputs, const fac_type *inputs,
                          fac_error *err) {
    fac_lexer l = { .s = text, .end = text + n, .err = err };
    fac_graph *g = fac_graph_new();
    if (!g) {
        fac_raise_memory(err, "a body");
        return NULL;
    }
    /* The types may hold symbols of a graph that we do not know: nameless ones of the same numbers
     * keep what is equal equal. */
    enum { SYMBOLS = 1 << 20 };
    size_t symbols = 0;
    for (int i = 0; i < ninputs; i++)
        for (int k = 0; k < inputs[i].dims.n; k++) {
            const int64_t d = inputs[i].dims.d[k];
            if (d > FAC_SYMBOL || d <= fac_symbol_at(SYMBOLS)) continue;
            if (fac_symbol_index(d) >= symbols) symbols = fac_symbol_index(d) + 1;
        }
    while (g->nsymbols < symbols && !g->error.status) fac_symbol(g, NULL);
    for (int i = 0; i < ninputs; i++) {
        char name[24];
        snprintf(name, sizeof name, "x%d", i);
        fac_input(g, name, inputs[i].dtype, inputs[i].dims);
    }
    fac_status s = fac_lex_graph(&l, g);
    if (!s) s = fac_read_body(&l, g);
    if (!s) s = fac_lex_end(&l);
    fac_table_free(&l.nameless);
    if (!s) return g;
    fac_graph_free(g);
    return NULL;
}
