/* Runs two models on the same inputs and judges their outputs: see facula/report/verify.h. */
#include <math.h>
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/verify/verify.h"
#include "tensor/dtype.h"

const char *fac_sameness_word(fac_sameness same) {
    static const char *const words[] = { "same", "different", "cannot tell",
                                         "no difference found" };
    return same <= FAC_NO_DIFFERENCE ? words[same] : "";
}

void fac_verdict_unbounded(fac_verdict *v, const char *name, const fac_difference *d) {
    fac_verdict_say(
        v, FAC_CANNOT_TELL,
        "%.150s: the rounding error of %lld of %.0f elements has no bound, for a divisor or the "
        "like may be 0",
        name, (long long)d->unbounded, d->elements);
}

void fac_verdict_say(fac_verdict *v, fac_sameness same, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(v->why, sizeof v->why, format, args);
    va_end(args);
    v->same = same;
}

/* ---- do they fit together? ---- */

/* Sizes that a run decides are compared when it is over. */
bool fac_may_be_alike(const fac_value *x, const fac_value *y) {
    const fac_dims *a = &x->type.dims, *b = &y->type.dims;
    if (x->guess != FAC_CERTAIN || y->guess != FAC_CERTAIN) return true;
    if (a->n != b->n) return false;
    for (int k = 0; k < a->n; k++)
        if (a->d[k] >= 0 && b->d[k] >= 0 && a->d[k] != b->d[k]) return false;
    return true;
}

/* The same sizes, and the same element type or two kinds of floats. */
static bool fits(const fac_value *x, const fac_value *y) {
    const fac_dtype a = x->type.dtype, b = y->type.dtype;
    const bool floats = fac_dtype_get(a)->kind == 'f' && fac_dtype_get(b)->kind == 'f';
    return fac_may_be_alike(x, y) && (a == b || floats);
}

static bool same_ports(const fac_trial *t) {
    const fac_graph *a = t->a.graph, *b = t->b.graph;
    if (a->ninputs != b->ninputs || a->noutputs != b->noutputs)
        return fac_verdict_say(t->v, FAC_DIFFERENT,
                               "%zu inputs and %zu outputs against %zu and %zu", a->ninputs,
                               a->noutputs, b->ninputs, b->noutputs),
               false;
    for (size_t i = 0; i < a->ninputs; i++)
        if (!fits(a->inputs[i], b->inputs[i]))
            return fac_verdict_say(t->v, FAC_DIFFERENT,
                                   "input %zu, %s against %s: another type or size", i,
                                   a->inputs[i]->name, b->inputs[i]->name),
                   false;
    for (size_t i = 0; i < a->noutputs; i++)
        if (!fits(a->outputs[i].value, b->outputs[i].value))
            return fac_verdict_say(t->v, FAC_DIFFERENT,
                                   "output %zu, %s against %s: another type or size", i,
                                   a->outputs[i].name, b->outputs[i].name),
                   false;
    return true;
}

/* ---- bounds of whole networks ---- */

static const fac_tensor *bound_of(const fac_verify_side *s, int round, size_t k) {
    return s->error_at && s->error_at[k] >= 0
               ? s->out[(size_t)round * s->run->noutputs + (size_t)s->error_at[k]]
               : NULL;
}

static fac_status compare_output(const fac_trial *t, int round, size_t k, fac_difference *d) {
    return fac_compare(t->a.out[(size_t)round * t->a.run->noutputs + k],
                       t->b.out[(size_t)round * t->b.run->noutputs + k], bound_of(&t->a, round, k),
                       bound_of(&t->b, round, k), 0, FAC_UNDERFLOW, d, t->err);
}

static void say_output(fac_verdict *v, const char *name, const fac_difference *d) {
    if (*d->sizes)
        fac_verdict_say(v, FAC_DIFFERENT, "output %.150s: other sizes, %s", name, d->sizes);
    else
        fac_verdict_say(v, FAC_DIFFERENT,
                        "output %.150s: %lld of %.0f elements differ; the first is element %lld, "
                        "%s",
                        name, (long long)d->count, d->elements, (long long)d->at, d->pair);
}

