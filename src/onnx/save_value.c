/* What an ONNX node reads: names of constants and of values, made when a save() asks. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/onnx_write.h"
#include "onnx/export.h"
#include "onnx/source.h"
#include "op_list.h"

/* ---- constants ---- */

void *fac_export_get(fac_export *ex, size_t n, size_t size) {
    void *p = fac_arena_alloc(&ex->arena, n, size);
    ex->failed |= !p;
    return p;
}

fac_record_tensor *fac_export_tensor(fac_export *ex, const char *name, const fac_tensor *t) {
    fac_record_tensor *r = fac_export_get(ex, 1, sizeof *r);
    if (!r) return NULL;
    r->is = (fac_encode_tensor){ .t = t, .name = name };
    *ex->last_tensor = r;
    ex->last_tensor = &r->next;
    ex->ntensors++;
    return r;
}

/* Type and contents of a small constant in letters; NULL when memory is gone. */
static const char *key_of(fac_export *ex, const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const unsigned char *bytes = fac_tensor_data(t);
    fac_text key = { 0 };
    fac_text_print(&key, "%d", (int)type.dtype);
    for (int k = 0; k < type.dims.n; k++) fac_text_print(&key, ",%lld", (long long)type.dims.d[k]);
    fac_text_add(&key, ":");
    for (size_t k = 0; k < fac_type_bytes(&type); k++) fac_text_print(&key, "%02x", bytes[k]);
    const char *copy = key.failed ? NULL : fac_arena_text(&ex->arena, key.s);
    fac_text_free(&key);
    return copy;
}

static const char *keep(fac_export *ex, fac_tensor *t, const char *key) {
    const char *name = fac_export_fresh(ex, &ex->values, "const");
    if (!fac_reserve(&ex->owned, &ex->room_owned, ex->nowned + 1, sizeof *ex->owned) ||
        (key && !fac_table_put(&ex->constants, key, (void *)(uintptr_t)name))) {
        ex->failed = true;
        fac_tensor_free(t);
        return "";
    }
    ex->owned[ex->nowned++] = t;
    fac_export_tensor(ex, name, t);
    return name;
}

/* A constant that the graph does not have, or the equal one that was made before; the exporter owns
 * it. */
static const char *made(fac_export *ex, fac_status status, fac_tensor *t) {
    enum { SMALL = 64 };
    fac_type type = status ? (fac_type){ 0 } : fac_tensor_type(t);
    const bool small = !status && fac_type_bytes(&type) <= SMALL;
    const char *key = small ? key_of(ex, t) : NULL,
               *same = key ? fac_table_get(&ex->constants, key) : NULL;
    if (!status && !same && (key || !small)) return keep(ex, t, key);
    ex->failed |= !same;
    if (!status) fac_tensor_free(t);
    return same ? same : "";
}

const char *fac_onnx_list(const fac_onnx_writer *w, int n, const int64_t *numbers) {
    fac_export *ex = fac_export_of(w);
    fac_tensor *t = NULL;
    if (ex->dry) return "";
    fac_status status = fac_tensor_new(NULL, FAC_I64, fac_shape(n), &t, NULL);
    if (!status) status = fac_tensor_write(t, numbers, (size_t)n * sizeof *numbers, NULL);
    return made(ex, status, t);
}

const char *fac_onnx_reals_list(const fac_onnx_writer *w, int n, const double *numbers) {
    fac_export *ex = fac_export_of(w);
    fac_tensor *wide = NULL, *t = NULL;
    if (ex->dry) return "";
    fac_status status = fac_tensor_new(NULL, FAC_F64, fac_shape(n), &wide, NULL);
    if (!status)
        status =
            fac_tensor_write(wide, n ? numbers : &(double){ 0 }, (size_t)n * sizeof *numbers, NULL);
    if (!status) status = fac_tensor_convert(wide, FAC_F32, &t, NULL);
    fac_tensor_free(wide);
    return made(ex, status, t);
}

const char *fac_onnx_full(const fac_onnx_writer *w, fac_dtype dtype, fac_dims dims, double x) {
    fac_export *ex = fac_export_of(w);
    fac_tensor *number = NULL, *right = NULL, *all = NULL, *t = NULL;
    enum { MOST = 1 << 24 }; /* elements: what is full of one number should not make a large file */
    ex->impossible |= fac_dims_count(&dims) < 0 || fac_dims_count(&dims) > MOST;
    if (ex->dry || ex->impossible) return "";
    static const int64_t same[FAC_DIMS];
    fac_status status = fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &number, NULL);
    if (!status) status = fac_tensor_write(number, &x, sizeof x, NULL);
    if (!status) status = fac_tensor_convert(number, dtype, &right, NULL);
    if (!status) status = fac_tensor_view(right, dims, same, 0, &all, NULL);
    if (!status) status = fac_tensor_convert(all, dtype, &t, NULL);
    fac_tensor_free(number);
    fac_tensor_free(right);
    fac_tensor_free(all);
    return made(ex, status, t);
}

const char *fac_onnx_number(const fac_onnx_writer *w, fac_dtype dtype, double x) {
    return fac_onnx_full(w, dtype, (fac_dims){ 0 }, x);
}

/* ---- values ---- */

