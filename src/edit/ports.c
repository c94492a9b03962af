/* The ports of a model: names, outputs, sizes of inputs. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "edit/edit.h"
#include "graph/build.h"

fac_status fac_graph_rename(const fac_graph *g, const char *old, const char *name, fac_graph **out,
                            fac_error *err) {
    fac_graph *to = fac_graph_clone(g);
    if (!to) return fac_raise_memory(err, "a graph");
    fac_value *v = fac_edit_value(to, old);
    bool output = false;
    for (size_t k = 0; k < to->noutputs; k++) output |= !strcmp(to->outputs[k].name, old);
    fac_status status = FAC_OK;
    if (!v && !output)
        status = fac_raise(err, FAC_E_ARGUMENT, "there is no value \"%s\"", old);
    else if (!*name || fac_graph_find(to, name))
        status = fac_raise(err, FAC_E_ARGUMENT, "\"%s\" is taken", name);
    for (size_t k = 0; k < to->noutputs && !status; k++)
        if (!strcmp(to->outputs[k].name, old) &&
            !(to->outputs[k].name = fac_arena_text(&to->arena, name)))
            status = fac_raise_memory(err, "a name");
    if (!status && v && (v->name ? !strcmp(v->name, old) : *old == '%')) {
        v->name = fac_arena_text(&to->arena, name);
        if (!v->name || !fac_table_put(&to->names, v->name, v))
            status = fac_raise_memory(err, "a name");
    }
    if (!status) return fac_edit_give(to, out, err);
    fac_graph_free(to);
    return status;
}

/* ---- outputs ---- */

fac_status fac_graph_output_added(const fac_graph *g, const char *value, const char *as,
                                  fac_graph **out, fac_error *err) {
    const fac_value *v = fac_edit_value(g, value);
    fac_value **map = NULL;
    if (!v) return fac_raise(err, FAC_E_ARGUMENT, "there is no value \"%s\"", value);
    if (!as && *value == '%')
        return fac_raise(err, FAC_E_ARGUMENT, "what shall %s be called as an output?", value);
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .keep_dead = true }, &map);
    if (to && !to->error.status) {
        const fac_value *other = fac_graph_find(to, as ? as : value);
        if (other && other != map[v->id])
            fac_graph_raise(to, FAC_E_ARGUMENT, "\"%s\" is taken", as);
        else
            fac_output(to, as ? as : value, map[v->id]);
    }
    return fac_edit_give(to, out, err);
}

fac_status fac_graph_output_removed(const fac_graph *g, const char *name, fac_graph **out,
                                    fac_error *err) {
    size_t k = 0;
    while (k < g->noutputs && strcmp(g->outputs[k].name, name)) k++;
    if (k == g->noutputs) return fac_raise(err, FAC_E_ARGUMENT, "there is no output \"%s\"", name);
    if (g->noutputs == 1) return fac_raise(err, FAC_E_ARGUMENT, "\"%s\" is the only output", name);
    fac_graph *to = fac_graph_clone(g);
    if (to && !to->error.status) {
        to->outputs[k].value->roots--;
        memmove(&to->outputs[k], &to->outputs[k + 1], (to->noutputs - k - 1) * sizeof *to->outputs);
        to->noutputs--;
        fac_graph_sweep(to);
    }
    return fac_edit_give(to, out, err);
}

/* ---- sizes of inputs ---- */

typedef struct sizes {
    const char *input, *text;
    int64_t symbol, size;
    fac_error *err;
} sizes;

