/* The levels of plans that are known, and relays in trainings, alone and with steps that are done
 * beside others. */
#include "relay_pair.h"

/* ---- levels ---- */

/* Of all jobs, in their order, as digits; a bar before each relay. */
static void levels_of(fac_value *y, const fac_program_opts *o, const char *levels) {
    fac_graph *g = y->graph;
    fac_tensor *x = random_tensor(seed, 1, fac_value_type(g->inputs[0]).dims, 1);
    char text[64] = "";
    fac_output(g, "y", y);
    fac_program *p = program(relayed, g, o);
    const int runs = relay_runs;
    run_times(p, x, 1, &got);
    int relays = 0;
    for (int i = 0; i < p->last->nsteps; i++) {
        const fac_relayed *r = p->last->steps[i].relay;
        assert_non_null(r);
        relays += r->first == i;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", r->first == i ? "|" : "",
                 r->jobs[i - r->first].level);
    }
    assert_string_equal(text, levels);
    assert_int_equal(relay_runs - runs, relays);
    fac_program_free(p);
    fac_graph_free(g);
    fac_tensor_free(x);
}

static fac_value *input(fac_dims d) { return fac_input(fac_graph_new(), "x", FAC_F32, d); }
static fac_value *matrix(void) { return fac_exp(input(fac_shape(4, 5))); }
static fac_value *image(void) { return fac_relu(input(fac_shape(2, 3, 4, 5))); }

static fac_value *joined(fac_value *a, fac_value *b) {
    return fac_neg(fac_concat((fac_value *[]){ a, b }, 2, 1));
}

static void levels(void **state) {
    (void)state;
    const fac_program_opts apart = { .no_fuse = true, .no_inplace = true },
                           over = { .no_fuse = true };
    relay_give(relayed, plain->backend, MOST, false, false, seed);
    levels_of(matrix(), &apart, "|0");
    levels_of(fac_tanh(fac_neg(fac_tanh(matrix()))), &apart, "|0123");
    fac_value *a = matrix();
    levels_of(fac_add(fac_tanh(a), fac_neg(a)), &apart, "|0112");
    a = matrix();
    levels_of(fac_add(fac_tanh(a), fac_neg(a)), &over,
              "|0123"); /* the last reader writes over what others read */
    a = matrix();       /* what a later node of a low level reads */
    levels_of(fac_sub(fac_exp(fac_neg(fac_tanh(a))), fac_sigmoid(a)), &apart, "|011234");
    relay_usual.most = 2;
    levels_of(fac_tanh(fac_neg(fac_tanh(fac_neg(matrix())))), &apart, "|01|01|0");
    relay_give(relayed, plain->backend, MOST, false, true, seed);
    a = image();
    levels_of(joined(fac_neg(a), fac_mul(a, a)), &apart, "|0112"); /* parts of one result */
    a = image();
    fac_value *b = fac_neg(a);
    levels_of(joined(b, fac_mul(a, b)), &apart, "|0123"); /* a part reads another one */
}

/* Where a result goes to an input's memory, all others have read it before. */
static void a_result_over_an_input(void **state) {
    (void)state;
    relay_give(relayed, plain->backend, MOST, false, false, seed);
    for (relay_by = 0; relay_by < RELAY_ORDERS; relay_by++) {
        fac_value *x = input(fac_shape(4, 5));
        fac_graph *g = x->graph;
        fac_output(g, "y", fac_tanh(x));
        fac_output(g, "next", fac_neg(x));
        for (int k = 0; k < 2; k++) {
            results *r = k ? &got : &want;
            fac_program *p =
                program(k ? relayed : plain, g, &(fac_program_opts){ .no_fuse = true });
            fac_tensor *t = random_tensor(seed, 1, fac_shape(4, 5), 1), *y[2] = { NULL, t };
            r->n = 0;
            r->bytes = 0;
            OK(fac_program_run(p, &t, y, &err));
            for (int i = 0; i < 2; i++) {
                keep(r, y[i]);
                fac_tensor_free(y[i]);
            }
            fac_program_free(p);
        }
        same(&want, &got, "over an input", relay_by);
        fac_graph_free(g);
    }
}

