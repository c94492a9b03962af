/* What tests of relays share: the plain cpu and one with relays, and what programs make on either.
 */
#ifndef FACULA_TESTS_RELAY_PAIR_H
#define FACULA_TESTS_RELAY_PAIR_H
#include "relay_check.h"

enum { THREADS = 2, MOST = 64, LARGEST = 1 << 18 };

static fac_device *plain, *relayed;
static uint64_t seed;
static fac_error err;
static relay_tally tally;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static inline int open_both(void **state) {
    (void)state;
    const fac_device_opts o = { .threads = THREADS };
    return fac_device_open("cpu", &o, &plain, &err) || fac_device_open("cpu", &o, &relayed, &err);
}

static inline int close_both(void **state) {
    (void)state;
    relayed->backend = plain->backend;
    fac_device_free(plain);
    fac_device_free(relayed);
    return relay_made != relay_done;
}

typedef struct results {
    int n;
    size_t bytes;
    char y[LARGEST];
} results; /* of a few runs, one after the other */
static results want, got;

static inline void keep(results *r, const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const size_t n = fac_type_bytes(&type);
    assert_true(r->bytes + n <= sizeof r->y);
    OK(fac_tensor_read(t, r->y + r->bytes, n, &err));
    r->bytes += n, r->n++;
}

static inline fac_program *program(fac_device *d, const fac_graph *g, const fac_program_opts *o) {
    fac_program *p = NULL;
    OK(fac_graph_check(g, &err));
    OK(fac_program_new(g, d, o, &p, &err));
    return p;
}

static inline void run_times(fac_program *p, fac_tensor *x, int times, results *r) {
    r->n = 0;
    r->bytes = 0;
    for (int k = 0; k < times; k++) {
        fac_tensor *y[NET_OUTPUTS] = { NULL };
        OK(fac_program_run(p, &x, y, &err));
        for (int i = 0; i < NET_OUTPUTS && y[i]; i++) {
            keep(r, y[i]);
            fac_tensor_free(y[i]);
        }
    }
}

static inline void same(const results *a, const results *b, const char *what, uint64_t s) {
    if (a->n == b->n && a->bytes == b->bytes && !memcmp(a->y, b->y, a->bytes)) return;
    fail_msg("%s, graph %" PRIu64 ": not what runs without relays make", what, s);
}

static inline void say(const char *what) {
    print_message("%s: %d jobs in %d relays of %d levels, %d beside others, %d pairs of one root\n",
                  what, tally.jobs, tally.relays, tally.levels, tally.beside, tally.slices);
}
#endif
