/* See flow.h: running a node with bodies. */
#include "run/flow.h"
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/flow.h"
#include "ops/loop.h"
#include "run/program_internal.h"
#include "tensor/tensor_internal.h"

fac_status fac_bodies_new(const fac_node *n, fac_device *device, const fac_program_opts *opts,
                          fac_bodies *out, fac_error *err) {
    char label[200];
    *out = (fac_bodies){ .n = n, .device = device };
    if (n->op->host) return FAC_OK;
    if (n->op != &fac_op_call && n->op != &fac_op_if && n->op != &fac_op_loop)
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s: %s cannot run before it is expanded",
                         fac_node_label(n, label, sizeof label), n->op->name);
    for (int k = 0; k < 2; k++) {
        fac_status status =
            n->body[k] ? fac_program_new(n->body[k], device, opts, &out->program[k], err) : FAC_OK;
        if (status) return fac_raise_in(err, status, "%s", fac_node_label(n, label, sizeof label));
    }
    return FAC_OK;
}

void fac_bodies_free(fac_bodies *b) {
    for (int k = 0; k < 2; k++) fac_program_free(b->program[k]);
}

/* ---- numbers ---- */

static fac_status read_number(const fac_tensor *t, int64_t *x, fac_error *err) {
    fac_tensor *wide = NULL;
    FAC_TRY(fac_tensor_convert(t, FAC_I64, &wide, err));
    fac_status status = fac_tensor_read(wide, x, sizeof *x, err);
    fac_tensor_free(wide);
    return status;
}

static fac_status number(fac_dtype dtype, int64_t x, fac_tensor **out, fac_error *err) {
    fac_tensor *t = NULL;
    const bool flag = x != 0;
    FAC_TRY(fac_tensor_new(NULL, dtype, (fac_dims){ 0 }, &t, err));
    fac_status status = dtype == FAC_BOOL ? fac_tensor_write(t, &flag, sizeof flag, err)
                                          : fac_tensor_write(t, &x, sizeof x, err);
    if (status)
        fac_tensor_free(t);
    else
        *out = t;
    return status;
}

/* ---- results of all iterations ---- */

/* With a length that is known from the start a row goes to its place when it is made; else rows are
 * kept until the end. */
typedef struct rows {
    fac_tensor *all, **kept;
    size_t n, room, length; /* length 0: not known */
} rows;

static fac_status stacked(const fac_type *row, size_t length, fac_tensor **out, fac_error *err) {
    fac_dims d = { .n = row->dims.n + 1, .d = { (int64_t)length } };
    memcpy(d.d + 1, row->dims.d, (size_t)row->dims.n * sizeof *d.d);
    return fac_tensor_new(NULL, row->dtype, d, out, err);
}

static fac_status put_row(const rows *r, size_t at, const fac_tensor *row, fac_error *err) {
    const fac_type type = fac_tensor_type(row), all = fac_tensor_type(r->all);
    const size_t bytes = fac_type_bytes(&type);
    void *data;
    if (type.dims.n + 1 != all.dims.n ||
        memcmp(type.dims.d, all.dims.d + 1, (size_t)type.dims.n * sizeof *type.dims.d))
        return fac_raise(err, FAC_E_SHAPE,
                         "iteration %zu gives a result of another shape than the first", at);
    FAC_TRY(fac_tensor_begin_write(r->all, &data, err));
    return fac_tensor_read(row, (char *)data + at * bytes, bytes, err);
}

static fac_status add_row(rows *r, fac_tensor *row, fac_error *err) {
    const fac_type type = fac_tensor_type(row);
    if (r->length && type.dtype != FAC_TEXT) {
        if (!r->all) FAC_TRY(stacked(&type, r->length, &r->all, err));
        return put_row(r, r->n++, row, err);
    }
    if (!fac_reserve(&r->kept, &r->room, r->n + 1, sizeof *r->kept))
        return fac_raise_memory(err, "%zu iterations", r->n + 1);
    r->kept[r->n++] = fac_tensor_retain(row);
    return FAC_OK;
}

