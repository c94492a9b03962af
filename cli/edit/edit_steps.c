/* facula edit: one step each, in the order of the command line. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "edit.h"

typedef fac_status work(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                        fac_error *err);

fac_status edit_fail(fac_error *err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return err->status = FAC_E_ARGUMENT;
}

char **edit_split(const char *text, char at, int *n) {
    size_t pieces = 1, length = strlen(text);
    for (const char *s = text; *s; s++) pieces += *s == at;
    char **all = malloc((pieces + 1) * sizeof *all + length + 1),
         *copy = all ? (char *)(all + pieces + 1) : NULL;
    if (!all) return NULL;
    memcpy(copy, text, length + 1);
    *n = 0;
    for (char *s = copy; s;) {
        char *end = strchr(s, at);
        if (end) *end++ = 0;
        all[(*n)++] = s;
        s = end;
    }
    all[*n] = NULL;
    return all;
}

/* "NAME=REST" or another character between, the first or the last one; *name is the caller's to
 * free. */
static fac_status cut(const char *text, const char *at, const char *form, char **name,
                      const char **rest, fac_error *err) {
    *name = NULL;
    *rest = "";
    if (!at || at == text) return edit_fail(err, "\"%s\" is no %s", text, form);
    *name = strndup(text, (size_t)(at - text));
    *rest = at + 1;
    return *name ? FAC_OK : edit_fail(err, "out of memory");
}

#define SAY(c, ...) snprintf((c)->what, sizeof(c)->what, __VA_ARGS__)

static fac_status changed(edit_context *c, fac_status status, int n, const char *what,
                          const char *one) {
    if (status) return status;
    edit_count(c, "changed", n);
    SAY(c, "%d %s%s %s", n, one, n == 1 ? "" : "s", what);
    return FAC_OK;
}

/* ---- nodes ---- */

static fac_status remove_step(edit_context *c, const char *text, const fac_graph *g,
                              fac_graph **out, fac_error *err) {
    int n = 0;
    const fac_status s = fac_graph_removed(g, text, &n, out, err);
    return changed(c, s, n, "removed", "node");
}

static fac_status insert_step(edit_context *c, const char *text, const fac_graph *g,
                              fac_graph **out, fac_error *err) {
    char *what = NULL;
    const char *where;
    int n = 0;
    fac_status s = cut(text, strrchr(text, '@'), "OP@VALUE", &what, &where, err);
    if (!s) s = fac_graph_inserted(g, where, what, &n, out, err);
    free(what);
    return changed(c, s, n, "now after it", "reader");
}

static fac_status replace_step(edit_context *c, const char *text, const fac_graph *g,
                               fac_graph **out, fac_error *err) {
    char *node = NULL;
    const char *with;
    int n = 0;
    fac_status s = cut(text, strchr(text, '='), "NODE=OPS", &node, &with, err);
    if (!s) s = fac_graph_replaced(g, node, with, &n, out, err);
    free(node);
    return changed(c, s, n, "replaced", "node");
}

/* How many steps --set follow each other here: they are one change, whose types are checked when
 * all are set. */
static int sets_ahead(const edit_context *c) {
    const int most = (int)(sizeof c->set_counts / sizeof *c->set_counts);
    int n = 0;
    while (n < c->nrest && n < most && !strcmp(c->rest[n].name, "--set")) n++;
    return n;
}

static fac_status set_all(edit_context *c, const fac_graph *g, fac_graph **out, fac_error *err) {
    const int n = sets_ahead(c);
    fac_graph_setting *all = calloc((size_t)n, sizeof *all);
    fac_status s = all ? FAC_OK : edit_fail(err, "out of memory");
    for (int k = 0; k < n && !s; k++) {
        char *node = NULL;
        const char *text = c->rest[k].text;
        s = cut(text, strchr(text, ' '), "NODE ATTRIBUTE=VALUE...", &node, &all[k].attrs, err);
        all[k].node = node;
        if (!s && !all[k].attrs[strspn(all[k].attrs, " ")])
            s = edit_fail(err, "\"%s\" names no attribute: NODE ATTRIBUTE=VALUE...", text);
    }
    if (!s) s = fac_graph_set_all(g, n, all, out, err);
    for (int k = 0; all && k < n; k++) {
        c->set_counts[k] = all[k].n;
        free((char *)(uintptr_t)all[k].node);
    }
    c->nset = c->set_before = n;
    free(all);
    return s;
}

/* The first of several does them all; the others say what became of them. */
static fac_status set_step(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                           fac_error *err) {
    (void)text;
    fac_status s = FAC_OK;
    if (!c->set_before) s = set_all(c, g, out, err);
    const int n = s ? 0 : c->set_counts[c->nset - c->set_before--];
    return changed(c, s, n, "set", "node");
}

/* ---- names, ports, sizes ---- */

static fac_status rename_step(edit_context *c, const char *text, const fac_graph *g,
                              fac_graph **out, fac_error *err) {
    char *old = NULL;
    const char *name;
    fac_status s = cut(text, strchr(text, '='), "OLD=NEW", &old, &name, err);
    if (!s) s = fac_graph_rename(g, old, name, out, err);
    if (!s) SAY(c, "%s is now %s", old, name);
    free(old);
    return s;
}

