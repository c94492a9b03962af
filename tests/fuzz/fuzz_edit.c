/* libFuzzer: a graph's text, rules, and lines of edits, with lines of "---" between them.  Each
 * edit makes a graph that is sound, prints and reads back, or says why not and leaves everything as
 * it was; so does tiling what has come out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "base/clamp.h"
#include "facula/edit.h"
#include "facula/tile.h"
#include "fuzz.h"
#include "graph/graph_internal.h"

enum { MOST_NODES = 300, MOST_ELEMENTS = 1 << 14, MOST_EDITS = 24 };

static fac_graph *read_bytes(const char *s, size_t n) {
    fac_graph *g = NULL;
    FILE *f = n ? fmemopen((void *)(uintptr_t)s, n, "r") : NULL;
    if (!f) return NULL;
    fac_graph_read(f, &g, NULL);
    fclose(f);
    return g;
}

/* Edits compute: what is large is not for this. */
static bool small(const fac_graph *g) {
    int64_t elements = 0, n;
    for (size_t k = 0; k < g->nparams + g->nconsts && elements <= MOST_ELEMENTS; k++) {
        const fac_value *v = k < g->nparams ? g->params[k] : g->consts[k - g->nparams];
        n = fac_dims_count(&v->type.dims);
        elements += fac_clamp(n, 0, MOST_ELEMENTS + 1);
    }
    for (const fac_node *m = g->first; m; m = m->next)
        for (int k = 0; k < m->nout; k++) {
            n = fac_dims_count(&m->out[k]->type.dims);
            if (n > MOST_ELEMENTS) return false;
        }
    return g->nodes <= MOST_NODES && elements <= MOST_ELEMENTS;
}

static void insist(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* The order is topological, every use is listed, the text reads back. */
static void check(const fac_graph *g) {
    uint64_t order = 0;
    char *text = NULL;
    size_t n = 0;
    insist(!fac_graph_check(g, NULL), "an edit gave a graph with an error");
    for (const fac_node *m = g->first; m; m = m->next) {
        insist(m->order > order, "the order is none");
        order = m->order;
        for (int i = 0; i < m->nin; i++) {
            const fac_value *v = m->in[i];
            if (!v) continue;
            insist(v->graph == g && v->leaf != FAC_POISON, "a node reads what is not there");
            insist(!v->node || v->node->order < m->order, "a node reads what comes later");
        }
    }
    for (size_t k = 0; k < g->noutputs; k++)
        insist(g->outputs[k].value->leaf != FAC_POISON, "an output is not there");
    FILE *f = open_memstream(&text, &n);
    if (!f) return;
    const bool printed = !fac_graph_write(g, f, NULL);
    fclose(f);
    fac_graph_free(printed ? read_bytes(text, n) : NULL);
    free(text);
}

/* "word a b": the edit's name, its first operand, and the rest of the line. */
static fac_status edit(const fac_graph *g, const fac_rules *rules, char *line, fac_graph **out,
                       fac_error *err) {
    char *a = strchr(line, ' '), *b;
    if (a) *a++ = 0;
    b = a ? strchr(a, ' ') : NULL;
    if (b) *b++ = 0;
    if (!a) a = line + strlen(line);
    if (!b) b = a + strlen(a);
    int n;
    if (!strcmp(line, "remove")) return fac_graph_removed(g, a, &n, out, err);
    if (!strcmp(line, "insert")) return fac_graph_inserted(g, a, b, &n, out, err);
    if (!strcmp(line, "replace")) return fac_graph_replaced(g, a, b, &n, out, err);
    if (!strcmp(line, "set")) return fac_graph_set(g, a, b, &n, out, err);
    if (!strcmp(line, "shape")) return fac_graph_shaped(g, a, b, out, err);
    if (!strcmp(line, "bind")) return fac_graph_bound(g, a, strtol(b, NULL, 10), out, err);
    if (!strcmp(line, "output")) return fac_graph_output_added(g, a, *b ? b : NULL, out, err);
    if (!strcmp(line, "drop")) return fac_graph_output_removed(g, a, out, err);
    if (!strcmp(line, "rename")) return fac_graph_rename(g, a, b, out, err);
    if (!strcmp(line, "part"))
        return fac_graph_extract(g, *a != '-', (const char *[]){ a }, 1, (const char *[]){ b }, out,
                                 err);
    if (!strcmp(line, "append"))
        return fac_graph_appended(g, g, *b != 0, (const char *[]){ a }, (const char *[]){ b }, out,
                                  err);
    if (!strcmp(line, "replace_part") && g->ninputs == 1 && g->noutputs == 1)
        return fac_graph_part_replaced(g, 1, (const char *[]){ a }, 1, (const char *[]){ b }, g,
                                       out, err);
    if (!strcmp(line, "strip")) return fac_graph_stripped(g, strtol(a, NULL, 10), &n, out, err);
    if (!strcmp(line, "bake")) return fac_graph_baked(g, &n, out, err);
    if (!strcmp(line, "simplify")) return fac_graph_simplified(g, out, err);
    if (!strcmp(line, "batch")) return fac_graph_sized(g, strtol(a, NULL, 10), out, err);
    if (!strcmp(line, "floats"))
        return fac_graph_floats_but(g,
                                    &(fac_float_opts){ .to = fac_dtype_find(a),
                                                       .nkeep = *b != 0,
                                                       .keep = (const char *[]){ b } },
                                    NULL, out, err);
    if (!strcmp(line, "rules") && rules) return fac_graph_rewritten(g, rules, 200, NULL, out, err);
    if (!strcmp(line, "tile")) {
        const long m = strtol(a, NULL, 10), k = strtol(b, NULL, 10);
        return fac_graph_tile(g,
                              &(fac_tile_opts){ .m = m,
                                                .n = m,
                                                .k = k,
                                                .pad = k & 1,
                                                .sum = (fac_tile_sum)(m % 3 < 0 ? 0 : m % 3) },
                              out, NULL, err);
    }
    return fac_graph_set(g, "op:*", line, &n, out, err);
}

static void edits(fac_graph *g, const fac_rules *rules, char *lines) {
    for (int k = 0; *lines && k < MOST_EDITS && g; k++) {
        char *end = strchr(lines, '\n');
        fac_graph *out = NULL;
        fac_error err = { 0 };
        if (end) *end = 0;
        const fac_status s = edit(g, rules, lines, &out, &err);
        insist(!s == (out != NULL), "an edit gave a graph and an error, or neither");
        insist(!s || err.text[0], "an error says nothing");
        check(g);
        if (out) {
            check(out);
            fac_graph_free(g);
            g = out;
            if (!small(g)) break;
        }
        if (!end) break;
        lines = end + 1;
    }
    fac_graph_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *text = malloc(bytes + 1);
    fac_rules *rules = NULL;
    fac_error err = { 0 };
    if (!text) return 0;
    memcpy(text, data, bytes);
    text[bytes] = 0;
    char *middle = strstr(text, "---\n"), *last = middle ? strstr(middle + 4, "---\n") : NULL;
    if (last) *last = 0;
    fac_graph *g = read_bytes(text, middle ? (size_t)(middle - text) : bytes);
    if (middle && fac_rules_read(middle + 4, "rules", &rules, &err))
        insist(!strncmp(err.text, "rules:", 6), "an error without a place");
    if (g && small(g))
        edits(g, rules, last ? last + 4 : text + bytes);
    else
        fac_graph_free(g);
    fac_rules_free(rules);
    free(text);
    return 0;
}
