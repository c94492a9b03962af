/* Packed files: see facula/quantize.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/io.h"
#include "facula/quantize.h"
#include "graph/format.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "train/train_internal.h"

enum { VERSION = 1, LOWEST_FIRST = 0, ZEROS = 0, FIELDS = 3 };
static const char graph_name[] = "facula.graph", about_name[] = "facula.packed",
                  note_name[] = "facula.note:";

/* ---- writing ---- */

typedef struct list {
    size_t n, room;
    const char **names; /* of the graph, of notes in `texts` */
    fac_tensor **tensors;
    fac_text *texts;
} list;

static fac_status put(list *l, const char *name, const void *data, fac_dtype dtype, int64_t n,
                      fac_error *err) {
    fac_tensor *t;
    FAC_TRY(fac_tensor_new(NULL, dtype, fac_shape(n), &t, err));
    const fac_type type = fac_tensor_type(t);
    const fac_status status = fac_tensor_write(t, data, fac_type_bytes(&type), err);
    l->tensors[l->n] = t;
    l->names[l->n++] = name;
    return status;
}

static fac_status put_text(list *l, const fac_graph *g, fac_error *err) {
    fac_text text = { 0 };
    FAC_TRY(fac_graph_text(g, &text, err));
    const fac_status status = put(l, graph_name, text.s, FAC_U8, (int64_t)text.n, err);
    fac_text_free(&text);
    return status;
}

static fac_status put_notes(list *l, const fac_graph *g, fac_error *err) {
    for (int i = 0; i < fac_graph_notes(g); i++) {
        const char *key = fac_graph_note_key(g, i), *text = fac_graph_note(g, key);
        fac_text *name = &l->texts[i];
        fac_text_print(name, "%s%s", note_name, key);
        if (name->failed) return fac_raise_memory(err, "a name");
        FAC_TRY(put(l, name->s, text, FAC_U8, (int64_t)strlen(text), err));
    }
    return FAC_OK;
}

static fac_status gather(list *l, const fac_graph *g, fac_error *err) {
    static const int64_t about[FIELDS] = { VERSION, LOWEST_FIRST, ZEROS };
    const size_t room = g->nparams + (size_t)fac_graph_notes(g) + 2;
    l->names = fac_alloc(room, sizeof *l->names);
    l->tensors = fac_alloc(room, sizeof *l->tensors);
    l->texts = fac_alloc(room, sizeof *l->texts);
    l->room = room;
    if (!l->names || !l->tensors || !l->texts) return fac_raise_memory(err, "a list of tensors");
    FAC_TRY(put(l, about_name, about, FAC_I64, FIELDS, err));
    FAC_TRY(put_text(l, g, err));
    FAC_TRY(put_notes(l, g, err));
    for (size_t i = 0; i < g->nparams; i++) {
        l->names[l->n] = g->params[i]->name;
        l->tensors[l->n++] = fac_tensor_retain(g->params[i]->tensor);
    }
    return FAC_OK;
}

static void drop(list *l) {
    for (size_t i = 0; i < l->n; i++) fac_tensor_free(l->tensors[i]);
    for (size_t i = 0; l->texts && i < l->room; i++) fac_text_free(&l->texts[i]);
    fac_release(l->names);
    fac_release(l->tensors);
    fac_release(l->texts);
}

/* Constants of more elements than a text holds are states of the file. */
static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    enum { IN_TEXT = 16 };
    (void)self;
    if (v->leaf != FAC_CONST || !v->tensor || fac_dims_count(&v->type.dims) <= IN_TEXT) return NULL;
    const char *name = fac_graph_fresh(to, v->name ? v->name : "constant");
    return name ? fac_state(to, name, v->tensor)
                : fac_graph_raise(to, FAC_E_NOMEM, "no memory for a name");
}

static double bytes_of(const fac_graph *g) {
    double bytes = 0;
    for (size_t i = 0; i < g->nparams; i++) bytes += (double)fac_type_bytes(&g->params[i]->type);
    return bytes;
}

/* What a parameter takes as floats: planes of bits and bytes as many as they stand for, their
 * levels and scales nothing. */
