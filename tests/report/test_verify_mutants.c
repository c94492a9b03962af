/* The judge is judged: every op that has cases, with each attribute changed to other values, the op
 * replaced by others of the same signature, weights and constants changed in one element, operands
 * exchanged.  A mutant that the reference interpreter tells from the original in f64 must not be
 * called the same.  A sample; FACULA_ALL=1: all; FACULA_SHARD=i/n: what falls to one of n
 * processes. */
#include "mutants.h"
#include "base/clock.h"
#include "shard.h"

enum { SAMPLE = 2500, SLOW = 20 /* seconds of one that are worth a line */ };
/* multiply-adds of a case: the interpreter runs it often */
static const double LARGEST = 4e5;

typedef struct tally {
    bool count_only;
    shard part;
    double share; /* of all that is tried */
    int all, tried, differing, missed, alarms, verdicts[4], kinds[MUTATION_KINDS];
} tally;

static const char *case_name;

static bool chosen(const tally *t, const mutation *m, int variant) {
    fac_hash h = fac_hash_text(fac_hash_start(seed + (uint64_t)variant), case_name);
    h = fac_hash_int(fac_hash_int(h, (uint64_t)m->kind << 32 | (uint64_t)m->at),
                     (uint64_t)m->element << 8 | (uint64_t)m->turn);
    return (double)(h.a >> 11) * 0x1p-53 < t->share;
}

static void try_one(tally *t, const fac_graph *g, mutation m, int variant, double lo, double hi) {
    if (!t->count_only && (!chosen(t, &m, variant) || !shard_is_mine(&t->part))) return;
    fac_graph *bad = mutant(g, &m);
    const double from = fac_seconds();
    if (!bad) return;
    t->all++;
    const int truth = t->count_only ? -1 : differ(g, bad, lo, hi);
    fac_verdict v = { 0 };
    if (truth >= 0) {
        const fac_status status =
            fac_verify(g, bad, device, &(fac_verify_opts){ .seed = seed }, &v, &err);
        if (status) print_message("error    %s: %s: %s\n", case_name, m.what, err.text);
        t->tried++;
        t->differing += truth;
        t->kinds[m.kind] += truth;
        if (truth && !status) t->verdicts[v.same]++;
        if (truth && !status && v.same == FAC_SAME) {
            t->missed++;
            print_message("missed   %s: %s\n", case_name, m.what);
        }
        if (!truth && !status && v.same == FAC_DIFFERENT) {
            t->alarms++;
            print_message("alarm    %s: %s: %s\n", case_name, m.what, v.why);
        }
    }
    fac_graph_free(bad);
    if (fac_seconds() - from > SLOW)
        print_message("%.0f s      %s: %s\n", fac_seconds() - from, case_name, m.what);
}

/* ---- all mutants of a graph ---- */

static void attrs_of(tally *t, const fac_graph *g, int variant, const fac_case *c) {
    const fac_attr *a = g->last->op->attrs;
    for (int k = 0; a && a[k].name; k++)
        for (int e = 0; e < (a[k].count ? a[k].count : 1); e++)
            for (int turn = 0; turn < turns_of(&a[k]); turn++)
                try_one(t, g, (mutation){ OF_ATTR, k, e, turn, NULL, "", false }, variant, c->lo,
                        c->hi);
}

/* Those that an author could take by mistake: as many operands, of the same kinds. */
static bool alike(const fac_op *a, const fac_op *b) {
    return a != b && ports(a->in) == ports(b->in) && !(b->is & (FAC_OP_BODIES | FAC_OP_BARRIER)) &&
           (a->map != NULL) == (b->map != NULL) && !strstr(b->name, "_grad") &&
           !strstr(b->name, "batch_norm_");
}

static void ops_of(tally *t, const fac_graph *g, int variant, const fac_case *c) {
    for (int k = 0; fac_ops[k]; k++)
        if (alike(g->last->op, fac_ops[k]))
            try_one(t, g, (mutation){ OF_OP, k, 0, 0, NULL, "", false }, variant, c->lo, c->hi);
}

