/* The cpu's solvers for what only training does, but convolutions: batch norms with the statistics
 * of the batch, gradients of batch norms and pools, against the reference. */
#include "solver_check.h"
#include "facula/backend.h"

/* Every instruction set, several layouts, results in the caches and past them; it must offer each
 * time. */
static void everywhere(check c, const char *solver, const char *problem, int rounds) {
    fac_error err = { 0 };
    fac_graph *g = NULL;
    if (fac_problem_graph(problem, false, &g, &err)) fail_msg("%s: %s", problem, err.text);
    const fac_node *n = g->outputs[0].value->node;
    for (size_t i = 0; i < sizeof check_isas / sizeof *check_isas; i++)
        for (int round = 0; round < rounds; round++) {
            c.isa = check_isas[i];
            c.threads = 1 + round % 3;
            c.past = round % 2;
            if (!check_node(&c, solver, n))
                fail_msg("%s: no offer for %s (seed %llu)", solver, problem,
                         (unsigned long long)c.seed);
        }
    fac_graph_free(g);
}

static void batch_norms(void **state) {
    (void)state;
    static const char *const shapes[] = { "3,19,5,7",  "2,64,14,14", "1,5,1,1",
                                          "2,3,40,41", "4,140,3,2",  "2,20,2,300" };
    static const char *const bodies[] = { "", " {relu}", " {clip(_, -0.5, 0.75)}", " {silu}" };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        check c = { .seed = s,
                    .lo = 0.2,
                    .hi = 3,
                    .tolerance = 3e-5,
                    .blocked = true,
                    .strided = true,
                    .all_out = s % 2 };
        char text[400];
        int channels = atoi(strchr(shapes[s], ',') + 1);
        for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
            snprintf(
                text, sizeof text,
                "batch_norm(f32[%s], f32[%d], f32[%d], f32[%d], f32[%d]) epsilon=1e-3 momentum=0.8 "
                "training_mode%s",
                shapes[s], channels, channels, channels, channels, bodies[b]);
            everywhere(c, "batch_norm/blocked", text, 4);
            if (b == 0) everywhere(c, "batch_norm/train", text, 4);
        }
        snprintf(text, sizeof text,
                 "batch_norm(f32[%s], f32[%d], f32[%d], f32[%d], f32[%d], f32[%s]) epsilon=1e-3 "
                 "training_mode "
                 "{add(_, x1) relu}",
                 shapes[s], channels, channels, channels, channels, shapes[s]);
        everywhere(c, "batch_norm/blocked", text, 4);
        snprintf(text, sizeof text, "batch_norm_grad(f32[%s], f32[%s], f32[%d]) epsilon=1e-3",
                 shapes[s], shapes[s], channels);
        c.tolerance = 5e-4; /* of sums of some hundred products, which mostly cancel */
        everywhere(c, "batch_norm_grad/blocked", text, 4);
        everywhere(c, "batch_norm_grad/channel", text, 4);
        static const char *const limits[] = { "lo=0 hi=inf", "lo=0.5 hi=1.5", "lo=-inf hi=1" };
        for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
            snprintf(text, sizeof text,
                     "batch_norm_act_grad(f32[%s], f32[%s], f32[%d], f32[%s]) epsilon=1e-3 %s",
                     shapes[s], shapes[s], channels, shapes[s], limits[l]);
            c.nan_in = 3; /* the gradient passes it, as it passes what is between */
            everywhere(c, "batch_norm_act_grad/blocked", text, 4);
            c.nan_in = 0;
        }
    }
}

/* Far from zero and hardly moving, where a sum of squares alone would leave nothing. */
static void batch_norms_far_away(void **state) {
    (void)state;
    check c = { .seed = 5, .lo = 50, .hi = 51, .tolerance = 1e-3, .blocked = true };
    everywhere(c, "batch_norm/blocked",
               "batch_norm(f32[4,20,17,30], f32[20], f32[20], f32[20], f32[20]) epsilon=1e-3 "
               "training_mode",
               3);
}

static void pools(void **state) {
    (void)state;
    static const struct {
        const char *solvers[2], *problem;
    } all[] = { { { "max_pool2d_grad/blocked", "max_pool2d_grad/plain" },
                  "max_pool2d_grad(f32[2,19,14,17], f32[2,19,7,9]) kernel=3,3 "
                  "stride=2,2 pad=1,1,1,1" },
                { { "max_pool2d_grad/blocked", "max_pool2d_grad/plain" },
                  "max_pool2d_grad(f32[3,5,9,8], f32[3,5,4,4]) kernel=2,2 "
                  "stride=2,2" },
                { { "max_pool2d_grad/blocked", "max_pool2d_grad/plain" },
                  "max_pool2d_grad(f32[1,40,9,12], f32[1,40,9,8]) kernel=3,5 "
                  "stride=1,1 pad=2,0,2,0 dilation=2,1" },
                { { "max_pool2d_grad/blocked", "max_pool2d_grad/plain" },
                  "max_pool2d_grad(f32[1,20,8,12], f32[1,20,3,5]) kernel=2,2 "
                  "stride=3,3 pad=0,1,0,1" },
                { { "avg_pool2d_grad/blocked", "avg_pool2d_grad/plain" },
                  "avg_pool2d_grad(f32[2,19,14,17], f32[2,19,7,9]) kernel=3,3 "
                  "stride=2,2 pad=1,1,1,1" },
                { { "avg_pool2d_grad/blocked", "avg_pool2d_grad/plain" },
                  "avg_pool2d_grad(f32[2,19,14,17], f32[2,19,7,9]) kernel=3,3 "
                  "stride=2,2 pad=1,1,1,1 count_include_pad" },
                { { "avg_pool2d_grad/blocked", "avg_pool2d_grad/plain" },
                  "avg_pool2d_grad(f32[2,33,7,7], f32[2,33,1,1]) kernel=7,7" } };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (int i = 0; i < 2; i++) {
            check c = { .seed = 50 + k,
                        .lo = -2,
                        .hi = 2,
                        .tolerance = 1e-5,
                        .blocked = true,
                        .strided = true };
            everywhere(c, all[k].solvers[i], all[k].problem, 4);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(batch_norms),
                                        cmocka_unit_test(batch_norms_far_away),
                                        cmocka_unit_test(pools) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
