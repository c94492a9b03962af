/* From a float model, a scheme and samples to a model in integers: see facula/quantize.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/edit.h"
#include "op_list.h"
#include "passes/common/select.h"
#include "passes/common/single.h"
#include "quantize/quantize.h"
#include "tensor/dtype.h"

/* ---- the table of schemes ---- */

static const fac_scheme_row *const rows[] = { &fac_scheme_static, &fac_scheme_dynamic,
                                              &fac_scheme_int4, &fac_scheme_lq, NULL };

static bool fits(const fac_scheme_row *row, const char *scheme) {
    return row->fits ? row->fits(scheme) : !strcmp(row->name, scheme);
}

static const fac_scheme_row *row_of(const char *scheme) {
    for (int i = 0; rows[i]; i++)
        if (scheme && fits(rows[i], scheme)) return rows[i];
    return NULL;
}

static const fac_scheme_row *row_at(int i) {
    const int n = (int)(sizeof rows / sizeof *rows) - 1;
    return i >= 0 && i < n ? rows[i] : NULL;
}
const char *fac_integers_scheme(int i) { return row_at(i) ? row_at(i)->name : NULL; }
const char *fac_integers_about(int i) { return row_at(i) ? row_at(i)->about : NULL; }

bool fac_integers_known(const char *scheme, bool *calibrates) {
    const fac_scheme_row *row = row_of(scheme);
    if (row && calibrates) *calibrates = row->calibrates;
    return row != NULL;
}

/* ---- the model, with a name for every value ---- */

static fac_status name_values(fac_calibrator *c, fac_error *err) {
    char label[256];
    for (fac_node *n = c->model->first; n; n = n->next)
        for (int k = 0; k < n->nout; k++) {
            fac_value *v = n->out[k];
            const char *fresh =
                v->name ? v->name
                        : fac_graph_fresh(c->model, fac_node_label(n, label, sizeof label));
            if (!fresh) return fac_raise_memory(err, "a quantized model");
            if (!v->name) fac_value_name_set(v, fresh);
            if (v->name && !fac_table_put(&c->values, v->name, v))
                return fac_raise_memory(err, "a quantized model");
        }
    return fac_graph_check(c->model, err);
}

/* ---- layers ---- */

static bool is_layer(const fac_node *n) {
    static const fac_op *const ops[] = { &fac_op_conv1d,
                                         &fac_op_conv2d,
                                         &fac_op_conv3d,
                                         &fac_op_conv_transpose1d,
                                         &fac_op_conv_transpose2d,
                                         &fac_op_conv_transpose3d,
                                         &fac_op_linear,
                                         &fac_op_matmul,
                                         &fac_op_gemm,
                                         NULL };
    return fac_op_is_one_of(n->op, ops) && n->nin > 1 && n->in[1]->tensor && !n->in[1]->next;
}

/* What later layers read: after a relu that reads nothing else. */
static const fac_value *seen_of(const fac_value *v) {
    const fac_node *next = fac_used_once(v) ? v->uses->node : NULL;
    return FAC_IS(next, relu) || FAC_IS(next, clip) ? next->out[0] : v;
}

static bool kept_by(const fac_node *n, const fac_integers *how, bool *matched) {
    bool kept = false;
    for (int i = 0; i < how->nkeep; i++) {
        const bool here = fac_select(n, how->keep[i]) != FAC_NOT_SELECTED;
        matched[i] |= here;
        kept |= here;
    }
    return kept;
}

static fac_status add_layer(fac_calibrator *c, const fac_node *n, bool kept, fac_error *err) {
    char label[256];
    bool few = false;
    if (!c->row->refits) FAC_TRY(fac_leveled_layer(n, &few, err));
    const char *name = fac_arena_text(&c->memory, fac_node_label(n, label, sizeof label));
    const double bytes = (double)fac_type_bytes(&n->in[1]->type);
    if (!name) return fac_raise_memory(err, "a quantized model");
    c->layers[c->nlayers++] = (fac_integer_work){ .node = n,
                                                  .seen = seen_of(n->out[0]),
                                                  .is = { .name = name,
                                                          .op = n->op->name,
                                                          .kept = kept || few || !c->row->takes(n),
                                                          .few_bits = few,
                                                          .bytes = bytes,
                                                          .bytes_before = bytes,
                                                          .weight_sqnr = INFINITY,
                                                          .output_sqnr = NAN } };
    return FAC_OK;
}

