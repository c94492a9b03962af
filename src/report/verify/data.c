/* Real numbers: rounds of inputs of several kinds (inputs.c), judged by a tolerance.
 *
 * Small models run in f64, where rounding is no excuse.  Larger ones run in f32; a round that
 * differs there is run once more in f64: what differs by as much again is no rounding, unless it
 * follows from a number that rounding alone sends one way or the other (noise.c).  A tolerance that
 * the caller gave is his own, and f32 decides. */
#include <math.h>
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/verify/data.h"

typedef fac_data_trial data;

/* multiply-adds: f64 at once; few rounds; never f64 */
static const double SMALL = 3e7, LARGE = 1e9, MOST = 3e11;
enum { FEW_NODES = 20000, FEW_ROUNDS = 3, FEW_NUMBERS = 256, MANY_ROUNDS = 5 * FAC_INPUT_KINDS };

/* rtol |b| + atol (largest |b|): of f32; of f64; of a difference that rounding weights to f32
 * explains; and of models whose weights or constants have 16 bits. */
typedef struct tolerance {
    double rtol, atol;
} tolerance;
static const tolerance single = { 1e-4, 1e-5 }, real = { 1e-4, 1e-6 }, slight = { 1e-6, 1e-7 };
static const tolerance half = { 4e-3, 4e-3 }, brain = { 2e-2, 2e-2 };
static const double NOISE = 1e-10; /* of f64, where numbers of a thousand cancel */

static fac_verify_side *side_of(const data *d, int i) { return i ? &d->t->b : &d->t->a; }

double fac_macs(const fac_graph *g) {
    double macs = 0;
    for (const fac_node *n = g->first; n; n = n->next) {
        fac_cost c = { 0 };
        if (n->op->cost) n->op->cost(n, &c);
        macs += c.macs;
    }
    return macs;
}

static bool given_tolerance(const fac_trial *t) { return t->o->rtol != 0 || t->o->atol != 0; }

/* ---- running ---- */

void fac_data_drop(data *d) {
    for (int i = 0; i < 2; i++) {
        fac_side_done(side_of(d, i));
        fac_reach_free(d->reach[i]);
        fac_graph_free(d->wide[i]);
        d->reach[i] = NULL;
        d->wide[i] = NULL;
    }
}

static bool has(const fac_graph *g, fac_dtype type) {
    for (const fac_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nin + n->nout; k++) {
            const fac_value *v = k < n->nin ? n->in[k] : n->out[k - n->nin];
            if (v && v->type.dtype == type) return true;
        }
    return false;
}

void fac_data_find_short(data *d) {
    d->half = has(d->t->a.graph, FAC_F16) || has(d->t->b.graph, FAC_F16);
    d->brain = has(d->t->a.graph, FAC_BF16) || has(d->t->b.graph, FAC_BF16);
}

fac_status fac_data_make(data *d, fac_dtype as) {
    d->as = as;
    for (int i = 0; i < 2; i++) {
        fac_verify_side *s = side_of(d, i);
        fac_error *err = d->t->err;
        d->wide[i] = fac_can_widen(s->graph) ? fac_widen(s->graph, as) : fac_graph_clone(s->graph);
        if (!d->wide[i]) return fac_raise_memory(err, "a model");
        FAC_TRY(fac_graph_check(d->wide[i], err));
        FAC_TRY(fac_reach_watch(d->wide[i], &d->reach[i], &s->run, err));
        FAC_TRY(fac_graph_check(s->run, err));
    }
    return FAC_OK;
}

static fac_status run_both(data *d, int first, int rounds) {
    fac_status status = FAC_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = fac_trial_rounds(d->t, side_of(d, i), first, rounds);
    return status;
}

/* First all of one model, then all of the other.  Integers that turn out to be places, out of
 * range, are drawn from as many as can be: lengths of 0 and 1 alone hide what attention does.  Then
 * real numbers, which may be places as well, of regions say. */
fac_status fac_data_run(data *d, int first, int rounds) {
    enum { PLACES = 7 };
    fac_trial *t = d->t;
    fac_error *err = t->err, own = { 0 };
    t->err = &own;
    fac_status status = run_both(d, first, rounds);
    for (int k = PLACES; k >= 0 && status && status != FAC_E_NOMEM; k--) {
        if (k && t->narrow && t->narrow <= k) continue;
        if (k) t->narrow = k;
        t->tame = k == 0;
        own = (fac_error){ 0 };
        status = run_both(d, first, rounds);
    }
    t->err = err;
    return status ? fac_raise(err, status, "%s", own.text) : FAC_OK;
}