static fac_status add_output_step(edit_context *c, const char *text, const fac_graph *g,
                                  fac_graph **out, fac_error *err) {
    char *value = NULL;
    const char *equals = strchr(text, '='), *as = NULL;
    fac_status s = equals ? cut(text, equals, "VALUE=NAME", &value, &as, err) : FAC_OK;
    if (!s) s = fac_graph_output_added(g, value ? value : text, as, out, err);
    if (!s) SAY(c, "%d output%s", fac_graph_outputs(*out), plural(fac_graph_outputs(*out)));
    free(value);
    return s;
}

static fac_status remove_output_step(edit_context *c, const char *text, const fac_graph *g,
                                     fac_graph **out, fac_error *err) {
    const fac_status s = fac_graph_output_removed(g, text, out, err);
    if (!s) SAY(c, "%d output%s", fac_graph_outputs(*out), fac_graph_outputs(*out) == 1 ? "" : "s");
    return s;
}

static fac_status input_shape_step(edit_context *c, const char *text, const fac_graph *g,
                                   fac_graph **out, fac_error *err) {
    char *name = NULL;
    const char *dims;
    fac_status s = cut(text, strrchr(text, '='), "INPUT=DIMS", &name, &dims, err);
    if (!s) s = fac_graph_shaped(g, name, dims, out, err);
    if (!s) SAY(c, "%s is now %s", name, dims);
    free(name);
    return s;
}

static fac_status bind_step(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                            fac_error *err) {
    char *name = NULL, *end;
    const char *size;
    fac_status s = cut(text, strrchr(text, '='), "NAME=SIZE", &name, &size, err);
    const long long x = s ? 0 : strtoll(size, &end, 10);
    if (!s && (end == size || *end || x < 0)) s = edit_fail(err, "\"%s\" is not a size", size);
    if (!s) s = fac_graph_bound(g, name, x, out, err);
    if (!s) SAY(c, "%s is now %lld", name, x);
    free(name);
    return s;
}

static fac_status batch_step(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                             fac_error *err) {
    char *end;
    const long long x = strtoll(text, &end, 10);
    if (end == text || *end || x < 1) return edit_fail(err, "\"%s\" is not a batch size", text);
    fac_dims first = { 0 };
    if (fac_graph_inputs(g)) first = fac_value_type(fac_graph_input(g, 0)).dims;
    if (first.n && first.d[0] >= 0 && first.d[0] != x)
        return edit_fail(err,
                         "the batch is fixed, the first input begins with %lld (--input-shape "
                         "gives it other sizes)",
                         (long long)first.d[0]);
    SAY(c, "open sizes: %lld for the batch, 1 for others", x);
    return fac_graph_sized(g, x, out, err);
}

/* ---- numbers ---- */

static fac_status dtype_step(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                             fac_error *err) {
    fac_float_opts opts = { .to = fac_dtype_find(text),
                            .nkeep = c->keep.n,
                            .keep = c->keep.at,
                            .keep_ports = c->keep_ports };
    fac_float_report r;
    if (!opts.to)
        return edit_fail(err, "there is no type \"%s\"; there are f32, f16, bf16, f64", text);
    const fac_status s = fac_graph_floats_but(g, &opts, &r, out, err);
    if (s) return s;
    edit_count(c, "tensors", r.tensors);
    edit_count(c, "kept_nodes", r.kept);
    edit_count(c, "casts", r.casts);
    edit_count(c, "overflowed", (double)r.overflowed);
    edit_count(c, "vanished", (double)r.vanished);
    SAY(c,
        "%d tensors are %s, %d nodes kept their types, %d casts; %lld numbers became the largest "
        "of %s, %lld its smallest",
        r.tensors, text, r.kept, r.casts, (long long)r.overflowed, text, (long long)r.vanished);
    return FAC_OK;
}

static fac_status strip_step(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                             fac_error *err) {
    char *end;
    int n = 0;
    const long long least = strtoll(text, &end, 10);
    if (end == text || *end || least < 1)
        return edit_fail(err, "\"%s\" is not a number of elements", text);
    const fac_status s = fac_graph_stripped(g, least, &n, out, err);
    return changed(c, s, n, "stripped", "tensor");
}

static fac_status bake_step(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                            fac_error *err) {
    int n = 0;
    (void)text;
    const fac_status s = fac_graph_baked(g, &n, out, err);
    return changed(c, s, n, "computed into parameters", "node");
}

static fac_status simplify_step(edit_context *c, const char *text, const fac_graph *g,
                                fac_graph **out, fac_error *err) {
    (void)c, (void)text;
    return fac_graph_simplified(g, out, err);
}

static fac_status reorder_step(edit_context *c, const char *text, const fac_graph *g,
                               fac_graph **out, fac_error *err) {
    (void)c, (void)text;
    return fac_graph_reordered(g, 0, out, err);
}

