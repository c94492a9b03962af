/* The tree of modules of `facula summary`: built from the paths of the layers, printed with the
 * columns that were asked for. */
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "summary.h"

const char *digits_text(double x, char *to, size_t size) {
    char plain[48];
    snprintf(plain, sizeof plain, "%.0f", x);
    const size_t n = strlen(plain);
    size_t at = 0;
    for (size_t i = 0; i < n && at + 2 < size; i++) {
        if (i && plain[0] != '-' && (n - i) % 3 == 0) to[at++] = ',';
        to[at++] = plain[i];
    }
    to[at] = 0;
    return to;
}

/* ---- building ---- */

/* FNV-1a: Fowler, Noll, Vo. */
static size_t hash_of(const char *name, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)name[i]) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}

/* The slot of the child of this name, or where it belongs. */
static branch **slot_of(const branch *b, const char *name, size_t n) {
    size_t i = hash_of(name, n) & (b->room - 1);
    while (b->slots[i] && (strlen(b->slots[i]->name) != n || memcmp(b->slots[i]->name, name, n)))
        i = (i + 1) & (b->room - 1);
    return &b->slots[i];
}

/* Room for one more named child: a module may have as many as the model has nodes. */
static bool reserve(branch *b) {
    if (2 * (b->children + 1) <= b->room) return true;
    branch **old = b->slots;
    const size_t room = b->room;
    b->slots = calloc(room ? 2 * room : 8, sizeof *b->slots);
    if (!b->slots) return b->slots = old, false;
    b->room = room ? 2 * room : 8;
    for (size_t i = 0; i < room; i++)
        if (old[i]) *slot_of(b, old[i]->name, strlen(old[i]->name)) = old[i];
    free(old);
    return true;
}

static branch *child_of(branch *b, const char *name, size_t n, bool call) {
    branch **slot = NULL;
    if (!call && !reserve(b)) return NULL;
    if (!call && *(slot = slot_of(b, name, n))) return *slot;
    branch *c = calloc(1, sizeof *c);
    if (c) c->name = strndup(name, n);
    if (!c || !c->name) {
        free(c);
        return NULL;
    }
    if (slot) *slot = c, b->children++;
    if (b->last)
        b->last->next = c;
    else
        b->child = c;
    return b->last = c;
}

static void add(branch *b, const fac_layer *l, double counted) {
    b->params += l->params;
    b->buffers += l->buffers;
    b->shared += l->shared;
    b->macs += l->macs;
    b->counted += counted;
    b->activations += l->written;
    b->weights += l->weights;
    b->read += l->read;
}

/* The class of the module whose path is the first bytes of `path`; false: no memory. */
static bool find_class(const fac_graph *g, branch *b, const char *path, size_t bytes) {
    char *own = strndup(path, bytes);
    if (!own) return false;
    b->class = fac_graph_class(g, own);
    free(own);
    return true;
}

/* Calls stand below their module under the name of their kind. */
static bool insert(const fac_graph *g, branch *root, const fac_layer *l, double counted) {
    branch *b = root;
    add(b, l, counted);
    for (const char *s = l->module; *s;) {
        const size_t n = strcspn(s, ".");
        if (!(b = child_of(b, s, n, false))) return false;
        add(b, l, counted);
        if (!b->final && !find_class(g, b, l->module, (size_t)(s + n - l->module))) return false;
        b->final = l;
        s += n + (s[n] != 0);
    }
    if (!l->is_module) {
        if (!(b = child_of(b, l->kind, strlen(l->kind), true))) return false;
        add(b, l, counted);
    }
    if (!b->layer) b->layer = l;
    b->calls++;
    return true;
}

/* A module that does nothing has a row as others have. */
static bool insert_idle(branch *root, const fac_idle *idle) {
    branch *b = root;
    for (const char *s = idle->module; *s;) {
        const size_t n = strcspn(s, ".");
        if (!(b = child_of(b, s, n, false))) return false;
        s += n + (s[n] != 0);
    }
    b->idle = idle;
    b->class = idle->kind;
    return true;
}

branch *tree_new(const fac_analysis *a, fac_convention convention) {
    branch *root = calloc(1, sizeof *root);
    bool good = root != NULL;
    const fac_idle *idle = fac_analysis_idle(a, 0);
    int nidle = 0;
    const int layers = fac_analysis_totals(a).layers;
    for (int i = 0; good && i <= layers; i++) {
        for (; good && idle && idle->before <= i; idle = fac_analysis_idle(a, ++nidle))
            good = insert_idle(root, idle);
        if (good && i < layers)
            good = insert(fac_analysis_graph(a), root, fac_analysis_layer(a, i),
                          fac_layer_count(a, i, convention));
    }
    if (!good) tree_free(root);
    return good ? root : NULL;
}

void tree_free(branch *b) {
    while (b) {
        branch *next = b->next;
        tree_free(b->child);
        free(b->name);
        free(b->slots);
        free(b);
        b = next;
    }
}

/* ---- columns ---- */

