/* Reading rules:
 *
 *   rule NAME
 *   match
 *     y = op(x, ...)              one or more; the last one is where the pattern ends
 *   where
 *     once(y), rank(x) = 4        none or more
 *   replace
 *     y = op(x, ...)              what the values of the pattern become
 *   end */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "edit/rules.h"

static int find(const char *const *list, int n, const char *name) {
    for (int k = 0; k < n; k++)
        if (!strcmp(list[k], name)) return k;
    return -1;
}

int fac_rule_value(const fac_rule *r, const char *name) { return find(r->value, r->nvalues, name); }
int fac_rule_attr(const fac_rule *r, const char *name) { return find(r->attr, r->nattrs, name); }

static fac_status value_slot(fac_cursor *c, fac_rule *r, const char *name, fac_place at,
                             int *slot) {
    *slot = fac_rule_value(r, name);
    if (*slot >= 0) return FAC_OK;
    if (r->nvalues == FAC_RULE_VALUES)
        return fac_cursor_fail_at(c, at, "a pattern has at most %d values", FAC_RULE_VALUES);
    r->maker[r->nvalues] = -1;
    r->value[ *slot = r->nvalues++] = name;
    return FAC_OK;
}

/* ---- the pattern ---- */

static fac_status pattern_line(fac_cursor *c, fac_rule *r) {
    int slot;
    FAC_TRY(fac_statement_read(c, true, &r->match));
    const int k = (int)r->match.n - 1;
    fac_statement *s = &r->match.at[k];
    if (k >= FAC_RULE_NODES)
        return fac_cursor_fail_at(c, s->at, "a pattern has at most %d nodes", FAC_RULE_NODES);
    for (int i = 0; i < s->nargs; i++)
        if (s->args[i].kind == FAC_TERM_NAME)
            FAC_TRY(value_slot(c, r, s->args[i].name, s->args[i].at, &s->args[i].slot));
    for (int i = 0; i < s->nresults; i++) {
        FAC_TRY(value_slot(c, r, s->results[i], s->at, &slot));
        if (r->maker[slot] >= 0)
            return fac_cursor_fail_at(c, s->at, "'%s' is made twice", s->results[i]);
        r->maker[slot] = k;
        r->output[slot] = i;
    }
    for (int i = 0; i < s->nsettings; i++) {
        fac_setting *t = &s->settings[i];
        if (!t->variable || (t->slot = fac_rule_attr(r, t->variable)) >= 0) continue;
        if (r->nattrs == FAC_RULE_ATTRS)
            return fac_cursor_fail_at(c, t->at, "at most %d variables", FAC_RULE_ATTRS);
        r->attr[t->slot = r->nattrs++] = t->variable;
    }
    return FAC_OK;
}

/* From the last node every other must be reached, through operands. */
static fac_status check_pattern(fac_cursor *c, const fac_rule *r) {
    bool seen[FAC_RULE_NODES] = { false };
    int stack[FAC_RULE_NODES], n = 0;
    if (!r->match.n) return fac_cursor_fail_at(c, r->at, "rule %s has no pattern", r->name);
    seen[stack[n++] = (int)r->match.n - 1] = true;
    while (n) {
        const fac_statement *s = &r->match.at[stack[--n]];
        for (int i = 0; i < s->nargs; i++) {
            const int maker = s->args[i].kind == FAC_TERM_NAME ? r->maker[s->args[i].slot] : -1;
            if (maker >= 0 && !seen[maker]) seen[stack[n++] = maker] = true;
        }
    }
    for (size_t k = 0; k < r->match.n; k++)
        if (!seen[k])
            return fac_cursor_fail_at(c, r->match.at[k].at,
                                      "the last line of the pattern is not made from '%s'",
                                      r->match.at[k].results[0]);
    return FAC_OK;
}

/* ---- the replacement ---- */

static bool made_before(const fac_rule *r, size_t line, const char *name) {
    for (size_t k = 0; k < line; k++)
        if (find(r->with.at[k].results, r->with.at[k].nresults, name) >= 0) return true;
    return fac_rule_value(r, name) >= 0;
}

static fac_status check_line(fac_cursor *c, const fac_rule *r, size_t line) {
    const fac_statement *s = &r->with.at[line];
    for (int i = 0; i < s->nargs; i++) {
        const fac_term *t = &s->args[i];
        if (t->kind == FAC_TERM_NAME && !made_before(r, line, t->name))
            return fac_cursor_fail_at(c, t->at, "there is no value '%s' in the pattern or above",
                                      t->name);
        if (t->kind == FAC_TERM_VARIABLE && fac_rule_attr(r, t->name) < 0)
            return fac_cursor_fail_at(c, t->at, "there is no variable $%s in the pattern", t->name);
    }
    for (int i = 0; i < s->nsettings; i++) {
        const fac_setting *t = &s->settings[i];
        if (t->variable && fac_rule_attr(r, t->variable) < 0 && fac_rule_value(r, t->variable) < 0)
            return fac_cursor_fail_at(c, t->at, "there is no variable $%s in the pattern",
                                      t->variable);
    }
    const int slot = s->like ? fac_rule_value(r, s->like) : -1;
    if (s->like && (slot < 0 || r->maker[slot] < 0 || r->match.at[r->maker[slot]].op != s->op))
        return fac_cursor_fail_at(c, s->at, "'%s' is no %s of the pattern", s->like,
                                  s->op ? s->op->name : "op");
    return FAC_OK;
}