/* ---- trainings ---- */

enum { BATCH = 3, STEPS = 3, SIDE = 28 };

static void train(fac_device *d, double *losses, bool check) {
    fac_graph *g = NULL;
    fac_trainer *t = NULL;
    fac_tensor *x = random_tensor(seed, 3, fac_shape(BATCH, 1, SIDE, SIDE), 1), *labels = NULL;
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(BATCH), &labels, &err));
    OK(fac_tensor_write(labels, (int64_t[]){ 3, 7, 1 }, BATCH * 8, &err));
    OK(fac_zoo_new("lenet", NULL, seed, &g, &err));
    OK(fac_trainer_new(g, d, &(fac_trainer_opts){ 0 }, &t, &err));
    for (int i = 0; i < STEPS; i++) {
        fac_score score = { 0 };
        OK(fac_trainer_step(t, x, labels, 0.01, &score, &err));
        losses[i] = score.loss;
    }
    if (check) relay_check_plan(fac_trainer_program(t)->last, &tally);
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_tensor_free(x);
    fac_tensor_free(labels);
}

/* beside: gradients by weights are not done before the run meets them. */
static void trainings(void **state) {
    (void)state;
    double without[STEPS], with[STEPS];
    train(plain, without, false);
    for (int beside = 0; beside < 2; beside++) {
        tally = (relay_tally){ 0 };
        relay_give(relayed, plain->backend, MOST, false, false, seed);
        if (beside) relay_backend.beside = &relay_beside;
        for (relay_by = 0; relay_by < RELAY_ORDERS; relay_by++) {
            train(relayed, with, relay_by == 0);
            assert_memory_equal(with, without, sizeof with);
        }
        say(beside ? "training, some aside" : "training");
        assert_true(tally.jobs > 20 && tally.beside > 4);
    }
}

/* What a step that is aside reads, and a relay reads last, in its first level, is there until both
 * meet. */
static void what_is_aside_reads(void **state) {
    (void)state;
    const fac_conv3d_opts padded = { .pad = { 1, 1, 1, 1, 1,
                                              1 } }; /* whose gradients take plain operands */
    for (int k = 0; k < 2; k++) {
        builder b = { fac_graph_new(), seed, 0, 0 };
        fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(2, 5, 10, 12, 12)), *a = fac_tanh(x),
                  *y = fac_neg(x);
        fac_value *w = param(&b, fac_shape(5, 5, 3, 3, 3), 1);
        fac_output(b.g, "w", fac_conv3d_grad_w(a, x, w, &padded));
        for (int i = 0; i < 5; i++) y = i & 1 ? fac_tanh(y) : fac_neg(y);
        fac_output(b.g, "y", y);
        fac_output(b.g, "z", fac_exp(a));
        relay_give(relayed, plain->backend, MOST, false, false, seed);
        relay_backend.beside = &relay_beside;
        fac_tensor *t = random_tensor(seed, 1, fac_shape(2, 5, 10, 12, 12), 1);
        fac_program *p = program(k ? relayed : plain, b.g,
                                 &(fac_program_opts){ .no_fuse = true, .no_inplace = true });
        run_times(p, t, 2, k ? &got : &want);
        const fac_step *gradient = &p->last->steps[2], *end = &p->last->steps[p->last->nsteps - 1];
        if (k)
            assert_true(gradient->aside && gradient->in[0].root == p->last->steps[0].out[0].root &&
                        end->relay->n > 5);
        fac_program_free(p);
        fac_graph_free(b.g);
        fac_tensor_free(t);
    }
    same(&want, &got, "beside what is aside", seed);
}

int main(void) {
    seed = fresh_seed() % 1000000;
    const struct CMUnitTest tests[] = { cmocka_unit_test(levels),
                                        cmocka_unit_test(a_result_over_an_input),
                                        cmocka_unit_test(trainings),
                                        cmocka_unit_test(what_is_aside_reads) };
    return cmocka_run_group_tests(tests, open_both, close_both);
}
