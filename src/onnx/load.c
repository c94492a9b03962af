/* Reading a model: file -> messages -> is all of it ours? -> leaves and nodes -> graph. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/content.h"
#include "graph/list.h"
#include "onnx/import.h"
#include "onnx/load.h"
#include "onnx/opaque.h"
#include "tensor/tensor_internal.h"

/* ---- inputs ---- */

/* What a file calls a dim; "" is nameless.  So is what has no letter or digit: "?" stands for
 * any size wherever it stands, and "?3" is what facula calls a nameless one itself. */
static const char *dim_name(const fac_proto_dim *dim) {
    bool says = false;
    for (const char *c = dim->param; *c; c++)
        says |= isalnum((unsigned char)*c) || (unsigned char)*c >= 0x80;
    return says && *dim->param != '?' ? dim->param : "";
}

/* The shape that the caller gives for an input, or NULL. */
static const fac_dims *given(const fac_onnx_opts *opts, const char *name) {
    for (int k = 0; opts && k < opts->n; k++)
        if (!strcmp(opts->inputs[k], name)) return &opts->dims[k];
    return NULL;
}

/* What a caller's sizes say of named dims: a name means the same size wherever it stands. */
static fac_status bind_names(fac_import *im, const fac_proto_value *v, const fac_dims *dims,
                             fac_error *err) {
    const fac_proto_shape *shape = &v->type.dense.shape;
    if (!fac_proto_has(v->type.dense.has, FAC_PROTO_DENSE_SHAPE)) return FAC_OK;
    if ((size_t)dims->n != shape->dims.n)
        return fac_raise(err, FAC_E_SHAPE, "input \"%s\" has %zu dims, its given shape has %d",
                         v->name, shape->dims.n, dims->n);
    for (int k = 0; k < dims->n; k++) {
        const char *param = dim_name(&shape->dims.at[k]);
        int64_t *size = *param ? fac_table_get(&im->bound, param) : NULL;
        if (!*param || dims->d[k] < 0) continue;
        if (size && *size != dims->d[k])
            return fac_raise(err, FAC_E_SHAPE, "dim %s is given as %lld and as %lld", param,
                             (long long)*size, (long long)dims->d[k]);
        if (size) continue;
        size = fac_arena_alloc(&im->arena, 1, sizeof *size);
        if (!size || !fac_table_put(&im->bound, param, size))
            return fac_raise_memory(err, "the inputs");
        *size = dims->d[k];
    }
    return FAC_OK;
}

fac_status fac_import_dims(fac_import *im, const fac_proto_value *v, fac_dims *out,
                           fac_error *err) {
    const fac_proto_shape *shape = &v->type.dense.shape;
    const fac_dims *mine = given(im->opts, v->name);
    bool known = fac_proto_has(v->type.dense.has, FAC_PROTO_DENSE_SHAPE);
    fac_dims d = { 0 };
    if (!known && !mine)
        return fac_raise(err, FAC_E_SHAPE, "input \"%s\" has no shape: one must be given", v->name);
    size_t rank = known ? shape->dims.n : (size_t)mine->n;
    if (rank > FAC_DIMS)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "input \"%s\" has %zu dims, at most %d are supported", v->name, rank,
                         FAC_DIMS);
    for (d.n = 0; d.n < (int)rank; d.n++) {
        const fac_proto_dim *dim = known ? &shape->dims.at[d.n] : &(fac_proto_dim){ .param = "" };
        const char *param = dim_name(dim);
        const int64_t *size = *param ? fac_table_get(&im->bound, param) : NULL;
        int64_t *to = &d.d[d.n];
        if (mine && mine->d[d.n] >= 0)
            *to = mine->d[d.n];
        else if (size)
            *to = *size;
        else if (*param)
            *to = fac_symbol(im->g, param);
        else if (fac_proto_has(dim->has, FAC_PROTO_DIM_VALUE) && dim->value >= 0)
            *to = dim->value;
        else if (fac_proto_has(dim->has, FAC_PROTO_DIM_VALUE) &&
                 dim->value < -1) /* some exporters write -1: unknown */
            return fac_raise(err, FAC_E_FORMAT, "input \"%s\" has a dim of %lld", v->name,
                             (long long)dim->value);
        else
            *to = fac_symbol(im->g, NULL);
    }
    *out = d;
    return FAC_OK;
}

