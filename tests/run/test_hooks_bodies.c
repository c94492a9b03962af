/* Hooks inside of bodies: of loops, in each iteration, of branches, scans and calls; what they put
 * in place of a result is what the next iteration and the readers of the loop see.  On the cpu, and
 * on the OpenCL device where there is one. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/op.h"
#include "opencl_check.h"
#include "flow_check.h"

static fac_device *opencl;

/* Every `mul`, as it is met: what it is called, in which iterations, and its first number; one of
 * them becomes zeros. */
enum { MET = 32 };
typedef struct meeting {
    char name[64], path[64];
    int64_t inner, outer;
    float first;
} meeting;
typedef struct meetings {
    meeting m[MET];
    int n, zero;
} meetings;

static fac_status meet(void *self, fac_hooked *h, fac_error *e) {
    meetings *all = self;
    const fac_tensor *t = NULL;
    if (strcmp(fac_hooked_node(h)->op->name, "mul")) return FAC_OK;
    if (fac_hooked_output(h, 0, &t, e)) return e->status;
    assert_true(all->n < MET);
    meeting *m = &all->m[all->n++];
    snprintf(m->name, sizeof m->name, "%s", fac_hooked_name(h));
    snprintf(m->path, sizeof m->path, "%s", fac_hooked_path(h));
    m->inner = fac_hooked_iteration(h, 0);
    m->outer = fac_hooked_iteration(h, 1);
    m->first = *(const float *)fac_tensor_data(t);
    if (all->n - 1 != all->zero) return FAC_OK;
    fac_tensor *zeros = NULL;
    if (fac_tensor_new(NULL, FAC_F32, fac_tensor_type(t).dims, &zeros, e)) return e->status;
    const fac_status status = fac_hooked_replace(h, 0, zeros, e);
    fac_tensor_free(zeros);
    return status;
}

/* The first number of the first output for inputs x and, where there is one, n. */
static float run_text(fac_device *d, const char *text, float x, int64_t n, meetings *all) {
    fac_graph *g = read_text(text);
    fac_program *p = NULL;
    fac_tensor *in[2] = { NULL }, *out[MOST] = { NULL };
    const float three[3] = { x, x, x };
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(3), &in[0], err));
    OK(fac_tensor_write(in[0], three, sizeof three, err));
    OK(fac_tensor_new(NULL, FAC_I64, (fac_dims){ 0 }, &in[1], err));
    OK(fac_tensor_write(in[1], &n, sizeof n, err));
    OK(fac_program_new(g, d, &(fac_program_opts){ .hook = meet, .hook_self = all }, &p, err));
    OK(fac_program_run(p, in, out, err));
    const float y = *(const float *)fac_tensor_data(out[0]);
    for (int i = 0; i < MOST; i++) fac_tensor_free(out[i]);
    for (int i = 0; i < 2; i++) fac_tensor_free(in[i]);
    fac_program_free(p);
    fac_graph_free(g);
    return y;
}

/* v = 0.5 v + 1, four times: whether the count is a constant, and the loop might be unrolled, or
 * data. */
static void loops_are_seen_inside(void **state) {
    (void)state;
    static const char *const texts[2] = {
        "input x f32[3]\n%0, %1 = loop(i64(4), -, x) carried=1 "
        "{(i64[], bool[], f32[3]) t0 = mul(x2, 0.5); t1 = add(t0, f32(1)); x1, t1, t0}\noutput y = "
        "%0\noutput rows = %1\n",
        "input x f32[3]\ninput n i64[]\n%0, %1 = loop(n, -, x) carried=1 "
        "{(i64[], bool[], f32[3]) t0 = mul(x2, 0.5); t1 = add(t0, f32(1)); x1, t1, t0}\noutput y = "
        "%0\noutput rows = %1\n"
    };
    for (int d = 0; d < 2; d++)
        for (int k = 0; k < 2 && (!d || opencl); k++)
            for (int zero = -1; zero < 4; zero++) {
                meetings all = { .zero = zero };
                float want = 10;
                const float y = run_text(d ? opencl : device, texts[k], 10, 4, &all);
                assert_int_equal(all.n, 4);
                for (int t = 0; t < 4; t++) {
                    char path[80];
                    const meeting *m = &all.m[t];
                    assert_true(m->inner == t && m->outer == -1);
                    assert_true(m->first == want * 0.5F);
                    assert_string_equal(m->name, all.m[0].name);
                    assert_non_null(strstr(m->name, "loop"));
                    const char *dot = strchr(m->name, '.'); /* loop_3.mul_7, loop_3.0.mul_7 */
                    snprintf(path, sizeof path, "%.*s.%d%s", (int)(dot - m->name), m->name, t, dot);
                    assert_string_equal(m->path, path);
                    want = (t == zero ? 0 : want * 0.5F) + 1;
                }
                assert_true(y == want);
            }
}

