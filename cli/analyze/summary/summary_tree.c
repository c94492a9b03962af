/* The tree of modules of `facula summary`, with the columns that were asked for. */
#include <stdlib.h>
#include <string.h>
#include "analyze/bits.h"
#include "analyze/summary/summary.h"

/* ---- columns ---- */

typedef struct scene {
    const fac_analysis *a;
    const fac_graph *g;
    const fac_branch *root;
    const int *columns;
    int n, width;
    long depth;
    bool pretty;
} scene;

static const char *dash_or_digits(double x, char *to, size_t size) {
    return x > 0 ? digits_text(x, to, size) : "--";
}

static const char *kind_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    (void)s;
    if (!b->layer || b->of_class) return b->of_class ? b->of_class : "";
    if (b->calls == 1) return b->layer->kind;
    snprintf(to, size, "%s x%d", b->layer->kind, b->calls);
    return to;
}
static const char *in_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    return b->layer && b->layer->in.dtype != FAC_NONE
               ? dims_text(s->g, &b->layer->in.dims, to, size)
               : "";
}
static const char *out_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    const fac_layer *l = b->layer ? b->layer : b->final;
    if (!l && b->idle) return type_dims(s->g, &b->idle->out, to, size);
    return l ? type_dims(s->g, &l->out, to, size) : "";
}
static const char *kernel_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    return b->layer && b->layer->kernel.n ? dims_text(s->g, &b->layer->kernel, to, size) : "";
}
static const char *params_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    (void)s;
    if (b->params <= 0 && b->shared > 0) return "(shared)";
    return dash_or_digits(b->params, to, size);
}
static const char *trainable_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    (void)s, (void)to, (void)size;
    return b->params <= 0 ? "--" : "yes";
}
static const char *macs_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    (void)s;
    return dash_or_digits(b->counted, to, size);
}
static const char *share_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    if (b->counted <= 0 || s->root->counted <= 0) return "--";
    snprintf(to, size, "%.2f %%", 100 * b->counted / s->root->counted);
    return to;
}
static const char *memory_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    (void)s;
    return b->idle && !b->final ? "--" : bytes_text(b->activations, to, size);
}
static const char *weights_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    (void)s;
    return b->weights > 0 ? bytes_text(b->weights, to, size) : "--";
}
static const char *intensity_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    (void)s;
    const double bytes = b->read + b->activations + b->weights;
    if (b->macs <= 0 || bytes <= 0) return "--";
    snprintf(to, size, "%.1f", b->macs / bytes);
    return to;
}

static const char *bits_cell(const scene *s, const fac_branch *b, char *to, size_t size) {
    (void)s;
    return b->layer && !b->child ? bits_text(b->layer, to, size) : "--";
}

static const struct column {
    const char *name, *head;
    const char *(*cell)(const scene *s, const fac_branch *b, char *to, size_t size);
    bool left;
} columns_all[] = {
    { "kind", "kind", kind_cell, true },
    { "in", "input", in_cell, false },
    { "out", "output", out_cell, false },
    { "kernel", "weight", kernel_cell, false },
    { "params", "parameters", params_cell, false },
    { "trainable", "trainable", trainable_cell, false },
    { "macs", "multiply-adds", macs_cell, false },
    { "share", "share", share_cell, false },
    { "memory", "results", memory_cell, false },
    { "weights", "weights", weights_cell, false },
    { "bits", "bits", bits_cell, true },
    { "intensity", "MAC/byte", intensity_cell, false },
};
enum { COLUMNS = sizeof columns_all / sizeof *columns_all };

bool tree_columns(const char *names, int *to, int *n) {
    *n = 0;
    for (const char *s = names; *s || s == names;) {
        const size_t length = strcspn(s, ",");
        int k = 0;
        while (k < COLUMNS &&
               (strlen(columns_all[k].name) != length || memcmp(columns_all[k].name, s, length)))
            k++;
        if (k == COLUMNS || *n == COLUMNS) {
            usage_error(verb_find("summary"),
                        "--columns: there is no \"%.*s\"; there are kind, in, out, kernel, params, "
                        "trainable, macs, share, "
                        "memory, weights, bits, intensity",
                        (int)length, s);
            return false;
        }
        to[(*n)++] = k;
        s += length + (s[length] != 0);
    }
    return true;
}

/* ---- printing ---- */

/* What a row's name takes on the terminal: two columns a level. */
static int name_width(const fac_branch *b, long level, long depth) {
    int widest = (int)strlen(b->name ? b->name : "") + 3 * (int)level;
    for (const fac_branch *c = b->child; c && level < depth; c = c->next) {
        const int w = name_width(c, level + 1, depth);
        if (w > widest) widest = w;
    }
    return widest;
}

static int cell_width(const scene *s, const fac_branch *b, long level, const struct column *c) {
    char text[256];
    int widest = level ? (int)strlen(c->cell(s, b, text, sizeof text)) : (int)strlen(c->head);
    for (const fac_branch *k = b->child; k && level < s->depth; k = k->next) {
        const int w = cell_width(s, k, level + 1, c);
        if (w > widest) widest = w;
    }
    return widest;
}

static void cells(const scene *s, const fac_branch *b, const int *widths) {
    char text[256];
    for (int k = 0; k < s->n; k++) {
        const struct column *c = &columns_all[s->columns[k]];
        const char *cell = b ? c->cell(s, b, text, sizeof text) : c->head;
        if (k == s->n - 1 && c->left)
            printf("  %s", cell);
        else
            printf(c->left ? "  %-*s" : "  %*s", widths[k], cell);
    }
    putchar('\n');
}

/* open: by level, whether the module at that level has more to come; levels beyond are not drawn.
 */
enum { LEVELS = 32 };

static void row_start(const scene *s, const fac_branch *b, long level, const bool *open) {
    static const char *const lines[2][4] = { { "|  ", "   ", "|- ", "`- " },
                                             { "│  ", "   ", "├─ ", "└─ " } };
    for (long k = 0; k < level; k++) printf("%s", lines[s->pretty][!open[k]]);
    printf("%s%s%*s", lines[s->pretty][2 + !b->next], b->name,
           s->width - 3 * (int)(level + 1) - (int)strlen(b->name), "");
}

static void rows(const scene *s, const fac_branch *b, long level, bool *open, const int *widths) {
    for (const fac_branch *c = b->child; c; c = c->next) {
        row_start(s, c, level, open);
        cells(s, c, widths);
        open[level] = c->next != NULL;
        if (level + 1 < s->depth) rows(s, c, level + 1, open, widths);
    }
}

void tree_print(const fac_analysis *a, const fac_branch *root, long depth, const int *columns,
                int n) {
    scene s = { a, fac_analysis_graph(a),           root,     columns, n,
                0, depth < LEVELS ? depth : LEVELS, unicode() };
    int widths[COLUMNS];
    bool open[LEVELS];
    s.width = name_width(root, 0, s.depth);
    if (s.width < 5) s.width = 5;
    for (int k = 0; k < n; k++) widths[k] = cell_width(&s, root, 0, &columns_all[columns[k]]);
    printf("%-*s", s.width, "layer");
    cells(&s, NULL, widths);
    rows(&s, root, 0, open, widths);
}
