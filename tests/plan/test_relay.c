/* Relays: a cpu whose steps run as jobs of relays, those of a level in any order, does what the
 * plain one does, to the last bit; in its plans the steps of a level touch no memory that another
 * one of them writes. */
#include <pthread.h>
#include "relay_pair.h"

enum { ROUNDS = 24, BATCHES = 4 };

/* ---- graphs ---- */

static fac_value *pool(fac_value *x) {
    return fac_max_pool2d(x, 3, 3, &(fac_pool2d_opts){ .stride = { 1, 1 }, .pad = { 1, 1, 1, 1 } });
}

static fac_value *branch(builder *b, fac_value *x) {
    switch (pick(b, 0, 5)) {
    case 0:
        return activation(b, conv(b, x, pick(b, 1, 3) * 8, 1, 1, 1));
    case 1:
        return conv(b, activation(b, conv(b, x, 8, 1, 1, 1)), pick(b, 1, 20), 3, 1, 1);
    case 2:
        return conv(b, pool(x), 8, 1, 1, 1);
    case 3:
        return fac_neg(x);
    case 4:
        return fac_add(fac_relu(x), x);
    default:
        return pool(x);
    }
}

/* Residuals and concats of channels, of images that are alive for long. */
static fac_graph *images(uint64_t s) {
    builder b = { fac_graph_new(), s, 0, 0 };
    fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(fac_symbol(b.g, "N"), 3, 11, 13)), *early;
    x = early = activation(&b, conv(&b, x, 8, 3, 1, 1));
    for (int64_t k = pick(&b, 2, 4); k > 0; k--) {
        const int64_t C = fac_value_type(x).dims.d[1], n = pick(&b, 2, 4);
        fac_value *part[4], *y = x;
        if (pick(&b, 0, 1))
            x = fac_add(conv(&b, activation(&b, conv(&b, x, 8, 3, 1, 1)), C, 1, 1, 1), x);
        for (int64_t i = 0; i < n; i++) part[i] = branch(&b, pick(&b, 0, 3) ? x : y);
        x = conv(&b, fac_concat(part, (int)n, 1), 8, 1, 1, 1);
    }
    fac_output(b.g, "y", fac_add(fac_mul(x, early), early));
    fac_output(b.g, "z", fac_softmax(fac_mean(x, fac_shape(2, 3), false), 1));
    fac_output(b.g, "w", fac_tanh(early));
    return b.g;
}

static int64_t slices_channels(uint64_t s) { return check_pick(s, 100, 2, 5); }

/* Parts of concats by elementwise steps alone, whose results lie where the solver for channels last
 * puts them: some are read by others, and they are written at any level. */
static fac_graph *slices(uint64_t s) {
    builder b = { fac_graph_new(), s, 0, 0 };
    fac_value *x =
        fac_input(b.g, "x", FAC_F32, fac_shape(fac_symbol(b.g, "N"), slices_channels(s), 5, 6));
    x = fac_relu(x);
    for (int64_t k = pick(&b, 2, 3); k > 0; k--) {
        const int64_t n = pick(&b, 2, 3);
        fac_value *part[3];
        for (int64_t i = 0; i < n; i++) {
            part[i] = x;
            for (int64_t deep = pick(&b, 1, 4); deep > 0; deep--)
                part[i] = pick(&b, 0, 1) ? fac_neg(part[i]) : fac_mul(x, part[i]);
            if (pick(&b, 0, 1)) part[i] = fac_add(part[i], i && pick(&b, 0, 1) ? part[i - 1] : x);
        }
        x = fac_concat(part, (int)n, 1);
        if (pick(&b, 0, 1)) x = fac_mul(x, fac_relu(x));
    }
    fac_output(b.g, "y", fac_add(x, fac_relu(x)));
    return b.g;
}

static fac_value *both(fac_value *a, fac_value *b, int axis) {
    return fac_concat((fac_value *[]){ a, b }, 2, axis);
}

