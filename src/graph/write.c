/* A graph as text, one node a line:
 *
 *   input x f32[N,3,224,224]
 *   param conv1.weight f32[64,3,7,7]
 *   state bn1.running_mean f32[64]
 *   const %1 f32[1000,4]                                  contents of more than 16 elements are no
 *       part of the text
 *   %2 = conv2d(x, conv1.weight) stride=2,2 pad=3,3,3,3 {relu} ~1 @features.0 !Conv_0    #
 *       f32[N,64,112,112]
 *   output logits = %2
 *   update bn1.running_mean <- %3
 *
 * ~ stage, @ scope, ! name of the node (nothing: that of its first output).  A value that has a
 * name shows it in place of its number.  What follows # is for people.  Names that are not plain
 * are quoted. */
#include <errno.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/format.h"

typedef struct writer {
    fac_printer p;
    uint32_t *number, next;
    unsigned char *root;
} writer;

static void print_label(writer *w, const fac_value *v) {
    if (v->name) {
        fac_name_print(v->name, w->p.to);
        return;
    }
    if (!w->number[v->id]) w->number[v->id] = ++w->next;
    fac_text_print(w->p.to, "%%%u", (unsigned)w->number[v->id]);
}

static void print_operand(fac_printer *p, const fac_node *n, int i) {
    print_label((writer *)p->self, n->in[i]);
}

static void print_value(writer *w, const fac_value *v) {
    if (fac_literal_fits(v) && !v->name)
        fac_print_literal(&w->p, v);
    else
        print_label(w, v);
}

static void print_leaf(writer *w, const char *kind, const fac_value *v) {
    fac_text_print(w->p.to, "%s ", kind);
    print_label(w, v);
    fac_text_add(w->p.to, " ");
    if (fac_literal_fits(v))
        fac_print_literal(&w->p, v);
    else
        fac_print_type(&w->p, &v->type);
    fac_text_add(w->p.to, "\n");
}

static void print_annotations(writer *w, const fac_node *n) {
    if (n->stage) fac_text_print(w->p.to, " ~%u", (unsigned)n->stage);
    if (n->scope) {
        fac_text_add(w->p.to, " @");
        fac_name_print(n->scope, w->p.to);
    }
    if (n->name) {
        fac_text_add(w->p.to, " !");
        if (!n->out[0]->name || strcmp(n->name, n->out[0]->name)) fac_name_print(n->name, w->p.to);
    }
}

/* Outputs that nothing reads are left out at the end: argmax indices, saved statistics. */
static int shown(const writer *w, const fac_node *n) {
    int count = n->nout;
    while (count > 1 && !n->out[count - 1]->uses && !n->out[count - 1]->name &&
           !w->root[n->out[count - 1]->id])
        count--;
    return count;
}

static void print_node(writer *w, const fac_node *n) {
    const int count = shown(w, n);
    for (int k = 0; k < count; k++) {
        fac_text_add(w->p.to, k ? ", " : "");
        print_label(w, n->out[k]);
    }
    fac_text_add(w->p.to, " = ");
    fac_print_call(&w->p, n);
    print_annotations(w, n);
    fac_text_add(w->p.to, "  # ");
    for (int k = 0; k < count; k++) {
        fac_text_add(w->p.to, k ? ", " : "");
        fac_print_type(&w->p, &n->out[k]->type);
    }
    fac_text_add(w->p.to, "\n");
}

static void print_graph(writer *w) {
    const fac_graph *g = w->p.g;
    fac_text *to = w->p.to;
    for (size_t i = 0; i < g->noutputs; i++) w->root[g->outputs[i].value->id] = 1;
    for (size_t i = 0; i < g->nparams; i++)
        if (g->params[i]->next) w->root[g->params[i]->next->id] = 1;
    for (size_t i = 0; i < g->ninputs; i++) print_leaf(w, "input", g->inputs[i]);
    for (size_t i = 0; i < g->nparams; i++)
        print_leaf(w, g->params[i]->leaf == FAC_PARAM ? "param" : "state", g->params[i]);
    for (size_t i = 0; i < g->nconsts; i++) {
        const fac_value *c = g->consts[i];
        if (c->name || (!fac_literal_fits(c) && (c->uses || w->root[c->id])))
            print_leaf(w, "const", c);
    }
    for (const fac_node *n = g->first; n; n = n->next) print_node(w, n);
    for (size_t i = 0; i < g->noutputs; i++) {
        fac_text_add(to, "output ");
        fac_name_print(g->outputs[i].name, to);
        fac_text_add(to, " = ");
        print_value(w, g->outputs[i].value);
        fac_text_add(to, "\n");
    }
    for (size_t i = 0; i < g->nparams; i++) {
        if (!g->params[i]->next) continue;
        fac_text_add(to, "update ");
        print_label(w, g->params[i]);
        fac_text_add(to, " <- ");
        print_value(w, g->params[i]->next);
        fac_text_add(to, "\n");
    }
}

/* The whole graph as text; numbers of nameless values are in w->number.  The caller releases what w
 * holds. */
static bool print_all(writer *w, const fac_graph *g, fac_text *text) {
    *w = (writer){ .p = { .to = text, .g = g, .operand = print_operand, .self = w } };
    w->number = fac_alloc(g->ids, sizeof *w->number);
    w->root = fac_alloc(g->ids, 1);
    w->p.fresh = fac_alloc(g->nsymbols + 1, sizeof *w->p.fresh);
    const bool memory = w->number && w->root && w->p.fresh;
    if (memory) print_graph(w);
    return memory && !text->failed;
}

static void release(writer *w, fac_text *text) {
    fac_release(w->number);
    fac_release(w->root);
    fac_release(w->p.fresh);
    if (text) fac_text_free(text);
}

fac_status fac_graph_text(const fac_graph *g, fac_text *to, fac_error *err) {
    writer w;
    FAC_TRY(fac_graph_usable(g, "fac_graph_write", err));
    const bool good = print_all(&w, g, to);
    release(&w, NULL);
    if (good) return FAC_OK;
    fac_text_free(to);
    return fac_raise_memory(err, "the text of a graph of %d nodes", g->nodes);
}

fac_status fac_graph_write(const fac_graph *g, FILE *to, fac_error *err) {
    fac_text text = { 0 };
    fac_status s = FAC_OK;
    FAC_TRY(fac_graph_text(g, &text, err));
    if (text.n && fwrite(text.s, 1, text.n, to) != text.n)
        s = fac_raise(err, FAC_E_IO, "writing a graph: %s", strerror(errno));
    fac_text_free(&text);
    return s;
}

fac_value *fac_graph_numbered(const fac_graph *g, uint32_t number) {
    fac_text text = { 0 };
    writer w;
    fac_value *found = NULL;
    if (!number || g->error.status) return NULL;
    if (print_all(&w, g, &text)) {
        for (size_t i = 0; i < g->nconsts; i++)
            if (w.number[g->consts[i]->id] == number) found = g->consts[i];
        for (const fac_node *n = g->first; n; n = n->next)
            for (int k = 0; k < n->nout; k++)
                if (w.number[n->out[k]->id] == number) found = n->out[k];
    }
    release(&w, &text);
    return found;
}
