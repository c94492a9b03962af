/* The recorder on a device out of sight: the same training as on the cpu, lazy and eager, and
 * random numbers bit for bit. */
#include "opencl_check.h"
#include "lazy_check.h"
#include "op_list.h"

static fac_device *cpu, *opencl;

static int open_both(void **state) {
    (void)state;
    seed = fresh_seed();
    if (fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &cpu, &err)) return -1;
    return opencl_open(&opencl, &err);
}

static int close_both(void **state) {
    (void)state;
    fac_device_free(opencl);
    fac_device_free(cpu);
    return 0;
}

static void on(fac_device *d) {
    device = d;
    fac_recorder_free(rec);
    OK(fac_recorder_new(d, NULL, &rec, &err));
}

/* w = w - 0.1 d/dw sum(tanh(x w)^2); the losses. */
static void train(bool eager, int steps, float *losses) {
    fac_lazy *axes, *rate = number(0.1);
    stream = 40;
    fac_recorder_set_eager(rec, eager);
    fac_lazy *x = lazy_random(fac_shape(5, 4), false), *w = lazy_random(fac_shape(4, 3), true);
    OK(fac_lazy_require(w, true, &err));
    OK(fac_lazy_ints(rec, 2, (int64_t[]){ 0, 1 }, &axes, &err));
    for (int step = 0; step < steps; step++) {
        fac_lazy *y = op2("matmul", x, w), *d, *next;
        then1(&y, "tanh");
        then2(&y, "mul", y);
        then2(&y, "sum", axes);
        OK(fac_lazy_backward(1, &y, NULL, 1, &w, &d, 0, &err));
        then2(&d, "mul", rate);
        OK(fac_record(rec, &fac_op_sub, NULL, 2, (fac_lazy *[]){ w, d }, FAC_RECORD_NO_GRAD, 1,
                      &next, &err));
        OK(fac_lazy_assign(w, next, &err));
        losses[step] = item(y);
        fac_lazy_free(y);
        fac_lazy_free(d);
        fac_lazy_free(next);
    }
    fac_lazy *all[] = { axes, rate, x, w };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
}

static void trains_alike(void **state) {
    (void)state;
    enum { STEPS = 6 };
    float want[STEPS], have[STEPS];
    if (!opencl) skip();
    on(cpu);
    train(false, STEPS, want);
    on(opencl);
    for (int eager = 0; eager < 2; eager++) {
        train(eager, STEPS, have);
        for (int i = 0; i < STEPS; i++) assert_true(fabsf(want[i] - have[i]) <= 1e-4f * want[i]);
    }
    assert_true(want[STEPS - 1] < want[0]);
    fac_recorder_free(rec);
    rec = NULL;
}

static void draw(const char *op, const char *attrs, void *to, size_t bytes) {
    const int64_t n = 1001;
    fac_lazy *counter, *shape, *y;
    fac_tensor *t;
    OK(fac_lazy_number(rec, FAC_I64, (double)(seed % 100000), &counter, &err));
    OK(fac_lazy_ints(rec, 1, &n, &shape, &err));
    y = op_with(op, attrs, 2, (fac_lazy *[]){ counter, shape });
    OK(fac_lazy_tensor(y, &t, &err));
    OK(fac_tensor_read(t, to, bytes, &err));
    fac_tensor_free(t);
    fac_lazy_free(counter);
    fac_lazy_free(shape);
    fac_lazy_free(y);
}

static void draws_alike(void **state) {
    (void)state;
    static const struct {
        const char *op, *attrs;
        size_t size;
    } all[] = {
        { "random_bits", "stream=5", 8 },
        { "random_uniform", "stream=5", 4 },
        { "random_uniform", "dtype=f16", 2 },
        { "permutation", NULL, 8 },
    };
    static unsigned char want[8008], have[8008];
    if (!opencl) skip();
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        const size_t bytes = 1001 * all[k].size;
        on(cpu);
        draw(all[k].op, all[k].attrs, want, bytes);
        on(opencl);
        draw(all[k].op, all[k].attrs, have, bytes);
        assert_memory_equal(want, have, bytes);
    }
    fac_recorder_free(rec);
    rec = NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trains_alike),
        cmocka_unit_test(draws_alike),
    };
    return cmocka_run_group_tests(tests, open_both, close_both);
}
