/* Single nodes changed: removed, put between others, replaced, given other attributes.  The graph
 * is rebuilt, so that the types of all that follows are inferred anew; what then cannot be is an
 * error that names the node. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"
#include "edit/statement.h"
#include "graph/build.h"

typedef struct change change;
struct change {
    const fac_graph *from;
    unsigned char *marked; /* by id of a node of from */
    fac_statements text;
    fac_arena arena;
    const char *what;     /* the text as it was given, for errors  */
    const fac_node *node; /* the one that is replaced              */
    fac_value *const *in; /* its inputs in the new graph           */
    fac_value *last;      /* what _ is before the first statement  */
    fac_graph *to;
    const fac_value *after; /* insert: the value of from ...         */
    fac_value *between;     /* ... and what its readers see          */
    int done;
    fac_error *err;
};

typedef bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                   fac_value *out[]);

/* What is asked for by name is done, whatever is known of types. */
static fac_graph *seen_by(visit *v, change *c, const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .self = c, .visit = v, .blind = true }, NULL);
}

static void close_change(change *c) {
    fac_release(c->marked);
    fac_release(c->text.at);
    fac_arena_free(&c->arena);
}

/* The error of a callback becomes that of the graph, which ends the rebuilding. */
static bool failed(change *c, fac_graph *to, fac_value *out[], int n) {
    if (!to->error.status) to->error = *c->err;
    for (int k = 0; k < n; k++) out[k] = to->poison;
    return true;
}

/* ---- removing ---- */

/* The first input that is data of a run, else the first one. */
static int passed_on(const fac_node *n) {
    for (int i = 0; i < n->nports; i++)
        if (n->in[i] && n->in[i]->time == FAC_RUN) return i;
    for (int i = 0; i < n->nports; i++)
        if (n->in[i]) return i;
    return -1;
}

static fac_status check_removal(const fac_graph *g, const fac_node *n, fac_error *err) {
    char label[256], from[128], to[128];
    const int i = passed_on(n);
    fac_node_label(n, label, sizeof label);
    if (i < 0)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "removing \"%s\" (%s): it has no input to take its place", label,
                         n->op->name);
    for (int k = 1; k < n->nout; k++)
        if (n->out[k]->uses || n->out[k]->roots)
            return fac_raise(err, FAC_E_ARGUMENT, "removing \"%s\" (%s): its output %d is used too",
                             label, n->op->name, k);
    if (fac_edit_same(g, &n->in[i]->type, &n->out[0]->type) && !n->body[0]) return FAC_OK;
    return fac_raise(
        err, FAC_E_SHAPE,
        "removing \"%s\" (%s): its input is %s and its output %s: one cannot take the other's "
        "place",
        label, n->op->name, fac_edit_type(g, &n->in[i]->type, from, sizeof from),
        fac_edit_type(g, &n->out[0]->type, to, sizeof to));
}

static bool skip_node(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                      fac_value *out[]) {
    change *c = self;
    if (!c->marked[n->id]) return false;
    for (int k = 1; k < n->nout; k++) out[k] = to->poison; /* nothing reads it */
    out[0] = in[passed_on(n)];
    return true;
}

fac_status fac_graph_removed(const fac_graph *g, const char *node, int *n, fac_graph **out,
                             fac_error *err) {
    change c = { .from = g, .err = err };
    FAC_TRY(fac_edit_nodes(g, node, &c.marked, &c.done, err));
    fac_status status = FAC_OK;
    for (const fac_node *m = g->first; m && !status; m = m->next)
        if (c.marked[m->id]) status = check_removal(g, m, err);
    if (!status) status = fac_edit_give(seen_by(skip_node, &c, g), out, err);
    if (!status && n) *n = c.done;
    close_change(&c);
    return status;
}

/* ---- statements with the names of a graph ---- */

/* x0, x1, ... */
static int input_number(const char *name) {
    int k = 0;
    if (*name++ != 'x' || !*name) return -1;
    for (; *name; name++) {
        if (*name < '0' || *name > '9' || k > 9999) return -1;
        k = 10 * k + *name - '0';
    }
    return k;
}

static fac_value *named_value(void *self, const char *name) {
    const change *c = self;
    const int k = input_number(name);
    if (c->node && k >= 0 && k < c->node->nin) return c->in[k];
    if (!strcmp(name, "_") || (!c->node && !strcmp(name, "x0"))) return c->last;
    return fac_graph_find(c->to, name);
}

static bool no_variable(void *self, const char *name, const fac_attr **attr, const void **at) {
    (void)self, (void)name, (void)attr, (void)at;
    return false;
}

static const fac_node *named_node(void *self, const char *name) {
    const change *c = self;
    return strcmp(name, "node") ? NULL : c->node;
}

