/* Drafts with memory of their own: each is dropped exactly once, or taken by make(); a draft for
 * which there is no memory is an error, not another solver. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"
#include "facula/backend.h"
#include "base/error.h"
#include "base/memory.h"
#include "backends/device.h"
#include "plan/plan.h"

static fac_error err;
static int drops;
static bool refuses, takes, fails, loses;

static void drop(void *kept) {
    (void)kept;
    drops++;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    (void)d, (void)p;
    int *draft = fac_offer_keep(o, loses ? SIZE_MAX : 8192, drop);
    if (!draft || refuses) return false;
    *draft = 42;
    o->seconds = 1e-30;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **plan, fac_error *e) {
    (void)d;
    assert_int_equal(*(const int *)p->draft, 42);
    if (fails) return fac_raise_memory(e, "a plan");
    *plan = takes ? fac_draft_take(p) : NULL;
    return FAC_OK;
}

static const fac_solver drafter = { .name = "drafter", .offer = offer, .make = make };

static void a_draft_is_dropped_once(void **state) {
    (void)state;
    for (int k = 0; k < 8; k++) {
        fac_problem p = { 0 };
        fac_offer o = { 0 };
        void *plan = NULL;
        drops = 0;
        refuses = k & 1;
        takes = k & 2;
        fails = k & 4;
        loses = false;
        assert_int_equal(fac_solver_offer(&drafter, NULL, &p, &o), !refuses);
        if (refuses) {
            assert_int_equal(drops, 1);
            assert_null(o.kept);
            continue;
        }
        assert_int_equal(drops, 0);
        assert_int_equal(!!fac_solver_make(&drafter, NULL, &p, &o, &plan, &err), fails);
        assert_int_equal(drops, fails || !takes);
        assert_int_equal(plan != NULL, takes && !fails);
        assert_null(p.draft);
        fac_offer_drop(&o); /* nothing is left */
        assert_int_equal(drops, fails || !takes);
        fac_release(plan);
    }
}

/* The planner with this solver before all others of the cpu. */
static void the_planner_drops_what_it_does_not_take(void **state) {
    (void)state;
    fac_device *d = NULL;
    fac_graph *g = NULL;
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    assert_int_equal(fac_problem_graph("relu(f32[4,5])", false, &g, &err), FAC_OK);
    const fac_solver *both[] = { &drafter, &drafter, NULL };
    const fac_backend *own = d->backend;
    fac_backend altered = *own;
    altered.solvers = both;
    d->backend = &altered;
    const fac_plan plan = { .device = d };
    const fac_value *x = g->last->in[0];
    for (int k = 0; k < 3; k++) {
        fac_operand o[2];
        for (int i = 0; i < 2; i++)
            o[i] = (fac_operand){ x->type, fac_layout_plain(&x->type.dims), FAC_RUN, NULL };
        fac_problem p = { .node = g->last, .nin = 1, .nout = 1, .in = o, .out = o + 1 };
        fac_offer out = { 0 };
        drops = 0;
        refuses = k == 1;
        loses = k == 2;
        const fac_solver *s = fac_choose(&plan, &p, &(fac_layout_cost){ 0 }, &out, &err);
        if (k == 0) { /* the second of equal estimates is dropped, then the first by its owner */
            assert_ptr_equal(s, &drafter);
            assert_int_equal(drops, 1);
            assert_non_null(fac_choose(&plan, &p, &(fac_layout_cost){ 0 }, &out, &err));
            assert_int_equal(drops, 3);
        } else if (k == 1) {
            assert_ptr_equal(s, fac_last_solver(d));
            assert_int_equal(drops, 2);
        } else {
            assert_null(s);
            assert_int_equal(err.status, FAC_E_NOMEM);
        }
        fac_offer_drop(&out);
    }
    d->backend = own;
    fac_graph_free(g);
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_draft_is_dropped_once),
        cmocka_unit_test(the_planner_drops_what_it_does_not_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
