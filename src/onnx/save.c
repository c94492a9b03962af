/* Writing a model: graph -> one whose every node can be said -> records of nodes and tensors ->
 * messages -> file. Sizes are counted first, then the bytes go out one after the other: no second
 * copy of the weights is held. */
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/memory.h"
#include "onnx/export.h"
#include "onnx/import.h"
#include "onnx/small.h"
#include "onnx/source.h"
#include "tensor/tensor_internal.h"

enum {
    PAGE = 4096,     /* where external tensors begin, so that they can be mapped      */
    SPARE = 64 << 20 /* below 2 GiB: for nodes and names                              */
};

/* ---- records ---- */

static fac_status check(const fac_graph *g, const fac_onnx_save_opts *o, fac_error *err) {
    FAC_TRY(fac_graph_usable(g, "fac_onnx_save", err));
    if (o->opset && (o->opset < FAC_ONNX_OLDEST || o->opset > FAC_ONNX_NEWEST))
        return fac_raise(err, FAC_E_UNSUPPORTED, "opset %d; %d to %d are written", o->opset,
                         FAC_ONNX_OLDEST, FAC_ONNX_NEWEST);
    if (!g->noutputs) return fac_raise(err, FAC_E_ARGUMENT, "the graph has no outputs");
    for (size_t k = 0; k < g->nparams; k++)
        if (g->params[k]->next)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "the graph updates \"%s\": it trains, save its fac_graph_inference()",
                             g->params[k]->name);
    return FAC_OK;
}

static fac_status check_type(const char *what, const char *name, const fac_type *type,
                             fac_error *err) {
    if (fac_proto_dtype_number(type->dtype)) return FAC_OK;
    return fac_raise(err, FAC_E_UNSUPPORTED, "%s \"%s\": ONNX has no element type %s", what, name,
                     fac_dtype_get(type->dtype)->name);
}

/* An output that is a leaf, or a second name of a value, is a copy; unless it is the leaf under its
 * own name. */
static fac_status add_outputs(fac_export *ex, fac_error *err) {
    const fac_graph *g = ex->g;
    const fac_onnx_writer w = { ex->opset, ex };
    fac_node copy = { .name = "output", .graph = ex->g, .out = &(fac_value *){ NULL } };
    ex->node = &copy;
    for (size_t k = 0; k < g->noutputs; k++) {
        const fac_value *v = g->outputs[k].value;
        FAC_TRY(check_type("output", g->outputs[k].name, &v->type, err));
        const char *name = fac_onnx_name(&w, v);
        if (strcmp(name, g->outputs[k].name))
            fac_onnx_put(&w, "Identity", 1, &name, g->outputs[k].name);
    }
    ex->node = NULL;
    return FAC_OK;
}

/* QONNX's tools look for initializers only. */
static void settle_constants(fac_export *ex) {
    bool qonnx = false;
    for (int k = 0; k < ex->ndomains; k++) qonnx |= fac_onnx_of_qonnx(ex->domains[k].name);
    for (fac_record_tensor *t = ex->tensors; t && qonnx; t = t->next) t->node = false;
}

static fac_status record(fac_export *ex, fac_error *err) {
    const fac_graph *g = ex->g;
    ex->last_node = &ex->nodes;
    ex->last_tensor = &ex->tensors;
    ex->last_written = &ex->written;
    FAC_TRY(fac_export_names(ex, err));
    for (size_t k = 0; k < g->ninputs; k++)
        FAC_TRY(check_type("input", g->inputs[k]->name, &g->inputs[k]->type, err));
    for (size_t k = 0; k < g->nparams; k++) {
        FAC_TRY(check_type("parameter", g->params[k]->name, &g->params[k]->type, err));
        fac_export_tensor(ex, g->params[k]->name, g->params[k]->tensor);
    }
    for (const fac_node *n = g->first; n; n = n->next) FAC_TRY(fac_export_node(ex, n, err));
    FAC_TRY(add_outputs(ex, err));
    settle_constants(ex);
    return ex->failed ? fac_raise_memory(err, "the nodes") : FAC_OK;
}

/* ---- the file beside it ---- */

/* Places of large tensors one after the other when they do not fit into the model.  The file's end,
 * 0 when there is none. */