static fac_status input_value(fac_body *b, const fac_proto_value *v, fac_value **out,
                              fac_error *err) {
    fac_import *im = b->im;
    fac_dims dims;
    if (!fac_proto_has(v->type.has, FAC_PROTO_TYPE_DENSE) || !v->type.dense.type)
        return fac_raise(err, FAC_E_FORMAT, "input \"%s\" has no type", v->name);
    FAC_TRY(fac_import_dims(im, v, &dims, err));
    *out = fac_input(im->g, v->name, fac_proto_dtype(v->type.dense.type), dims);
    return fac_graph_check(im->g, err);
}

static const fac_onnx_sequence *list_of(const fac_onnx_opts *o, const char *name) {
    for (int k = 0; o && k < o->nlists; k++)
        if (!strcmp(o->lists[k].name, name)) return &o->lists[k];
    return NULL;
}

static bool is_sequence(const fac_proto_value *v) {
    return fac_proto_has(v->type.has, FAC_PROTO_TYPE_SEQUENCE);
}

/* An input for each element.  The one element of an optional tensor has its name. */
static fac_status list_value(fac_body *b, const fac_proto_value *v, const fac_onnx_sequence *l,
                             fac_value **out, fac_error *err) {
    fac_graph *g = b->im->g;
    const bool alone = !is_sequence(v) && l->n == 1 && !l->sequence;
    fac_value **all = fac_arena_alloc(&b->im->arena, l->n > 0 ? (size_t)l->n : 1, sizeof *all);
    if (!all) return fac_raise_memory(err, "the inputs");
    for (int k = 0; k < l->n; k++) {
        const char *name = alone ? v->name : fac_arena_print(&b->im->arena, "%s.%d", v->name, k);
        if (!name) return fac_raise_memory(err, "the inputs");
        all[k] = fac_input(g, name, l->types[k].dtype, l->types[k].dims);
    }
    if (l->n < 0)
        *out = fac_list_nothing(g);
    else
        *out = alone ? all[0] : fac_list_new(g, l->n, all);
    return fac_graph_check(g, err);
}

/* The contents that an input has for good. */
static const fac_tensor *fixed(const fac_onnx_opts *o, const char *name) {
    for (int k = 0; o && k < o->nfixed; k++)
        if (!strcmp(o->fixed[k], name)) return o->contents[k];
    return NULL;
}

static fac_status fixed_value(fac_body *b, const fac_tensor *from, const char *name,
                              fac_value **out, fac_error *err) {
    fac_tensor *copy = NULL;
    FAC_TRY(fac_tensor_copy_contiguous(from, &copy, err));
    *out = fac_const(b->im->g, copy);
    fac_value_name_set(*out, name);
    fac_tensor_free(copy);
    return fac_graph_check(b->im->g, err);
}

static fac_status any_input(fac_body *b, const fac_proto_value *v, fac_value **out,
                            fac_error *err) {
    const fac_onnx_sequence *list = list_of(b->im->opts, v->name);
    const fac_tensor *known = fixed(b->im->opts, v->name);
    if (list) return list_value(b, v, list, out, err);
    return known ? fixed_value(b, known, v->name, out, err) : input_value(b, v, out, err);
}

static fac_status add_input(fac_body *b, const fac_proto_value *v, fac_error *err) {
    const fac_import *im = b->im;
    fac_value *made = NULL;
    FAC_TRY(fac_body_define(b, v->name,
                            (fac_definition){ .maker = FAC_MADE_OUTSIDE, .ready = true }, err));
    fac_status status = any_input(b, v, &made, err);
    if (status && status != FAC_E_NOMEM && fac_import_lenient(im))
        status = fac_import_opaque_input(b, v, &made, err);
    fac_definition *d = fac_table_get(&b->names, v->name);
    d->value = made;
    return status;
}

/* An input with an initializer of its name (every weight, up to IR 3) has that value, and is no
 * input of ours. */
static bool has_tensor(const fac_body *b, const char *name) {
    const fac_definition *d = fac_table_get(&b->names, name);
    return d && d->maker == FAC_MADE_BY_TENSOR;
}