static void look_at_reach(data *d, int rounds) {
    for (int i = 0; i < 2; i++) {
        const fac_verify_side *s = side_of(d, i);
        const size_t n = s->run->noutputs;
        for (int r = 0; r < rounds && n > s->graph->noutputs; r++)
            fac_reach_look(d->reach[i], s->out[(size_t)r * n + n - 1]);
    }
}

/* ---- comparing ---- */

double fac_data_largest(const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const int64_t n = type.dtype == FAC_TEXT ? 0 : fac_dims_count(&type.dims);
    double x[FAC_DATA_PIECE], most = 0;
    for (int64_t from = 0; from < n; from += FAC_DATA_PIECE) {
        const int64_t count = n - from < FAC_DATA_PIECE ? n - from : FAC_DATA_PIECE;
        fac_tensor_doubles(t, from, count, x);
        for (int64_t k = 0; k < count; k++)
            if (isfinite(x[k])) most = fmax(most, fabs(x[k]));
    }
    return most;
}

const fac_tensor *fac_data_result(const fac_verify_side *s, int r, size_t k) {
    return s->out[(size_t)r * s->run->noutputs + k];
}

static fac_status beyond(const data *d, int r, size_t k, tolerance by, bool of_largest,
                         fac_difference *to) {
    const fac_tensor *a = fac_data_result(&d->t->a, r, k), *b = fac_data_result(&d->t->b, r, k);
    const double size = of_largest ? fmax(fac_data_largest(a), fac_data_largest(b)) : 1;
    *to = (fac_difference){ 0 };
    const double noise = of_largest && d->as == FAC_F64 && !d->whole[k] ? NOISE : 0;
    const fac_tensor *ea = d->spread[0] ? d->spread[0][k] : NULL;
    const fac_tensor *eb = d->spread[1] ? d->spread[1][k] : NULL;
    return fac_compare(a, b, ea, eb, by.rtol, by.atol * size + noise, to, d->t->err);
}

static const char *inputs_word(const data *d, int round) {
    return d->t->o->n ? "the given inputs" : fac_inputs_word(d->t, round);
}

static void say(data *d, int round, size_t k, const fac_difference *x) {
    const char *name = d->t->a.graph->outputs[k].name, *on = inputs_word(d, round);
    d->t->v->round = round;
    if (*x->sizes)
        fac_verdict_say(d->t->v, FAC_DIFFERENT, "output %.100s: other sizes on %s: %s", name, on,
                        x->sizes);
    else
        fac_verdict_say(d->t->v, FAC_DIFFERENT,
                        "output %.100s: %lld of %.0f elements differ on %s; the first is element "
                        "%lld, %s",
                        name, (long long)x->count, x->elements, on, (long long)x->at, x->pair);
}

static tolerance allowed(const data *d, size_t k) {
    if (given_tolerance(d->t)) return (tolerance){ fmax(d->t->o->rtol, 0), fmax(d->t->o->atol, 0) };
    if (d->whole[k]) return (tolerance){ 0 };
    if (d->brain) return brain;
    if (d->half) return half;
    return d->as == FAC_F64 ? real : single;
}

/* Whether round `first + r` differs; its numbers count in the verdict. */
static fac_status judge_round(data *d, int first, int r, bool *differs) {
    fac_verdict *v = d->t->v;
    *differs = false;
    for (size_t k = 0; k < d->t->a.graph->noutputs; k++) {
        fac_difference x, y;
        FAC_TRY(beyond(d, r, k, allowed(d, k), !given_tolerance(d->t), &x));
        if (d->as == FAC_F64) {
            FAC_TRY(beyond(d, r, k, slight, true, &y));
            d->to->slight |= y.count > 0;
        }
        v->elements += x.elements - (double)x.unbounded;
        v->differing += (double)x.count;
        if (x.worst > v->worst) v->worst = x.worst;
        if (x.ratio > v->ratio) v->ratio = x.ratio;
        if (x.count && !*differs) say(d, first + r, k, &x);
        *differs |= x.count > 0;
    }
    return FAC_OK;
}

/* Whether the first model's results say anything. */
static fac_status look(data *d, int r) {
    for (size_t k = 0; k < d->t->a.graph->noutputs; k++) {
        fac_difference x = { 0 };
        d->nonzero |= fac_data_largest(fac_data_result(&d->t->a, r, k)) > 0;
        if (!r) continue;
        FAC_TRY(fac_compare(fac_data_result(&d->t->a, 0, k), fac_data_result(&d->t->a, r, k), NULL,
                            NULL, 0, 0, &x, d->t->err));
        d->varies |= x.count > 0;
    }
    return FAC_OK;
}