/* Products, reductions, views, and results over what dies, of states that become other values. */
static fac_graph *matrices(uint64_t s) {
    enum { STATES = 4, NODES = 30, ROWS = 3 };
    builder b = { fac_graph_new(), s, 0, 0 };
    fac_value *v[STATES + NODES + 1];
    int n = 0;
    v[n++] = fac_input(b.g, "x", FAC_F32, fac_shape(ROWS, ROWS));
    for (int i = 0; i < STATES; i++) v[n++] = param(&b, fac_shape(ROWS, ROWS), 1);
    for (; n < STATES + NODES + 1; n++) {
        fac_value *a = v[pick(&b, 0, n - 1)], *c = v[pick(&b, n > 8 ? n - 8 : 0, n - 1)];
        switch (pick(&b, 0, 7)) {
        case 0:
            v[n] = fac_tanh(fac_add(a, c));
            break;
        case 1:
            v[n] = fac_sub(a, c);
            break;
        case 2:
            v[n] = fac_tanh(c);
            break;
        case 3:
            v[n] = fac_tanh(fac_matmul(a, c));
            break;
        case 4:
            v[n] = fac_softmax(c, 1);
            break;
        case 5:
            v[n] = fac_sub(a, fac_mean(c, fac_shape(0), true));
            break;
        case 6:
            v[n] = fac_tanh(fac_matmul(both(a, c, 1), both(c, a, 0)));
            break;
        default:
            v[n] = fac_transpose(fac_neg(fac_transpose(c, fac_shape(1, 0))), fac_shape(1, 0));
        }
    }
    for (int i = 0; i < STATES; i++)
        if (pick(&b, 0, 3)) fac_update(v[1 + i], v[pick(&b, 1, n - 1)]);
    fac_output(b.g, "y", v[n - 1]);
    fac_output(b.g, "z", v[pick(&b, STATES + 1, n - 1)]);
    return b.g;
}

/* ---- runs ---- */

static bool see(void *self, const char *node, const fac_tensor *value) {
    (void)node, (void)value;
    ++*(int *)self;
    return true;
}

/* Each graph is made again, since runs change its states. */
typedef fac_graph *maker(uint64_t s);
static int looks;

static fac_program *run_new(fac_device *d, maker *make, uint64_t s, const fac_program_opts *o,
                            fac_tensor *x, bool timed, results *r) {
    fac_graph *g = make(s);
    fac_program *p = program(d, g, o);
    fac_graph_free(g);
    fac_program_profile(p, timed);
    run_times(p, x, 3, r);
    return p;
}

/* The same plan, but for its relays: each job is one of its own. */
static void run_one_by_one(maker *make, uint64_t s, const fac_program_opts *o, fac_tensor *x,
                           results *r) {
    const int most = relay_usual.most;
    relay_usual.most = 1;
    relay_by = RELAY_FORWARD;
    fac_program_free(run_new(relayed, make, s, o, x, false, r));
    relay_usual.most = most;
}

static void compare(maker *make, uint64_t s, fac_dims d, const fac_program_opts *o) {
    fac_tensor *x = random_tensor(s, 7, d, 1);
    run_one_by_one(make, s, o, x, &want);
    for (relay_by = 0; relay_by < RELAY_ORDERS; relay_by++) {
        fac_program *p = run_new(relayed, make, s, o, x, false, &got);
        same(&want, &got, "relays", s);
        if (relay_by == 0) relay_check_plan(p->last, &tally);
        fac_program_free(p);
    }
    relay_by = RELAY_REVERSED;
    const int runs = relay_runs, jobs = relay_jobs;
    fac_program *p = run_new(relayed, make, s, o, x, true, &got);
    same(&want, &got, "timed runs", s);
    assert_int_equal(relay_runs - runs, relay_jobs - jobs);
    for (int i = 0; i < p->last->nsteps; i++) assert_int_equal(p->last->steps[i].runs, 3);
    fac_program_free(p);

    int seen[2] = { 0 };
    fac_program_opts look = *o;
    look.observe = see;
    for (int k = 0; k < 2; k++) {
        look.observe_self = &seen[k];
        if (k) {
            p = run_new(relayed, make, s, &look, x, false, &got);
            relay_check_plan(p->last, &(relay_tally){ 0 });
        } else {
            p = run_new(plain, make, s, &look, x, false, &want);
        }
        fac_program_free(p);
    }
    same(&want, &got, "observed runs", s);
    assert_int_equal(seen[0], seen[1]);
    looks += seen[0];
    fac_tensor_free(x);
}

static void any_graph(void **state) {
    (void)state;
    tally = (relay_tally){ 0 };
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t s = seed + (uint64_t)i;
        const fac_program_opts o = { .no_fuse = i & 1, .no_inplace = i & 2 };
        relay_give(relayed, plain->backend, i % 3 ? MOST : 5, i & 4, false, s);
        compare(images, s, fac_shape(1 + i % 3, 3, 11, 13), &o);
        compare(matrices, s, fac_shape(3, 3), &o);
    }
    say("any graph");
    assert_true(looks > 0 && tally.relays > ROUNDS && tally.jobs > 2 * tally.relays &&
                tally.beside > 4 * ROUNDS);
}

