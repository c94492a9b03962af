/* Notes: what is said of a graph and computes nothing.  A short list in the order of writing:
 * models have a handful. */
#include <string.h>
#include "base/memory.h"
#include "graph/build.h"

static fac_note *find(const fac_graph *g, const char *key) {
    for (size_t k = 0; key && k < g->nnotes; k++)
        if (!strcmp(g->notes[k].key, key)) return &g->notes[k];
    return NULL;
}

const char *fac_graph_note(const fac_graph *g, const char *key) {
    const fac_note *n = find(g, key);
    return n ? n->text : NULL;
}

int fac_graph_notes(const fac_graph *g) { return (int)g->nnotes; }
const char *fac_graph_note_key(const fac_graph *g, int i) {
    return i >= 0 && (size_t)i < g->nnotes ? g->notes[i].key : NULL;
}

void fac_graph_set_note(fac_graph *g, const char *key, const char *text) {
    if (g->error.status) return;
    if (!key || !*key) {
        fac_graph_raise(g, FAC_E_ARGUMENT, "a note needs a key");
        return;
    }
    fac_note *n = find(g, key);
    if (!text) {
        if (n) memmove(n, n + 1, (size_t)(g->notes + g->nnotes - n - 1) * sizeof *n), g->nnotes--;
        return;
    }
    const char *copy = fac_arena_text(&g->arena, text),
               *name = n ? n->key : fac_arena_text(&g->arena, key);
    if (!copy || !name ||
        (!n && !fac_reserve(&g->notes, &g->room_notes, g->nnotes + 1, sizeof *g->notes))) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for the note '%s'", key);
        return;
    }
    if (!n) n = &g->notes[g->nnotes++];
    *n = (fac_note){ name, copy };
}

void fac_notes_copy(fac_graph *to, const fac_graph *from) {
    for (size_t k = 0; k < from->nnotes; k++)
        fac_graph_set_note(to, from->notes[k].key, from->notes[k].text);
}