/* "N,3,224,224" or "Nx3x224x224": sizes, and names of open ones. */
static fac_status read_dims(fac_graph *g, const char *text, fac_dims *out, fac_error *err) {
    const char between = strchr(text, ',') ? ',' : 'x';
    fac_dims d = { 0 };
    for (const char *s = text; strcmp(text, "scalar"); s++) {
        const char *end = strchr(s, between), *stop = end ? end : s + strlen(s);
        char word[64] = "";
        bool digits = stop > s;
        for (const char *p = s; p < stop; p++) digits &= *p >= '0' && *p <= '9';
        if (stop == s || (size_t)(stop - s) >= sizeof word || (digits && stop - s > 18) ||
            d.n == FAC_DIMS)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "\"%s\" is no shape: up to %d sizes or names, as in N,3,224,224", text,
                             FAC_DIMS);
        memcpy(word, s, (size_t)(stop - s));
        const char *name = strcmp(word, "?") ? word : NULL;
        d.d[d.n++] = digits ? strtoll(word, NULL, 10) : fac_symbol(g, name);
        if (!*stop) break;
        s = stop;
    }
    *out = d;
    return FAC_OK;
}

static fac_value *sized_leaf(void *self, fac_graph *to, const fac_value *v) {
    const sizes *s = self;
    fac_dims d;
    fac_error err = { 0 };
    if (v->leaf != FAC_INPUT || strcmp(v->name, s->input)) return NULL;
    if (read_dims(to, s->text, &d, &err)) return fac_graph_raise(to, err.status, "%s", err.text);
    return fac_input(to, v->name, v->type.dtype, d);
}

fac_status fac_graph_shaped(const fac_graph *g, const char *input, const char *dims,
                            fac_graph **out, fac_error *err) {
    const fac_value *v = fac_edit_value(g, input);
    if (!v || v->leaf != FAC_INPUT)
        return fac_raise(err, FAC_E_ARGUMENT, "there is no input \"%s\"", input);
    sizes s = { .input = v->name, .text = dims };
    return fac_edit_give(
        fac_graph_rebuild(g, &(fac_rebuild){ .self = &s, .leaf = sized_leaf, .keep_dead = true },
                          NULL),
        out, err);
}

static int64_t bound(const sizes *s, int64_t d) { return d == s->symbol ? s->size : d; }

/* A list with the symbol in it. */
static fac_value *bound_list(const sizes *s, fac_graph *to, const fac_contents *from) {
    fac_contents c = *from;
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    for (int k = 0; k < c.n; k++) {
        if (!(c.symbolic >> k & 1) || c.v[k] != s->symbol) continue;
        c.v[k] = s->size;
        c.symbolic &= ~(1u << k);
    }
    if (c.symbolic) return fac_symbols_const(to, &c);
    if (fac_tensor_new(NULL, FAC_I64, fac_shape(c.n), &t, &err))
        return fac_graph_raise(to, err.status, "%s", err.text);
    fac_value *v = fac_tensor_write(t, c.v, (size_t)c.n * sizeof *c.v, &err)
                       ? fac_graph_raise(to, err.status, "%s", err.text)
                       : fac_const(to, t);
    fac_tensor_free(t);
    return v;
}

static fac_value *bound_leaf(void *self, fac_graph *to, const fac_value *v) {
    const sizes *s = self;
    if (v->leaf == FAC_CONST && !v->tensor && v->known) return bound_list(s, to, v->known);
    if (v->leaf != FAC_INPUT) return NULL;
    fac_dims d = v->type.dims;
    for (int k = 0; k < d.n; k++) d.d[k] = bound(s, d.d[k]);
    return fac_input(to, v->name, v->type.dtype, d);
}

fac_status fac_graph_bound(const fac_graph *g, const char *symbol, int64_t size, fac_graph **out,
                           fac_error *err) {
    size_t k = 0;
    while (k < g->nsymbols && strcmp(g->symbols[k], symbol)) k++;
    if (k == g->nsymbols)
        return fac_raise(err, FAC_E_ARGUMENT, "there is no open size \"%s\"", symbol);
    if (size < 0)
        return fac_raise(err, FAC_E_ARGUMENT, "%s = %lld: a size is not negative", symbol,
                         (long long)size);
    sizes s = { .symbol = fac_symbol_at(k), .size = size };
    return fac_edit_give(
        fac_graph_rebuild(g, &(fac_rebuild){ .self = &s, .leaf = bound_leaf, .keep_dead = true },
                          NULL),
        out, err);
}
