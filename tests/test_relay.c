/* Relays: a cpu whose steps run as jobs of relays, those of a level in any order, does what the plain one does, to the last bit;
 * in its plans the steps of a level touch no memory that another one of them writes. */
#include <pthread.h>
#include "relay_check.h"

enum { THREADS = 2, MOST = 64, LARGEST = 1 << 18, ROUNDS = 24, BATCHES = 4 };

static fac_device *plain, *relayed;
static uint64_t seed;
static fac_error err;
static relay_tally tally;
#define OK(call) do { if (call) fail_msg("%s: %s", #call, err.text); } while (0)

static int open_both(void **state) {
    (void)state;
    const fac_device_opts o = { .threads = THREADS };
    return fac_device_open("cpu", &o, &plain, &err) || fac_device_open("cpu", &o, &relayed, &err);
}

static int close_both(void **state) {
    (void)state;
    relayed->backend = plain->backend;
    fac_device_free(plain);
    fac_device_free(relayed);
    return relay_made != relay_done;
}

/* ---- graphs ---- */

static fac_value *pool(fac_value *x) {
    return fac_max_pool2d(x, 3, 3, &(fac_pool2d_opts){ .stride = { 1, 1 }, .pad = { 1, 1, 1, 1 } });
}

static fac_value *branch(builder *b, fac_value *x) {
    switch (pick(b, 0, 5)) {
    case 0: return activation(b, conv(b, x, pick(b, 1, 3) * 8, 1, 1, 1));
    case 1: return conv(b, activation(b, conv(b, x, 8, 1, 1, 1)), pick(b, 1, 20), 3, 1, 1);
    case 2: return conv(b, pool(x), 8, 1, 1, 1);
    case 3: return fac_neg(x);
    case 4: return fac_add(fac_relu(x), x);
    default: return pool(x);
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
        if (pick(&b, 0, 1)) x = fac_add(conv(&b, activation(&b, conv(&b, x, 8, 3, 1, 1)), C, 1, 1, 1), x);
        for (int64_t i = 0; i < n; i++) part[i] = branch(&b, pick(&b, 0, 3) ? x : y);
        x = conv(&b, fac_concat(part, (int)n, 1), 8, 1, 1, 1);
    }
    fac_output(b.g, "y", fac_add(fac_mul(x, early), early));
    fac_output(b.g, "z", fac_softmax(fac_mean(x, fac_shape(2, 3), false), 1));
    fac_output(b.g, "w", fac_tanh(early));
    return b.g;
}

static int64_t slices_channels(uint64_t s) { return check_pick(s, 100, 2, 5); }

/* Parts of concats by elementwise steps alone, whose results lie where the solver for channels last puts them: some are read by
 * others, and they are written at any level. */
static fac_graph *slices(uint64_t s) {
    builder b = { fac_graph_new(), s, 0, 0 };
    fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(fac_symbol(b.g, "N"), slices_channels(s), 5, 6));
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

static fac_value *both(fac_value *a, fac_value *b, int axis) { return fac_concat((fac_value *[]){ a, b }, 2, axis); }

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
        case 0: v[n] = fac_tanh(fac_add(a, c)); break;
        case 1: v[n] = fac_sub(a, c); break;
        case 2: v[n] = fac_tanh(c); break;
        case 3: v[n] = fac_tanh(fac_matmul(a, c)); break;
        case 4: v[n] = fac_softmax(c, 1); break;
        case 5: v[n] = fac_sub(a, fac_mean(c, fac_shape(0), true)); break;
        case 6: v[n] = fac_tanh(fac_matmul(both(a, c, 1), both(c, a, 0))); break;
        default: v[n] = fac_transpose(fac_neg(fac_transpose(c, fac_shape(1, 0))), fac_shape(1, 0));
        }
    }
    for (int i = 0; i < STATES; i++)
        if (pick(&b, 0, 3)) fac_update(v[1 + i], v[pick(&b, 1, n - 1)]);
    fac_output(b.g, "y", v[n - 1]);
    fac_output(b.g, "z", v[pick(&b, STATES + 1, n - 1)]);
    return b.g;
}

/* ---- runs ---- */

typedef struct results { int n; size_t bytes; char y[LARGEST]; } results;       /* of a few runs, one behind the other */

static void keep(results *r, const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const size_t n = fac_type_bytes(&type);
    assert_true(r->bytes + n <= sizeof r->y);
    OK(fac_tensor_read(t, r->y + r->bytes, n, &err));
    r->bytes += n, r->n++;
}