static fac_status place(fac_export *ex, const char *path, size_t *end, fac_error *err) {
    const size_t inside = ex->opts->inside ? ex->opts->inside : (size_t)INT_MAX - SPARE;
    const char *slash = strrchr(path, '/'),
               *file = fac_arena_print(&ex->arena, "%s.data", slash ? slash + 1 : path);
    size_t total = 0, at = 0;
    bool fits = true;
    if (!file) return fac_raise_memory(err, "a name");
    for (fac_record_tensor *t = ex->tensors; t && fits; t = t->next)
        fits = fac_size_add(total, fac_onnx_small_bytes(&t->is.t->type), &total);
    for (fac_record_tensor *t = ex->tensors; t && fits && total > inside; t = t->next) {
        size_t bytes = fac_onnx_small_bytes(&t->is.t->type);
        if (bytes < FAC_EXPORT_SMALL || t->is.t->type.dtype == FAC_TEXT) continue;
        t->is.file = file;
        t->is.at = at = (at + PAGE - 1) / PAGE * PAGE;
        fits = fac_size_add(at, bytes + PAGE, &at);
        at -= PAGE;
    }
    *end = at;
    return fits ? FAC_OK : fac_raise(err, FAC_E_UNSUPPORTED, "more tensors than a file can hold");
}

static fac_status put_data(const fac_export *ex, fac_writer *to, fac_error *err) {
    static const char zeros[PAGE];
    size_t at = 0;
    for (const fac_record_tensor *t = ex->tensors; t; t = t->next) {
        if (!t->is.file) continue;
        FAC_TRY(fac_writer_put(to, zeros, t->is.at - at, err));
        FAC_TRY(fac_encode_data(t->is.t, to, err));
        at = t->is.at + fac_onnx_small_bytes(&t->is.t->type);
    }
    return FAC_OK;
}

/* ---- files ---- */

static fac_status put_model(const fac_export *ex, fac_writer *to, size_t *bytes, fac_error *err) {
    pb_ostream_t size = PB_OSTREAM_SIZING;
    fac_sink sink = { to, err, FAC_OK };
    pb_ostream_t s = fac_sink_stream(&sink);
    if (!fac_export_message(&size, ex))
        return fac_raise(err, FAC_E_INTERNAL, "a message that cannot be encoded");
    if (size.bytes_written > INT_MAX)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "a model of %zu bytes without its tensors: protobuf holds 2 GiB",
                         size.bytes_written);
    *bytes = size.bytes_written;
    return fac_sink_status(&sink, fac_export_message(&s, ex));
}

/* Both files are written before either appears. */
static fac_status write_files(const fac_export *ex, const char *path, const char *data,
                              fac_onnx_saved *saved, fac_error *err) {
    fac_writer *model = NULL, *beside = NULL;
    fac_status status = fac_writer_open(path, &model, err);
    if (!status && data) status = fac_writer_open(data, &beside, err);
    if (!status && data) status = put_data(ex, beside, err);
    if (!status) status = put_model(ex, model, &saved->bytes, err);
    if (!status && data) {
        status = fac_writer_close(beside, err);
        beside = NULL;
    }
    if (!status) {
        status = fac_writer_close(model, err);
        model = NULL;
        if (status && data) unlink(data);
    }
    fac_writer_cancel(beside);
    fac_writer_cancel(model);
    return status;
}

/* All but the files. */
static fac_status prepare(fac_export *ex, const fac_graph *g, const char *path, size_t *data,
                          fac_error *err) {
    FAC_TRY(check(g, ex->opts, err));
    FAC_TRY(fac_export_settle(ex, g, err));
    FAC_TRY(record(ex, err));
    return place(ex, path, data, err);
}

static fac_status write_model(fac_export *ex, const char *path, fac_onnx_saved *saved,
                              fac_error *err) {
    const char *data = saved->data ? fac_arena_print(&ex->arena, "%s.data", path) : NULL;
    if (saved->data && !data) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for a name", path);
    FAC_TRY(write_files(ex, path, data, saved, err));
    saved->opset = ex->opset;
    saved->nodes = (int)ex->nnodes;
    saved->tensors = (int)ex->ntensors;
    return FAC_OK;
}

fac_status fac_onnx_save(const fac_graph *g, const char *path, const fac_onnx_save_opts *opts,
                         fac_error *err) {
    fac_export ex = { .opts = opts ? opts : &(fac_onnx_save_opts){ 0 } };
    fac_onnx_saved saved = { 0 };
    fac_status status = prepare(&ex, g, path, &saved.data, err);
    if (status)
        fac_raise_in(err, status, "%s", path);
    else
        status = write_model(&ex, path, &saved, err); /* errors of files say the path */
    if (!status && ex.opts->saved) *ex.opts->saved = saved;
    for (size_t k = 0; k < ex.nowned; k++) fac_tensor_free(ex.owned[k]);
    fac_release(ex.owned);
    fac_table_free(&ex.values);
    fac_table_free(&ex.labels);
    fac_table_free(&ex.counters);
    fac_table_free(&ex.constants);
    fac_table_free(&ex.functions);
    fac_table_free(&ex.function_names);
    fac_graph_free(ex.g);
    fac_arena_free(&ex.arena);
    return status;
}
