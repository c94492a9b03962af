/* The cheapest choice of two sides against all choices tried: random costs of random pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/rng.h"
#include "fresh_seed.h"
#include "plan/min_cut.h"

enum { MOST = 10, PAIRS = 24, ROUNDS = 300 };

typedef struct costs {
    int things, pairs, a[PAIRS], b[PAIRS];
    double alone[MOST][2], apart[PAIRS][2];
} costs;

static double cost_of(const costs *c, const bool *side) {
    double sum = 0;
    for (int i = 0; i < c->things; i++) sum += c->alone[i][side[i]];
    for (int k = 0; k < c->pairs; k++)
        if (side[c->a[k]] != side[c->b[k]]) sum += c->apart[k][side[c->a[k]]];
    return sum;
}

static costs random_costs(uint64_t seed, uint64_t *at) {
    costs c = { .things = 1 + (int)(fac_random_bits(seed, ++*at, 0) % MOST) };
    c.pairs = (int)(fac_random_bits(seed, ++*at, 0) % PAIRS);
    for (int i = 0; i < c.things; i++)
        for (int s = 0; s < 2; s++)
            c.alone[i][s] = 1e-6 * (double)(fac_random_bits(seed, ++*at, 0) % 50);
    for (int k = 0; k < c.pairs; k++) {
        c.a[k] = (int)(fac_random_bits(seed, ++*at, 0) % (uint64_t)c.things);
        c.b[k] = (int)(fac_random_bits(seed, ++*at, 0) % (uint64_t)c.things);
        for (int s = 0; s < 2; s++)
            c.apart[k][s] = 1e-6 * (double)(fac_random_bits(seed, ++*at, 0) % 30);
    }
    return c;
}

static void least_of_all(void **state) {
    (void)state;
    const uint64_t seed = fresh_seed();
    uint64_t at = 0;
    fac_error err = { 0 };
    for (int round = 0; round < ROUNDS; round++) {
        const costs c = random_costs(seed, &at);
        bool side[MOST], one[MOST];
        fac_sides *s = fac_sides_new(c.things);
        assert_non_null(s);
        for (int i = 0; i < c.things; i++) fac_sides_alone(s, i, c.alone[i][0], c.alone[i][1]);
        for (int k = 0; k < c.pairs; k++)
            fac_sides_apart(s, c.a[k], c.b[k], c.apart[k][0], c.apart[k][1]);
        assert_int_equal(fac_sides_choose(s, side, &err), FAC_OK);
        fac_sides_free(s);
        double least = 1;
        for (unsigned all = 0; all < 1u << c.things; all++) {
            for (int i = 0; i < c.things; i++) one[i] = all >> i & 1;
            const double cost = cost_of(&c, one);
            if (cost < least) least = cost;
        }
        const double got = cost_of(&c, side);
        if (got > least + 1e-12)
            fail_msg("%g, but %g is possible with %d things", got, least, c.things);
    }
}

static void ties_stay_on_side_0(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_sides *s = fac_sides_new(3);
    bool side[3] = { true, true, true };
    assert_non_null(s);
    fac_sides_alone(s, 0, 1, 1);
    fac_sides_apart(s, 0, 1, 2, 2);
    assert_int_equal(fac_sides_choose(s, side, &err), FAC_OK);
    for (int i = 0; i < 3; i++) assert_false(side[i]);
    fac_sides_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(least_of_all),
                                        cmocka_unit_test(ties_stay_on_side_0) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