static fac_status read_text(change *c, const char *text) {
    fac_cursor cursor = { .s = text,
                          .end = text + strlen(text),
                          .bol = text,
                          .line = 1,
                          .file = text,
                          .arena = &c->arena,
                          .err = c->err };
    c->what = text;
    return fac_statements_read(&cursor, &c->text);
}

static fac_status build_text(change *c, fac_graph *to, fac_table *defined) {
    const fac_names names = { c, named_value, no_variable, named_node };
    c->to = to;
    return fac_statements_build(&c->text, c->what, to, &names, defined, c->err);
}

/* ---- inserting ---- */

static fac_value *inserted(change *c, fac_graph *to, fac_value *v) {
    fac_table defined = { 0 };
    if (c->between) return c->between;
    c->last = v;
    c->between = build_text(c, to, &defined) ? to->poison : fac_table_get(&defined, "_");
    fac_table_free(&defined);
    if (c->between->leaf == FAC_POISON && !to->error.status) to->error = *c->err;
    return c->between;
}

/* Readers of the value that are marked read what is put between. */
static bool put_between(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                        fac_value *out[]) {
    change *c = self;
    bool reads = false;
    for (int i = 0; i < n->nin; i++) reads |= n->in[i] == c->after;
    if (!reads || !c->marked[n->id]) return false;
    fac_value **args = fac_arena_alloc(&to->arena, (size_t)n->nin, sizeof *args);
    if (!args) return fac_raise_memory(c->err, "changes of a graph"), failed(c, to, out, n->nout);
    for (int i = 0; i < n->nin; i++)
        args[i] = n->in[i] == c->after ? inserted(c, to, in[i]) : in[i];
    c->done++;
    fac_node_copy(to, n, args, out);
    return true;
}

/* Outputs of the graph are readers too. */
static void outputs_between(change *c, const char *reader, fac_graph *to, fac_value *const *map) {
    for (size_t k = 0; k < to->noutputs && !to->error.status; k++) {
        fac_graph_out *o = &to->outputs[k];
        if (c->from->outputs[k].value != c->after || (reader && strcmp(reader, o->name))) continue;
        fac_value *v = inserted(c, to, map[c->after->id]);
        o->value->roots--;
        v->roots++;
        o->value = v;
        c->done++;
    }
}

/* "a" or "a->b": the value, and who of its readers is meant (NULL: all). */
static fac_status find_edge(change *c, const char *where, const char **reader) {
    const char *arrow = strstr(where, "->");
    const size_t n = arrow ? (size_t)(arrow - where) : strlen(where);
    char *name = fac_arena_alloc(&c->arena, n + 1, 1);
    int count;
    if (!name) return fac_raise_memory(c->err, "changes of a graph");
    memcpy(name, where, n);
    c->after = fac_edit_value(c->from, name);
    *reader = arrow ? arrow + 2 : NULL;
    if (!c->after) return fac_raise(c->err, FAC_E_ARGUMENT, "there is no value \"%s\"", name);
    bool output = false;
    for (size_t k = 0; *reader && k < c->from->noutputs; k++)
        output |=
            c->from->outputs[k].value == c->after && !strcmp(c->from->outputs[k].name, *reader);
    if (*reader && !output) return fac_edit_nodes(c->from, *reader, &c->marked, &count, c->err);
    c->marked = fac_alloc((size_t)c->from->ids + 1, 1);
    if (!c->marked) return fac_raise_memory(c->err, "changes of a graph");
    if (!*reader) memset(c->marked, 1, (size_t)c->from->ids + 1);
    return FAC_OK;
}

static fac_status insert(change *c, const char *where, fac_graph **made) {
    const char *reader;
    fac_value **map = NULL;
    FAC_TRY(find_edge(c, where, &reader));
    const fac_rebuild how = { .self = c, .visit = put_between, .blind = true, .keep_dead = true };
    fac_graph *to = fac_graph_rebuild(c->from, &how, &map);
    if (!to) return fac_raise_memory(c->err, "changes of a graph");
    if (!to->error.status) outputs_between(c, reader, to, map);
    if (to->error.status || c->done) return fac_edit_give(to, made, c->err);
    fac_graph_free(to);
    return fac_raise(c->err, FAC_E_ARGUMENT, "nothing between: \"%s\" has no such reader", where);
}

fac_status fac_graph_inserted(const fac_graph *g, const char *where, const char *text, int *n,
                              fac_graph **out, fac_error *err) {
    fac_error own = { 0 };
    fac_graph *made = NULL;
    change c = { .from = g, .err = &own };
    fac_status status = read_text(&c, text);
    if (!status) status = insert(&c, where, &made);
    if (!status && n) *n = c.done;
    if (!status)
        *out = made;
    else if (err)
        *err = own;
    close_change(&c);
    return status;
}

