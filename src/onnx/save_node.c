/* One node as ONNX nodes: what the save() of an op calls, and how ops are said that have none. */
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

void fac_export_tensor(fac_export *ex, const char *name, const fac_tensor *t) {
    fac_record_tensor *r = fac_export_get(ex, 1, sizeof *r);
    if (!r) return;
    r->is = (fac_encode_tensor){ .t = t, .name = name };
    *ex->last_tensor = r;
    ex->last_tensor = &r->next;
    ex->ntensors++;
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

static const char *name_constant(const fac_onnx_writer *w, const fac_value *v) {
    fac_export *ex = fac_export_of(w);
    if (!v->tensor) return symbolic_list(w, v->known);
    ex->impossible |= !fac_proto_dtype_number(v->type.dtype);
    if (ex->dry) return "";
    const char *name = fac_export_fresh(ex, &ex->values, v->name ? v->name : "const");
    fac_export_tensor(ex, name, v->tensor);
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

static const char *cast(const fac_onnx_writer *w, const char *x, fac_dtype to) {
    x = fac_onnx_put(w, "Cast", 1, &x, NULL);
    fac_onnx_put_dtype(w, "to", to);
    return x;
}

const char *fac_onnx_list_of(const fac_onnx_writer *w, const fac_value *v) {
    const char *name = fac_onnx_ranked(w, v, 1);
    return v && v->type.dtype != FAC_I64 ? cast(w, name, FAC_I64) : name;
}

const char *fac_onnx_indices(const fac_onnx_writer *w, const fac_value *v) {
    const char *name = fac_onnx_name(w, v);
    return v && v->type.dtype != FAC_I64 && v->type.dtype != FAC_I32 ? cast(w, name, FAC_I64)
                                                                     : name;
}

const char *fac_onnx_fresh(const fac_onnx_writer *w) {
    fac_export *ex = fac_export_of(w);
    return ex->dry ? "" : fac_export_fresh(ex, &ex->values, fac_export_label(ex, ex->node));
}

/* ---- nodes ---- */

/* The version of a domain's operators that is written: that of the op's own spelling. */
static int64_t version_of(const fac_op *op, const char *domain) {
    enum { ML = 4 };
    for (const fac_onnx *how = op ? op->onnx : NULL; how && how->type; how++)
        if (!strcmp(how->domain, domain)) return how->since;
    return strcmp(domain, "ai.onnx.ml") ? 1 : ML;
}

static void use_domain(fac_export *ex, const char *domain) {
    const int64_t version = version_of(ex->node->op, domain);
    for (int k = 0; k < ex->ndomains; k++) {
        if (strcmp(ex->domains[k].name, domain)) continue;
        if (version > ex->domains[k].version) ex->domains[k].version = version;
        return;
    }
    ex->impossible |= ex->ndomains == (int)(sizeof ex->domains / sizeof *ex->domains);
    if (!ex->impossible) ex->domains[ex->ndomains++] = (fac_record_domain){ domain, version };
}

/* "ai.onnx.ml:Scaler": what stands before the colon; NULL: nothing does. */
static const char *domain_in(fac_export *ex, const char **type) {
    const char *colon = strrchr(*type, ':');
    if (!colon) return NULL;
    char *domain = fac_export_get(ex, (size_t)(colon - *type) + 1, 1);
    if (domain) memcpy(domain, *type, (size_t)(colon - *type));
    *type = colon + 1;
    if (domain) use_domain(ex, domain);
    return domain;
}

const char *fac_onnx_put(const fac_onnx_writer *w, const char *type, int n, const char *const in[],
                         const char *out) {
    fac_export *ex = fac_export_of(w);
    if (ex->dry && !fac_export_takes(type, ex->opset, ex->node)) ex->lacking = type;
    if (ex->dry) return "";
    while (n && !in[n - 1]) n--;
    const char *domain = domain_in(ex, &type);
    fac_record_node *r = fac_export_get(ex, 1, sizeof *r);
    const char **names = fac_export_get(ex, (size_t)n, sizeof *names),
               *label = fac_export_label(ex, ex->node);
    if (out != fac_onnx_name(w, ex->node->out[0]))
        label = fac_arena_print(&ex->arena, "%s.%s", label, type);
    if (!out) out = fac_export_fresh(ex, &ex->values, label ? label : "");
    if (!r || !names || !label) {
        ex->failed = true;
        return "";
    }
    for (int k = 0; k < n; k++) names[k] = in[k] ? in[k] : "";
    *r = (fac_record_node){ .type = type,
                            .domain = domain,
                            .name = fac_export_fresh(ex, &ex->labels, label),
                            .in = names,
                            .nin = n,
                            .out = { .name = out } };
    r->last_out = &r->out;
    r->last_attr = &r->attrs;
    *ex->last_node = ex->at = r;
    ex->last_node = &r->next;
    ex->nnodes++;
    return out;
}

void fac_onnx_put_out(const fac_onnx_writer *w, const char *out) {
    fac_export *ex = fac_export_of(w);
    fac_record_out *o = ex->dry || !ex->at ? NULL : fac_export_get(ex, 1, sizeof *o);
    if (!o) return;
    o->name = out ? out : "";
    ex->at->last_out->next = o;
    ex->at->last_out = o;
}

/* ---- attributes ---- */

static void put_attr(const fac_onnx_writer *w, fac_record_attr a) {
    fac_export *ex = fac_export_of(w);
    fac_record_attr *r = ex->dry || !ex->at ? NULL : fac_export_get(ex, 1, sizeof *r);
    if (!r) return;
    *r = a;
    *ex->at->last_attr = r;
    ex->at->last_attr = &r->next;
}

void fac_onnx_put_int(const fac_onnx_writer *w, const char *attr, int64_t x) {
    put_attr(w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_INT, .i = x });
}

void fac_onnx_put_real(const fac_onnx_writer *w, const char *attr, double x) {
    put_attr(w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_FLOAT, .f = x });
}