/* Texts are pointers into their rows until the write has copied them. */
static fac_status finish_texts(rows *r, fac_error *err) {
    const fac_type type = fac_tensor_type(r->kept[0]);
    const size_t each = (size_t)fac_dims_count(&type.dims);
    char **text = fac_alloc(each * r->n + 1, sizeof *text);
    fac_status status = text ? FAC_OK : fac_raise_memory(err, "texts");
    for (size_t k = 0; k < r->n && !status; k++) {
        const fac_type own = fac_tensor_type(r->kept[k]);
        status = !fac_dims_equal(&own.dims, &type.dims)
                     ? fac_raise(err, FAC_E_SHAPE,
                                 "iteration %zu gives a result of another shape than the first", k)
                     : fac_tensor_read(r->kept[k], text + k * each, each * sizeof *text, err);
    }
    if (!status) status = fac_tensor_write(r->all, text, each * r->n * sizeof *text, err);
    fac_release(text);
    return status;
}

static fac_status finish_rows(rows *r, const fac_type *result, fac_error *err) {
    if (!r->n) { /* no iteration: sizes that only one would have told are 0 */
        fac_dims d = result->dims;
        for (int k = 0; k < d.n; k++)
            if (d.d[k] < 0 || k == 0) d.d[k] = 0;
        return fac_tensor_new(NULL, result->dtype, d, &r->all, err);
    }
    if (r->all) return FAC_OK;
    const fac_type row = fac_tensor_type(r->kept[0]);
    FAC_TRY(stacked(&row, r->n, &r->all, err));
    if (row.dtype == FAC_TEXT) return finish_texts(r, err);
    for (size_t k = 0; k < r->n; k++) {
        FAC_TRY(put_row(r, k, r->kept[k], err));
        fac_tensor_free(r->kept[k]);
        r->kept[k] = NULL;
    }
    return FAC_OK;
}

static void free_rows(rows *r) {
    for (size_t k = 0; r->kept && k < r->n; k++) fac_tensor_free(r->kept[k]);
    fac_release(r->kept);
    fac_tensor_free(r->all);
}

/* ---- loops ---- */

typedef struct loop {
    const fac_bodies *b;
    int carried, collected;
    int64_t trips;          /* at most; INT64_MAX without a trip count */
    bool asks;              /* the condition of each iteration counts  */
    fac_tensor **in, **out; /* of the body                             */
    rows *rows;
    fac_within at; /* the iteration at hand */
    fac_error *err;
} loop;

static fac_status start(loop *l, fac_tensor *const in[], bool *go) {
    const fac_node *n = l->b->n;
    const fac_value *next = n->body[0]->outputs[0].value;
    bool always = false;
    int64_t cond = 1;
    l->trips = INT64_MAX;
    if (in[0]) FAC_TRY(read_number(in[0], &l->trips, l->err));
    if (in[1]) FAC_TRY(read_number(in[1], &cond, l->err));
    *go = cond != 0;
    l->asks = next != n->body[0]->inputs[1] && !(fac_flow_always(next, &always) && always);
    if (!l->asks && *go && !in[0])
        return fac_raise(l->err, FAC_E_ARGUMENT,
                         "it has no trip count, and its condition stays true");
    for (int k = 0; k < l->collected && l->trips > 0 && in[0]; k++)
        l->rows[k].length = l->asks ? 0 : (size_t)l->trips;
    for (int i = FAC_LOOP_FIXED; i < n->nin; i++) l->in[i] = fac_tensor_retain(in[i]);
    return number(FAC_BOOL, cond, &l->in[1], l->err);
}

