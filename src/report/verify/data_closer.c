/* A closer look at outputs that agree.  In a deep network most of an output may not depend on the
 * inputs at all: biases, and activations that are saturated.  Then what counts is how the outputs
 * change from one input to another; a constant shift, as rounding a bias makes it, is left out.
 * f64 keeps what f32 would lose. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/verify/data.h"

typedef fac_data_trial data;

enum { ROUNDS = FAC_INPUT_KINDS };

/* spread: of the results of a round, where they were asked for (noise.c). */
typedef struct look {
    data *d;
    fac_tensor **spread[ROUNDS][2];
} look;

/* of the change; of the numbers: noise of f64 */
static const double SHARE = 1e-3, EPSILON = 1e-12;

/* Sizes may follow from data. */
static bool all_alike(const fac_tensor *const t[4]) {
    const fac_type type = fac_tensor_type(t[0]);
    for (int i = 1; i < 4; i++) {
        const fac_type other = fac_tensor_type(t[i]);
        if (!fac_dims_equal(&type.dims, &other.dims)) return false;
    }
    return true;
}

/* What rounding may add to a change from round r to round s. */
static void rooms(const look *l, int r, int s, size_t k, int64_t from, int64_t n, double *room) {
    double e[FAC_DATA_PIECE];
    for (int64_t j = 0; j < n; j++) room[j] = 0;
    for (int i = 0; i < 4; i++) {
        fac_tensor **spread = l->spread[i / 2 ? s : r][i % 2];
        if (!spread || !spread[k]) continue;
        fac_tensor_doubles(spread[k], from, n, e);
        for (int64_t j = 0; j < n; j++) room[j] += e[j];
    }
}

/* Both models' change of output k from round r to round s. */
static fac_status change(const look *l, int r, int s, size_t k, bool *differs) {
    const data *d = l->d;
    const fac_tensor *t[4] = { fac_data_result(&d->t->a, r, k), fac_data_result(&d->t->a, s, k),
                               fac_data_result(&d->t->b, r, k), fac_data_result(&d->t->b, s, k) };
    const fac_type type = fac_tensor_type(t[0]);
    const int64_t n = type.dtype == FAC_F64 && all_alike(t) ? fac_dims_count(&type.dims) : 0;
    double size = 0, most = 0, off = 0, by[2] = { 0 };
    int64_t at = 0;
    double x[4][FAC_DATA_PIECE], room[FAC_DATA_PIECE];
    for (int i = 0; i < 4; i++) size = fmax(size, fac_data_largest(t[i]));
    for (int64_t from = 0; from < n; from += FAC_DATA_PIECE) {
        const int64_t count = n - from < FAC_DATA_PIECE ? n - from : FAC_DATA_PIECE;
        for (int i = 0; i < 4; i++) fac_tensor_doubles(t[i], from, count, x[i]);
        rooms(l, r, s, k, from, count, room);
        for (int64_t j = 0; j < count; j++) {
            const double a = x[1][j] - x[0][j], b = x[3][j] - x[2][j];
            const double beyond = fabs(a - b) - room[j];
            most = fmax(most, fmax(fabs(a), fabs(b)));
            if (!(beyond > off)) continue;
            off = beyond;
            at = from + j;
            by[0] = a;
            by[1] = b;
        }
    }
    if (*differs || !(off > SHARE * most + EPSILON * size + FAC_UNDERFLOW)) return FAC_OK;
    *differs = true;
    d->t->v->round = s;
    fac_verdict_say(d->t->v, FAC_DIFFERENT,
                    "output %.100s: from %s to %s element %lld changes by %.9g against %.9g",
                    d->t->a.graph->outputs[k].name, fac_inputs_word(d->t, r),
                    fac_inputs_word(d->t, s), (long long)at, by[0], by[1]);
    return FAC_OK;
}

static fac_status changes(const look *l, int r, int s, bool *differs) {
    for (size_t k = 0; k < l->d->t->a.graph->noutputs; k++) FAC_TRY(change(l, r, s, k, differs));
    return FAC_OK;
}

static fac_status find_spread(look *l, int round) {
    const fac_noise_runs of = { round, round, 0, FAC_NOISE_RUNS };
    for (int i = 0; i < 2; i++) {
        if (l->spread[round][i]) continue;
        l->spread[round][i] = fac_alloc(l->d->t->a.graph->noutputs + 1, sizeof(fac_tensor *));
        if (!l->spread[round][i]) return fac_raise_memory(l->d->t->err, "spreads");
        FAC_TRY(fac_noise_spread(l->d, i, &of, l->spread[round][i]));
    }
    return FAC_OK;
}

/* What differs must do so beyond what rounding decides.  Where that cannot be found out, nothing is
 * said. */
static fac_status sure_changes(look *l, int r, int s, bool *differs) {
    fac_trial *t = l->d->t;
    const fac_verdict before = *t->v;
    fac_error *err = t->err, own = { 0 };
    FAC_TRY(changes(l, r, s, differs));
    if (!*differs || !fac_data_may_be_tied(l->d)) return FAC_OK;
    *t->v = before;
    *differs = false;
    t->err = &own;
    fac_status status = find_spread(l, r);
    if (!status) status = find_spread(l, s);
    t->err = err;
    if (status == FAC_E_NOMEM) return fac_raise(err, status, "%s", own.text);
    return status ? FAC_OK : changes(l, r, s, differs);
}

/* Whether numbers of a round outgrow their type, in one of the models. */
static fac_status outgrows(data *d, int round, bool *yes) {
    char node[120] = "";
    FAC_TRY(fac_trial_inputs(d->t, round));
    for (int i = 0; i < 2 && !*node; i++)
        FAC_TRY(fac_find_overflow(d->t, d->wide[i], node, sizeof node));
    *yes = *node;
    return FAC_OK;
}

static fac_status closer(look *l, bool *differs) {
    data *d = l->d;
    bool out[ROUNDS];
    FAC_TRY(fac_data_make(d, FAC_F64));
    FAC_TRY(fac_data_run(d, 0, ROUNDS));
    for (int r = 0; r < ROUNDS; r++) FAC_TRY(outgrows(d, r, &out[r]));
    for (int r = 0; r < ROUNDS; r++)
        for (int s = r + 1; s < ROUNDS; s++)
            if (!out[r] && !out[s] && !*differs) FAC_TRY(sure_changes(l, r, s, differs));
    return FAC_OK;
}

static void close_look(look *l) {
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < 2; i++) {
            if (l->spread[r][i]) fac_drop_tensors(l->spread[r][i], l->d->t->a.graph->noutputs);
            fac_release(l->spread[r][i]);
        }
}

fac_status fac_verify_closer(fac_trial *t, bool *differs) {
    fac_data none = { .is = FAC_DATA_AGREES };
    data d = { .t = t, .to = &none };
    *differs = false;
    fac_data_find_short(&d);
    if (d.half || d.brain || t->o->n ||
        !fac_data_can_be_f64(&d, fac_macs(t->a.graph) + fac_macs(t->b.graph)))
        return FAC_OK;
    look l = { .d = &d };
    const fac_status status = closer(&l, differs);
    close_look(&l);
    fac_data_drop(&d);
    return status;
}
