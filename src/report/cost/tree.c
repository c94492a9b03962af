/* The tree of modules, from the paths of the layers. */
#include <string.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "report/cost/report.h"

/* A module while the tree is built.  Its children by name are a hash table of `room` places. */
typedef struct branch {
    fac_branch b; /* first: a fac_branch of ours is a branch */
    struct branch *last;
    struct branch **slots;
    size_t room, children;
} branch;

struct fac_tree {
    fac_arena memory;
    branch root;
};

/* FNV-1a: Fowler, Noll, Vo. */
static size_t hash_of(const char *name, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)name[i]) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}

/* The slot of the child of this name, or where it belongs. */
static branch **slot_of(const branch *p, const char *name, size_t n) {
    size_t i = hash_of(name, n) & (p->room - 1);
    while (p->slots[i] &&
           (strlen(p->slots[i]->b.name) != n || memcmp(p->slots[i]->b.name, name, n)))
        i = (i + 1) & (p->room - 1);
    return &p->slots[i];
}

/* Room for one more named child: a module may have as many as the model has nodes. */
static bool reserve(fac_tree *t, branch *p) {
    if (2 * (p->children + 1) <= p->room) return true;
    branch **old = p->slots;
    const size_t before = p->room, room = before ? 2 * before : 8;
    branch **slots = fac_arena_alloc(&t->memory, room, sizeof *slots);
    if (!slots) return false;
    p->slots = slots;
    p->room = room;
    for (size_t i = 0; i < before; i++)
        if (old[i]) *slot_of(p, old[i]->b.name, strlen(old[i]->b.name)) = old[i];
    return true;
}

static branch *child_of(fac_tree *t, branch *p, const char *name, size_t n, bool call) {
    branch **slot = NULL;
    if (!call && !reserve(t, p)) return NULL;
    if (!call) slot = slot_of(p, name, n);
    if (slot && *slot) return *slot;
    branch *c = fac_arena_alloc(&t->memory, 1, sizeof *c);
    if (!c) return NULL;
    c->b.name = fac_arena_print(&t->memory, "%.*s", (int)n, name);
    if (!c->b.name) return NULL;
    if (slot) {
        *slot = c;
        p->children++;
    }
    if (p->last)
        p->last->b.next = &c->b;
    else
        p->b.child = &c->b;
    p->last = c;
    return c;
}

static void add(fac_branch *b, const fac_layer *l, double counted) {
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
static bool find_class(fac_tree *t, const fac_graph *g, branch *b, const char *path, size_t n) {
    const char *own = fac_arena_print(&t->memory, "%.*s", (int)n, path);
    if (own) b->b.of_class = fac_graph_class(g, own);
    return own;
}

/* Calls stand below their module under the name of their kind. */
static bool insert(fac_tree *t, const fac_graph *g, const fac_layer *l, double counted) {
    branch *p = &t->root;
    add(&p->b, l, counted);
    for (const char *s = l->module; *s;) {
        const size_t n = strcspn(s, ".");
        p = child_of(t, p, s, n, false);
        if (!p) return false;
        add(&p->b, l, counted);
        if (!p->b.final && !find_class(t, g, p, l->module, (size_t)(s + n - l->module)))
            return false;
        p->b.final = l;
        s += n + (s[n] != 0);
    }
    if (!l->is_module) {
        p = child_of(t, p, l->kind, strlen(l->kind), true);
        if (!p) return false;
        add(&p->b, l, counted);
    }
    if (!p->b.layer) p->b.layer = l;
    p->b.calls++;
    return true;
}

/* A module that does nothing has a row as others have. */
static bool insert_idle(fac_tree *t, const fac_idle *idle) {
    branch *p = &t->root;
    for (const char *s = idle->module; *s;) {
        const size_t n = strcspn(s, ".");
        p = child_of(t, p, s, n, false);
        if (!p) return false;
        s += n + (s[n] != 0);
    }
    p->b.idle = idle;
    p->b.of_class = idle->kind;
    return true;
}

static bool grow(fac_tree *t, const fac_analysis *a, fac_convention convention) {
    int k = 0;
    for (int i = 0; i <= a->totals.layers; i++) {
        for (; k < a->nidle && a->idle[k].before <= i; k++)
            if (!insert_idle(t, &a->idle[k])) return false;
        if (i < a->totals.layers &&
            !insert(t, a->graph, &a->layers[i], fac_layer_count(a, i, convention)))
            return false;
    }
    return true;
}

fac_status fac_analysis_tree(const fac_analysis *a, fac_convention convention, fac_tree **out,
                             fac_error *err) {
    fac_tree *t = fac_alloc(1, sizeof *t);
    if (t && grow(t, a, convention)) {
        *out = t;
        return FAC_OK;
    }
    fac_tree_free(t);
    return fac_raise_memory(err, "the tree of %d layers", a->totals.layers);
}

const fac_branch *fac_tree_root(const fac_tree *t) { return &t->root.b; }

void fac_tree_free(fac_tree *t) {
    if (t) fac_arena_free(&t->memory);
    fac_release(t);
}

int fac_analysis_kinds(const fac_analysis *a, fac_kind_row *rows, int most) {
    int n = 0;
    for (int i = 0; i < a->totals.layers; i++) {
        const fac_layer *l = &a->layers[i];
        int k = 0;
        while (k < n && strcmp(rows[k].kind, l->kind)) k++;
        if (k == most) continue;
        if (k == n) rows[n++] = (fac_kind_row){ .kind = l->kind };
        rows[k].layers++;
        rows[k].params += l->params;
        for (int c = 0; c < FAC_CONVENTIONS; c++)
            rows[k].count[c] += fac_layer_count(a, i, (fac_convention)c);
    }
    return n;
}