/* ---- notes ---- */

static fac_status note(edit_context *c, const char *key, const char *text, const fac_graph *g,
                       fac_graph **out, fac_error *err) {
    const bool there = fac_graph_note(g, key) != NULL;
    fac_graph *made = fac_graph_clone(g);
    if (!made) return edit_fail(err, "out of memory");
    fac_graph_set_note(made, key, text);
    const fac_status s = fac_graph_check(made, err);
    if (s)
        fac_graph_free(made);
    else
        *out = made;
    const char *what = there ? "changed" : "added";
    if (!text) what = there ? "deleted" : "is not there";
    if (!s) SAY(c, "%s %s", key, what);
    return s;
}

static fac_status meta_step(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                            fac_error *err) {
    char *key = NULL;
    const char *value;
    fac_status s = cut(text, strchr(text, '='), "KEY=TEXT", &key, &value, err);
    if (!s) s = note(c, key, value, g, out, err);
    free(key);
    return s;
}

/* The name of a preset is written out in full, so that the file means the same to every version. */
static fac_status set_preset_step(edit_context *c, const char *text, const fac_graph *g,
                                  fac_graph **out, fac_error *err) {
    char spec[FAC_PREPROCESS_TEXT];
    fac_preprocess how;
    fac_status s = fac_preprocess_parse(text, &how, err);
    if (s) return s;
    if (fac_preprocess_print(&how, spec, sizeof spec) < 0) return edit_fail(err, "out of memory");
    s = note(c, FAC_NOTE_PRESET, spec, g, out, err);
    if (!s) SAY(c, "%.380s", spec);
    return s;
}

static fac_status set_labels_step(edit_context *c, const char *path, const fac_graph *g,
                                  fac_graph **out, fac_error *err) {
    fac_labels *l = NULL;
    fac_status s = fac_labels_load(path, &l, err);
    if (s) return s;
    const size_t bytes = strlen(fac_labels_text(l));
    if (bytes > FAC_LABELS_METADATA)
        s = edit_fail(err, "%zu bytes of names are too many for metadata, which takes %d", bytes,
                      FAC_LABELS_METADATA);
    if (!s) s = note(c, FAC_NOTE_LABELS, fac_labels_text(l), g, out, err);
    edit_count(c, "labels", fac_labels_count(l));
    if (!s) SAY(c, "%d names of classes", fac_labels_count(l));
    fac_labels_free(l);
    return s;
}

static fac_status delete_meta_step(edit_context *c, const char *text, const fac_graph *g,
                                   fac_graph **out, fac_error *err) {
    if (!fac_graph_note(g, text)) return edit_fail(err, "there is no metadata \"%s\"", text);
    return note(c, text, NULL, g, out, err);
}
static fac_status producer_step(edit_context *c, const char *text, const fac_graph *g,
                                fac_graph **out, fac_error *err) {
    return note(c, FAC_NOTE_PRODUCER, *text ? text : NULL, g, out, err);
}
static fac_status doc_step(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                           fac_error *err) {
    return note(c, FAC_NOTE_DOC, *text ? text : NULL, g, out, err);
}
static fac_status name_step(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                            fac_error *err) {
    return note(c, FAC_NOTE_NAME, *text ? text : NULL, g, out, err);
}

/* ---- all ---- */

static const struct {
    const char *name;
    work *work;
} table[] = { { "--remove", remove_step },
              { "--insert", insert_step },
              { "--replace", replace_step },
              { "--set", set_step },
              { "--rename", rename_step },
              { "--add-output", add_output_step },
              { "--remove-output", remove_output_step },
              { "--input-shape", input_shape_step },
              { "--bind", bind_step },
              { "--batch", batch_step },
              { "--dtype", dtype_step },
              { "--strip", strip_step },
              { "--bake", bake_step },
              { "--simplify", simplify_step },
              { "--reorder", reorder_step },
              { "--set-preset", set_preset_step },
              { "--set-labels", set_labels_step },
              { "--meta", meta_step },
              { "--delete-meta", delete_meta_step },
              { "--producer", producer_step },
              { "--doc", doc_step },
              { "--name", name_step },
              { "--tensor", edit_tensor },
              { "--restore", edit_restore },
              { "--append", edit_append },
              { "--rules", edit_rules },
              { "--part", edit_part },
              { "--replace-part", edit_other_part } };

int edit_step(edit_context *c, const ordered *s, fac_graph **g) {
    size_t k = 0;
    fac_error err = { 0 };
    fac_graph *next = NULL;
    while (strcmp(table[k].name, s->name)) k++;
    c->what[0] = 0;
    const fac_status status = table[k].work(c, s->text ? s->text : "", *g, &next, &err);
    if (status && !*err.text) return EXIT_FAILED; /* EDIT_SAID */
    if (status)
        return fail_text("%s%s%s: %s", s->name, text_if(s->text, " "), text_or(s->text, ""),
                         err.text);
    if (!next) return EXIT_OK; /* done by an earlier step */
    fac_graph_free(*g);
    *g = next;
    return EXIT_OK;
}
