/* Work that nobody asked for is not done: a model that is counted, planned or given other weights
 * draws no random numbers, and a plan to look at packs nothing.  What it says is what a plan to run
 * says. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "graph/graph_internal.h"
#include "nn/nn_internal.h"
#include "tensor/tensor_internal.h"
#include "program_check.h"

static fac_graph *network(void) {
    fac_graph *g = NULL;
    OK(fac_zoo_new("lenet", NULL, 3, &g, err));
    return g;
}

/* Parameters whose numbers are still to be drawn. */
static size_t undrawn(const fac_graph *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->nparams; i++)
        n += fac_tensor_storage(g->params[i]->tensor)->late.make != NULL;
    return n;
}

static fac_tensor *image(void) {
    fac_tensor *x = NULL;
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(1, 1, 28, 28), &x, err));
    return x;
}

static void counting_and_planning_read_no_weights(void **state) {
    (void)state;
    fac_graph *g = network();
    fac_analysis *a = NULL;
    fac_program *looked_at = NULL, *run = NULL;
    fac_plan_stat dry = { 0 }, wet = { 0 };
    fac_tensor *x = image(), *y = NULL;
    fac_error e = { 0 };
    assert_true(g->nparams == 10 && undrawn(g) == 10);
    OK(fac_analyze(g, 1, &a, err));
    OK(fac_program_new(g, device, &(fac_program_opts){ .plan_only = true }, &looked_at, err));
    OK(fac_program_plan(looked_at, &x, &dry, err));
    assert_int_equal(undrawn(g), 10);
    assert_int_equal(fac_program_run(looked_at, &x, &y, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "planned only"));
    assert_null(y);

    OK(fac_program_new(g, device, NULL, &run, err));
    OK(fac_program_plan(run, &x, &wet, err));
    assert_int_equal(undrawn(g), 0);
    assert_true(dry.packed > 0);
    assert_true(dry.arena == wet.arena && dry.values == wet.values && dry.bound == wet.bound &&
                dry.packed == wet.packed);
    assert_true(dry.steps == wet.steps && dry.macs == wet.macs);
    fac_tensor_free(x);
    fac_program_free(looked_at);
    fac_program_free(run);
    fac_analysis_free(a);
    fac_graph_free(g);
}

/* Numbers are those of the seed and the name, whenever they are drawn, and in whatever type. */
static void numbers_do_not_depend_on_when_they_are_drawn(void **state) {
    (void)state;
    const fac_init init = { FAC_INIT_UNIFORM, .low = -1, .high = 1 };
    fac_tensor *late = NULL, *again = NULL, *half = NULL, *narrow = NULL;
    OK(fac_init_tensor(&init, 7, "w", (fac_type){ FAC_F32, fac_shape(3, 5) }, &late, err));
    OK(fac_init_tensor(&init, 7, "other", (fac_type){ FAC_F32, fac_shape(3, 5) }, &again, err));
    assert_true(memcmp(fac_tensor_data(again), fac_tensor_data(late), 60));
    fac_tensor_free(again);
    OK(fac_init_tensor(&init, 7, "w", (fac_type){ FAC_F32, fac_shape(3, 5) }, &again, err));
    OK(fac_init_tensor(&init, 7, "w", (fac_type){ FAC_F16, fac_shape(3, 5) }, &half, err));
    OK(fac_tensor_convert(late, FAC_F16, &narrow, err));
    assert_memory_equal(fac_tensor_data(again), fac_tensor_data(late), 60);
    assert_memory_equal(fac_tensor_data(half), fac_tensor_data(narrow), 30);
    fac_tensor_free(late), fac_tensor_free(again), fac_tensor_free(half), fac_tensor_free(narrow);
}

/* All of a tensor written: nothing is drawn.  A part of it: the rest is. */
static void what_is_overwritten_is_not_drawn(void **state) {
    (void)state;
    const fac_init init = { FAC_INIT_CONSTANT, .mean = 2 };
    fac_tensor *t = NULL, *part = NULL;
    float x[6] = { 1, 1, 1, 1, 1, 1 };
    for (int k = 0; k < 2; k++) {
        OK(fac_init_tensor(&init, 7, "w", (fac_type){ FAC_F32, fac_shape(6) }, &t, err));
        const uint64_t before = fac_tensor_version(t);
        if (k) OK(fac_tensor_view(t, fac_shape(3), NULL, 3, &part, err));
        if (k)
            OK(fac_tensor_write(part, x, 12, err));
        else
            OK(fac_tensor_write(t, x, 24, err));
        assert_true(fac_tensor_version(t) > before);
        OK(fac_tensor_read(t, x, sizeof x, err));
        for (int i = 0; i < 6; i++) assert_true(x[i] == (k && i < 3 ? 2 : 1));
        fac_tensor_free(t);
    }
    fac_tensor_free(part);
}

static int refusals;
static fac_status refuse(void *self, void *to, size_t bytes, fac_error *e) {
    (void)self, (void)to, (void)bytes;
    refusals++;
    e->status = FAC_E_NOMEM;
    return FAC_E_NOMEM;
}
static int released;
static void release(void *self) { released += *(int *)self; }

/* Contents that cannot be made are an error each time, never zeros; what makes them is given back
 * once. */
static void contents_that_cannot_be_made(void **state) {
    (void)state;
    int one = 1;
    fac_tensor *t = NULL;
    float x[2];
    fac_error e = { 0 };
    OK(fac_tensor_new_late((fac_type){ FAC_F32, fac_shape(2) },
                           &(fac_late){ .make = refuse, .release = release, .self = &one }, &t,
                           err));
    assert_int_equal(fac_tensor_read(t, x, sizeof x, &e), FAC_E_NOMEM);
    assert_int_equal(fac_tensor_read(t, x, sizeof x, &e), FAC_E_NOMEM);
    assert_true(refusals == 2 && released == 0);
    fac_tensor_free(t);
    assert_int_equal(released, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counting_and_planning_read_no_weights),
        cmocka_unit_test(numbers_do_not_depend_on_when_they_are_drawn),
        cmocka_unit_test(what_is_overwritten_is_not_drawn),
        cmocka_unit_test(contents_that_cannot_be_made),
    };
    return cmocka_run_group_tests_name("late", tests, open_device, close_device);
}