typedef struct scene {
    const fac_analysis *a;
    const fac_graph *g;
    const branch *root;
    const int *columns;
    int n, width;
    long depth;
    bool pretty;
} scene;

static const char *dash_or_digits(double x, char *to, size_t size) {
    return x > 0 ? digits_text(x, to, size) : "--";
}

static const char *kind_cell(const scene *s, const branch *b, char *to, size_t size) {
    (void)s;
    if (!b->layer || b->class) return b->class ? b->class : "";
    if (b->calls == 1) return b->layer->kind;
    snprintf(to, size, "%s x%d", b->layer->kind, b->calls);
    return to;
}
static const char *in_cell(const scene *s, const branch *b, char *to, size_t size) {
    return b->layer && b->layer->in.dtype != FAC_NONE
               ? dims_text(s->g, &b->layer->in.dims, to, size)
               : "";
}
static const char *out_cell(const scene *s, const branch *b, char *to, size_t size) {
    const fac_layer *l = b->layer ? b->layer : b->final;
    if (!l && b->idle) return type_dims(s->g, &b->idle->out, to, size);
    return l ? type_dims(s->g, &l->out, to, size) : "";
}
static const char *kernel_cell(const scene *s, const branch *b, char *to, size_t size) {
    return b->layer && b->layer->kernel.n ? dims_text(s->g, &b->layer->kernel, to, size) : "";
}
static const char *params_cell(const scene *s, const branch *b, char *to, size_t size) {
    (void)s;
    if (b->params <= 0 && b->shared > 0) return "(shared)";
    return dash_or_digits(b->params, to, size);
}
static const char *trainable_cell(const scene *s, const branch *b, char *to, size_t size) {
    (void)s, (void)to, (void)size;
    return b->params <= 0 ? "--" : "yes";
}
static const char *macs_cell(const scene *s, const branch *b, char *to, size_t size) {
    (void)s;
    return dash_or_digits(b->counted, to, size);
}
static const char *share_cell(const scene *s, const branch *b, char *to, size_t size) {
    if (b->counted <= 0 || s->root->counted <= 0) return "--";
    snprintf(to, size, "%.2f %%", 100 * b->counted / s->root->counted);
    return to;
}
static const char *memory_cell(const scene *s, const branch *b, char *to, size_t size) {
    (void)s;
    return b->idle && !b->final ? "--" : bytes_text(b->activations, to, size);
}
static const char *weights_cell(const scene *s, const branch *b, char *to, size_t size) {
    (void)s;
    return b->weights > 0 ? bytes_text(b->weights, to, size) : "--";
}
static const char *intensity_cell(const scene *s, const branch *b, char *to, size_t size) {
    (void)s;
    const double bytes = b->read + b->activations + b->weights;
    if (b->macs <= 0 || bytes <= 0) return "--";
    snprintf(to, size, "%.1f", b->macs / bytes);
    return to;
}

static const char *bits_cell(const scene *s, const branch *b, char *to, size_t size) {
    (void)s;
    return b->layer && !b->child ? bits_text(b->layer, to, size) : "--";
}

static const struct column {
    const char *name, *head;
    const char *(*cell)(const scene *s, const branch *b, char *to, size_t size);
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
    for (const char *s = names; *s;) {
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
static int name_width(const branch *b, long level, long depth) {
    int widest = (int)strlen(b->name ? b->name : "") + 3 * (int)level;
    for (const branch *c = b->child; c && level < depth; c = c->next) {
        const int w = name_width(c, level + 1, depth);
        if (w > widest) widest = w;
    }
    return widest;
}

static int cell_width(const scene *s, const branch *b, long level, const struct column *c) {
    char text[256];
    int widest = level ? (int)strlen(c->cell(s, b, text, sizeof text)) : (int)strlen(c->head);
    for (const branch *k = b->child; k && level < s->depth; k = k->next) {
        const int w = cell_width(s, k, level + 1, c);
        if (w > widest) widest = w;
    }
    return widest;
}

static void cells(const scene *s, const branch *b, const int *widths) {
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

static void row_start(const scene *s, const branch *b, long level, const bool *open) {
    static const char *const lines[2][4] = { { "|  ", "   ", "|- ", "`- " },
                                             { "│  ", "   ", "├─ ", "└─ " } };
    for (long k = 0; k < level; k++) printf("%s", lines[s->pretty][!open[k]]);
    printf("%s%s%*s", lines[s->pretty][2 + !b->next], b->name,
           s->width - 3 * (int)(level + 1) - (int)strlen(b->name), "");
}

static void rows(const scene *s, const branch *b, long level, bool *open, const int *widths) {
    for (const branch *c = b->child; c; c = c->next) {
        row_start(s, c, level, open);
        cells(s, c, widths);
        open[level] = c->next != NULL;
        if (level + 1 < s->depth) rows(s, c, level + 1, open, widths);
    }
}

void tree_print(const fac_analysis *a, const branch *root, long depth, const int *columns, int n) {
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
