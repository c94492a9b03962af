/* One node as ONNX nodes: by the save() of its op, or by the tables of its descriptor. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/onnx_write.h"
#include "onnx/export.h"
#include "onnx/source.h"
#include "op_list.h"

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
    return fac_dtype_get(n->in[i]->type.dtype)->kind == 'f' ? name
                                                            : fac_export_cast(w, name, FAC_I64);
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
                                           &fac_op_slice,
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
    if (ex->failed) return fac_raise_memory(err, "the nodes");
    return said ? FAC_OK
                : fac_raise(err, FAC_E_INTERNAL, "%s could be written, and then not", n->op->name);
}