static fac_status gather(fac_calibrator *c, const fac_integers *how, bool *matched,
                         fac_error *err) {
    c->layers = fac_alloc((size_t)c->model->nodes + 1, sizeof *c->layers);
    if (!c->layers) return fac_raise_memory(err, "a quantized model");
    int taken = 0;
    for (fac_node *n = c->model->first; n; n = n->next) {
        const bool kept = kept_by(n, how, matched);
        if (!is_layer(n)) continue;
        FAC_TRY(add_layer(c, n, kept, err));
        n->mark = &c->layers[c->nlayers - 1];
        taken += !c->layers[c->nlayers - 1].is.kept;
    }
    for (int i = 0; i < how->nkeep; i++)
        if (!matched[i])
            return fac_raise(err, FAC_E_ARGUMENT, "keep \"%s\": the model has no such layer",
                             how->keep[i]);
    if (taken) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT,
                     "nothing to quantize: of %d layer%s with weights scheme %s "
                     "takes none%s",
                     c->nlayers, c->nlayers == 1 ? "" : "s", c->row->name,
                     how->nkeep ? " that is not kept" : "");
}

fac_integer_work *fac_layer_of(const fac_node *n) {
    fac_integer_work *l = n->mark;
    return l && !l->is.kept ? l : NULL;
}

/* ---- what is seen of a run ---- */

static bool wants_tally(const fac_slot *s) { return s->tallied || (s->bytes && !s->like); }

static fac_status take(fac_calibrator *c, const fac_value *v, const fac_tensor *t, fac_error *err) {
    fac_slot *s = fac_slot_of(c, v);
    if (!s->tally) FAC_TRY(fac_tally_new(&s->tally, err));
    return fac_tally_add(s->tally, t, -1, err);
}

static fac_status see(void *self, fac_hooked *h, fac_error *err) {
    fac_calibrator *c = self;
    const fac_node *n = fac_hooked_node(h);
    for (int k = 0; k < n->nout; k++) {
        const char *name = n->out[k]->name;
        const fac_value *v = name ? fac_table_get(&c->values, name) : NULL;
        const fac_tensor *t;
        if (!v || !wants_tally(fac_slot_of(c, v))) continue;
        FAC_TRY(fac_hooked_output(h, k, &t, err));
        if (t) FAC_TRY(take(c, v, t, err));
    }
    return FAC_OK;
}

static fac_status keep_sample(fac_calibrator *c, fac_tensor *const in[], fac_error *err) {
    const size_t n = c->model->ninputs;
    if (c->samples == FAC_KEPT_SAMPLES) return FAC_OK;
    fac_tensor **to = fac_alloc(n + 1, sizeof *to);
    if (!to) return fac_raise_memory(err, "a quantized model");
    for (size_t i = 0; i < n; i++) to[i] = in[i] ? fac_tensor_retain(in[i]) : NULL;
    c->sample[c->samples++] = to;
    return FAC_OK;
}

fac_status fac_integers_run(fac_program *p, size_t outputs, fac_tensor *const in[],
                            fac_error *err) {
    fac_tensor **out = fac_alloc(outputs + 1, sizeof *out);
    if (!out) return fac_raise_memory(err, "the results of a sample");
    const fac_status status = fac_program_run(p, in, out, err);
    for (size_t i = 0; i < outputs; i++) fac_tensor_free(out[i]);
    fac_release(out);
    return status;
}

static fac_status run(fac_calibrator *c, fac_tensor *const in[], fac_error *err) {
    const fac_program_opts opts = { .hook = see, .hook_self = c };
    if (!c->program) FAC_TRY(fac_program_new(c->model, c->device, &opts, &c->program, err));
    return fac_integers_run(c->program, c->model->noutputs, in, err);
}

fac_status fac_calibrator_add(fac_calibrator *c, fac_tensor *const in[], fac_error *err) {
    if (c->row->calibrates) FAC_TRY(run(c, in, err));
    for (size_t i = 0; i < c->model->ninputs && c->row->calibrates; i++) {
        const fac_value *v = c->model->inputs[i];
        if (in[i] && wants_tally(fac_slot_of(c, v))) FAC_TRY(take(c, v, in[i], err));
    }
    c->runs++;
    return keep_sample(c, in, err);
}