static fac_program *program(fac_device *d, const fac_graph *g, const fac_program_opts *o) {
    fac_program *p = NULL;
    OK(fac_graph_check(g, &err));
    OK(fac_program_new(g, d, o, &p, &err));
    return p;
}

static void run_times(fac_program *p, fac_tensor *x, int times, results *r) {
    r->n = 0, r->bytes = 0;
    for (int k = 0; k < times; k++) {
        fac_tensor *y[NET_OUTPUTS] = { NULL };
        OK(fac_program_run(p, &x, y, &err));
        for (int i = 0; i < NET_OUTPUTS && y[i]; i++) {
            keep(r, y[i]);
            fac_tensor_free(y[i]);
        }
    }
}

static void same(const results *want, const results *got, const char *what, uint64_t s) {
    if (want->n == got->n && want->bytes == got->bytes && !memcmp(want->y, got->y, want->bytes)) return;
    fail_msg("%s, graph %" PRIu64 ": not what runs without relays make", what, s);
}

static bool see(void *self, const char *node, const fac_tensor *value) {
    (void)node, (void)value;
    ++*(int *)self;
    return true;
}

/* Each graph is made again, since runs change its states. */
typedef fac_graph *maker(uint64_t s);
static results want, got;
static int looks;

static fac_program *run_new(fac_device *d, maker *make, uint64_t s, const fac_program_opts *o, fac_tensor *x, bool timed,
                            results *r) {
    fac_graph *g = make(s);
    fac_program *p = program(d, g, o);
    fac_graph_free(g);
    fac_program_profile(p, timed);
    run_times(p, x, 3, r);
    return p;
}

static void compare(maker *make, uint64_t s, fac_dims d, const fac_program_opts *o) {
    fac_tensor *x = random_tensor(s, 7, d, 1);
    fac_program_free(run_new(plain, make, s, o, x, false, &want));
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
        p = run_new(k ? relayed : plain, make, s, &look, x, false, k ? &got : &want);
        if (k) relay_check_plan(p->last, &(relay_tally){ 0 });
        fac_program_free(p);
    }
    same(&want, &got, "observed runs", s);
    assert_int_equal(seen[0], seen[1]);
    looks += seen[0];
    fac_tensor_free(x);
}

static void say(const char *what) {
    print_message("%s: %d jobs in %d relays of %d levels, %d beside others, %d pairs of one root\n", what, tally.jobs,
                  tally.relays, tally.levels, tally.beside, tally.slices);
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
    assert_true(looks > 0 && tally.relays > ROUNDS && tally.jobs > 2 * tally.relays && tally.beside > 4 * ROUNDS);
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

/* So large that a batch goes through it in slices, several of them at once behind the first part. */
static fac_graph *large_images(uint64_t s) {
    builder b = { fac_graph_new(), s, 0, 0 };
    fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(fac_symbol(b.g, "N"), 3, 40, 40));
    for (int k = 0; k < 3; k++) {
        fac_value *y = fac_relu(conv(&b, x, 32, k ? 1 : 3, 1, 1)), *z = conv(&b, y, 32, 3, 1, 32);
        fac_value *parts[3] = { fac_add(z, y), conv(&b, y, 16, 1, 1, 1), conv(&b, z, 8 + 4 * k, 3, 1, 1) };
        const fac_pool2d_opts half = { .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } };
        x = fac_concat(parts, 3, 1);
        x = fac_add(fac_max_pool2d(x, 3, 3, &half), fac_avg_pool2d(x, 3, 3, &half));
    }
    fac_output(b.g, "y", fac_softmax(fac_linear(fac_flatten(x, 1), param(&b, fac_shape(10, 64 * 25), 1), NULL), 1));
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
        fac_program_free(run_new(plain, large_images, s, NULL, x, false, &want));
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
    assert_true(staged > 0 && tally.beside > 0);
}

/* ---- threads ---- */

typedef struct runner { fac_program *p; fac_tensor *x; results r; } runner;

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
        all[i] = (runner){ .p = p, .x = random_tensor(seed, (uint64_t)(20 + i), fac_shape(1, 3, 11, 13), 1) };
        run_times(q, all[i].x, 8, &one[i]);
    }
    for (int i = 0; i < MANY; i++) assert_int_equal(pthread_create(&t[i], NULL, run_often, &all[i]), 0);
    for (int i = 0; i < MANY; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < MANY; i++) {
        same(&one[i], &all[i].r, "threads", seed);
        fac_tensor_free(all[i].x);
    }
    fac_program_free(p);
    fac_program_free(q);
    fac_graph_free(g);
}

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
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", r->first == i ? "|" : "", r->jobs[i - r->first].level);
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

