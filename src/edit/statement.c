/* Reading statements: see statement.h. */
#include "edit/statement.h"
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"

enum { FEW = 64 }; /* operands, results and attributes of a statement */

static fac_status no_memory(fac_cursor *c) {
    return fac_raise(c->err, FAC_E_NOMEM, "%s: no memory for a statement", c->file);
}

/* ---- operands ---- */

/* After '{' or '(': numbers up to `close`. */
static fac_status read_numbers(fac_cursor *c, fac_term *t, char close) {
    t->kind = FAC_TERM_NUMBERS;
    t->scalar = close == ')';
    while (!fac_cursor_is(c, close)) {
        if (t->n) FAC_TRY(fac_cursor_need(c, ','));
        if (t->n == FAC_TERM_NUMBERS_MOST)
            return fac_cursor_fail(c, "a constant has at most %d numbers here",
                                   FAC_TERM_NUMBERS_MOST);
        if (!fac_cursor_number(c, &t->v[t->n])) return fac_cursor_fail(c, "a number is missing");
        t->n++;
    }
    return t->scalar && t->n != 1 ? fac_cursor_fail_at(c, t->at, "a scalar is one number") : FAC_OK;
}

static fac_status read_tolerance(fac_cursor *c, bool pattern, fac_term *t) {
    t->tolerance = -1;
    if (!fac_cursor_ahead(c, '~')) return FAC_OK;
    if (!pattern) return fac_cursor_fail(c, "a distance (~) belongs into a pattern");
    fac_cursor_is(c, '~');
    if (!fac_cursor_number(c, &t->tolerance) || !(t->tolerance >= 0))
        return fac_cursor_fail(c, "a distance is a positive number");
    return FAC_OK;
}

static fac_status read_named(fac_cursor *c, bool pattern, fac_term *t) {
    FAC_TRY(fac_cursor_name(c, &t->name));
    if (!t->name)
        return fac_cursor_fail(c,
                               "an operand is a name, a number, a constant such as i64{1,2}, or -");
    t->dtype = fac_dtype_find(t->name);
    if (t->dtype && fac_cursor_is(c, '(')) return read_numbers(c, t, ')');
    if (t->dtype && fac_cursor_is(c, '{')) return read_numbers(c, t, '}');
    t->dtype = FAC_NONE;
    t->kind = pattern && !strcmp(t->name, "_") ? FAC_TERM_ANY : FAC_TERM_NAME;
    return FAC_OK;
}

static fac_status read_term(fac_cursor *c, bool pattern, fac_term *t) {
    *t = (fac_term){ .at = fac_cursor_place(c), .tolerance = -1 };
    if (fac_cursor_is(c, '$')) {
        if (pattern)
            return fac_cursor_fail_at(c, t->at,
                                      "a variable of attributes is no operand of a pattern");
        t->kind = FAC_TERM_VARIABLE;
        FAC_TRY(fac_cursor_name(c, &t->name));
        return t->name ? FAC_OK : fac_cursor_fail(c, "the name of a variable is missing after $");
    }
    if (fac_cursor_is(c, '{')) {
        FAC_TRY(read_numbers(c, t, '}'));
        return pattern ? FAC_OK
                       : fac_cursor_fail_at(c, t->at, "a list needs its type here: i64{...}");
    }
    if (fac_cursor_number(c, &t->v[0])) {
        t->kind = FAC_TERM_NUMBERS;
        t->n = 1;
        t->scalar = true;
        return read_tolerance(c, pattern, t);
    }
    if (fac_cursor_is(c, '-')) {
        t->kind = FAC_TERM_ABSENT;
        return FAC_OK;
    }
    FAC_TRY(read_named(c, pattern, t));
    return t->kind == FAC_TERM_NUMBERS ? read_tolerance(c, pattern, t) : FAC_OK;
}