static fac_status add_inputs(fac_body *b, fac_error *err) {
    fac_import *im = b->im;
    const fac_proto_values *in = &im->model.graph.in;
    for (int k = 0; im->opts && k < im->opts->n; k++) {
        size_t i = 0;
        while (i < in->n && strcmp(in->at[i].name, im->opts->inputs[k])) i++;
        if (i == in->n || has_tensor(b, im->opts->inputs[k]))
            return fac_raise(err, FAC_E_ARGUMENT, "a shape is given for \"%s\", which is no input",
                             im->opts->inputs[k]);
        FAC_TRY(bind_names(im, &in->at[i], &im->opts->dims[k], err));
    }
    for (size_t k = 0; k < in->n; k++)
        if (!has_tensor(b, in->at[k].name)) FAC_TRY(add_input(b, &in->at[k], err));
    return FAC_OK;
}

/* ---- the main graph ---- */

/* An initializer that is also an input, and shall be one. */
static bool is_overridden(const fac_import *im, const char *name) {
    const fac_proto_values *in = &im->model.graph.in;
    bool asked = false;
    for (int k = 0; im->opts && k < im->opts->noverridden && !asked; k++)
        asked = !strcmp(im->opts->overridden[k], name);
    for (size_t k = 0; k < in->n && asked; k++)
        if (!strcmp(in->at[k].name, name)) return true;
    return false;
}

static fac_status add_tensors(fac_body *b, fac_error *err) {
    const fac_proto_graph *g = &b->im->model.graph;
    for (size_t k = 0; k < g->tensors.n; k++) {
        const fac_proto_tensor *t = &g->tensors.at[k];
        if (!*t->name) return fac_raise(err, FAC_E_FORMAT, "initializer %zu has no name", k);
        if (is_overridden(b->im, t->name)) continue;
        FAC_TRY(fac_body_define(b, t->name,
                                (fac_definition){ .maker = FAC_MADE_BY_TENSOR, .tensor = t }, err));
    }
    return FAC_OK;
}

/* PyTorch's exporter lists a value as often as a model returns it; it is one output. */
static bool listed_before(const fac_proto_values *out, size_t k) {
    for (size_t j = 0; j < k; j++)
        if (!strcmp(out->at[j].name, out->at[k].name)) return true;
    return false;
}

static fac_status add_outputs(fac_body *b, fac_error *err) {
    fac_import *im = b->im;
    const fac_proto_values *out = &im->model.graph.out;
    if (!out->n) return fac_raise(err, FAC_E_FORMAT, "the graph has no outputs");
    for (size_t k = 0; k < out->n; k++) {
        fac_value *v;
        if (listed_before(out, k)) continue;
        FAC_TRY(fac_body_value(b, out->at[k].name, NULL, 0, &v, err));
        if (fac_is_list(v))
            fac_list_output(im->g, out->at[k].name, v);
        else
            fac_output(im->g, out->at[k].name, v);
        FAC_TRY(fac_graph_check(im->g, err));
    }
    return FAC_OK;
}

static fac_status build(fac_import *im, fac_error *err) {
    fac_body b = {
        .im = im, .nodes = &im->model.graph.nodes, .opsets = &im->model.opsets, .g = im->g
    };
    fac_status status = add_tensors(&b, err);
    if (!status) status = add_inputs(&b, err);
    if (!status) status = fac_body_build(&b, err);
    if (!status) status = add_outputs(&b, err);
    if (!status && fac_has_lists(im->g))
        fac_graph_sweep(im->g); /* they are no values of a program */
    if (!status && im->look) status = im->look(im->look_self, &b, err);
    fac_body_close(&b);
    return status;
}

/* ---- the cover ---- */