static fac_status check_replacement(fac_cursor *c, const fac_rule *r) {
    bool any = false;
    if (!r->with.n) return fac_cursor_fail_at(c, r->at, "rule %s has no replacement", r->name);
    for (size_t k = 0; k < r->with.n; k++) {
        const fac_statement *s = &r->with.at[k];
        FAC_TRY(check_line(c, r, k));
        if (!s->nresults)
            return fac_cursor_fail_at(c, s->at, "a line of a replacement is NAME = op(...)");
        for (int i = 0; i < s->nresults; i++) {
            const int slot = fac_rule_value(r, s->results[i]);
            if (slot >= 0 && r->maker[slot] < 0)
                return fac_cursor_fail_at(
                    c, s->at,
                    "'%s' is an operand of the pattern: only what it makes can be replaced",
                    s->results[i]);
            any |= slot >= 0;
        }
    }
    return any ? FAC_OK
               : fac_cursor_fail_at(c, r->with.at[0].at, "no line makes a value of the pattern");
}

/* ---- rules ---- */

static fac_status expect(fac_cursor *c, const char *word) {
    fac_cursor_next_line(c);
    if (!fac_cursor_keyword(c, word)) return fac_cursor_fail(c, "'%s' is missing", word);
    return fac_cursor_line_end(c) ? FAC_OK
                                  : fac_cursor_fail(c, "this was not expected after '%s'", word);
}

/* Lines up to one of two words, which stays. */
static bool section(fac_cursor *c, const char *end, const char *other) {
    fac_cursor_next_line(c);
    fac_cursor look = *c;
    return c->s < c->end && !fac_cursor_keyword(&look, end) &&
           !(other && fac_cursor_keyword(&look, other));
}

static fac_status read_rule(fac_cursor *c, fac_rule *r) {
    fac_error *err = c->err;
    fac_cursor look;
    r->at = fac_cursor_place(c);
    if (!fac_cursor_keyword(c, "rule")) return fac_cursor_fail(c, "'rule' is missing");
    FAC_TRY(fac_cursor_name(c, &r->name));
    if (!r->name) return fac_cursor_fail(c, "the name of the rule is missing");
    if (!fac_cursor_line_end(c)) return fac_cursor_fail(c, "this was not expected after the name");
    FAC_TRY(expect(c, "match"));
    while (section(c, "where", "replace")) FAC_TRY(pattern_line(c, r));
    FAC_TRY(check_pattern(c, r));
    look = *c;
    if (fac_cursor_keyword(&look, "where")) {
        FAC_TRY(expect(c, "where"));
        while (section(c, "replace", NULL)) FAC_TRY(fac_conditions_read(c, r));
    }
    FAC_TRY(expect(c, "replace"));
    while (section(c, "end", NULL)) FAC_TRY(fac_statement_read(c, false, &r->with));
    FAC_TRY(check_replacement(c, r));
    FAC_TRY(expect(c, "end"));
    c->err = err;
    return FAC_OK;
}

static void free_rule(fac_rule *r) {
    fac_release(r->match.at);
    fac_release(r->with.at);
    fac_release(r->where);
    fac_release(r);
}

static fac_status read_all(fac_cursor *c, fac_rules *to) {
    for (fac_cursor_next_line(c); c->s < c->end; fac_cursor_next_line(c)) {
        fac_rule *r = fac_alloc(1, sizeof *r);
        if (!r || !fac_reserve(&to->at, &to->room, to->n + 1, sizeof *to->at)) {
            fac_release(r);
            return fac_raise(c->err, FAC_E_NOMEM, "%s: no memory for a rule", c->file);
        }
        r->file = c->file;
        to->at[to->n++] = r;
        FAC_TRY(read_rule(c, r));
        for (size_t k = 0; k + 1 < to->n; k++)
            if (!strcmp(to->at[k]->name, r->name))
                return fac_cursor_fail_at(c, r->at, "there are two rules %s", r->name);
    }
    return to->n ? FAC_OK : fac_cursor_fail(c, "there is no rule");
}

fac_status fac_rules_read(const char *text, const char *name, fac_rules **rules, fac_error *err) {
    fac_rules *to = *rules ? *rules : fac_alloc(1, sizeof *to);
    if (!to) return fac_raise_memory(err, "rules");
    const size_t before = to->n;
    const char *file = fac_arena_text(&to->arena, name ? name : "rules");
    fac_cursor c = { .s = text,
                     .end = text + strlen(text),
                     .bol = text,
                     .line = 1,
                     .file = file,
                     .arena = &to->arena,
                     .err = err };
    const fac_status status = file ? read_all(&c, to) : fac_raise_memory(err, "rules");
    if (!status) {
        *rules = to;
        return FAC_OK;
    }
    while (to->n > before) free_rule(to->at[--to->n]);
    if (!*rules) fac_rules_free(to);
    return status;
}

void fac_rules_free(fac_rules *r) {
    if (!r) return;
    for (size_t k = 0; k < r->n; k++) free_rule(r->at[k]);
    fac_release(r->at);
    fac_arena_free(&r->arena);
    fac_release(r);
}

int fac_rules_count(const fac_rules *r) { return r ? (int)r->n : 0; }
const char *fac_rules_name(const fac_rules *r, int i) {
    return i >= 0 && i < fac_rules_count(r) ? r->at[i]->name : NULL;
}
