/* A graph's parameters and states by name from a file of weights: what fits, what is missing, what
 * is too much. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/optional.h"
#include "nn/nn_internal.h"

enum { NAMED = 3 }; /* names of each kind in a message */

static void list(fac_nn_list *l, const char *name, const fac_graph *g, const fac_type *have,
                 const fac_type *want) {
    if (l->n++ >= NAMED) return;
    fac_text_print(&l->names, "%s%s", l->n > 1 ? ", " : "", name);
    if (!have) return;
    fac_text_add(&l->names, " is ");
    fac_type_print(g, have, &l->names);
    fac_text_add(&l->names, ", expected ");
    fac_type_print(g, want, &l->names);
}

/* It is in the file, but as nothing that we have. */
static void skipped(fac_nn_list *l, const char *name, const char *why) {
    if (l->n++ < NAMED) fac_text_print(&l->names, "%s%s has %s", l->n > 1 ? ", " : "", name, why);
}

/* Floats may have another width, nothing else may differ. */
fac_tensor *fac_nn_match_find(fac_nn_match *m, const char *name, const fac_type *want) {
    fac_tensor *t = fac_weights_find(m->w, name);
    const char *why = t ? NULL : fac_weights_why(m->w, name);
    if (why)
        skipped(&m->different, name, why);
    else if (!t)
        list(&m->missing, name, m->g, NULL, NULL);
    if (!t) return NULL;
    const fac_type have = fac_tensor_type(t);
    const bool floats =
        fac_dtype_get(have.dtype)->kind == 'f' && fac_dtype_get(want->dtype)->kind == 'f';
    if (fac_dims_equal(&have.dims, &want->dims) && (have.dtype == want->dtype || floats)) return t;
    list(&m->different, name, m->g, &have, want);
    return NULL;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* PyTorch counts batches; it is a state of training only. */
void fac_nn_match_unknown(fac_nn_match *m, const char *unused) {
    for (int i = 0; i < fac_weights_count(m->w); i++) {
        const char *name = fac_weights_name(m->w, i);
        const fac_value *v = fac_graph_find((fac_graph *)m->g, name);
        if (v && fac_value_tensor(v)) continue;
        if (ends_with(name, "num_batches_tracked") ||
            (unused && strncmp(name, unused, strlen(unused)) == 0))
            continue;
        list(&m->unknown, name, m->g, NULL, NULL);
    }
}

static void describe(fac_text *to, const fac_nn_list *l, const char *what) {
    if (!l->n) return;
    fac_text_print(to, "%s %d %s (%s%s)", fac_text_if(to->n, ";"), l->n, what,
                   fac_text_or(l->names.s, ""), fac_text_if(l->n > NAMED, ", ..."));
}

fac_status fac_nn_match_report(const fac_nn_match *m, const char *who, bool loose, fac_error *err) {
    if (!m->different.n && (loose || (!m->missing.n && !m->unknown.n))) return FAC_OK;
    fac_text text = { 0 };
    if (!loose) describe(&text, &m->missing, "missing");
    describe(&text, &m->different, "different");
    if (!loose) describe(&text, &m->unknown, "not part of it");
    fac_status status =
        fac_raise(err, FAC_E_ARGUMENT, "%s: these weights are not of this network:%s", who,
                  text.s ? text.s : "");
    fac_text_free(&text);
    return status;
}

void fac_nn_match_free(fac_nn_match *m) {
    fac_text_free(&m->missing.names);
    fac_text_free(&m->different.names);
    fac_text_free(&m->unknown.names);
}

/* ---- loading into a graph ---- */

/* Where noise has got to: a state of training that weights from elsewhere do not have. */
static bool counts_noise(const fac_value *p) {
    return p->leaf == FAC_STATE && fac_dtype_get(p->type.dtype)->kind != 'f';
}

static fac_status take(const fac_value *p, const fac_tensor *t, fac_error *err) {
    fac_tensor *as = NULL;
    FAC_TRY(fac_tensor_convert(t, p->type.dtype, &as, err));
    fac_status status =
        fac_tensor_write(p->tensor, fac_tensor_data(as), fac_type_bytes(&p->type), err);
    fac_tensor_free(as);
    return status;
}

fac_status fac_graph_load_weights(fac_graph *g, const fac_weights *w, const fac_load_opts *opts,
                                  fac_load_result *result, fac_error *err) {
    static const fac_load_opts usual;
    const fac_load_opts *o = opts ? opts : &usual;
    fac_nn_match m = { .g = g, .w = w };
    FAC_TRY(fac_graph_usable(g, "fac_graph_load_weights", err));
    fac_tensor **found = fac_alloc(g->nparams + 1, sizeof *found);
    if (!found) return fac_raise_memory(err, "a list of %zu parameters", g->nparams);

    int loaded = 0;
    for (size_t i = 0; i < g->nparams; i++) {
        const fac_value *p = g->params[i];
        if (counts_noise(p) && !fac_weights_find(w, p->name)) continue;
        found[i] = fac_nn_match_find(&m, p->name, &p->type);
        loaded += found[i] != NULL;
    }
    fac_nn_match_unknown(&m, o->unused);
    if (result) *result = (fac_load_result){ loaded, m.missing.n, m.different.n, m.unknown.n };
    fac_status status = fac_nn_match_report(&m, "state dict", o->loose, err);
    for (size_t i = 0; i < g->nparams && !status; i++)
        if (found[i]) status = take(g->params[i], found[i], err);
    fac_nn_match_free(&m);
    fac_release(found);
    return status;
}
