/* facula edit: steps that read other files - tensors, models, rules. */
#include <stdlib.h>
#include <string.h>
#include "edit.h"

/* A model of any kind that the command reads.  What is wrong with it has been said then. */
static fac_status load(const char *path, model *m, fac_error *err) {
    return model_load(path, NULL, NULL, 0, m) ? edit_fail(err, EDIT_SAID) : FAC_OK;
}

fac_status edit_tensor(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                       fac_error *err) {
    const char *equals = strchr(text, '=');
    fac_tensor *t = NULL;
    if (!equals || equals == text) return edit_fail(err, "\"%s\" is not NAME=FILE", text);
    char *name = strndup(text, (size_t)(equals - text));
    fac_status s = name ? tensor_load(equals + 1, &t, err) : edit_fail(err, "out of memory");
    if (!s) s = fac_graph_tensor_set(g, name, t, out, err);
    if (!s) snprintf(c->what, sizeof c->what, "%s comes from %s", name, equals + 1);
    fac_tensor_free(t);
    free(name);
    return s;
}

/* ---- weights ---- */

typedef struct tensors {
    const char **names;
    fac_tensor **at;
    int n;
} tensors;

static fac_status restore(edit_context *c, const tensors *t, const fac_graph *g, fac_graph **out,
                          fac_error *err) {
    int n = 0;
    const fac_status s = fac_graph_restored(g, t->n, t->names, t->at, &n, out, err);
    if (s) return s;
    edit_count(c, "changed", n);
    edit_count(c, "found", t->n);
    snprintf(c->what, sizeof c->what, "%d of %d %s place", n, t->n,
             t->n == 1 ? "tensor has found its" : "tensors have found their");
    return s;
}

static bool is_model(const char *path) {
    return !strncmp(path, "zoo:", 4) || ends_with(path, ".onnx") || ends_with(path, ".txt") ||
           ends_with(path, ".fac");
}

/* What the model would take from the file must be there as a tensor. */
static fac_status all_there(const char *path, const fac_weights *w, const fac_graph *g,
                            fac_error *err) {
    for (int k = 0; k < fac_weights_skipped(w); k++) {
        const fac_skipped s = fac_weights_skipped_at(w, k);
        const fac_value *v = fac_graph_find((fac_graph *)(uintptr_t)g, s.name);
        if (v && fac_value_tensor(v))
            return edit_fail(err, "%s: %s cannot be read: %s", path, s.name, s.why);
    }
    return FAC_OK;
}

fac_status edit_restore(edit_context *c, const char *path, const fac_graph *g, fac_graph **out,
                        fac_error *err) {
    model m = { 0 };
    fac_weights *w = NULL;
    fac_status s = is_model(path) ? load(path, &m, err) : fac_weights_load(path, &w, err);
    if (!s && w) s = all_there(path, w, g, err);
    tensors t = { 0 };
    if (!s) t.n = m.graph ? fac_graph_params(m.graph) : fac_weights_count(w);
    t.names = malloc(((size_t)t.n + 1) * sizeof *t.names);
    t.at = malloc(((size_t)t.n + 1) * sizeof *t.at);
    if (!s && (!t.names || !t.at)) s = edit_fail(err, "out of memory");
    for (int k = 0; k < t.n && !s; k++) {
        t.names[k] = m.graph ? fac_value_name(fac_graph_param(m.graph, k)) : fac_weights_name(w, k);
        t.at[k] =
            m.graph ? fac_value_tensor(fac_graph_param(m.graph, k)) : fac_weights_tensor(w, k);
    }
    if (!s) s = restore(c, &t, g, out, err);
    free(t.names);
    free(t.at);
    fac_weights_free(w);
    model_free(&m);
    return s;
}

/* ---- models ---- */

static void tell_ports(edit_context *c, const fac_graph *g) {
    const int in = fac_graph_inputs(g), out = fac_graph_outputs(g);
    snprintf(c->what, sizeof c->what, "%d input%s, %d output%s", in, plural(in), out, plural(out));
}

/* "OTHER.onnx,OUT=IN,...": which output feeds which input. */
fac_status edit_append(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                       fac_error *err) {
    int n = 0;
    char **all = edit_split(text, ',', &n);
    const char **from = malloc(((size_t)n + 1) * sizeof *from),
               **to = malloc(((size_t)n + 1) * sizeof *to);
    model m = { 0 };
    fac_status s = all && from && to ? FAC_OK : edit_fail(err, "out of memory");
    for (int k = 1; k < n && !s; k++) {
        char *equals = strchr(all[k], '=');
        if (!equals)
            s = edit_fail(err, "\"%s\" is not OUTPUT=INPUT", all[k]);
        else {
            *equals = 0;
            from[k - 1] = all[k];
            to[k - 1] = equals + 1;
        }
    }
    if (!s) s = load(all[0], &m, err);
    if (!s) s = fac_graph_appended(g, m.graph, n - 1, from, to, out, err);
    if (!s) tell_ports(c, *out);
    model_free(&m);
    free(all);
    free(from);
    free(to);
    return s;
}

