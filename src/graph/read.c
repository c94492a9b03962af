/* Reading a graph from text: see write.c for the format.  The text may come from anywhere. */
#include <errno.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/format.h"

typedef struct labels {
    fac_table names, numbers;
} labels; /* "x" and "%7" */

enum { LONGEST = 1 << 30 };

/* ---- names ---- */

/* A name or %7, and the table that it belongs to. */
static fac_status read_label(fac_reader *r, const char **out, fac_table **table) {
    labels *self = r->self;
    if (!fac_lex_is(r->l, '%')) {
        *table = &self->names;
        return fac_lex_name(r->l, "a name", &r->g->arena, out);
    }
    char word[24];
    FAC_TRY(fac_lex_word(r->l, "a number after %", word, sizeof word));
    *table = &self->numbers;
    *out = fac_arena_text(&r->g->arena, word);
    return *out ? FAC_OK : fac_raise_memory(r->l->err, "a name");
}

static fac_status find(fac_reader *r, fac_value **out) {
    const char *name;
    fac_table *table;
    FAC_TRY(read_label(r, &name, &table));
    const bool numbered = table == &((labels *)r->self)->numbers;
    *out = fac_table_get(table, name);
    return *out ? FAC_OK
                : fac_lex_fail(r->l, "there is no value %s'%s' yet", numbered ? "%" : "", name);
}

static fac_status typed(fac_reader *r, const fac_type *type, fac_value **out) {
    (void)type;
    (void)out;
    return fac_lex_fail(r->l, "an operand is a name or a constant with its contents");
}

static fac_status define(fac_reader *r, const char *name, fac_table *table, fac_value *v) {
    const bool numbered = table == &((labels *)r->self)->numbers;
    if (fac_table_get(table, name))
        return fac_lex_fail(r->l, "%s'%s' is defined twice", numbered ? "%" : "", name);
    if (!fac_table_put(table, name, v)) return fac_raise_memory(r->l->err, "a name");
    if (!numbered) fac_value_name_set(v, name);
    return fac_lex_graph(r->l, r->g);
}

/* ---- lines ---- */

static fac_status read_input(fac_reader *r) {
    const char *name;
    fac_type type;
    FAC_TRY(fac_lex_name(r->l, "a name", &r->g->arena, &name));
    FAC_TRY(fac_read_type(r->l, r->g, &type));
    return define(r, name, &((labels *)r->self)->names,
                  fac_input(r->g, name, type.dtype, type.dims));
}

static fac_status zeros(fac_reader *r, const fac_type *type, fac_tensor **out) {
    if (fac_dims_count(&type->dims) < 0)
        return fac_lex_fail(r->l, "only inputs have symbols in their types");
    return fac_read_zeros(r->l, type, out);
}

static fac_status read_param(fac_reader *r, bool state) {
    const char *name;
    fac_type type;
    fac_tensor *t;
    FAC_TRY(fac_lex_name(r->l, "a name", &r->g->arena, &name));
    FAC_TRY(fac_read_type(r->l, r->g, &type));
    FAC_TRY(zeros(r, &type, &t));
    fac_value *v = (state ? fac_state : fac_param)(r->g, name, t);
    fac_tensor_free(t);
    return define(r, name, &((labels *)r->self)->names, v);
}

static fac_status read_const(fac_reader *r) {
    const char *name;
    fac_table *table;
    fac_type type;
    fac_value *v;
    FAC_TRY(read_label(r, &name, &table));
    /* A constant with a name is itself, whatever others are equal to it. */
    fac_table_free(&r->literals);
    FAC_TRY(fac_read_literal(r, &type, &v));
    fac_table_free(&r->literals);
    if (!v) {
        fac_tensor *t;
        FAC_TRY(zeros(r, &type, &t));
        v = fac_const(r->g, t);
        fac_tensor_free(t);
    }
    return define(r, name, table, v);
}

static fac_status read_output(fac_reader *r) {
    const char *name;
    fac_value *v;
    FAC_TRY(fac_lex_name(r->l, "a name", &r->g->arena, &name));
    FAC_TRY(fac_lex_need(r->l, '='));
    FAC_TRY(fac_read_operand(r, &v));
    fac_output(r->g, name, v);
    return fac_lex_graph(r->l, r->g);
}

static fac_status read_update(fac_reader *r) {
    fac_value *param, *next;
    FAC_TRY(find(r, &param));
    FAC_TRY(fac_lex_need(r->l, '<'));
    FAC_TRY(fac_lex_need(r->l, '-'));
    FAC_TRY(fac_read_operand(r, &next));
    fac_update(param, next);
    return fac_lex_graph(r->l, r->g);
}

