/* Both models on whole numbers modulo a prime.
 *
 * Primes are as large as sums of the models allow: 61 and its neighbours, else smaller ones.  Each
 * round has another prime, so that a chance of 1 in 61 to miss the change of one weight becomes one
 * of 1 in 200,000, and two inputs, whose results must not be alike: what does not depend on the
 * inputs, or is 0, proves nothing. */
#include <math.h>
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/verify/verify.h"

enum { PLACES = 7, CLASSES = 3, PRIMES = 3, INPUTS = 2 };
static const int primes[CLASSES][PRIMES] = { { 61, 59, 53 }, { 31, 29, 23 }, { 13, 11, 7 } };

typedef struct work {
    fac_trial *t;
    fac_graph *form[2]; /* canonical */
    int size;           /* which class of primes */
    char lost[200];
    bool nonzero, varies;
    fac_exact *to;
} work;

static fac_verify_side *side_of(const work *w, int i) { return i ? &w->t->b : &w->t->a; }

/* ---- one prime ---- */

static fac_status make(work *w, int prime) {
    for (int i = 0; i < 2; i++) {
        fac_abstract_stat stat;
        fac_verify_side *s = side_of(w, i);
        fac_side_done(s);
        s->run = fac_abstract(w->form[i], prime, &stat);
        if (!s->run) return fac_raise_memory(w->t->err, "a model");
        FAC_TRY(fac_graph_check(s->run, w->t->err));
        if (*stat.lost) snprintf(w->lost, sizeof w->lost, "%.180s", stat.lost);
    }
    w->t->prime = prime;
    return FAC_OK;
}

/* The largest primes with which no sum leaves what f32 holds. */
static fac_status choose(work *w) {
    for (w->size = 0; w->size < CLASSES; w->size++) {
        w->lost[0] = 0;
        FAC_TRY(make(w, primes[w->size][0]));
        if (!*w->lost) return FAC_OK;
    }
    w->size = CLASSES - 1;
    return FAC_OK;
}

/* ---- comparing ---- */

static fac_status compare(work *w, int inputs, size_t k) {
    const fac_verify_side *a = &w->t->a, *b = &w->t->b;
    const size_t at = (size_t)inputs * a->run->noutputs + k;
    fac_difference d = { 0 };
    FAC_TRY(fac_compare(a->out[at], b->out[at], NULL, NULL, 0, 0, &d, w->t->err));
    w->to->elements += d.elements;
    if (!d.count || w->to->is == FAC_EXACT_UNEQUAL) return FAC_OK;
    w->to->is = FAC_EXACT_UNEQUAL;
    if (*d.sizes)
        snprintf(w->to->why, sizeof w->to->why, "output %.150s: other sizes, %s",
                 a->graph->outputs[k].name, d.sizes);
    else
        snprintf(w->to->why, sizeof w->to->why,
                 "output %.150s: %lld of %.0f remainders modulo %d differ",
                 a->graph->outputs[k].name, (long long)d.count, d.elements, w->t->prime);
    return FAC_OK;
}

/* Whether the first model's results say anything. */
static fac_status look(work *w, size_t k) {
    const fac_verify_side *a = &w->t->a;
    fac_difference d = { 0 };
    double x[1024];
    FAC_TRY(fac_compare(a->out[k], a->out[a->run->noutputs + k], NULL, NULL, 0, 0, &d, w->t->err));
    w->varies |= d.count > 0;
    const fac_type type = fac_tensor_type(a->out[k]);
    const int64_t all = fac_dims_count(&type.dims), n = all < 1024 ? all : 1024;
    fac_tensor_doubles(a->out[k], 0, n, x);
    for (int64_t i = 0; i < n; i++) w->nonzero |= x[i] != 0;
    w->nonzero |= d.count > 0;
    return FAC_OK;
}

static fac_status one_round(work *w, int round) {
    fac_trial *t = w->t;
    for (int i = 0; i < 2; i++) FAC_TRY(fac_trial_rounds(t, side_of(w, i), INPUTS * round, INPUTS));
    for (size_t k = 0; k < t->a.graph->noutputs; k++) {
        for (int inputs = 0; inputs < INPUTS; inputs++) FAC_TRY(compare(w, inputs, k));
        FAC_TRY(look(w, k));
    }
    return FAC_OK;
}

static bool other_sizes(const work *w) {
    for (size_t k = 0; k < w->t->a.run->noutputs; k++)
        if (!fac_may_be_alike(w->t->a.run->outputs[k].value, w->t->b.run->outputs[k].value))
            return true;
    return false;
}