/* "a,b->c": two lists. */
typedef struct ends {
    char **in, **out;
    int nin, nout;
} ends;

static void free_ends(ends *e) {
    free(e->in);
    free(e->out);
}

static fac_status read_ends(const char *text, size_t length, ends *e, fac_error *err) {
    char *copy = strndup(text, length), *arrow = copy ? strstr(copy, "->") : NULL;
    fac_status s = !copy   ? edit_fail(err, "out of memory")
                   : arrow ? FAC_OK
                           : edit_fail(err, "\"%s\" is not FROM,...->TO,...", copy);
    if (!s) {
        *arrow = 0;
        e->in = edit_split(copy, ',', &e->nin);
        e->out = edit_split(arrow + 2, ',', &e->nout);
        if (!*copy) e->nin = 0;
        if (!e->in || !e->out) s = edit_fail(err, "out of memory");
    }
    free(copy);
    return s;
}

fac_status edit_part(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                     fac_error *err) {
    ends e = { 0 };
    fac_status s = read_ends(text, strlen(text), &e, err);
    if (!s)
        s = fac_graph_extract(g, e.nin, (const char *const *)e.in, e.nout,
                              (const char *const *)e.out, out, err);
    if (!s) tell_ports(c, *out);
    free_ends(&e);
    return s;
}

fac_status edit_other_part(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                           fac_error *err) {
    const char *equals = strchr(text, '=');
    ends e = { 0 };
    model m = { 0 };
    if (!equals) return edit_fail(err, "\"%s\" is not FROM,...->TO,...=MODEL", text);
    fac_status s = read_ends(text, (size_t)(equals - text), &e, err);
    if (!s) s = load(equals + 1, &m, err);
    if (!s)
        s = fac_graph_part_replaced(g, e.nin, (const char *const *)e.in, e.nout,
                                    (const char *const *)e.out, m.graph, out, err);
    if (!s) snprintf(c->what, sizeof c->what, "the part is now that of %s", equals + 1);
    model_free(&m);
    free_ends(&e);
    return s;
}

/* ---- rules ---- */

enum { LONGEST = 16 << 20 };

static fac_status report_rules(edit_context *c, const fac_rules *r, const fac_rule_report *report) {
    int total = 0;
    size_t at = 0;
    cJSON *rows = c->json ? cJSON_AddArrayToObject(c->json, "rules") : NULL;
    for (int k = 0; k < fac_rules_count(r); k++) {
        total += report[k].matches;
        if (at < sizeof c->what)
            at += (size_t)snprintf(c->what + at, sizeof c->what - at, "%s%s %d", k ? ", " : "",
                                   fac_rules_name(r, k), report[k].matches);
        if (report[k].skipped && at < sizeof c->what)
            at += (size_t)snprintf(c->what + at, sizeof c->what - at, " (%d do not fit: %s)",
                                   report[k].skipped, report[k].why);
        if (!rows) continue;
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "rule", fac_rules_name(r, k));
        cJSON_AddNumberToObject(one, "matches", report[k].matches);
        cJSON_AddNumberToObject(one, "skipped", report[k].skipped);
        if (report[k].skipped) cJSON_AddStringToObject(one, "why", report[k].why);
        cJSON_AddItemToArray(rows, one);
    }
    edit_count(c, "changed", total);
    return FAC_OK;
}

fac_status edit_rules(edit_context *c, const char *path, const fac_graph *g, fac_graph **out,
                      fac_error *err) {
    char *text;
    fac_rules *r = NULL;
    fac_status s = fac_read_text(path, LONGEST, FAC_READ_FILE_OR_PIPE, &text, NULL, err);
    if (s) return s;
    s = fac_rules_read(text, path, &r, err);
    fac_rule_report *report = calloc((size_t)fac_rules_count(r) + 1, sizeof *report);
    if (!s && !report) s = edit_fail(err, "out of memory");
    if (!s) s = fac_graph_rewritten(g, r, 0, report, out, err);
    if (!s) s = report_rules(c, r, report);
    free(report);
    fac_rules_free(r);
    fac_read_free(text);
    return s;
}