static void loops_in_loops_are_seen_inside(void **state) {
    (void)state;
    static const char text[] =
        "input x f32[3]\ninput n i64[]\n%0 = loop(n, -, x) carried=1 {(i64[], bool[], f32[3]) "
        "t0 = loop(i64(2), -, x2) carried=1 {(i64[], bool[], f32[3]) t0 = mul(x2, 0.5); x1, t0}; "
        "x1, t0}\noutput y = %0\n";
    meetings all = { .zero = -1 };
    assert_true(run_text(device, text, 64, 3, &all) == 1);
    assert_int_equal(all.n, 6);
    for (int t = 0; t < 6; t++) assert_true(all.m[t].inner == t % 2 && all.m[t].outer == t / 2);
    all = (meetings){ .zero = 3 };
    assert_true(run_text(device, text, 64, 3, &all) == 0);
}

/* The branch that runs, without an iteration; slices of a scan; a call. */
static void branches_scans_and_calls_are_seen_inside(void **state) {
    (void)state;
    static const char branch[] = "input x f32[3]\ninput n i64[]\n%0 = greater(n, i64(0))\n"
                                 "%1 = if(%0, x) {t0 = mul(x1, 0.5); t0} {t0 = mul(x1, 2); t1 = "
                                 "neg(t0); t1}\noutput y = %1\n";
    for (int64_t n = 0; n < 2; n++) {
        meetings all = { .zero = -1 };
        assert_true(run_text(device, branch, 8, n, &all) == (n ? 4 : -16));
        assert_true(all.n == 1 && all.m[0].inner == -1 && all.m[0].first == (n ? 4 : 16));
        assert_non_null(strstr(all.m[0].name, "if"));
        all = (meetings){ .zero = 0 };
        assert_true(run_text(device, branch, 8, n, &all) == 0);
    }
    static const char scan[] = "input x f32[3]\n%0, %1 = scan(f32[1]{0}, x) states=1 slices=1 "
                               "{(f32[1], f32[]) t0 = mul(x1, 2); t1 = add(x0, t0); t1, "
                               "t0}\noutput y = %0\noutput rows = %1\n";
    meetings all = { .zero = 1 };
    assert_true(run_text(device, scan, 5, 0, &all) == 20);
    assert_int_equal(all.n, 3);
    for (int t = 0; t < 3; t++) assert_true(all.m[t].inner == t && all.m[t].first == 10);
    static const char call[] =
        "input x f32[3]\n%0 = call(x) name=twice {t0 = mul(x0, 2); t0}\noutput y = %0\n";
    all = (meetings){ .zero = -1 };
    assert_true(run_text(device, call, 5, 0, &all) == 10);
    assert_true(all.n == 1 && all.m[0].inner == -1);
    assert_non_null(strstr(all.m[0].name, "call"));
}

static int open_devices(void **state) {
    fac_error e = { 0 };
    return open_device(state) ? -1 : opencl_open(&opencl, &e);
}

static int close_devices(void **state) {
    fac_device_free(opencl);
    return close_device(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_are_seen_inside),
        cmocka_unit_test(loops_in_loops_are_seen_inside),
        cmocka_unit_test(branches_scans_and_calls_are_seen_inside),
    };
    return cmocka_run_group_tests_name("hooks inside of bodies", tests, open_devices,
                                       close_devices);
}