static double float_bytes(const fac_value *p) {
    const fac_use *u = p->uses;
    const bool levels = u && FAC_IS(u->node, unpack_basis);
    if (levels || (u && FAC_IS(u->node, dequantize_linear))) {
        const double all = (double)fac_dims_count(&u->node->out[0]->type.dims);
        return u->input ? 0 : all * (double)sizeof(float);
    }
    return (double)fac_type_bytes(&p->type);
}

/* What the weights of layers are. */
static void count_layers(const fac_graph *g, fac_packing *to) {
    for (const fac_node *n = g->first; n; n = n->next) {
        const fac_value *w = n->nin > 1 ? n->in[1] : NULL;
        while (w && w->node && w->node->op->move) w = w->node->in[0]; /* transposed, or reshaped */
        const bool product =
            FAC_IS(n, conv2d) || FAC_IS(n, linear) || FAC_IS(n, gemm) || FAC_IS(n, matmul);
        if (!product || !w || w->time == FAC_RUN) continue;
        to->byte_layers += w->node && FAC_IS(w->node, dequantize_linear);
        to->float_layers += w->tensor != NULL;
    }
}

static fac_status save(const fac_graph *g, const char *path, fac_error *err) {
    list l = { 0 };
    fac_status status = gather(&l, g, err);
    if (!status) status = fac_safetensors_save(path, (int)l.n, l.names, l.tensors, err);
    drop(&l);
    return status;
}

/* Weights as planes of bits, twice: numbers that a first look computes, such as those of LSQ, are
 * weights of few levels to a second one. */
static fac_status with_bits(const fac_graph *model, int *layers, fac_graph **out, fac_error *err) {
    fac_graph *g = fac_graph_inference(model);
    fac_status status = g ? FAC_OK : fac_raise_memory(err, "a copy of the model");
    for (int look = 0; look < 2 && !status; look++) {
        fac_graph *known = NULL, *next = NULL;
        status = fac_train_recognize(g, &known, err);
        if (!status) status = fac_train_packed(known, layers, &next, err);
        fac_graph_free(known);
        fac_graph_free(g);
        g = next;
    }
    *out = g;
    return status;
}

/* The graph as the file has it. */
static fac_status form(const fac_graph *model, int *layers, fac_graph **out, fac_error *err) {
    fac_graph *packed = NULL;
    fac_status status = with_bits(model, layers, &packed, err);
    if (status) return status;
    fac_graph *g = fac_graph_rebuild(packed, &(fac_rebuild){ .leaf = leaf }, NULL);
    fac_graph_free(packed);
    status = g ? fac_graph_check(g, err) : fac_raise_memory(err, "a copy of the model");
    if (!status && !*layers)
        status = fac_raise(err, FAC_E_ARGUMENT, "no weight is quantized: there is nothing to pack");
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status;
}

fac_status fac_packed_save(const fac_graph *model, const char *path, fac_packing *packing,
                           fac_error *err) {
    fac_graph *g;
    int layers = 0;
    FAC_TRY(fac_graph_usable(model, "fac_packed_save", err));
    FAC_TRY(form(model, &layers, &g, err));
    const fac_status status = save(g, path, err);
    if (packing) {
        *packing = (fac_packing){ .layers = layers, .bytes = bytes_of(g) };
        for (size_t i = 0; i < g->nparams; i++) packing->bytes_before += float_bytes(g->params[i]);
        count_layers(g, packing);
    }
    fac_graph_free(g);
    return status;
}

/* ---- reading ---- */

static fac_status check_about(const fac_weights *w, const char *path, fac_error *err) {
    int64_t about[FIELDS];
    const fac_tensor *t = fac_weights_find(w, about_name);
    const fac_type type = t ? fac_tensor_type(t) : (fac_type){ FAC_NONE, { 0 } };
    if (!t || type.dtype != FAC_I64 || type.dims.n != 1 || type.dims.d[0] < FIELDS)
        return fac_raise(err, FAC_E_FORMAT, "%s: has no %s: it is no packed file", path,
                         about_name);
    FAC_TRY(fac_tensor_read(t, about, sizeof about, err));
    if (about[0] != VERSION)
        return fac_raise(err, FAC_E_FORMAT, "%s: a packed file of version %lld, expected %d", path,
                         (long long)about[0], VERSION);
    if (about[1] != LOWEST_FIRST || about[2] != ZEROS)
        return fac_raise(err, FAC_E_FORMAT,
                         "%s: bits of order %lld and padding %lld, expected "
                         "%d and %d",
                         path, (long long)about[1], (long long)about[2], LOWEST_FIRST, ZEROS);
    return FAC_OK;
}

