/* The cover of a model: versions, who made it, how much is in it. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "facula/onnx.h"
#include "onnx/proto.h"
#include "onnx/source.h"

static void list_opsets(const fac_proto_opsets *o, char *to, size_t size) {
    size_t used = 0;
    to[0] = 0;
    for (size_t k = 0; k < o->n && used < size; k++)
        used += (size_t)snprintf(to + used, size - used, "%s%s %lld", k ? ", " : "",
                                 *o->at[k].domain ? o->at[k].domain : "ai.onnx",
                                 (long long)o->at[k].version);
}

static fac_status read_about(fac_bytes file, fac_onnx_about *out, fac_error *err) {
    fac_arena arena = { 0 };
    fac_proto_model m;
    fac_status status = fac_proto_read_model(file, &arena, &m, err);
    if (!status && (!fac_proto_has(m.has, FAC_PROTO_MODEL_GRAPH) || m.ir < 1))
        status = fac_raise(err, FAC_E_FORMAT, "not an ONNX model: it has no %s",
                           m.ir < 1 ? "IR version" : "graph");
    if (!status) {
        fac_onnx_about a = { .ir = m.ir,
                             .nodes = (int64_t)m.graph.nodes.n,
                             .initializers = (int64_t)m.graph.tensors.n,
                             .functions = (int64_t)m.functions.n };
        snprintf(a.producer, sizeof a.producer, "%s", m.producer);
        list_opsets(&m.opsets, a.opsets, sizeof a.opsets);
        *out = a;
    }
    fac_arena_free(&arena);
    return status;
}

fac_status fac_onnx_read_about(const char *path, fac_onnx_about *out, fac_error *err) {
    fac_source_files files;
    FAC_TRY(fac_source_open(path, &files, err));
    fac_status status = read_about(fac_source_bytes(&files), out, err);
    fac_source_close(&files);
    return status ? fac_raise_in(err, status, "%s", path) : FAC_OK;
}

/* ---- the files beside it ---- */

static void see_all(const fac_proto_model *m, void (*see)(void *self, const char *location),
                    void *self) {
    for (size_t i = 0; i < m->graph.tensors.n; i++) {
        const fac_proto_tensor *t = &m->graph.tensors.at[i];
        for (size_t k = 0; k < t->external.n; k++)
            if (!strcmp(t->external.at[k].key, "location")) see(self, t->external.at[k].value);
    }
}

fac_status fac_onnx_beside(const char *path, void (*see)(void *self, const char *location),
                           void *self, fac_error *err) {
    fac_source_files files;
    fac_arena arena = { 0 };
    fac_proto_model m;
    FAC_TRY(fac_source_open(path, &files, err));
    const fac_status status = fac_proto_read_model(fac_source_bytes(&files), &arena, &m, err);
    if (!status) see_all(&m, see, self);
    fac_arena_free(&arena);
    fac_source_close(&files);
    return status ? fac_raise_in(err, status, "%s", path) : FAC_OK;
}

/* ---- its ports ---- */

static fac_onnx_kind kind_of(const fac_proto_type *t) {
    if (fac_proto_has(t->has, FAC_PROTO_TYPE_SEQUENCE)) return FAC_ONNX_SEQUENCE;
    if (fac_proto_has(t->has, FAC_PROTO_TYPE_OPTIONAL)) return FAC_ONNX_OPTIONAL;
    if (fac_proto_has(t->has, FAC_PROTO_TYPE_MAP)) return FAC_ONNX_MAP;
    return fac_proto_has(t->has, FAC_PROTO_TYPE_DENSE) || !t->has ? FAC_ONNX_TENSOR
                                                                  : FAC_ONNX_OTHER;
}

static bool is_stored(const fac_proto_graph *g, const char *name) {
    for (size_t k = 0; k < g->tensors.n; k++)
        if (!strcmp(g->tensors.at[k].name, name)) return true;
    return false;
}

static void see_ports(const fac_proto_graph *g,
                      void (*see)(void *, bool, const char *, fac_onnx_kind), void *self) {
    for (size_t k = 0; k < g->in.n; k++)
        if (!is_stored(g, g->in.at[k].name))
            see(self, false, g->in.at[k].name, kind_of(&g->in.at[k].type));
    for (size_t k = 0; k < g->out.n; k++)
        see(self, true, g->out.at[k].name, kind_of(&g->out.at[k].type));
}

fac_status fac_onnx_ports(const char *path,
                          void (*see)(void *self, bool output, const char *name,
                                      fac_onnx_kind kind),
                          void *self, fac_error *err) {
    fac_source_files files;
    fac_arena arena = { 0 };
    fac_proto_model m;
    FAC_TRY(fac_source_open(path, &files, err));
    const fac_status status = fac_proto_read_model(fac_source_bytes(&files), &arena, &m, err);
    if (!status) see_ports(&m.graph, see, self);
    fac_arena_free(&arena);
    fac_source_close(&files);
    return status ? fac_raise_in(err, status, "%s", path) : FAC_OK;
}