static fac_value *joined(fac_value *a, fac_value *b) { return fac_neg(both(a, b, 1)); }

static void levels(void **state) {
    (void)state;
    const fac_program_opts apart = { .no_fuse = true, .no_inplace = true }, over = { .no_fuse = true };
    relay_give(relayed, plain->backend, MOST, false, false, seed);
    levels_of(matrix(), &apart, "|0");
    levels_of(fac_tanh(fac_neg(fac_tanh(matrix()))), &apart, "|0123");
    fac_value *a = matrix();
    levels_of(fac_add(fac_tanh(a), fac_neg(a)), &apart, "|0112");
    a = matrix();
    levels_of(fac_add(fac_tanh(a), fac_neg(a)), &over, "|0123");        /* the last reader writes over what others read */
    a = matrix();                                                        /* what a later node of a low level reads */
    levels_of(fac_sub(fac_exp(fac_neg(fac_tanh(a))), fac_sigmoid(a)), &apart, "|011234");
    relay_usual.most = 2;
    levels_of(fac_tanh(fac_neg(fac_tanh(fac_neg(matrix())))), &apart, "|01|01|0");
    relay_give(relayed, plain->backend, MOST, false, true, seed);
    a = image();
    levels_of(joined(fac_neg(a), fac_mul(a, a)), &apart, "|0112");       /* parts of one result */
    a = image();
    fac_value *b = fac_neg(a);
    levels_of(joined(b, fac_mul(a, b)), &apart, "|0123");                /* a part reads another one */
}

/* Where a result goes to an input's memory, everybody else has read it before. */
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
            fac_program *p = program(k ? relayed : plain, g, &(fac_program_opts){ .no_fuse = true });
            fac_tensor *t = random_tensor(seed, 1, fac_shape(4, 5), 1), *y[2] = { NULL, t };
            r->n = 0, r->bytes = 0;
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

/* What a step that is aside reads, and a relay reads last, in its first level, is there until both meet. */
static void what_is_aside_reads(void **state) {
    (void)state;
    const fac_conv3d_opts padded = { .pad = { 1, 1, 1, 1, 1, 1 } };         /* whose gradients take plain operands */
    for (int k = 0; k < 2; k++) {
        builder b = { fac_graph_new(), seed, 0, 0 };
        fac_value *x = fac_input(b.g, "x", FAC_F32, fac_shape(2, 5, 10, 12, 12)), *a = fac_tanh(x), *y = fac_neg(x);
        fac_value *w = param(&b, fac_shape(5, 5, 3, 3, 3), 1);
        fac_output(b.g, "w", fac_conv3d_grad_w(a, x, w, &padded));
        for (int i = 0; i < 5; i++) y = i & 1 ? fac_tanh(y) : fac_neg(y);
        fac_output(b.g, "y", y);
        fac_output(b.g, "z", fac_exp(a));
        relay_give(relayed, plain->backend, MOST, false, false, seed);
        relay_backend.beside = &relay_beside;
        fac_tensor *t = random_tensor(seed, 1, fac_shape(2, 5, 10, 12, 12), 1);
        fac_program *p = program(k ? relayed : plain, b.g, &(fac_program_opts){ .no_fuse = true, .no_inplace = true });
        run_times(p, t, 2, k ? &got : &want);
        const fac_step *gradient = &p->last->steps[2], *end = &p->last->steps[p->last->nsteps - 1];
        if (k) assert_true(gradient->aside && gradient->in[0].root == p->last->steps[0].out[0].root && end->relay->n > 5);
        fac_program_free(p);
        fac_graph_free(b.g);
        fac_tensor_free(t);
    }
    same(&want, &got, "beside what is aside", seed);
}

int main(void) {
    seed = fresh_seed() % 1000000;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels), cmocka_unit_test(a_result_over_an_input), cmocka_unit_test(any_graph),
        cmocka_unit_test(channels_of_one_image), cmocka_unit_test(slices_of_a_batch), cmocka_unit_test(frames_of_their_own),
        cmocka_unit_test(trainings), cmocka_unit_test(what_is_aside_reads),
    };
    return cmocka_run_group_tests(tests, open_both, close_both);
}