/* The bytes of a tensor as a text that ends with 0, to be released. */
static fac_status text_of(const fac_tensor *t, const char *path, const char *name, char **out,
                          size_t *n, fac_error *err) {
    const fac_type type = t ? fac_tensor_type(t) : (fac_type){ FAC_NONE, { 0 } };
    if (!t || type.dtype != FAC_U8 || type.dims.n != 1)
        return fac_raise(err, FAC_E_FORMAT, "%s: %s is missing, or no text", path, name);
    *n = (size_t)type.dims.d[0];
    char *text = fac_alloc(*n + 1, 1);
    if (!text) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %s", path, name);
    const fac_status status = fac_tensor_read(t, text, *n, err);
    if (status)
        fac_release(text);
    else
        *out = text;
    return status;
}

static fac_status read_graph(const fac_weights *w, const char *path, fac_graph **out,
                             fac_error *err) {
    char *text;
    size_t n;
    FAC_TRY(text_of(fac_weights_find(w, graph_name), path, graph_name, &text, &n, err));
    FILE *f = n ? fmemopen(text, n, "r") : NULL;
    fac_status status = f ? fac_graph_read(f, out, err)
                          : fac_raise(err, FAC_E_FORMAT, "%s: %s is empty", path, graph_name);
    if (f) fclose(f);
    fac_release(text);
    return status;
}

static fac_status take(const fac_weights *w, const char *path, const fac_value *p, fac_error *err) {
    const fac_tensor *t = fac_weights_find(w, p->name);
    if (!t)
        return fac_raise(err, FAC_E_FORMAT, "%s: has no %s, which its graph reads", path, p->name);
    const fac_type type = fac_tensor_type(t);
    if (type.dtype != p->type.dtype || !fac_dims_equal(&type.dims, &p->type.dims))
        return fac_raise(err, FAC_E_FORMAT, "%s: %s has another type or shape than its graph says",
                         path, p->name);
    const size_t bytes = fac_type_bytes(&type);
    void *copy = fac_alloc(bytes + 1, 1);
    if (!copy) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %s", path, p->name);
    fac_status status = fac_tensor_read(t, copy, bytes, err);
    if (!status) status = fac_tensor_write(p->tensor, copy, bytes, err);
    fac_release(copy);
    return status;
}

static fac_status take_notes(const fac_weights *w, const char *path, fac_graph *g, fac_error *err) {
    const size_t skip = sizeof note_name - 1;
    for (int i = 0; i < fac_weights_count(w); i++) {
        char *text;
        size_t n;
        const char *name = fac_weights_name(w, i);
        if (strncmp(name, note_name, skip)) continue;
        FAC_TRY(text_of(fac_weights_tensor(w, i), path, name, &text, &n, err));
        fac_graph_set_note(g, name + skip, text);
        fac_release(text);
    }
    return FAC_OK;
}

static fac_status fill(const fac_weights *w, const char *path, fac_graph *g, fac_error *err) {
    for (size_t i = 0; i < g->nparams; i++) FAC_TRY(take(w, path, g->params[i], err));
    FAC_TRY(take_notes(w, path, g, err));
    return fac_graph_check(g, err);
}

fac_status fac_packed_take(const fac_weights *w, const char *path, fac_graph **out,
                           fac_error *err) {
    fac_graph *g = NULL;
    FAC_TRY(check_about(w, path, err));
    FAC_TRY(read_graph(w, path, &g, err));
    const fac_status status = fill(w, path, g, err);
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status;
}

fac_status fac_packed_load(const char *path, fac_graph **out, fac_error *err) {
    fac_weights *w;
    FAC_TRY(fac_weights_load(path, &w, err));
    const fac_status status = fac_packed_take(w, path, out, err);
    fac_weights_free(w);
    return status;
}
