/* Checkpoints: all parameters and states of a graph under their names. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/io.h"
#include "graph/graph_internal.h"
#include "train/train_internal.h"

static fac_status save(const fac_graph *g, const char *path, fac_error *err) {
    const char **names = fac_alloc(g->nparams + 1, sizeof *names);
    fac_tensor **tensors = fac_alloc(g->nparams + 1, sizeof *tensors);
    fac_status status = FAC_OK;
    if (!names || !tensors || g->nparams > 1 << 24)
        status = fac_raise(err, FAC_E_NOMEM, "%s: no memory for its list", path);
    for (size_t i = 0; i < g->nparams && !status; i++) {
        names[i] = g->params[i]->name;
        tensors[i] = g->params[i]->tensor;
    }
    if (!status) status = fac_safetensors_save(path, (int)g->nparams, names, tensors, err);
    fac_release(names);
    fac_release(tensors);
    return status;
}

fac_status fac_trainer_save(const fac_trainer *t, const char *path, fac_error *err) {
    return save(t->step, path, err);
}

fac_status fac_graph_save_weights(const fac_graph *model, const char *path, fac_error *err) {
    FAC_TRY(fac_graph_usable(model, "fac_graph_save_weights", err));
    return save(model, path, err);
}

/* All names and types are looked at before anything is written: a wrong file changes nothing. */
static fac_status fits(const fac_graph *g, const fac_weights *w, const char *path, fac_error *err) {
    for (size_t i = 0; i < g->nparams; i++) {
        const fac_value *p = g->params[i];
        const fac_tensor *t = fac_weights_find(w, p->name);
        const char *why = t ? NULL : fac_weights_why(w, p->name);
        if (why)
            return fac_raise(err, FAC_E_ARGUMENT, "%s: %s cannot be read: %s", path, p->name, why);
        if (!t)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "%s: has no %s: it is of another model or optimizer", path, p->name);
        fac_type type = fac_tensor_type(t);
        if (type.dtype != p->type.dtype || !fac_dims_equal(&type.dims, &p->type.dims))
            return fac_raise(err, FAC_E_ARGUMENT,
                             "%s: %s has another type or shape than this model's", path, p->name);
    }
    if ((size_t)fac_weights_count(w) != g->nparams)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "%s: holds %d tensors, this model with this optimizer has %zu", path,
                         fac_weights_count(w), g->nparams);
    return FAC_OK;
}

static fac_status take(const fac_graph *g, const fac_weights *w, fac_error *err) {
    for (size_t i = 0; i < g->nparams; i++) {
        const fac_value *p = g->params[i];
        size_t bytes = fac_type_bytes(&p->type);
        void *copy = fac_alloc(bytes ? bytes : 1, 1);
        fac_status status =
            copy ? fac_tensor_read(fac_weights_find(w, p->name), copy, bytes, err)
                 : fac_raise(err, FAC_E_NOMEM, "%s: no memory for %zu bytes", p->name, bytes);
        if (!status) status = fac_tensor_write(p->tensor, copy, bytes, err);
        fac_release(copy);
        FAC_TRY(status);
    }
    return FAC_OK;
}

fac_status fac_trainer_load(fac_trainer *t, const char *path, fac_error *err) {
    fac_weights *w;
    FAC_TRY(fac_weights_load(path, &w, err));
    fac_status status = fits(t->step, w, path, err);
    if (!status) status = take(t->step, w, err);
    fac_weights_free(w);
    return status;
}