/* A value made before the node at hand that has this symbol as a dim, and which dim. */
static const fac_value *with_dim(const fac_export *ex, int64_t symbol, int *dim) {
    const fac_graph *g = ex->node->graph;
    for (size_t i = 0; i < g->ninputs; i++)
        for (*dim = 0; *dim < g->inputs[i]->type.dims.n; ++*dim)
            if (g->inputs[i]->type.dims.d[*dim] == symbol) return g->inputs[i];
    for (const fac_node *n = g->first; n && n != ex->node; n = n->next)
        for (int k = 0; k < n->nout; k++)
            for (*dim = 0; *dim < n->out[k]->type.dims.n; ++*dim)
                if (n->out[k]->type.dims.d[*dim] == symbol && (n->out[k]->uses || n->out[k]->roots))
                    return n->out[k];
    return NULL;
}

/* i64[1] with the size of a symbol. */
static const char *size_of(const fac_onnx_writer *w, int64_t symbol) {
    int dim = 0;
    fac_export *ex = fac_export_of(w);
    const fac_value *v = with_dim(ex, symbol, &dim);
    ex->impossible |= !v;
    if (!v || ex->dry) return "";
    const char *shape = fac_onnx_put(w, "Shape", 1, (const char *[]){ fac_onnx_name(w, v) }, NULL);
    return fac_onnx_put(w, "Gather", 2,
                        (const char *[]){ shape, fac_onnx_list(w, 1, &(int64_t){ dim }) }, NULL);
}

/* A list of numbers and symbols: runs of numbers are constants, symbols come from shapes. */
static const char *symbolic_list(const fac_onnx_writer *w, const fac_contents *c) {
    const char *parts[FAC_KNOWN];
    int n = 0;
    for (int k = 0; k < c->n;) {
        int from = k;
        while (k < c->n && !(c->symbolic >> k & 1)) k++;
        parts[n++] = k > from ? fac_onnx_list(w, k - from, c->v + from) : size_of(w, c->v[k++]);
    }
    if (n == 1) return parts[0];
    const char *list = fac_onnx_put(w, "Concat", n, parts, NULL);
    fac_onnx_put_int(w, "axis", 0);
    return list;
}

/* Readers take an initializer of floats for a parameter: floats that are none, and are few, are a
 * Constant node. */
static bool is_node(const fac_type *t) {
    return fac_dtype_get(t->dtype)->kind == 'f' && t->dims.n > 0 &&
           fac_type_bytes(t) < FAC_EXPORT_SMALL;
}

static const char *name_constant(const fac_onnx_writer *w, const fac_value *v) {
    fac_export *ex = fac_export_of(w);
    if (!v->tensor) return symbolic_list(w, v->known);
    ex->impossible |= !fac_proto_dtype_number(v->type.dtype);
    if (ex->dry) return "";
    const char *name = fac_export_fresh(ex, &ex->values, v->name ? v->name : "const");
    fac_record_tensor *r = fac_export_tensor(ex, name, v->tensor);
    if (r) r->node = is_node(&v->type);
    return name;
}

static const char *name_result(fac_export *ex, const fac_value *v) {
    if (v->name && !fac_table_get(&ex->values, v->name))
        return fac_export_fresh(ex, &ex->values, v->name);
    const char *label = fac_export_label(ex, v->node);
    if (v->index) label = fac_arena_print(&ex->arena, "%s.%d", label, v->index);
    ex->failed |= !label;
    return label ? fac_export_fresh(ex, &ex->values, label) : "";
}

const char *fac_onnx_name(const fac_onnx_writer *w, const fac_value *v) {
    fac_export *ex = fac_export_of(w);
    if (!v || (v->node == ex->node && v->node && !v->uses && !v->roots)) return NULL;
    if (ex->dry) return v->leaf == FAC_CONST ? name_constant(w, v) : "";
    const char **name = &ex->name_of[v->id];
    if (!*name) *name = v->leaf == FAC_CONST ? name_constant(w, v) : name_result(ex, v);
    return *name;
}

const char *fac_onnx_ranked(const fac_onnx_writer *w, const fac_value *v, int rank) {
    if (!v || v->type.dims.n == rank) return fac_onnx_name(w, v);
    const char *shape = fac_onnx_list(w, rank, &(int64_t){ -1 });
    return fac_onnx_put(w, "Reshape", 2, (const char *[]){ fac_onnx_name(w, v), shape }, NULL);
}

const char *fac_export_cast(const fac_onnx_writer *w, const char *x, fac_dtype to) {
    x = fac_onnx_put(w, "Cast", 1, &x, NULL);
    fac_onnx_put_dtype(w, "to", to);
    return x;
}

const char *fac_onnx_list_of(const fac_onnx_writer *w, const fac_value *v) {
    const char *name = fac_onnx_ranked(w, v, 1);
    return v && v->type.dtype != FAC_I64 ? fac_export_cast(w, name, FAC_I64) : name;
}

const char *fac_onnx_indices(const fac_onnx_writer *w, const fac_value *v) {
    const char *name = fac_onnx_name(w, v);
    return v && v->type.dtype != FAC_I64 && v->type.dtype != FAC_I32
               ? fac_export_cast(w, name, FAC_I64)
               : name;
}

const char *fac_onnx_fresh(const fac_onnx_writer *w) {
    fac_export *ex = fac_export_of(w);
    return ex->dry ? "" : fac_export_fresh(ex, &ex->values, fac_export_label(ex, ex->node));
}