/* ---- all of it ---- */

bool fac_data_can_be_f64(const data *d, double macs) {
    return fac_can_widen(d->t->a.graph) && fac_can_widen(d->t->b.graph) && macs < MOST &&
           !given_tolerance(d->t);
}

/* Takes back what a round added to the verdict: it says nothing. */
static void take_back(data *d, const fac_verdict *before, bool was_slight) {
    *d->t->v = *before;
    d->to->slight = was_slight;
}

/* The first round that says nothing, since numbers outgrew their type, is named. */
static void note_overflow(data *d, int round, int side, const char *node) {
    fac_verdict *v = d->t->v;
    if (d->to->outgrown++) return;
    snprintf(v->outgrown, sizeof v->outgrown,
             "%.100s of %s outgrows its type on %s, which say nothing of the functions", node,
             side ? "B" : "A", inputs_word(d, round));
}

/* Numbers that outgrew their type in one of the models: what differs then is no difference of the
 * functions.  Inputs and tolerances that the caller gave are his own affair. */
static fac_status excuse(data *d, int round, const fac_verdict *before, bool was_slight,
                         bool *differs) {
    char node[120] = "";
    if (!*differs || d->t->o->n || given_tolerance(d->t)) return FAC_OK;
    FAC_TRY(fac_trial_inputs(d->t, round));
    for (int i = 0; i < 2 && !*node; i++) {
        FAC_TRY(fac_find_overflow(d->t, d->wide[i], node, sizeof node));
        if (!*node) continue;
        take_back(d, before, was_slight);
        note_overflow(d, round, i, node);
        *differs = false;
    }
    return FAC_OK;
}

static void drop_spreads(data *d) {
    for (int i = 0; i < 2; i++) {
        if (d->spread[i]) fac_drop_tensors(d->spread[i], d->t->a.graph->noutputs);
        fac_release(d->spread[i]);
        d->spread[i] = NULL;
    }
}

/* The round again, with the spreads of both models as room, until nothing differs. */
static fac_status judge_spreads(data *d, int round, int r, const fac_verdict *before,
                                bool was_slight, bool *differs) {
    static const int runs[] = { 0, 2, FAC_NOISE_RUNS };
    for (int i = 0; i < 2; i++) {
        d->spread[i] = fac_alloc(d->t->a.graph->noutputs + 1, sizeof(fac_tensor *));
        if (!d->spread[i]) return fac_raise_memory(d->t->err, "spreads");
    }
    for (int k = 0; k < 2 && *differs; k++) {
        const fac_noise_runs of = { round, r, runs[k], runs[k + 1] };
        for (int i = 0; i < 2; i++) FAC_TRY(fac_noise_spread(d, i, &of, d->spread[i]));
        take_back(d, before, was_slight);
        FAC_TRY(judge_round(d, round - r, r, differs));
    }
    return FAC_OK;
}

/* What jumps in a large model is worth many runs of it; rounding of what does not is small. */
bool fac_data_may_be_tied(const data *d) {
    return fac_macs(d->wide[0]) + fac_macs(d->wide[1]) < SMALL || fac_noise_matters(d->wide[0]) ||
           fac_noise_matters(d->wide[1]);
}

/* What differs where rounding decides is no difference of the functions. */
static fac_status excuse_ties(data *d, int round, int r, const fac_verdict *before, bool was_slight,
                              bool *differs) {
    fac_verdict *v = d->t->v;
    fac_error *err = d->t->err, own = { 0 };
    const fac_verdict claimed = *v;
    if (!*differs || given_tolerance(d->t) || !fac_data_may_be_tied(d)) return FAC_OK;
    d->t->err = &own;
    fac_status status = judge_spreads(d, round, r, before, was_slight, differs);
    d->t->err = err;
    drop_spreads(d);
    if (status == FAC_E_NOMEM) return fac_raise(err, status, "%s", own.text);
    if (status) {
        *v = claimed;
        *differs = d->unsure = true;
    }
    v->tied = before->tied + claimed.differing - v->differing;
    return FAC_OK;
}

/* A round of results that are there, in the type that decides. */
static fac_status decide(data *d, int first, int r, bool *differs) {
    const fac_verdict before = *d->t->v;
    const bool slight_before = d->to->slight;
    FAC_TRY(judge_round(d, first, r, differs));
    FAC_TRY(excuse(d, first + r, &before, slight_before, differs));
    return excuse_ties(d, first + r, r, &before, slight_before, differs);
}