/* Fields after the pairs: a pair under the name of a field says less than the field. */
static void add_notes(fac_import *im) {
    const fac_proto_model *m = &im->model;
    const struct {
        const char *key, *text;
    } fields[] = { { FAC_NOTE_NAME, m->graph.name },
                   { FAC_NOTE_DOC, m->doc },
                   { FAC_NOTE_PRODUCER, m->producer },
                   { FAC_NOTE_PRODUCER_VERSION, m->producer_version },
                   { FAC_NOTE_DOMAIN, m->domain } };
    char version[24];
    for (size_t k = 0; k < m->metadata.n; k++)
        if (*m->metadata.at[k].key)
            fac_graph_set_note(im->g, m->metadata.at[k].key, m->metadata.at[k].value);
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
        fac_graph_set_note(im->g, fields[k].key, *fields[k].text ? fields[k].text : NULL);
    snprintf(version, sizeof version, "%lld", (long long)m->version);
    fac_graph_set_note(im->g, FAC_NOTE_VERSION, m->version ? version : NULL);
}

/* ---- the road ---- */

enum {
    OLDEST_IR = 3,
    EXPANSION = 1 << 18 /* nodes that calls of functions may add to those of the file */
};

static fac_status read_model(fac_import *im, fac_error *err) {
    const fac_proto_model *m = &im->model;
    fac_status status =
        fac_proto_read_model(fac_source_bytes(&im->files), &im->arena, &im->model, err);
    const fac_bytes all = fac_source_bytes(&im->files);
    const fac_content is = fac_content_of(all.p, all.n);
    if (status == FAC_E_FORMAT && is.name && is.kind != FAC_CONTENT_MODEL)
        return fac_raise(err, status, "not an ONNX model, but %s", is.name);
    if (status == FAC_E_FORMAT) return fac_raise_in(err, status, "not an ONNX model");
    if (status) return status;
    if (!fac_proto_has(m->has, FAC_PROTO_MODEL_GRAPH) || m->ir < 1)
        return fac_raise(err, FAC_E_FORMAT, "not an ONNX model: it has no %s",
                         m->ir < 1 ? "IR version" : "graph");
    if (m->ir < OLDEST_IR)
        return fac_raise(err, FAC_E_UNSUPPORTED, "IR version %lld; %d and later are supported",
                         (long long)m->ir, OLDEST_IR);
    im->budget = m->graph.nodes.n + EXPANSION;
    return FAC_OK;
}

static fac_status road(fac_import *im, fac_graph **out, fac_error *err) {
    FAC_TRY(read_model(im, err));
    FAC_TRY(fac_import_tables(im, err));
    FAC_TRY(fac_import_scan(im, err));
    im->g = fac_graph_new();
    if (!im->g) return fac_raise_memory(err, "a graph");
    add_notes(im);
    if (fac_import_lenient(im)) FAC_TRY(fac_import_declared(im, err));
    FAC_TRY(build(im, err));
    *out = im->g;
    im->g = NULL;
    return FAC_OK;
}

fac_status fac_import_run(fac_import *im, fac_graph **out, fac_error *err) {
    fac_status status = road(im, out, err);
    fac_graph_free(im->g);
    for (size_t k = 0; k < im->ntensors; k++) fac_tensor_free(im->tensors[k]);
    fac_release(im->tensors);
    fac_table_free(&im->spellings);
    fac_table_free(&im->functions);
    fac_table_free(&im->bound);
    fac_table_free(&im->declared);
    fac_table_free(&im->labels);
    fac_source_close(&im->files);
    fac_arena_free(&im->arena);
    return status;
}

fac_status fac_onnx_load_files(fac_source_files *files, const fac_onnx_opts *opts, fac_graph **out,
                               fac_error *err) {
    fac_import im = { .opts = opts, .files = *files };
    fac_status status = fac_import_run(&im, out, err);
    *files = (fac_source_files){ 0 };
    return status;
}

fac_status fac_onnx_load(const char *path, const fac_onnx_opts *opts, fac_graph **out,
                         fac_error *err) {
    fac_source_files files;
    struct stat root;
    const char *link_root = opts ? opts->link_root : NULL;
    if (link_root && (stat(link_root, &root) || !S_ISDIR(root.st_mode)))
        return fac_raise(err, FAC_E_IO, "%s: is no folder that links could lead to", link_root);
    FAC_TRY(fac_source_open(path, &files, err));
    files.link_root = link_root;
    fac_status status = fac_onnx_load_files(&files, opts, out, err);
    return status ? fac_raise_in(err, status, "%s", path) : FAC_OK;
}