static fac_status compare_round(fac_trial *t, int round, bool *differs, bool *unbounded) {
    for (size_t k = 0; k < t->a.graph->noutputs; k++) {
        fac_difference d = { 0 };
        FAC_TRY(compare_output(t, round, k, &d));
        t->v->elements += d.elements;
        t->v->differing += (double)d.count;
        if (d.worst > t->v->worst) t->v->worst = d.worst;
        if (d.ratio > t->v->ratio) t->v->ratio = d.ratio;
        if (d.unbounded && !*differs && !*unbounded) {
            *unbounded = true;
            fac_verdict_unbounded(t->v, t->a.graph->outputs[k].name, &d);
        }
        if (!d.count || *differs) continue;
        *differs = true;
        t->v->round = round;
        say_output(t->v, t->a.graph->outputs[k].name, &d);
    }
    return FAC_OK;
}

static fac_status all_rounds(fac_trial *t, int n) {
    bool differs = false, unbounded = false;
    FAC_TRY(fac_trial_rounds(t, &t->a, 0, n));
    FAC_TRY(fac_trial_rounds(t, &t->b, 0, n));
    for (int r = 0; r < n && !differs; r++) {
        FAC_TRY(compare_round(t, r, &differs, &unbounded));
        if (differs) FAC_TRY(fac_trial_inputs(t, r)); /* the search runs on these */
    }
    if (differs) return fac_find_first(t);
    if (unbounded) return FAC_OK;
    fac_verdict_say(t->v, FAC_NO_DIFFERENCE, "%.0f numbers of %d run%s: within both bounds",
                    t->v->elements, n, n > 1 ? "s" : "");
    return FAC_OK;
}

static bool has_coarse(const fac_graph *g) {
    for (size_t i = 0; i < g->nparams; i++)
        if (fac_dtype_is_half(g->params[i]->type.dtype)) return true;
    return false;
}

/* The model with its bounds; false when some rounding is unknown. */
static fac_status make_ready(fac_trial *t, fac_verify_side *s, bool *can) {
    const char *unknown = NULL;
    s->error_at = fac_alloc(s->graph->noutputs + 1, sizeof *s->error_at);
    s->run = s->error_at ? fac_error_bounds(s->graph, s->coarse, s->error_at, &unknown) : NULL;
    if (!s->run) return fac_raise_memory(t->err, "a model");
    FAC_TRY(fac_graph_check(s->run, t->err));
    if (unknown)
        *can = false,
        fac_verdict_say(t->v, FAC_CANNOT_TELL, "the rounding error of %s is not known", unknown);
    return FAC_OK;
}

static fac_status whole(fac_trial *t, int n) {
    bool can = true;
    FAC_TRY(make_ready(t, &t->a, &can));
    FAC_TRY(make_ready(t, &t->b, &can));
    return can ? all_rounds(t, n) : FAC_OK;
}

/* From value to value where that can be done; where something differs then, and the whole networks
 * are within their far larger bounds, there is no telling. */
static fac_status bounded(fac_trial *t, int n) {
    bool can = false;
    if (!t->o->whole) FAC_TRY(fac_verify_local(t, n, &can));
    if (can && t->v->same != FAC_DIFFERENT) return FAC_OK;
    const fac_verdict local = *t->v;
    *t->v = (fac_verdict){ 0 };
    FAC_TRY(whole(t, n));
    if (can && t->v->same == FAC_NO_DIFFERENCE) {
        *t->v = local;
        t->v->same = FAC_CANNOT_TELL;
    } else if (can) {
        memcpy(t->v->first, local.first, sizeof local.first);
        t->v->first_differing = local.first_differing;
        t->v->first_elements = local.first_elements;
    }
    return FAC_OK;
}

/* ---- real numbers, then remainders ---- */

static const char EMPTY[] = "nothing was shown: all outputs are 0, or none depends on the inputs";

/* The inputs that tell them apart, and the first value that differs on these. */
static fac_status differs(fac_trial *t) {
    FAC_TRY(fac_trial_inputs(t, t->v->round));
    return fac_find_first(t);
}

