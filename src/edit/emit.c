/* Statements into nodes: names become values, literals constants, variables attributes. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"
#include "edit/statement.h"
#include "graph/lexer.h"
#include "graph/number.h"

typedef struct emitter {
    const char *file;
    fac_graph *g;
    const fac_names *names;
    fac_table *defined;
    fac_error *err;
} emitter;

static fac_status fail(const emitter *e, fac_place at, fac_status status, const char *text) {
    return fac_raise(e->err, status, "%s:%d:%d: %s", e->file, at.line, at.column, text);
}

/* ---- operands ---- */

static fac_value *value_of(const emitter *e, const char *name) {
    fac_value *v = fac_table_get(e->defined, name);
    return v ? v : e->names->value(e->names->self, name);
}

static fac_status constant(const emitter *e, const fac_term *t, fac_dtype dtype, fac_value **out) {
    fac_error err = { 0 };
    fac_tensor *wide = NULL, *narrow = NULL;
    const bool whole = fac_dtype_get(dtype)->kind != 'f';
    int64_t ints[FAC_TERM_NUMBERS_MOST];
    for (int k = 0; k < t->n; k++) {
        if (whole &&
            !(t->v[k] >= -0x1p63 && t->v[k] < 0x1p63 && (double)(int64_t)t->v[k] == t->v[k]))
            return fail(e, t->at, FAC_E_FORMAT, "this constant needs integers");
        ints[k] = whole ? (int64_t)t->v[k] : 0;
    }
    fac_status s = fac_tensor_new(NULL, whole ? FAC_I64 : FAC_F64,
                                  t->scalar ? (fac_dims){ 0 } : fac_shape(t->n), &wide, &err);
    if (!s) s = fac_tensor_write(wide, whole ? (const void *)ints : t->v, (size_t)t->n * 8, &err);
    if (!s) s = fac_tensor_convert(wide, dtype, &narrow, &err);
    if (!s) *out = fac_const(e->g, narrow);
    fac_tensor_free(wide);
    fac_tensor_free(narrow);
    return s ? fail(e, t->at, s, err.text) : FAC_OK;
}

/* A variable as an operand: its number as a constant. */
static fac_status variable(const emitter *e, const fac_term *t, fac_dtype dtype, fac_value **out) {
    const fac_attr *a;
    const void *at;
    fac_term as = *t;
    if (!e->names->attr(e->names->self, t->name, &a, &at)) {
        *out = value_of(e, t->name);
        return *out ? FAC_OK : fail(e, t->at, FAC_E_FORMAT, "there is no such variable");
    }
    if (a->kind == FAC_A_DIMS) {
        const fac_dims *d = at;
        as.n = d->n;
        for (int k = 0; k < d->n; k++) as.v[k] = (double)d->d[k];
        dtype = FAC_I64;
    } else if (a->kind == FAC_A_REALS && ((const fac_reals *)at)->n <= FAC_TERM_NUMBERS_MOST) {
        const fac_reals *list = at;
        as.n = list->n;
        for (int k = 0; k < list->n; k++) as.v[k] = list->v[k];
    } else if ((a->kind == FAC_A_INT || a->kind == FAC_A_REAL) &&
               a->count <= FAC_TERM_NUMBERS_MOST) {
        as.n = a->count ? a->count : 1;
        as.scalar = !a->count;
        for (int k = 0; k < as.n; k++)
            as.v[k] =
                a->kind == FAC_A_INT ? (double)((const int64_t *)at)[k] : ((const double *)at)[k];
        if (a->count) dtype = FAC_I64;
    } else
        return fail(e, t->at, FAC_E_FORMAT, "this attribute is no number");
    return constant(e, &as, dtype, out);
}

static fac_status operands(const emitter *e, const fac_statement *s, fac_value **in) {
    fac_dtype dtype = FAC_NONE;
    for (int k = 0; k < s->nargs; k++) {
        const fac_term *t = &s->args[k];
        in[k] = NULL;
        if (t->kind != FAC_TERM_NAME) continue;
        in[k] = value_of(e, t->name);
        if (!in[k])
            return fac_raise(e->err, FAC_E_FORMAT, "%s:%d:%d: there is no value '%s' here", e->file,
                             t->at.line, t->at.column, t->name);
        if (!dtype) dtype = in[k]->type.dtype;
    }
    for (int k = 0; k < s->nargs; k++) {
        const fac_term *t = &s->args[k];
        const fac_dtype own = t->dtype ? t->dtype : dtype;
        if (t->kind != FAC_TERM_NUMBERS && t->kind != FAC_TERM_VARIABLE) continue;
        if (!own) return fail(e, t->at, FAC_E_FORMAT, "a number needs a type here, as in f32(2)");
        FAC_TRY(t->kind == FAC_TERM_NUMBERS ? constant(e, t, own, &in[k])
                                            : variable(e, t, own, &in[k]));
    }
    return FAC_OK;
}

/* ---- attributes ---- */

static void *field(const void *attrs, const fac_attr *a) {
    return (char *)(uintptr_t)attrs + a->at;
}