static fac_status iterate(loop *l, int64_t t, bool *go) {
    fac_status status = number(FAC_I64, t, &l->in[0], l->err);
    l->at.iteration = t;
    if (!status) status = fac_program_run_within(l->b->program[0], l->in, l->out, &l->at, l->err);
    int64_t cond = 1;
    if (!status && l->asks) status = read_number(l->out[0], &cond, l->err);
    *go = cond != 0;
    for (int k = 0; k < l->collected && !status; k++)
        status = add_row(&l->rows[k], l->out[1 + l->carried + k], l->err);
    for (int k = 0; k < 1 + l->carried && !status;
         k++) { /* the condition and carried values move on */
        fac_tensor_free(l->in[1 + k]);
        l->in[1 + k] = l->out[k];
        l->out[k] = NULL;
    }
    for (int k = 0; k < 1 + l->carried + l->collected; k++) {
        fac_tensor_free(l->out[k]);
        l->out[k] = NULL;
    }
    fac_tensor_free(l->in[0]);
    l->in[0] = NULL;
    return status ? fac_raise_in(l->err, status, "iteration %lld", (long long)t) : FAC_OK;
}

static fac_status run_loop(loop *l, fac_tensor *const in[], fac_tensor *out[]) {
    const fac_node *n = l->b->n;
    bool go;
    FAC_TRY(start(l, in, &go));
    for (int64_t t = 0; go && t < l->trips; t++) FAC_TRY(iterate(l, t, &go));
    for (int k = 0; k < l->collected; k++)
        FAC_TRY(finish_rows(&l->rows[k], &n->out[l->carried + k]->type, l->err));
    for (int k = 0; k < l->carried; k++) out[k] = fac_tensor_retain(l->in[FAC_LOOP_FIXED + k]);
    for (int k = 0; k < l->collected; k++) {
        out[l->carried + k] = l->rows[k].all;
        l->rows[k].all = NULL;
    }
    return FAC_OK;
}

static fac_status whole_loop(const fac_bodies *b, fac_tensor *const in[], fac_tensor *out[],
                             const fac_within *at, fac_error *err) {
    const fac_node *n = b->n;
    const int results = (int)n->body[0]->noutputs;
    loop l = {
        .b = b, .carried = (int)((const fac_loop_attrs *)n->attrs)->carried, .at = *at, .err = err
    };
    l.collected = results - 1 - l.carried;
    l.in = fac_alloc((size_t)(n->nin + results), sizeof *l.in);
    l.rows = fac_alloc((size_t)l.collected + 1, sizeof *l.rows);
    l.out = l.in + n->nin;
    fac_status status = l.in && l.rows ? run_loop(&l, in, out) : fac_raise_memory(err, "a loop");
    for (int i = 0; l.in && i < n->nin + results; i++) fac_tensor_free(l.in[i]);
    for (int k = 0; l.rows && k < l.collected; k++) free_rows(&l.rows[k]);
    fac_release(l.in);
    fac_release(l.rows);
    return status;
}

/* ---- any ---- */

static fac_status run_one(const fac_bodies *b, fac_tensor *const in[], fac_tensor *out[],
                          const fac_within *at, fac_error *err) {
    if (b->n->op->host) return fac_host_op_run(b->n, in, out, err);
    if (b->n->op == &fac_op_loop) return whole_loop(b, in, out, at, err);
    int64_t cond = 1;
    if (b->n->op == &fac_op_if) FAC_TRY(read_number(in[0], &cond, err));
    return fac_program_run_within(b->program[!cond], in, out, at, err);
}

fac_status fac_bodies_run(const fac_bodies *b, fac_tensor *const in[], fac_tensor *out[],
                          const fac_within *within, fac_error *err) {
    char label[200];
    const fac_within at = { within, fac_node_label(b->n, label, sizeof label), -1 };
    fac_status status = run_one(b, in, out, &at, err);
    if (!status) return FAC_OK;
    for (int k = 0; k < b->n->nout; k++) {
        fac_tensor_free(out[k]);
        out[k] = NULL;
    }
    return fac_raise_in(err, status, "%s", label);
}