static void say_data(fac_trial *t, const fac_data *d) {
    fac_verdict *v = t->v;
    if (d->is == FAC_DATA_EMPTY)
        fac_verdict_say(v, FAC_CANNOT_TELL, "%s", EMPTY);
    else if (d->is == FAC_DATA_UNCLEAR)
        v->same = FAC_CANNOT_TELL;
    else if (d->is == FAC_DATA_AGREES)
        fac_verdict_say(v, FAC_NO_DIFFERENCE, "%.0f numbers of %d run%s: within the tolerance",
                        v->elements, d->rounds, d->rounds > 1 ? "s" : "");
}

static fac_status real_numbers(fac_trial *t, fac_data *d) {
    FAC_TRY(fac_verify_data(t, d));
    say_data(t, d);
    return d->is == FAC_DATA_DIFFERS ? differs(t) : FAC_OK;
}

static const char *const forms[FAC_FORMS] = { "", " with constants computed",
                                              " with norms and factors in the weights",
                                              " with ops written out",
                                              " with ops written out and constants computed" };

static void say_exact(fac_trial *t, const fac_exact *x, const fac_data *d) {
    fac_verdict *v = t->v;
    const fac_sameness else_ = d ? FAC_NO_DIFFERENCE : FAC_CANNOT_TELL;
    if (x->is == FAC_EXACT_EQUAL && x->form == FAC_FORM_EXACT && d && d->slight)
        fac_verdict_say(
            v, else_, "equal remainders, but real numbers differ by more than f64 explains (%.3g)",
            v->worst);
    else if (x->is == FAC_EXACT_EQUAL)
        fac_verdict_say(v, FAC_SAME, "the same bits: %.0f remainders of %d run%s%s%s", x->elements,
                        x->rounds, x->rounds > 1 ? "s" : "", forms[x->form],
                        d ? ", and real numbers agree" : "");
    else if (x->is == FAC_EXACT_EMPTY)
        fac_verdict_say(v, FAC_CANNOT_TELL, "%s", EMPTY);
    else if (x->is == FAC_EXACT_LOST)
        fac_verdict_say(v, else_, "%s%.300s", d ? "real numbers agree; " : "", x->why);
    else
        fac_verdict_say(v, else_,
                        "real numbers agree on %d kinds of inputs, but nothing proves it: the "
                        "structure or a function "
                        "differs (%.200s)",
                        d ? d->rounds : 0, x->why);
}

enum { EXACT_ROUNDS = 3 };
static const double FEW = 2e8; /* multiply-adds: larger models get one round */

static int exact_rounds(const fac_trial *t) {
    if (t->o->rounds > 0) return t->o->rounds < EXACT_ROUNDS ? t->o->rounds : EXACT_ROUNDS;
    return fac_macs(t->a.graph) > FEW ? 1 : EXACT_ROUNDS;
}

/* Unequal remainders are a question for real numbers, with a closer look where these agree. */
static fac_status ask_real(fac_trial *t, const fac_exact *x, const fac_data *d) {
    bool far = false;
    FAC_TRY(fac_verify_closer(t, &far));
    if (far) return differs(t);
    say_exact(t, x, d);
    return FAC_OK;
}

static fac_status exact(fac_trial *t) {
    fac_exact x;
    fac_data d;
    FAC_TRY(fac_verify_exact(t, exact_rounds(t), &x));
    if (x.is != FAC_EXACT_UNEQUAL)
        return t->v->elements = x.elements, say_exact(t, &x, NULL), FAC_OK;
    FAC_TRY(real_numbers(t, &d));
    if (t->v->same != FAC_NO_DIFFERENCE) return FAC_OK;
    FAC_TRY(ask_real(t, &x, &d));
    if (t->v->same == FAC_NO_DIFFERENCE) t->v->same = FAC_CANNOT_TELL;
    return FAC_OK;
}