static fac_status all_rounds(work *w, int rounds) {
    for (int r = 0; r < rounds && w->to->is == FAC_EXACT_EQUAL; r++) {
        if (r) FAC_TRY(make(w, primes[w->size][r % PRIMES]));
        if (other_sizes(w)) {
            w->to->is = FAC_EXACT_LOST;
            snprintf(w->to->why, sizeof w->to->why, "sizes depend on computed numbers");
            return FAC_OK;
        }
        FAC_TRY(one_round(w, r));
        w->to->rounds++;
    }
    return FAC_OK;
}

static void judge(work *w) {
    fac_exact *to = w->to;
    if (to->is != FAC_EXACT_EQUAL) return;
    const char *type = fac_verify_other_floats(w->t->a.graph, w->t->b.graph);
    if (type) {
        to->is = FAC_EXACT_LOST;
        snprintf(to->why, sizeof to->why, "only one of the models computes in %s", type);
    } else if (*w->lost) {
        to->is = FAC_EXACT_LOST;
        snprintf(
            to->why, sizeof to->why,
            "the proof was lost at %.180s: its sums may be too large, or nothing is known of it",
            w->lost);
    } else if (!w->nonzero || (!w->varies && w->t->a.graph->ninputs)) {
        to->is = FAC_EXACT_EMPTY;
        snprintf(to->why, sizeof to->why,
                 w->nonzero ? "no output depends on the inputs" : "all outputs are 0");
    }
}

/* Equal remainders of ops that these do not show are no proof. */
static fac_status see_unlike(work *w) {
    const fac_node *n = NULL;
    char label[200];
    if (w->to->is != FAC_EXACT_EQUAL) return FAC_OK;
    if (!fac_verify_unlike(w->form[0], w->form[1], &n)) return fac_raise_memory(w->t->err, "nodes");
    if (!n) return FAC_OK;
    w->to->is = FAC_EXACT_UNEQUAL;
    fac_node_label(n, label, sizeof label);
    snprintf(w->to->why, sizeof w->to->why, "only one of the models has this %.20s: %.180s",
             n->op->name, label);
    return FAC_OK;
}

/* Where the exact forms differ, those that a simplified model has may be equal. */
static fac_status run_form(work *w, fac_form form, int rounds) {
    for (int i = 0; i < 2; i++) {
        fac_graph_free(w->form[i]);
        w->form[i] = fac_canonical(side_of(w, i)->graph, form);
        if (!w->form[i]) return fac_raise_memory(w->t->err, "a model");
        FAC_TRY(fac_graph_check(w->form[i], w->t->err));
    }
    FAC_TRY(choose(w));
    FAC_TRY(all_rounds(w, rounds));
    return see_unlike(w);
}

/* A form that cannot run says nothing, but the first one did. */
static fac_status run(work *w, int rounds) {
    FAC_TRY(run_form(w, FAC_FORM_EXACT, rounds));
    const fac_exact first = *w->to;
    const bool open = fac_can_open(w->t->a.graph) || fac_can_open(w->t->b.graph);
    const int forms = open ? FAC_FORMS : FAC_FORM_OPEN;
    for (int form = FAC_FORM_FOLDED; form < forms && w->to->is == FAC_EXACT_UNEQUAL; form++) {
        *w->to = (fac_exact){ .is = FAC_EXACT_EQUAL, .form = (fac_form)form };
        w->nonzero = w->varies = false;
        const fac_status status = run_form(w, (fac_form)form, rounds);
        if (status == FAC_E_NOMEM) return status;
        if (status) w->to->is = FAC_EXACT_UNEQUAL;
    }
    if (first.is == FAC_EXACT_UNEQUAL && (w->to->is != FAC_EXACT_EQUAL || *w->lost)) *w->to = first;
    return FAC_OK;
}

/* What cannot run on remainders (places out of range, say) is no error of the models. */
fac_status fac_verify_exact(fac_trial *t, int rounds, fac_exact *out) {
    fac_error *err = t->err, own = { 0 };
    const int narrow = t->narrow;
    work w = { .t = t, .to = out };
    *out = (fac_exact){ .is = FAC_EXACT_EQUAL };
    t->err = &own;
    t->narrow = narrow ? narrow : PLACES;
    fac_status status = run(&w, rounds);
    t->err = err;
    t->narrow = narrow;
    t->prime = 0;
    fac_side_done(&t->a);
    fac_side_done(&t->b);
    fac_graph_free(w.form[0]);
    fac_graph_free(w.form[1]);
    if (status == FAC_E_NOMEM) return fac_raise(err, status, "%s", own.text);
    judge(&w);
    if (status && out->is != FAC_EXACT_UNEQUAL) {
        out->is = FAC_EXACT_LOST;
        snprintf(out->why, sizeof out->why, "no proof on remainders: %.300s", own.text);
    }
    return FAC_OK;
}