/* ---- the calls ---- */

static bool has_halves(const fac_graph *g) {
    bool any = false;
    for (const fac_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nin; k++) {
            const fac_dtype t = n->in[k] ? n->in[k]->type.dtype : FAC_NONE;
            any |= fac_dtype_is_half(t);
        }
    return any;
}

/* Integers stand for f32: what has 16 bits becomes that, but for inputs and outputs. */
static fac_status widened(fac_graph **g, fac_error *err) {
    const fac_float_opts opts = { .to = FAC_F32, .keep_ports = true };
    fac_graph *wide;
    if (!has_halves(*g)) return FAC_OK;
    FAC_TRY(fac_graph_floats_but(*g, &opts, NULL, &wide, err));
    fac_graph_free(*g);
    *g = wide;
    return FAC_OK;
}

static fac_status begin(fac_calibrator *c, const fac_graph *model, const fac_integers *how,
                        fac_error *err) {
    fac_graph *quiet = fac_graph_inference(model);
    if (!quiet) return fac_raise_memory(err, "a quantized model");
    fac_status status = widened(&quiet, err);
    if (!status) status = fac_graph_simplified(quiet, &c->model, err);
    fac_graph_free(quiet);
    if (status) return status;
    FAC_TRY(name_values(c, err));
    bool *matched = fac_alloc((size_t)how->nkeep + 1, sizeof *matched);
    if (!matched) return fac_raise_memory(err, "a quantized model");
    for (fac_node *n = c->model->first; n; n = n->next) n->mark = NULL;
    const fac_status found = gather(c, how, matched, err);
    fac_release(matched);
    if (found) return found;
    c->slots = fac_alloc((size_t)c->model->ids + 1, sizeof *c->slots);
    if (!c->slots) return fac_raise_memory(err, "a quantized model");
    fac_lq_bits(how->scheme, &c->weight_bits, &c->input_bits);
    if (c->row->plan) c->row->plan(c);
    return c->wrong.status ? fac_raise(err, c->wrong.status, "%s", c->wrong.text) : FAC_OK;
}

/* "int8:static, int8:dynamic or int4:block32" */
static fac_status no_scheme(const char *scheme, fac_error *err) {
    char names[256] = "";
    size_t n = 0;
    for (int i = 0; rows[i] && n < sizeof names; i++) {
        const char *last = rows[i + 1] ? ", " : " or ";
        const char *between = i ? last : "";
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", between, rows[i]->name);
    }
    return fac_raise(err, FAC_E_ARGUMENT,
                     "there is no scheme \"%s\": expected %s (W and A from 1 to 4)",
                     scheme ? scheme : "", names);
}

static fac_status check(const fac_integers *how, const fac_scheme_row **row, fac_error *err) {
    *row = row_of(how->scheme);
    if (!*row) return no_scheme(how->scheme, err);
    if (how->percentile != 0 && !(how->percentile > 50 && how->percentile <= 100))
        return fac_raise(err, FAC_E_ARGUMENT, "a percentile of %g: expected one within (50, 100]",
                         how->percentile);
    return FAC_OK;
}

fac_status fac_calibrator_new(const fac_graph *model, fac_device *device, const fac_integers *how,
                              fac_calibrator **out, fac_error *err) {
    const fac_scheme_row *row;
    fac_error own = { 0 };
    if (!err) err = &own;
    FAC_TRY(fac_graph_usable(model, "fac_calibrator_new", err));
    FAC_TRY(check(how, &row, err));
    fac_calibrator *c = fac_alloc(1, sizeof *c);
    if (!c) return fac_raise_memory(err, "a quantized model");
    c->device = device;
    c->row = row;
    c->how = *how;
    c->how.scheme = fac_arena_text(&c->memory, how->scheme);
    const fac_status status =
        c->how.scheme ? begin(c, model, how, err) : fac_raise_memory(err, "a quantized model");
    if (status)
        fac_calibrator_free(c);
    else
        *out = c;
    return status;
}

