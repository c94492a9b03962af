/* Modules of files that PyTorch's exporter made from torch.export.  The metadata of a node hold two
 * lists, as Python writes them,
 *
 *   pkg.torch.onnx.name_scopes      ['', 'conv1', 'conv1.bn', 'batch_norm']
 *   pkg.torch.onnx.class_hierarchy  ['torchvision.models.googlenet.GoogLeNet', '....BasicConv2d',
 * '....BatchNorm2d', 'aten....']
 *
 * whose last words are the call itself.  Older files have `namespace` alone: ": ...GoogLeNet/conv1:
 * ...BasicConv2d/...". */
#include "onnx/module.h"
#include <stdint.h>
#include <stdio.h>
#include "base/error.h"

enum { LEVELS = 48 };
typedef struct piece {
    const char *s;
    size_t n;
} piece;
typedef struct way {
    piece path[LEVELS], class[LEVELS];
    int n;
} way; /* from the model to the call itself */

static const char *metadata(const fac_proto_node *n, const char *key) {
    for (size_t k = 0; k < n->metadata.n; k++)
        if (!strcmp(n->metadata.at[k].key, key)) return n->metadata.at[k].value;
    return NULL;
}

/* ---- the lists ---- */

/* The words in quotes; how many. */
static int words(const char *s, piece *to) {
    int n = 0;
    while (s && *s && n < LEVELS) {
        s += strcspn(s, "'\"");
        if (!*s) break;
        const char *end = strchr(s + 1, *s);
        if (!end) break;
        to[n++] = (piece){ s + 1, (size_t)(end - s - 1) };
        s = end + 1;
    }
    return n;
}

/* "path: class/path: class" */
static int pairs(const char *s, way *w) {
    int n = 0;
    while (s && *s && n < LEVELS) {
        const size_t whole = strcspn(s, "/");
        const char *colon = memchr(s, ':', whole);
        if (!colon) break;
        const char *class = colon + 1 + (colon[1] == ' ');
        w->path[n] = (piece){ s, (size_t)(colon - s) };
        w->class[n++] = (piece){ class, (size_t)(s + whole - class) };
        s += whole + (s[whole] != 0);
    }
    return n;
}

static bool find_way(const fac_proto_node *n, way *w) {
    const char *scopes = metadata(n, "pkg.torch.onnx.name_scopes");
    const char *classes = metadata(n, "pkg.torch.onnx.class_hierarchy");
    w->n = words(scopes, w->path);
    if (w->n && words(classes, w->class) == w->n) return true;
    w->n = pairs(metadata(n, "namespace"), w);
    return w->n > 0;
}

/* "torch.nn.modules.conv.Conv2d" -> "Conv2d" */
static piece last_word(piece p) {
    for (size_t k = p.n; k; k--)
        if (p.s[k - 1] == '.') return (piece){ p.s + k, p.n - k };
    return p;
}

/* ---- a convolution that took in its batch norm ----
 * The rewriter leaves it the metadata of the norm; its weight says where it stands. */

static piece parent(piece p) { return (piece){ p.s, p.n - last_word(p).n }; }
static bool same(piece x, piece y) { return x.n == y.n && !memcmp(x.s, y.s, x.n); }

static bool moved_to(const fac_proto_node *n, piece at, piece *to) {
    static const char end[] = ".weight";
    const size_t tail = sizeof end - 1;
    for (size_t k = 1; k < n->in.n; k++) {
        const size_t length = strlen(n->in.at[k]);
        if (length <= tail || strcmp(n->in.at[k] + length - tail, end)) continue;
        *to = (piece){ n->in.at[k], length - tail };
        return same(parent(*to), parent(at)) && !same(*to, at);
    }
    return false;
}

/* ---- names ---- */

static bool put_class(fac_body *b, piece path, piece class) {
    fac_arena *arena = &b->im->arena;
    const char *at = fac_arena_print(arena, "%.*s", (int)path.n, path.s);
    const char *name = fac_arena_print(arena, "%.*s", (int)class.n, class.s);
    if (!at || !name) return false;
    fac_graph_set_class(b->im->g, at, name);
    return !b->im->g->error.status;
}

/* The label itself for the first of its name, with _1 for the second. */
static const char *numbered(fac_body *b, char *label) {
    fac_import *im = b->im;
    const uintptr_t count = (uintptr_t)fac_table_get(&im->labels, label);
    if (!fac_table_put(&im->labels, label, (void *)(count + 1))) return NULL;
    return count ? fac_arena_print(&b->g->arena, "%s_%llu", label, (unsigned long long)count)
                 : label;
}

static const char *no_memory(fac_body *b) {
    fac_fail_graph(b->g, FAC_E_NOMEM, "no memory for the module of a node");
    return NULL;
}

const char *fac_import_module(fac_body *b, const fac_proto_node *n) {
    way w;
    piece moved;
    if (b->function || b->around || !n->metadata.n || !find_way(n, &w)) return NULL;
    piece at = w.n > 1 ? w.path[w.n - 2] : (piece){ "", 0 };
    const bool other = moved_to(n, at, &moved);
    for (int k = 0; k + 1 < w.n - other; k++)
        if (!put_class(b, w.path[k], last_word(w.class[k]))) return no_memory(b);
    if (other) at = moved;
    char *label =
        fac_arena_print(&b->g->arena, "%.*s%s%s", (int)at.n, at.s, at.n ? "." : "", n->type);
    const char *name = label ? numbered(b, label) : NULL;
    return name ? name : no_memory(b);
}