/* "~1 @scope !name"; "!" alone: the node is called as its first output. */
static fac_status read_annotations(fac_reader *r, fac_node *n, const char *output) {
    if (fac_lex_is(r->l, '~')) {
        char word[8];
        unsigned stage = 0;
        FAC_TRY(fac_lex_word(r->l, "a stage", word, sizeof word));
        for (const char *s = word; *s; s++) {
            if (*s < '0' || *s > '9') return fac_lex_fail(r->l, "a stage is a number");
            stage = stage * 10 + (unsigned)(*s - '0');
        }
        if (stage > UINT16_MAX) return fac_lex_fail(r->l, "a stage is below 65536");
        n->stage = (uint16_t)stage;
    }
    if (fac_lex_is(r->l, '@')) FAC_TRY(fac_lex_name(r->l, "a scope", &r->g->arena, &n->scope));
    if (!fac_lex_is(r->l, '!')) return FAC_OK;
    fac_lex_space(r->l);
    if (output && (r->l->s == r->l->end || *r->l->s == '#')) {
        n->name = output;
        return FAC_OK;
    }
    return fac_lex_name(r->l, "a name", &r->g->arena, &n->name);
}

typedef struct label {
    const char *name;
    fac_table *table;
} label;

static fac_status read_labels(fac_reader *r, label **list, size_t *n, size_t *room) {
    do {
        if (!fac_reserve(list, room, *n + 1, sizeof **list))
            return fac_raise_memory(r->l->err, "names");
        FAC_TRY(read_label(r, &(*list)[*n].name, &(*list)[*n].table));
        ++*n;
    } while (fac_lex_is(r->l, ','));
    return fac_lex_need(r->l, '=');
}

static fac_status read_node(fac_reader *r) {
    label *list = NULL;
    size_t n = 0, room = 0;
    fac_node *node = NULL;
    fac_status s = read_labels(r, &list, &n, &room);
    if (!s) s = fac_read_call(r, NULL, &node);
    const bool named = !s && list[0].table == &((labels *)r->self)->names;
    if (!s) s = read_annotations(r, node, named ? list[0].name : NULL);
    if (!s && n > (size_t)node->nout)
        s = fac_lex_fail(r->l, "%s has only %d output%s", node->op->name, node->nout,
                         node->nout > 1 ? "s" : "");
    for (size_t k = 0; k < n && !s; k++) s = define(r, list[k].name, list[k].table, node->out[k]);
    fac_release(list);
    return s;
}

/* A value may be called "input": the word is one only before another name. */
static bool keyword(fac_lexer *l, const char *word) {
    fac_lexer look = *l;
    char first[16];
    look.err = NULL;
    if (!fac_lex_letter(&look) || fac_lex_word(&look, "", first, sizeof first) ||
        strcmp(first, word))
        return false;
    if (look.s == look.end || (*look.s != ' ' && *look.s != '\t')) return false;
    fac_lex_space(&look);
    if (look.s == look.end || *look.s == '=' || *look.s == ',') return false;
    l->s = look.s;
    return true;
}

static fac_status read_line(fac_reader *r) {
    fac_lexer *l = r->l;
    fac_lex_space(l);
    if (l->s == l->end || *l->s == '#') return FAC_OK;
    fac_status s = keyword(l, "input")    ? read_input(r)
                   : keyword(l, "param")  ? read_param(r, false)
                   : keyword(l, "state")  ? read_param(r, true)
                   : keyword(l, "const")  ? read_const(r)
                   : keyword(l, "output") ? read_output(r)
                   : keyword(l, "update") ? read_update(r)
                                          : read_node(r);
    return s ? s : fac_lex_end(l);
}

static fac_status read_lines(const char *s, const char *end, size_t most, fac_graph *g,
                             fac_error *err) {
    labels names = { { 0 }, { 0 } };
    fac_lexer l = { .most = most, .err = err };
    fac_reader r = { .l = &l, .g = g, .name = find, .typed = typed, .self = &names };
    fac_status status = FAC_OK;
    while (s < end && !status) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        l.s = s;
        l.end = stop ? stop : end;
        l.line++;
        l.depth = 0;
        status = read_line(&r);
        s = stop ? stop + 1 : end;
    }
    fac_table_free(&l.nameless);
    fac_table_free(&r.literals);
    fac_table_free(&names.names);
    fac_table_free(&names.numbers);
    return status;
}

static fac_status read_all(FILE *from, fac_text *t, fac_error *err) {
    char piece[4096];
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, from))) {
        fac_text_add_bytes(t, piece, n);
        if (t->failed || t->n > LONGEST)
            return fac_raise_memory(err, "a graph's text of %zu bytes", t->n);
    }
    return ferror(from) ? fac_raise(err, FAC_E_IO, "reading a graph: %s", strerror(errno)) : FAC_OK;
}

fac_status fac_graph_read_within(FILE *from, size_t most, fac_graph **out, fac_error *err) {
    fac_text t = { 0 };
    fac_graph *g = fac_graph_new();
    fac_status s = g ? read_all(from, &t, err) : fac_raise_memory(err, "a graph");
    if (!s && t.n) s = read_lines(t.s, t.s + t.n, most, g, err);
    fac_text_free(&t);
    if (s)
        fac_graph_free(g);
    else
        *out = g;
    return s;
}

fac_status fac_graph_read(FILE *from, fac_graph **out, fac_error *err) {
    return fac_graph_read_within(from, 0, out, err);
}