/* ---- replacing ---- */

static bool replace_node(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                         fac_value *out[]) {
    change *c = self;
    fac_table defined = { 0 };
    char name[24];
    if (!c->marked[n->id]) return false;
    c->node = n;
    c->in = in;
    const int first = passed_on(n);
    const uint32_t before = to->ids;
    c->last = first < 0 ? NULL : in[first];
    fac_status status = build_text(c, to, &defined);
    for (int k = 0; k < n->nout && !status; k++) {
        snprintf(name, sizeof name, "y%d", k);
        out[k] = fac_table_get(&defined, name);
        if (!out[k] && !k) out[k] = fac_table_get(&defined, "_");
        if (!out[k] && !n->out[k]->uses && !n->out[k]->roots) out[k] = to->poison;
        if (!out[k])
            status = fac_raise(c->err, FAC_E_ARGUMENT,
                               "%s: output %d of %s is used: name what takes its place %s", c->what,
                               k, n->op->name, name);
    }
    fac_table_free(&defined);
    if (!status && n->name && out[0]->node && out[0]->node->id >= before)
        out[0]->node->name = fac_arena_text(&to->arena, n->name);
    return status ? failed(c, to, out, n->nout) : true;
}

fac_status fac_graph_replaced(const fac_graph *g, const char *node, const char *text, int *n,
                              fac_graph **out, fac_error *err) {
    fac_error own = { 0 };
    change c = { .from = g, .err = &own };
    fac_status status = read_text(&c, text);
    if (!status) status = fac_edit_nodes(g, node, &c.marked, &c.done, &own);
    if (!status) status = fac_edit_give(seen_by(replace_node, &c, g), out, &own);
    if (!status && n) *n = c.done;
    if (status && err) *err = own;
    close_change(&c);
    return status;
}

/* ---- attributes ---- */

typedef struct settings {
    int n;
    fac_graph_setting *of;
    unsigned char **marked; /* of each: by id of a node */
    fac_error *err;
} settings;

static bool is_set(const settings *s, const fac_node *n) {
    for (int k = 0; k < s->n; k++)
        if (s->marked[k][n->id]) return true;
    return false;
}

static fac_status parse_all(const settings *s, const fac_node *n, fac_arena *arena, void *attrs,
                            fac_error *err) {
    for (int k = 0; k < s->n; k++)
        if (s->marked[k][n->id]) FAC_TRY(fac_attrs_parse(n->op, s->of[k].attrs, arena, attrs, err));
    return FAC_OK;
}

static bool set_attrs(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                      fac_value *out[]) {
    const settings *s = self;
    char label[256];
    fac_error err = { 0 };
    if (!is_set(s, n)) return false;
    fac_node other = *n;
    char *attrs = fac_arena_alloc(&to->arena, 1, n->op->attrs_size + 1);
    other.attrs = attrs;
    fac_status status = attrs ? FAC_OK : fac_raise_memory(&err, "changes of a graph");
    if (!status && n->op->attrs_size) memcpy(attrs, n->attrs, n->op->attrs_size);
    if (!status) status = parse_all(s, n, &to->arena, attrs, &err);
    if (!status) {
        fac_node_copy(to, &other, in, out);
        return true;
    }
    fac_raise(s->err, status, "\"%s\": %s", fac_node_label(n, label, sizeof label), err.text);
    return failed(&(change){ .err = s->err }, to, out, n->nout);
}

fac_status fac_graph_set_all(const fac_graph *g, int count, fac_graph_setting *all, fac_graph **out,
                             fac_error *err) {
    fac_error own = { 0 };
    settings s = { .n = count, .of = all, .err = &own };
    s.marked = fac_alloc((size_t)count + 1, sizeof *s.marked);
    fac_status status = s.marked ? FAC_OK : fac_raise_memory(&own, "changes of a graph");
    for (int k = 0; k < count && !status; k++)
        status = fac_edit_nodes(g, all[k].node, &s.marked[k], &all[k].n, &own);
    const fac_rebuild how = { .self = &s, .visit = set_attrs, .blind = true };
    if (!status) status = fac_edit_give(fac_graph_rebuild(g, &how, NULL), out, &own);
    for (int k = 0; s.marked && k < count; k++) fac_release(s.marked[k]);
    fac_release(s.marked);
    if (status && err) *err = own;
    return status;
}

fac_status fac_graph_set(const fac_graph *g, const char *node, const char *attrs, int *n,
                         fac_graph **out, fac_error *err) {
    fac_graph_setting one = { node, attrs, 0 };
    FAC_TRY(fac_graph_set_all(g, 1, &one, out, err));
    if (n) *n = one.n;
    return FAC_OK;
}