void fac_calibrator_free(fac_calibrator *c) {
    if (!c) return;
    for (int i = 0; i < c->samples; i++) {
        for (size_t k = 0; k < c->model->ninputs; k++) fac_tensor_free(c->sample[i][k]);
        fac_release(c->sample[i]);
    }
    for (uint32_t i = 0; c->slots && i < c->model->ids; i++) fac_tally_free(c->slots[i].tally);
    for (int i = 0; i < c->nlayers; i++) fac_tensor_free(c->layers[i].float_result);
    fac_program_free(c->program);
    fac_release(c->slots);
    fac_release(c->layers);
    fac_table_free(&c->values);
    fac_graph_free(c->model);
    fac_arena_free(&c->memory);
    fac_release(c);
}

/* ---- the result ---- */

typedef struct build {
    fac_calibrator *c;
    fac_value **opened; /* of inputs: what readers get instead, by id */
} build;

/* x as bytes, and back. */
static fac_value *through_bytes(const fac_calibrator *c, const fac_value *was, fac_value *x) {
    const fac_step s = fac_step_of(c, was);
    const fac_dtype t = c->how.is_signed ? FAC_I8 : FAC_U8;
    fac_value *scale = fac_number(x->graph, FAC_F32, s.scale);
    fac_value *zero = fac_number(x->graph, t, s.zero);
    return fac_dequantize_linear(fac_quantize_linear(x, scale, zero, NULL), scale, zero, NULL);
}

static fac_value *input_of(build *b, const fac_value *was, fac_value *x) {
    if (!was || was->leaf != FAC_INPUT || !fac_slot_of(b->c, was)->bytes) return x;
    if (!b->opened[was->id]) b->opened[was->id] = through_bytes(b->c, was, x);
    return b->opened[was->id];
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    build *b = self;
    fac_integer_work *l = fac_layer_of(n);
    if (to->error.status || b->c->wrong.status) return false;
    fac_value **with = fac_alloc((size_t)n->nin + 9, sizeof *with);
    if (!with) {
        fac_raise_memory(&b->c->wrong, "a quantized model");
        return false;
    }
    for (int i = 0; i < n->nin; i++) with[i] = input_of(b, n->in[i], in[i]);
    const bool done = l && b->c->row->put(b->c, l, to, with, out);
    if (!done && !b->c->wrong.status) fac_node_copy(to, n, with, out);
    if (!done && l) l->is.kept = true;
    fac_release(with);
    if (b->c->wrong.status || to->error.status) return false;
    for (int k = 0; k < n->nout; k++)
        if (fac_slot_of(b->c, n->out[k])->bytes) out[k] = through_bytes(b->c, n->out[k], out[k]);
    return true;
}

/* What no sample reached has no range: it stays floats. */
static void drop_unseen(fac_calibrator *c) {
    bool changed = true;
    for (uint32_t i = 0; i < c->model->ids; i++)
        if (wants_tally(&c->slots[i]) && !c->slots[i].tally) c->slots[i] = (fac_slot){ 0 };
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < c->model->ids; i++) {
            fac_slot *s = &c->slots[i];
            if (!s->bytes || !s->like || fac_slot_of(c, s->like)->bytes) continue;
            *s = (fac_slot){ 0 };
            changed = true;
        }
    }
}

fac_status fac_calibrator_finish(fac_calibrator *c, fac_graph **out, fac_error *err) {
    fac_error own = { 0 };
    if (!err) err = &own;
    if (c->row->calibrates && !c->runs)
        return fac_raise(err, FAC_E_ARGUMENT, "scheme %s needs samples, and there was none",
                         c->how.scheme);
    drop_unseen(c);
    build b = { c, fac_alloc((size_t)c->model->ids + 1, sizeof *b.opened) };
    if (!b.opened) return fac_raise_memory(err, "a quantized model");
    fac_graph *g = fac_graph_rebuild(c->model, &(fac_rebuild){ .self = &b, .visit = visit }, NULL);
    fac_release(b.opened);
    fac_status status = g ? fac_graph_check(g, err) : fac_raise_memory(err, "a quantized model");
    if (!status && c->wrong.status) status = fac_raise(err, c->wrong.status, "%s", c->wrong.text);
    if (!status) status = fac_integers_measure(c, g, err);
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status;
}

const fac_integer_layer *fac_calibrator_layer(const fac_calibrator *c, int i) {
    return i >= 0 && i < c->nlayers ? &c->layers[i].is : NULL;
}