static size_t bytes_of(const fac_attr *a) {
    switch (a->kind) {
    case FAC_A_INT:
    case FAC_A_REAL:
        return 8 * (size_t)(a->count ? a->count : 1);
    case FAC_A_FLAG:
        return sizeof(bool);
    case FAC_A_ENUM:
        return sizeof(int);
    case FAC_A_DTYPE:
        return sizeof(fac_dtype);
    case FAC_A_DIMS:
        return sizeof(fac_dims);
    case FAC_A_REALS:
        return sizeof(fac_reals);
    default:
        return sizeof(const char *);
    }
}

/* Numbers of one kind go into any attribute that holds as many of that kind. */
static bool same_kind(const fac_attr *a, const fac_attr *b) {
    return a->kind == b->kind && bytes_of(a) == bytes_of(b) &&
           (a->kind != FAC_A_ENUM || a->choices == b->choices);
}

static fac_status set_variable(const emitter *e, const fac_setting *to, void *attrs) {
    const fac_attr *a;
    const void *at;
    double x[FAC_EDIT_NUMBERS];
    if (e->names->attr(e->names->self, to->variable, &a, &at)) {
        if (!same_kind(a, to->attr))
            return fac_raise(e->err, FAC_E_FORMAT, "%s:%d:%d: $%s is of another kind than %s",
                             e->file, to->at.line, to->at.column, to->variable, to->attr->name);
        memcpy(field(attrs, to->attr), at, bytes_of(a));
        return FAC_OK;
    }
    if (fac_edit_numbers(value_of(e, to->variable), x) != 1)
        return fac_raise(e->err, FAC_E_FORMAT,
                         "%s:%d:%d: $%s is neither an attribute nor a constant number", e->file,
                         to->at.line, to->at.column, to->variable);
    if (to->attr->kind == FAC_A_REAL && !to->attr->count)
        memcpy(field(attrs, to->attr), x, sizeof *x);
    else if (to->attr->kind == FAC_A_INT && !to->attr->count && *x > -0x1p62 && *x < 0x1p62)
        memcpy(field(attrs, to->attr), &(int64_t){ (int64_t)*x }, sizeof(int64_t));
    else
        return fail(e, to->at, FAC_E_FORMAT, "one number does not fit this attribute");
    return FAC_OK;
}

static fac_status attributes(const emitter *e, const fac_statement *s, void **out) {
    char *attrs = fac_arena_alloc(&e->g->arena, 1, s->op->attrs_size + 1);
    const fac_node *like = s->like ? e->names->node(e->names->self, s->like) : NULL;
    if (!attrs) return fail(e, s->at, FAC_E_NOMEM, "no memory for attributes");
    if (s->like && (!like || like->op != s->op))
        return fac_raise(e->err, FAC_E_FORMAT,
                         "%s:%d:%d: '%s' is no %s whose attributes could be taken", e->file,
                         s->at.line, s->at.column, s->like, s->op->name);
    if (s->op->attrs_size) memcpy(attrs, like ? like->attrs : s->attrs, s->op->attrs_size);
    for (int k = 0; k < s->nsettings; k++) {
        const fac_setting *to = &s->settings[k];
        if (to->variable)
            FAC_TRY(set_variable(e, to, attrs));
        else if (like)
            memcpy(field(attrs, to->attr), field(s->attrs, to->attr), bytes_of(to->attr));
    }
    *out = attrs;
    return FAC_OK;
}

/* ---- nodes ---- */

static fac_status define(const emitter *e, const fac_statement *s, const char *name, fac_value *v) {
    return fac_table_put(e->defined, name, v) ? FAC_OK
                                              : fail(e, s->at, FAC_E_NOMEM, "no memory for a name");
}

static fac_status build(const emitter *e, const fac_statement *s) {
    fac_value **in = fac_arena_alloc(&e->g->arena, (size_t)s->nargs + 1, sizeof *in), *made;
    void *attrs = NULL;
    if (!in) return fail(e, s->at, FAC_E_NOMEM, "no memory for operands");
    FAC_TRY(operands(e, s, in));
    if (s->op) {
        FAC_TRY(attributes(e, s, &attrs));
        made = fac_emit_body(e->g, s->op, attrs, s->nargs, s->nargs, in, NULL, NULL);
    } else
        made = in[0];
    if (e->g->error.status) return fail(e, s->at, e->g->error.status, e->g->error.text);
    FAC_TRY(define(e, s, "_", made));
    for (int k = 0; k < s->nresults; k++) {
        if (s->op && k >= made->node->nout)
            return fail(e, s->at, FAC_E_FORMAT, "the op has fewer outputs");
        FAC_TRY(define(e, s, s->results[k], s->op ? made->node->out[k] : made));
    }
    return FAC_OK;
}

fac_status fac_statements_build(const fac_statements *s, const char *file, fac_graph *g,
                                const fac_names *names, fac_table *defined, fac_error *err) {
    const emitter e = { file, g, names, defined, err };
    for (size_t k = 0; k < s->n; k++) FAC_TRY(build(&e, &s->at[k]));
    return FAC_OK;
}