static fac_status full(fac_trial *t) {
    fac_exact x;
    fac_data d;
    FAC_TRY(real_numbers(t, &d));
    if (d.is == FAC_DATA_DIFFERS || d.is == FAC_DATA_EMPTY) return FAC_OK;
    FAC_TRY(fac_verify_exact(t, exact_rounds(t), &x));
    if (d.is == FAC_DATA_UNCLEAR) {
        t->v->same = FAC_CANNOT_TELL;
        return FAC_OK;
    }
    if (x.is == FAC_EXACT_UNEQUAL) return ask_real(t, &x, &d);
    say_exact(t, &x, &d);
    return FAC_OK;
}

/* ---- without a run ---- */

/* Where runs could not show that two models are the same, their graphs may. */
static fac_status or_one_graph(fac_trial *t) {
    bool same = false;
    if (t->v->same == FAC_SAME || t->v->same == FAC_DIFFERENT) return FAC_OK;
    FAC_TRY(fac_verify_structure(t, &same));
    if (same) fac_verdict_say(t->v, FAC_SAME, "the same graph: the same ops on the same numbers");
    return FAC_OK;
}

/* ---- getting ready ---- */

static fac_status check_inputs(const fac_trial *t) {
    const fac_graph *a = t->a.graph;
    if (t->o->n && (size_t)t->o->n != a->ninputs)
        return fac_raise(t->err, FAC_E_ARGUMENT, "%d inputs are given, the models have %zu",
                         t->o->n, a->ninputs);
    for (int i = 0; i < t->o->n; i++) {
        const fac_type have = fac_tensor_type(t->o->inputs[i]), *want = &a->inputs[i]->type;
        if (have.dtype != want->dtype || !fac_dims_equal(&have.dims, &want->dims))
            return fac_raise(t->err, FAC_E_SHAPE,
                             "input %d, %s: the tensor has another type or size", i,
                             a->inputs[i]->name);
    }
    return FAC_OK;
}

enum { BOUND_ROUNDS = 3 };

static fac_status judge(fac_trial *t, const fac_graph *a, const fac_graph *b) {
    FAC_TRY(fac_trial_ready(t, a, &t->a.graph));
    FAC_TRY(fac_trial_ready(t, b, &t->b.graph));
    if (!same_ports(t)) return FAC_OK;
    FAC_TRY(check_inputs(t));
    t->in = fac_alloc(t->a.graph->ninputs + 1, sizeof *t->in);
    if (!t->in) return fac_raise_memory(t->err, "%zu inputs", t->a.graph->ninputs);
    const bool coarse[2] = { has_coarse(t->a.graph), has_coarse(t->b.graph) };
    t->a.coarse = coarse[0] && !coarse[1];
    t->b.coarse = coarse[1] && !coarse[0];
    FAC_TRY(fac_trial_steps(t));
    switch (t->o->mode) {
    case FAC_VERIFY_EXACT:
        FAC_TRY(exact(t));
        return or_one_graph(t);
    case FAC_VERIFY_BOUND:
        return bounded(t, fac_rounds_wanted(t, BOUND_ROUNDS));
    case FAC_VERIFY_DATA: {
        fac_data d;
        return real_numbers(t, &d);
    }
    default:
        FAC_TRY(full(t));
        return or_one_graph(t);
    }
}

static void close_side(fac_verify_side *s) {
    fac_side_done(s);
    fac_release(s->error_at);
    fac_graph_free(s->graph);
}

fac_status fac_verify(const fac_graph *a, const fac_graph *b, fac_device *device,
                      const fac_verify_opts *opts, fac_verdict *out, fac_error *err) {
    fac_verdict v = { 0 };
    fac_error own = { 0 };
    FAC_TRY(fac_graph_usable(a, "fac_verify", err));
    FAC_TRY(fac_graph_usable(b, "fac_verify", err));
    fac_trial t = { .device = device, .o = opts, .v = &v, .err = err ? err : &own };
    fac_status status = judge(&t, a, b);
    if (t.in) fac_drop_tensors(t.in, t.a.graph->ninputs);
    fac_release(t.in);
    if (t.beside) fac_drop_tensors(t.beside, t.a.graph->ninputs);
    fac_release(t.beside);
    fac_release(t.at);
    close_side(&t.a);
    close_side(&t.b);
    if (!status) *out = v;
    return status;
}