/* After '('. */
static fac_status read_terms(fac_cursor *c, bool pattern, fac_statement *s) {
    fac_term list[FEW];
    while (!fac_cursor_is(c, ')')) {
        if (s->nargs) FAC_TRY(fac_cursor_need(c, ','));
        if (s->nargs == FEW) return fac_cursor_fail(c, "at most %d operands", FEW);
        FAC_TRY(read_term(c, pattern, &list[s->nargs]));
        s->nargs++;
    }
    s->args = fac_arena_alloc(c->arena, (size_t)s->nargs + 1, sizeof *s->args);
    if (!s->args) return no_memory(c);
    memcpy(s->args, list, (size_t)s->nargs * sizeof *list);
    return FAC_OK;
}

/* ---- attributes ---- */

/* "2,2", "same_upper" or a text in quotes, as it stands. */
static fac_status read_value(fac_cursor *c, const char *name, char *to, size_t size) {
    const char *from = c->s;
    bool quoted = false;
    while (c->s < c->end && *c->s != '\n' && (quoted || !strchr(" \t\r;#)", *c->s)))
        quoted ^= *c->s++ == '"';
    const int n = snprintf(to, size, "%s=%.*s", name, (int)(c->s - from), from);
    return n > 0 && (size_t)n < size ? FAC_OK
                                     : fac_cursor_fail(c, "the value of %s is too long", name);
}

static fac_status read_attr(fac_cursor *c, fac_statement *s, const char *name, fac_place at) {
    char text[512];
    fac_error err = { 0 };
    fac_setting *to = &s->settings[s->nsettings];
    const fac_attr *a = s->op->attrs;
    while (a && a->name && strcmp(a->name, name)) a++;
    *to = (fac_setting){ .attr = a && a->name ? a : NULL, .at = at };
    snprintf(text, sizeof text, "%s", name);
    if (fac_cursor_is(c, '=')) {
        if (fac_cursor_is(c, '$')) {
            FAC_TRY(fac_cursor_name(c, &to->variable));
            if (!to->variable)
                return fac_cursor_fail(c, "the name of a variable is missing after $");
        } else
            FAC_TRY(read_value(c, name, text, sizeof text));
    }
    if (to->variable && to->attr) return FAC_OK;
    /* also when there is no such attribute: this says which there are */
    if (fac_attrs_parse(s->op, text, c->arena, s->attrs, &err))
        return fac_cursor_fail_at(c, at, "%s: %s", s->op->name, err.text);
    return FAC_OK;
}

static fac_status read_attrs(fac_cursor *c, bool pattern, fac_statement *s) {
    fac_setting list[FEW];
    s->settings = list;
    s->attrs = fac_arena_alloc(c->arena, 1, s->op->attrs_size + 1);
    if (!s->attrs) return no_memory(c);
    while (!fac_cursor_line_end(c)) {
        const fac_place at = fac_cursor_place(c);
        const char *name, *before = c->s;
        if (fac_cursor_is(c, '*')) {
            if (!pattern)
                return fac_cursor_fail_at(c, at, "* (any attributes) belongs into a pattern");
            s->any = true;
            continue;
        }
        if (fac_cursor_keyword(c, "like")) {
            if (pattern) return fac_cursor_fail_at(c, at, "'like' belongs into a replacement");
            FAC_TRY(fac_cursor_name(c, &s->like));
            if (!s->like) return fac_cursor_fail(c, "like whom?");
            continue;
        }
        FAC_TRY(fac_cursor_name(c, &name));
        if (!name) return fac_cursor_fail(c, "this was not expected");
        if (!pattern && !s->nresults && !fac_cursor_ahead(c, '=') &&
            fac_op_find(name)) { /* the next link of a chain */
            c->s = before;
            break;
        }
        for (int k = 0; k < s->nsettings; k++)
            if (list[k].attr && !strcmp(list[k].attr->name, name))
                return fac_cursor_fail_at(c, at, "%s is given twice", name);
        if (s->nsettings == FEW) return fac_cursor_fail_at(c, at, "at most %d attributes", FEW);
        FAC_TRY(read_attr(c, s, name, at));
        s->nsettings++;
    }
    s->settings = fac_arena_alloc(c->arena, (size_t)s->nsettings + 1, sizeof *s->settings);
    if (!s->settings) return no_memory(c);
    memcpy(s->settings, list, (size_t)s->nsettings * sizeof *list);
    return FAC_OK;
}