/* The round in f64; its f32 results differ. */
static fac_status ask_f64(data *d, int round, bool *differs) {
    fac_data_drop(d);
    FAC_TRY(fac_data_make(d, FAC_F64));
    FAC_TRY(fac_data_run(d, round, 1));
    return decide(d, round, 0, differs);
}

/* All rounds, up to the first that differs.  doubtful: where f32 differs, which f64 is asked of. */
static fac_status judge_all(data *d, int rounds, bool final, int doubtful[FEW_ROUNDS], int *count,
                            bool *differs) {
    for (int r = 0; r < rounds && !*differs; r++) {
        const fac_verdict before = *d->t->v;
        bool apart = false;
        FAC_TRY(look(d, r));
        FAC_TRY(final ? decide(d, 0, r, differs) : judge_round(d, 0, r, &apart));
        d->to->rounds = r + 1;
        if (!apart) continue;
        if (*count < FEW_ROUNDS) doubtful[(*count)++] = r;
        take_back(d, &before, d->to->slight);
    }
    return FAC_OK;
}

static fac_agreement differing(const data *d, bool decided) {
    return decided && !d->unsure ? FAC_DATA_DIFFERS : FAC_DATA_UNCLEAR;
}

/* Where nothing differs: whether that says anything. */
static fac_agreement agreeing(data *d) {
    fac_verdict *v = d->t->v;
    const bool outgrown = d->to->outgrown == d->to->rounds, tied = v->tied > 0 && v->elements == 0;
    if (outgrown)
        fac_verdict_say(v, FAC_CANNOT_TELL, "numbers outgrow their type on all inputs");
    else if (tied)
        fac_verdict_say(v, FAC_CANNOT_TELL, "rounding decides all numbers");
    if (outgrown || tied) return FAC_DATA_UNCLEAR;
    return !d->nonzero || (!d->varies && d->t->a.graph->ninputs) ? FAC_DATA_EMPTY : FAC_DATA_AGREES;
}

static fac_status rounds_of(data *d, int rounds, double macs) {
    const bool small = macs < SMALL && d->t->a.graph->nodes + d->t->b.graph->nodes < FEW_NODES;
    const bool can = fac_data_can_be_f64(d, macs);
    int doubtful[FEW_ROUNDS], count = 0;
    bool differs = false;
    d->to->f64 = small && can;
    FAC_TRY(fac_data_make(d, d->to->f64 ? FAC_F64 : FAC_F32));
    FAC_TRY(fac_data_run(d, 0, rounds));
    look_at_reach(d, rounds);
    for (int i = 0; i < 2; i++)
        fac_reach_say(d->reach[i], i ? "B" : "A", d->t->v->note, sizeof d->t->v->note);
    FAC_TRY(judge_all(d, rounds, d->to->f64 || !can, doubtful, &count, &differs));
    if (rounds == 1) d->varies = true; /* nothing to compare with */
    const bool decided = d->to->f64 || given_tolerance(d->t) || !fac_can_widen(d->t->a.graph);
    if (differs) return d->to->is = differing(d, decided), FAC_OK;
    for (int k = 0; k < count && !differs; k++) FAC_TRY(ask_f64(d, doubtful[k], &differs));
    d->to->is = differs ? differing(d, true) : agreeing(d);
    return FAC_OK;
}

/* So few that chance would miss a corner. */
static bool few_numbers(const fac_graph *g) {
    int64_t n = 0;
    for (size_t i = 0; i < g->ninputs; i++) n += fac_dims_count(&g->inputs[i]->type.dims);
    return n < FEW_NUMBERS;
}

fac_status fac_verify_data(fac_trial *t, fac_data *out) {
    data d = { .t = t, .to = out };
    fac_data_find_short(&d);
    const double macs = fac_macs(t->a.graph) + fac_macs(t->b.graph);
    const int usual = macs > LARGE              ? FEW_ROUNDS
                      : few_numbers(t->a.graph) ? MANY_ROUNDS
                                                : FAC_INPUT_KINDS;
    *out = (fac_data){ .is = FAC_DATA_AGREES };
    d.whole = fac_whole_outputs(t->a.graph, t->b.graph);
    if (!d.whole) return fac_raise_memory(t->err, "outputs");
    fac_status status = rounds_of(&d, fac_rounds_wanted(t, usual), macs);
    fac_data_drop(&d);
    fac_release(d.whole);
    return status;
}