void fac_onnx_put_text(const fac_onnx_writer *w, const char *attr, const char *text) {
    put_attr(w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_STRING, .text = text });
}

void fac_onnx_put_dtype(const fac_onnx_writer *w, const char *attr, fac_dtype dtype) {
    fac_export_of(w)->impossible |= !fac_proto_dtype_number(dtype);
    fac_onnx_put_int(w, attr, fac_proto_dtype_number(dtype));
}

static void *copied(const fac_onnx_writer *w, int n, size_t size, const void *from) {
    fac_export *ex = fac_export_of(w);
    void *to = ex->dry ? NULL : fac_export_get(ex, (size_t)n, size);
    if (to && n) memcpy(to, from, (size_t)n * size);
    return to;
}

void fac_onnx_put_ints(const fac_onnx_writer *w, const char *attr, int n, const int64_t *numbers) {
    int64_t *copy = copied(w, n, sizeof *copy, numbers);
    if (copy)
        put_attr(w,
                 (fac_record_attr){ .name = attr, .kind = FAC_PROTO_INTS, .ints = copy, .n = n });
}

void fac_onnx_put_reals(const fac_onnx_writer *w, const char *attr, int n, const double *numbers) {
    double *copy = copied(w, n, sizeof *copy, numbers);
    if (copy)
        put_attr(
            w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_FLOATS, .reals = copy, .n = n });
}

void fac_onnx_put_texts(const fac_onnx_writer *w, const char *attr, int n,
                        const char *const *texts) {
    const char **copy = copied(w, n, sizeof *copy, texts);
    if (copy)
        put_attr(
            w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_STRINGS, .texts = copy, .n = n });
}

void fac_onnx_put_tensor(const fac_onnx_writer *w, const char *attr, fac_tensor *t) {
    fac_export *ex = fac_export_of(w);
    ex->failed |= !t;
    if (!t) return;
    if (ex->dry || !fac_reserve(&ex->owned, &ex->room_owned, ex->nowned + 1, sizeof *ex->owned)) {
        ex->failed |= !ex->dry;
        fac_tensor_free(t);
        return;
    }
    ex->owned[ex->nowned++] = t;
    put_attr(w, (fac_record_attr){ .name = attr, .kind = FAC_PROTO_TENSOR, .tensor = t });
}

/* ---- by the tables ---- */

/* An operator of a domain of its own has that domain's versions, of which the newest is written. */
const fac_onnx *fac_export_spelling(const fac_op *op, int opset) {
    for (const fac_onnx *how = op->onnx; how && how->type; how++)
        if (!*how->domain && how->since <= opset && (!how->until || opset <= how->until))
            return how;
    for (const fac_onnx *how = op->onnx; how && how->type; how++)
        if (*how->domain && !how->load && !how->until) return how;
    return NULL;
}

/* "com.example:Softcap". */
static const char *full_type(fac_export *ex, const fac_onnx *how) {
    const char *type =
        *how->domain ? fac_arena_print(&ex->arena, "%s:%s", how->domain, how->type) : how->type;
    ex->failed |= !type;
    return type ? type : how->type;
}

static const char *onnx_name_of(const fac_onnx *how, const char *ours) {
    for (const fac_onnx_attr *r = how->rename; r && r->onnx; r++)
        if (r->ours && !strcmp(r->ours, ours)) return r->onnx;
    return ours;
}

static void put_by_table(const fac_onnx_writer *w, const fac_attr *a, const char *name,
                         const void *attrs) {
    const void *at = (const char *)attrs + a->at;
    const fac_dims *d = at;
    switch (a->kind) {
    case FAC_A_INT:
        if (a->count)
            fac_onnx_put_ints(w, name, a->count, at);
        else
            fac_onnx_put_int(w, name, *(const int64_t *)at);
        return;
    case FAC_A_REAL:
        if (a->count)
            fac_onnx_put_reals(w, name, a->count, at);
        else
            fac_onnx_put_real(w, name, *(const double *)at);
        return;
    case FAC_A_FLAG:
        fac_onnx_put_int(w, name, *(const bool *)at);
        return;
    case FAC_A_ENUM:
        fac_onnx_put_text(w, name, a->choices[*(const int *)at]);
        return;
    case FAC_A_DTYPE:
        if (*(const fac_dtype *)at) fac_onnx_put_dtype(w, name, *(const fac_dtype *)at);
        return;
    case FAC_A_DIMS:
        if (d->n) fac_onnx_put_ints(w, name, d->n, d->d);
        return;
    case FAC_A_REALS:
        if (((const fac_reals *)at)->n)
            fac_onnx_put_reals(w, name, ((const fac_reals *)at)->n, ((const fac_reals *)at)->v);
        return;
    case FAC_A_TEXT:
        if (*(const char *const *)at) fac_onnx_put_text(w, name, *(const char *const *)at);
        return;
    }
}

