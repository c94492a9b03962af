/* Whole networks with quantizers: see facula/quantize.h. */
#include <fnmatch.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/attr.h"
#include "nn/low_bits/low_bits.h"
#include "op_list.h"

/* A layer that may be quantized, in the order of the network. */
typedef struct layer {
    const fac_node *node;
    const fac_scheme *scheme; /* NULL: it stays as it is */
} layer;
typedef struct work {
    layer *of;
    int n, changed;
    fac_scheme *schemes;
} work;

/* A convolution or a linear layer whose weight is a parameter that nothing else reads. */
static bool is_layer(const fac_node *n) {
    if (!FAC_IS(n, conv2d) && !FAC_IS(n, linear) &&
        !(FAC_IS(n, gemm) && fac_attr_flag(n, "trans_b")))
        return false;
    const fac_value *w = n->in[1];
    return w->leaf == FAC_PARAM && w->type.dtype == FAC_F32 && w->name && !n->body[0] && w->uses &&
           !w->uses->next && fac_dims_count(&w->type.dims) > 0;
}

static const layer *find(const work *k, const fac_node *n) {
    for (int i = 0; i < k->n; i++)
        if (k->of[i].node == n) return &k->of[i];
    return NULL;
}

/* "conv2" of "conv2.weight". */
static void name_of(const fac_value *w, char *to, size_t size) {
    const size_t n = strlen(w->name);
    const size_t end = n > 7 && !strcmp(w->name + n - 7, ".weight") ? n - 7 : n;
    snprintf(to, size, "%.*s", (int)(end < size ? end : size - 1), w->name);
}

/* ---- what replaces what ---- */

/* What moves or picks numbers, and leaves their signs alone. */
static bool passes_on(const fac_node *n) {
    static const fac_op *const ops[] = { &fac_op_max_pool2d,
                                         &fac_op_flatten,
                                         &fac_op_reshape,
                                         &fac_op_squeeze,
                                         &fac_op_identity,
                                         &fac_op_dropout,
                                         NULL };
    return fac_op_is_one_of(n->op, ops);
}

/* The layer that reads v, if only layers that take signs do; NULL: somebody else does, too. */
static const layer *reader_of_signs(const work *k, const fac_value *v, int depth) {
    const layer *found = NULL;
    if (v->roots || depth > 8) return NULL;
    for (const fac_use *u = v->uses; u; u = u->next) {
        const layer *l = find(k, u->node);
        if (l && (u->input != 0 || !l->scheme || !l->scheme->signs)) l = NULL;
        if (!l && passes_on(u->node) && u->input == 0)
            l = reader_of_signs(k, u->node->out[0], depth + 1);
        if (!l) return NULL;
        found = l;
    }
    return found;
}

static void put_layer(const layer *l, fac_graph *to, const fac_node *n, fac_value *const in[],
                      fac_value *out[]) {
    char name[200];
    fac_value *with[3] = { in[0], in[1], n->nin > 2 ? in[2] : NULL };
    name_of(n->in[1], name, sizeof name);
    with[0] = fac_scheme_input(l->scheme, name, in[0]);
    with[1] = fac_scheme_weight(l->scheme, name, in[1], n->in[1]->tensor);
    fac_node_copy(to, n, with, out);
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    work *k = self;
    char name[200];
    if (FAC_IS(n, relu)) {
        const layer *l = reader_of_signs(k, n->out[0], 0);
        if (!l) return false;
        name_of(l->node->in[1], name, sizeof name);
        out[0] = fac_scheme_relu(l->scheme, name, in[0]);
        return true;
    }
    const layer *l = find(k, n);
    if (!l || !l->scheme || to->error.status) return false;
    put_layer(l, to, n, in, out);
    k->changed++;
    return true;
}

/* ---- which scheme a layer has ---- */

/* The scheme of text i, where its pattern matches. */
static bool matches(const char *text, const char *name) {
    char pattern[256];
    const char *equals = strrchr(text, '=');
    if (!equals) return true;
    snprintf(pattern, sizeof pattern, "%.*s", (int)(equals - text), text);
    return !fnmatch(pattern, name, 0);
}

static fac_status choose(const fac_quantizing *how, work *k, fac_error *err) {
    char name[200];
    const int skip = how->all ? 0 : 1;
    for (int i = 0; i < how->n; i++) {
        bool any = false;
        const char *equals = strrchr(how->schemes[i], '=');
        const char *wrong = fac_scheme_parse(equals ? equals + 1 : how->schemes[i], &k->schemes[i]);
        if (wrong)
            return fac_raise(err, FAC_E_ARGUMENT, "scheme \"%s\": %s", how->schemes[i], wrong);
        for (int j = skip; j < k->n - skip; j++) {
            name_of(k->of[j].node->in[1], name, sizeof name);
            if (!matches(how->schemes[i], name)) continue;
            k->of[j].scheme = &k->schemes[i];
            any = true;
        }
        if (!any)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "scheme \"%s\" matches no layer: of %d "
                             "convolutions and "
                             "linear layers%s %s",
                             how->schemes[i], k->n,
                             skip ? ", but for the first and the last one," : "",
                             "none has such a name");
    }
    return FAC_OK;
}

static fac_status gather(const fac_graph *model, work *k, int schemes, fac_error *err) {
    k->of = fac_alloc((size_t)model->nodes + 1, sizeof *k->of);
    k->schemes = fac_alloc((size_t)schemes + 1, sizeof *k->schemes);
    if (!k->of || !k->schemes) return fac_raise_memory(err, "a list of layers");
    for (const fac_node *n = model->first; n; n = n->next)
        if (is_layer(n)) k->of[k->n++] = (layer){ .node = n };
    return FAC_OK;
}

fac_status fac_graph_quantize(const fac_graph *model, const fac_quantizing *how, fac_graph **out,
                              int *changed, fac_error *err) {
    work k = { 0 };
    FAC_TRY(fac_graph_usable(model, "fac_graph_quantize", err));
    fac_status status = gather(model, &k, how->n, err);
    if (!status) status = choose(how, &k, err);
    fac_graph *g =
        status ? NULL
               : fac_graph_rebuild(model, &(fac_rebuild){ .self = &k, .visit = visit }, NULL);
    if (!status && !g) status = fac_raise_memory(err, "a quantized copy");
    if (!status) status = fac_graph_check(g, err);
    fac_release(k.of);
    fac_release(k.schemes);
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    if (!status && changed) *changed = k.changed;
    return status;
}