/* ---- statements ---- */

/* "y, i =", which may be missing: then the cursor stays. */
static fac_status read_results(fac_cursor *c, fac_statement *s) {
    const char *list[FEW];
    const fac_cursor before = *c;
    do {
        if (s->nresults == FEW) return fac_cursor_fail(c, "at most %d results", FEW);
        FAC_TRY(fac_cursor_name(c, &list[s->nresults]));
        if (!list[s->nresults++]) break;
    } while (fac_cursor_is(c, ','));
    if (!list[s->nresults - 1] || !fac_cursor_is(c, '=')) {
        *c = before;
        s->nresults = 0;
        return FAC_OK;
    }
    s->results = fac_arena_alloc(c->arena, (size_t)s->nresults, sizeof *s->results);
    if (!s->results) return no_memory(c);
    memcpy(s->results, list, (size_t)s->nresults * sizeof *list);
    return FAC_OK;
}

/* The right side of "y = x". */
static fac_status read_alias(fac_cursor *c, fac_statement *s) {
    s->args = fac_arena_alloc(c->arena, 1, sizeof *s->args);
    if (!s->args) return no_memory(c);
    s->nargs = 1;
    FAC_TRY(read_term(c, false, s->args));
    if (s->args->kind != FAC_TERM_NAME)
        return fac_cursor_fail_at(c, s->args->at, "a name or a call is missing");
    if (s->nresults > 1)
        return fac_cursor_fail_at(c, s->at, "one value cannot have %d names here", s->nresults);
    return fac_cursor_line_end(c) ? FAC_OK : fac_cursor_fail(c, "this was not expected");
}

/* In a pattern and after "y =" a call has parentheses; elsewhere they may be left out, and _ is
 * the operand. */
static fac_status read_call(fac_cursor *c, bool pattern, fac_statement *s) {
    const fac_cursor before = *c;
    const char *name;
    s->at = s->nresults ? s->at : fac_cursor_place(c);
    const fac_place at = fac_cursor_place(c);
    FAC_TRY(fac_cursor_name(c, &name));
    const bool call = name && fac_cursor_is(c, '(');
    if (!call && s->nresults && !pattern) {
        *c = before;
        return read_alias(c, s);
    }
    if (!name) return fac_cursor_fail_at(c, at, "an op is missing");
    if (!call && pattern) return fac_cursor_fail(c, "'(' is missing after %s", name);
    s->op = fac_op_find(name);
    if (!s->op) return fac_cursor_fail_at(c, at, "there is no op '%s'", name);
    if (call) {
        FAC_TRY(read_terms(c, pattern, s));
    } else {
        s->args = fac_arena_alloc(c->arena, 1, sizeof *s->args);
        if (!s->args) return no_memory(c);
        s->args[s->nargs++] =
            (fac_term){ .kind = FAC_TERM_NAME, .name = "_", .tolerance = -1, .at = at };
    }
    return read_attrs(c, pattern, s);
}

fac_status fac_statement_read(fac_cursor *c, bool pattern, fac_statements *to) {
    fac_statement first = { .at = fac_cursor_place(c) };
    FAC_TRY(read_results(c, &first));
    if (pattern && !first.nresults)
        return fac_cursor_fail(c, "a line of a pattern is NAME = op(...)");
    for (fac_statement s = first;; s = (fac_statement){ 0 }) {
        FAC_TRY(read_call(c, pattern, &s));
        if (!fac_reserve(&to->at, &to->room, to->n + 1, sizeof *to->at)) return no_memory(c);
        to->at[to->n++] = s;
        if (fac_cursor_line_end(c)) return FAC_OK;
        if (s.nresults) return fac_cursor_fail(c, "this was not expected");
    }
}

fac_status fac_statements_read(fac_cursor *c, fac_statements *to) {
    for (fac_cursor_next_line(c); c->s < c->end; fac_cursor_next_line(c))
        FAC_TRY(fac_statement_read(c, false, to));
    return to->n ? FAC_OK : fac_cursor_fail(c, "an op is missing");
}