/* What steers shapes is i64 in ONNX. */
static const char *input(const fac_onnx_writer *w, const fac_node *n, int i) {
    const unsigned flags = fac_port_flags(n, i);
    if (flags & FAC_INDEX) return fac_onnx_indices(w, n->in[i]);
    const char *name = fac_onnx_name(w, n->in[i]);
    if (!(flags & FAC_HOST) || !n->in[i] || n->in[i]->type.dtype == FAC_I64) return name;
    return fac_dtype_get(n->in[i]->type.dtype)->kind == 'f' ? name : cast(w, name, FAC_I64);
}

bool fac_onnx_plain(const fac_onnx_writer *w, const fac_node *n) {
    fac_export *ex = fac_export_of(w);
    const fac_onnx *how = fac_export_spelling(n->op, w->opset);
    if (!how || n->nin != n->nports) return false;
    const char **in = fac_export_get(ex, (size_t)n->nin, sizeof *in);
    if (!in) return true;
    for (int i = 0; i < n->nin; i++) in[i] = input(w, n, i);
    int port = 0, outs = 0;
    for (int k = 0; k < n->nout; k++) {
        bool internal = n->op->out[port].is & FAC_INTERNAL,
             used = n->out[k]->uses || n->out[k]->roots;
        if (internal && used) return false;
        if (!internal && used) outs = k + 1;
        if (n->op->out[port + 1].name) port++;
    }
    const char *first = fac_onnx_name(w, n->out[0]);
    fac_onnx_put(w, full_type(ex, how), n->nin, in, first ? first : "");
    for (int k = 1; k < outs; k++) fac_onnx_put_out(w, fac_onnx_name(w, n->out[k]));
    for (const fac_attr *a = n->op->attrs; a && a->name; a++)
        put_by_table(w, a, onnx_name_of(how, a->name), n->attrs);
    return true;
}

/* ---- a node ---- */

/* A save() that does not ask for the dims of what it reads. */
static bool says_any_rank(const fac_op *op) {
    static const fac_op *const names[] = { &fac_op_cast,
                                           &fac_op_bit_cast,
                                           &fac_op_reshape,
                                           &fac_op_shape,
                                           &fac_op_if,
                                           &fac_op_stop,
                                           &fac_op_dropout,
                                           &fac_op_top_k,
                                           &fac_op_scatter_elements,
                                           &fac_op_scatter_nd,
                                           &fac_op_lstm,
                                           &fac_op_gru,
                                           &fac_op_rnn,
                                           &fac_op_split,
                                           &fac_op_reduce_l1,
                                           &fac_op_reduce_l2,
                                           &fac_op_reduce_log_sum,
                                           &fac_op_reduce_log_sum_exp,
                                           &fac_op_reduce_max,
                                           &fac_op_reduce_min,
                                           &fac_op_reduce_prod,
                                           &fac_op_reduce_sum_square,
                                           &fac_op_mean,
                                           &fac_op_sum,
                                           NULL };
    return !op->save || op->save == fac_onnx_plain || op->map || fac_op_is_one_of(op, names);
}

static bool reads_rankless(const fac_node *n) {
    bool any = false;
    for (int i = 0; i < n->nin; i++) any |= n->in[i] && n->in[i]->guess == FAC_RANKLESS;
    return any;
}

static bool say(fac_export *ex, const fac_node *n) {
    const fac_onnx_writer w = { ex->opset, ex };
    const fac_onnx *how = fac_export_spelling(n->op, ex->opset);
    ex->node = n;
    ex->at = NULL;
    ex->impossible = false;
    ex->lacking = NULL;
    if ((n->op->is & (FAC_OP_BODIES | FAC_OP_FLOW)) == FAC_OP_BODIES) return false;
    if (reads_rankless(n) && !says_any_rank(n->op)) return false;
    bool said = n->op->save ? n->op->save(&w, n) : how && !how->load && fac_onnx_plain(&w, n);
    return said && !ex->impossible;
}

bool fac_export_can(fac_export *ex, const fac_node *n) {
    ex->dry = true;
    bool can = say(ex, n);
    ex->dry = false;
    return can && !ex->lacking;
}

fac_status fac_export_node(fac_export *ex, const fac_node *n, fac_error *err) {
    bool said = say(ex, n);
    if (ex->failed) return fac_raise(err, FAC_E_NOMEM, "no memory for the nodes");
    return said ? FAC_OK
                : fac_raise(err, FAC_E_INTERNAL, "%s could be written, and then not", n->op->name);
}