static void channels_of_one_image(void **state) {
    (void)state;
    tally = (relay_tally){ 0 };
    for (int i = 0; i < 2 * ROUNDS; i++) {
        const uint64_t s = seed + (uint64_t)i;
        relay_give(relayed, plain->backend, MOST, false, true, s);
        const fac_dims d = fac_shape(2, slices_channels(s), 5, 6);
        compare(slices, s, d, &(fac_program_opts){ .no_fuse = true, .no_inplace = i & 1 });
    }
    say("channels");
    assert_true(tally.slices > 0);
}

/* So large that a batch goes through it in slices, several of them at once after the first part.
 */
static fac_graph *large_images(uint64_t s) {
    builder b = { fac_graph_new(), s, 0, 0 };
    fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(fac_symbol(b.g, "N"), 3, 40, 40));
    for (int k = 0; k < 3; k++) {
        fac_value *y = fac_relu(conv(&b, x, 32, k ? 1 : 3, 1, 1)), *z = conv(&b, y, 32, 3, 1, 32);
        fac_value *parts[3] = { fac_add(z, y), conv(&b, y, 16, 1, 1, 1),
                                conv(&b, z, 8 + 4 * k, 3, 1, 1) };
        const fac_pool2d_opts half = { .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } };
        x = fac_concat(parts, 3, 1);
        x = fac_add(fac_max_pool2d(x, 3, 3, &half), fac_avg_pool2d(x, 3, 3, &half));
    }
    fac_output(
        b.g, "y",
        fac_softmax(fac_linear(fac_flatten(x, 1), param(&b, fac_shape(10, 64 * 25), 1), NULL), 1));
    return b.g;
}

static void slices_of_a_batch(void **state) {
    (void)state;
    tally = (relay_tally){ 0 };
    int staged = 0;
    const size_t near = plain->near;
    for (int i = 0; i < BATCHES; i++) {
        const uint64_t s = seed + (uint64_t)i;
        relay_give(relayed, plain->backend, MOST, i & 1, false, s);
        plain->near = relayed->near = (size_t)1 << (18 + i);
        fac_tensor *x = random_tensor(s, 7, fac_shape(8, 3, 40, 40), 1);
        run_one_by_one(large_images, s, NULL, x, &want);
        relay_by = i & 1 ? RELAY_RANDOM : RELAY_REVERSED;
        fac_program *p = run_new(relayed, large_images, s, NULL, x, false, &got);
        same(&want, &got, "slices", s);
        relay_check_plan(p->last, &tally);
        staged += p->last->nstages > 1;
        fac_program_free(p);
        fac_tensor_free(x);
    }
    plain->near = relayed->near = near;
    say("slices");
    assert_true(staged > 0 && tally.relays > 0);
}

/* ---- threads ---- */

typedef struct runner {
    fac_program *p;
    fac_tensor *x;
    results r;
} runner;

static void *run_often(void *arg) {
    runner *r = arg;
    run_times(r->p, r->x, 8, &r->r);
    return NULL;
}

static void frames_of_their_own(void **state) {
    enum { MANY = 3 };
    static runner all[MANY];
    static results one[MANY];
    (void)state;
    relay_by = RELAY_RANDOM;
    relay_give(relayed, plain->backend, MOST, false, false, seed);
    fac_graph *g = images(seed);
    fac_program *p = program(relayed, g, NULL), *q = program(plain, g, NULL);
    pthread_t t[MANY];
    for (int i = 0; i < MANY; i++) {
        all[i] =
            (runner){ .p = p,
                      .x = random_tensor(seed, (uint64_t)(20 + i), fac_shape(1, 3, 11, 13), 1) };
        run_times(q, all[i].x, 8, &one[i]);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&t[i], NULL, run_often, &all[i]), 0);
    for (int i = 0; i < MANY; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < MANY; i++) {
        same(&one[i], &all[i].r, "threads", seed);
        fac_tensor_free(all[i].x);
    }
    fac_program_free(p);
    fac_program_free(q);
    fac_graph_free(g);
}

int main(void) {
    seed = fresh_seed() % 1000000;
    const struct CMUnitTest tests[] = { cmocka_unit_test(any_graph),
                                        cmocka_unit_test(channels_of_one_image),
                                        cmocka_unit_test(slices_of_a_batch),
                                        cmocka_unit_test(frames_of_their_own) };
    return cmocka_run_group_tests(tests, open_both, close_both);
}
