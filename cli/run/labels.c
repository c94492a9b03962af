#include "labels.h"
#include <stdlib.h>
#include <string.h>
#include "sidecar.h"

static int of_metadata(const char *text, labels *out) {
    fac_error err = { 0 };
    out->from = "metadata";
    fac_labels_parse(text, strlen(text), FAC_NOTE_LABELS, &out->names, &err);
    return err.status ? fail(&err) : EXIT_OK;
}

static int of_sidecar(const model *m, labels *out) {
    sidecar s = { 0 };
    const int code = sidecar_read(m->path, SIDECAR_LABELS, &s);
    if (code || !s.labels) return code;
    out->names = s.labels;
    out->from = "sidecar";
    snprintf(out->file, sizeof out->file, "%s", s.file);
    return EXIT_OK;
}

int labels_find(const model *m, const char *path, labels *out) {
    fac_error err = { 0 };
    const char *note = fac_graph_note(m->graph, FAC_NOTE_LABELS);
    *out = (labels){ 0 };
    if (!path && m->zoo) return EXIT_OK; /* ImageNet's, or none */
    if (!path && note) return of_metadata(note, out);
    if (!path) return of_sidecar(m, out);
    if (fac_labels_load(path, &out->names, &err)) return fail(&err);
    out->from = "option";
    snprintf(out->file, sizeof out->file, "%s", path);
    return EXIT_OK;
}

int labels_fit(labels *l, int64_t classes) {
    const int n = fac_labels_count(l->names);
    if (!n || n == classes) return EXIT_OK;
    const bool asked = !strcmp(l->from, "option");
    if (asked)
        return fail_text("%s: %d name%s, the model gives %lld scores", l->file, n,
                         n == 1 ? "" : "s", (long long)classes);
    fprintf(stderr, "facula: %s: %d names do not fit %lld scores and are left out\n",
            *l->file ? l->file : FAC_NOTE_LABELS, n, (long long)classes);
    labels_free(l);
    return EXIT_OK;
}

void labels_free(labels *l) {
    fac_labels_free(l->names);
    *l = (labels){ 0 };
}

const char *labels_from(const labels *l, int64_t classes) {
    if (l->names) return l->from;
    return classes == 1000 || classes == 1001 ? "imagenet" : "none";
}

const char *label_of(const fac_class *c, char *to, size_t size) {
    if (c->name) return c->name;
    snprintf(to, size, "class %lld", (long long)c->index);
    return to;
}

/* One a line; NULL: no memory. */
static char *join(int n, const char *const *names) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) return NULL;
    for (int i = 0; i < n; i++) {
        for (const char *c = names[i]; *c; c++) out_char(*c == '\n' || *c == '\r' ? ' ' : *c, f);
        putc('\n', f);
    }
    const bool lost = ferror(f);
    if (fclose(f) || lost) {
        free(text);
        return NULL;
    }
    return text;
}

int labels_note(fac_graph *g, int classes, const char *const *names) {
    fac_error err = { 0 };
    char *text = names ? join(classes, names) : NULL;
    if (names && !text) return fail_text("out of memory");
    const bool long_one = text && strlen(text) > FAC_LABELS_METADATA;
    if (long_one)
        fprintf(stderr, "facula: %d names of classes are too long for metadata and are left out\n",
                classes);
    fac_graph_set_note(g, FAC_NOTE_LABELS, long_one ? NULL : text);
    free(text);
    return fac_graph_check(g, &err) ? fail(&err) : EXIT_OK;
}