static void numbers_of(tally *t, const fac_graph *g, int variant, const fac_case *c) {
    for (int i = 0; i < (int)g->nparams; i++) {
        const int64_t n = fac_dims_count(&g->params[i]->type.dims);
        for (int k = 0; k < 2 && n > 0; k++)
            try_one(t, g, (mutation){ OF_PARAM, i, k ? (int)(n - 1) : 0, 0, NULL, "", false },
                    variant, c->lo, c->hi);
    }
    for (int i = 0; i < (int)g->nconsts; i++) {
        const int64_t n = g->consts[i]->tensor ? fac_dims_count(&g->consts[i]->type.dims) : 0;
        for (int k = 0; k < n; k++)
            try_one(t, g, (mutation){ OF_CONST, i, k, 0, NULL, "", false }, variant, c->lo, c->hi);
    }
    for (int i = 0; i + 1 < g->last->nin; i++)
        if (g->last->in[i] && g->last->in[i + 1])
            try_one(t, g, (mutation){ OF_ORDER, i, 0, 0, NULL, "", false }, variant, c->lo, c->hi);
}

/* All operands as inputs, then those that models hold as weights. */
static void case_of(tally *t, const fac_op *op, const fac_case *c) {
    (void)op;
    for (int variant = 0; variant < 2; variant++) {
        fac_graph *g = NULL;
        if (fac_problem_graph(c->problem, variant == 1, &g, &err))
            fail_msg("%s: %s", c->problem, err.text);
        const bool wanted = g->noutputs && fac_macs(g) <= LARGEST && (!variant || g->nparams);
        for (int i = 0; i < (int)g->nparams; i++) {
            fac_tensor *r = random_tensor(g->params[i]->type, c->lo, c->hi);
            OK(fac_tensor_write(g->params[i]->tensor, fac_tensor_data(r),
                                fac_type_bytes(&g->params[i]->type), &err));
            fac_tensor_free(r);
        }
        case_name = c->problem;
        if (wanted) attrs_of(t, g, variant, c);
        if (wanted) ops_of(t, g, variant, c);
        if (wanted) numbers_of(t, g, variant, c);
        fac_graph_free(g);
    }
}

static bool is_asked(const fac_op *op, const fac_case *c) {
    return !(op->is & FAC_OP_BODIES) && !strstr(op->name, "_grad") && c->hi > c->lo &&
           !strstr(c->problem, "text");
}

static void all_of(tally *t) {
    for (const fac_op *const *p = fac_ops; *p; p++)
        for (const fac_case *c = (*p)->cases; c && c->problem; c++)
            if (is_asked(*p, c)) case_of(t, *p, c);
}

static void mutants_are_told_apart(void **state) {
    (void)state;
    tally count = { .count_only = true }, t = { .share = 1, .part = shard_asked_for() };
    all_of(&count);
    if (!getenv("FACULA_ALL")) t.share = (double)SAMPLE / count.all;
    all_of(&t);
    print_message("%d mutants, %d tried, %d differ (", count.all, t.tried, t.differing);
    for (int k = 0; k < MUTATION_KINDS; k++)
        print_message("%s%s %d", k ? ", " : "", kind_names[k], t.kinds[k]);
    print_message("): %d same, %d different, %d cannot tell, %d no difference found; %d alarms\n",
                  t.verdicts[FAC_SAME], t.verdicts[FAC_DIFFERENT], t.verdicts[FAC_CANNOT_TELL],
                  t.verdicts[FAC_NO_DIFFERENCE], t.alarms);
    assert_true(t.differing >= t.tried / 2);
    assert_true(t.missed * 100 <= t.differing);
}

static int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return fac_device_open("cpu", NULL, &device, &err);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(mutants_are_told_apart) };
    return cmocka_run_group_tests_name("verify_mutants", tests, open_device, close_device);
}
