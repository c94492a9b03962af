/* Indices that are data and out of range: gathers and scatters say so, with the step, the index and
 * the range; at once on the cpu, at the next wait on an OpenCL device, which works on as before.
 * The parts for OpenCL are skipped where no driver is. */
#include "opencl_pair.h"

enum { COUNT = 6 };

/* A tensor of indices, zeros but for one. */
static fac_tensor *indices(fac_dtype dtype, fac_dims dims, int64_t at, int64_t index) {
    const size_t n = (size_t)fac_dims_count(&dims);
    int64_t *x = calloc(n + 1, sizeof *x);
    fac_tensor *wide = NULL, *t = NULL;
    x[at] = index;
    OK(fac_tensor_new(NULL, FAC_I64, dims, &wide, &err));
    OK(fac_tensor_write(wide, x, n * sizeof *x, &err));
    OK(fac_tensor_convert(wide, dtype, &t, &err));
    fac_tensor_free(wide);
    free(x);
    return t;
}

/* Each op with its indices as input 0; which of them is tried, and the range that it must be in. */
static const struct picker {
    const char *name;
    fac_dims indices;
    int64_t at, size;
} pickers[] = {
    { "gather", { 1, { COUNT } }, 3, 5 },          { "gather", { 2, { 2, 3 } }, 5, 4 },
    { "gather_elements", { 2, { 5, 4 } }, 11, 4 }, { "gather_nd", { 2, { COUNT, 2 } }, 7, 4 },
    { "gather_grad", { 1, { COUNT } }, 4, 5 },     { "scatter_elements", { 2, { 5, 4 } }, 6, 5 },
    { "scatter_nd", { 2, { COUNT, 2 } }, 10, 5 }
};
enum { PICKERS = sizeof pickers / sizeof *pickers };

static fac_value *picked(fac_graph *g, int k, fac_value *i) {
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(5, 4));
    switch (k) {
    case 0:
        return fac_gather(x, i, 0);
    case 1:
        return fac_gather(x, i, 1);
    case 2:
        return fac_gather_elements(x, i, 1);
    case 3:
        return fac_gather_nd(x, i, 0);
    case 4: {
        fac_value *d;
        fac_grad(fac_sum(fac_gather(x, i, 0), (fac_dims){ 0 }, false), 1, &x, &d);
        return d;
    }
    case 5:
        return fac_scatter_elements(x, i, fac_mul(x, x), 0, FAC_SCATTER_ADD);
    default:
        return fac_scatter_nd(
            x, i, fac_expand_to(fac_number(g, FAC_F32, 3), fac_ints(g, fac_shape(COUNT))),
            FAC_SCATTER_NONE);
    }
}

static fac_program *program_of(fac_device *d, int k, fac_dtype dtype, const char *solver) {
    fac_graph *g = fac_graph_new();
    fac_program *p = NULL;
    fac_output(g, "y", picked(g, k, fac_input(g, "i", dtype, pickers[k].indices)));
    OK(fac_program_new(g, d, &(fac_program_opts){ .solver = solver, .no_fuse = true }, &p, &err));
    fac_graph_free(g);
    return p;
}

/* Runs and reads: whatever goes wrong on the way. */
static fac_status answer(fac_program *p, fac_tensor *const in[], float *to, size_t *n,
                         fac_error *e) {
    fac_tensor *y = NULL;
    fac_status status = fac_program_run(p, in, &y, e);
    if (!status) {
        const fac_type t = fac_tensor_type(y);
        *n = (size_t)fac_dims_count(&t.dims);
        status = fac_tensor_read(y, to, *n * sizeof *to, e);
    }
    fac_tensor_free(y);
    return status;
}

static void told(const fac_error *e, const char *op, int64_t index, int64_t size) {
    char want[96];
    snprintf(want, sizeof want, "index %lld is out of range (%lld to %lld)", (long long)index,
             (long long)-size, (long long)size - 1);
    if (!strstr(e->text, want) || !strstr(e->text, op))
        fail_msg("%s: %s; it is %s", op, e->text, want);
}

/* Both ends of the range, good and bad ones in turn. */
static void one(fac_device *d, int k, fac_dtype dtype, const char *solver) {
    const struct picker *c = &pickers[k];
    const int64_t tried[] = { c->size - 1, c->size, -c->size, -c->size - 1, c->size - 1 };
    fac_program *p = program_of(d, k, dtype, solver);
    float y[64], last[64];
    size_t n = 0;
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        fac_error e = { 0 };
        fac_tensor *in[2] = { indices(dtype, c->indices, c->at, tried[i]),
                              random_tensor(NULL, fac_shape(5, 4), 3) };
        const fac_status status = answer(p, in, i == 0 ? last : y, &n, &e);
        assert_int_equal(status, i % 2 ? FAC_E_ARGUMENT : FAC_OK);
        if (status) told(&e, c->name, tried[i], c->size);
        for (int j = 0; j < 2; j++) fac_tensor_free(in[j]);
    }
    assert_memory_equal(y, last, n * sizeof *y);
    fac_program_free(p);
}

static void the_cpu_says_so_at_once(void **state) {
    static const char *const solvers[] = { NULL, "ref" };
    (void)state;
    for (int k = 0; k < PICKERS; k++)
        for (int s = 0; s < 2; s++) one(cpu, k, s ? FAC_I32 : FAC_I64, solvers[s]);
}

/* Whoever finds one: threads see their own parts. */
static void the_first_one_is_told(void **state) {
    (void)state;
    enum { MANY = 70000, WIDTH = 16 };
    fac_device *d = NULL;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 4 }, &d, &err));
    for (int kind = 0; kind < 4; kind++) {
        fac_graph *g = fac_graph_new();
        fac_value *i = fac_input(g, "i", FAC_I64, fac_shape(MANY)),
                  *x = fac_input(g, "x", FAC_F32, fac_shape(5000, WIDTH)), *dx;
        fac_value *y = fac_gather(x, i, 0),
                  *column = fac_reshape(fac_slice(x, 1, 0, 1, 1), fac_shape(5000));
        fac_grad(fac_sum(y, (fac_dims){ 0 }, false), 1, &x, &dx);
        fac_value *all[] = { y, dx, fac_gather_elements(column, i, 0),
                             fac_scatter_elements(column, i, fac_cast(i, FAC_F32), 0,
                                                  FAC_SCATTER_ADD) };
        fac_output(g, "y", all[kind]);
        fac_program *p = NULL;
        OK(fac_program_new(g, d, NULL, &p, &err));
        int64_t *at = calloc(MANY, sizeof *at);
        at[69000] = 7000;
        at[41] = 6000;
        at[30000] = -8000;
        fac_tensor *in[2] = { indices(FAC_I64, fac_shape(MANY), 0, 0),
                              random_tensor(NULL, fac_shape(5000, WIDTH), 3) },
                   *out = NULL;
        OK(fac_tensor_write(in[0], at, MANY * sizeof *at, &err));
        for (int turn = 0; turn < 5; turn++) {
            fac_error e = { 0 };
            assert_int_equal(fac_program_run(p, in, &out, &e), FAC_E_ARGUMENT);
            told(&e, kind == 3 ? "scatter" : "gather", 6000, 5000);
        }
        free(at);
        for (int j = 0; j < 2; j++) fac_tensor_free(in[j]);
        fac_program_free(p);
        fac_graph_free(g);
    }
    fac_device_free(d);
}

static void opencl_says_so_at_the_next_wait(void **state) {
    (void)state;
    NEEDS_DEVICE();
    for (int k = 0; k < PICKERS; k++) one(opencl, k, k % 2 ? FAC_I32 : FAC_I64, NULL);
}

/* A wait that has nobody to tell keeps it, also past the end of the program; it is told once. */
static void it_is_not_lost(void **state) {
    (void)state;
    NEEDS_DEVICE();
    fac_program *p = program_of(opencl, 0, FAC_I64, NULL);
    fac_tensor *in[2] = { indices(FAC_I64, fac_shape(COUNT), 2, 9),
                          random_tensor(NULL, fac_shape(5, 4), 3) },
               *y = NULL;
    OK(fac_program_run(p, in, &y, &err));
    assert_int_not_equal(fac_device_sync(opencl, NULL), FAC_OK);
    fac_program_free(p);
    fac_error e = { 0 };
    assert_int_equal(fac_device_sync(opencl, &e), FAC_E_ARGUMENT);
    told(&e, "gather", 9, 5);
    assert_non_null(strstr(e.text, fac_device_name(opencl)));
    OK(fac_device_sync(opencl, &err));
    float row[4];
    fac_tensor_free(y);
    for (int j = 0; j < 2; j++) fac_tensor_free(in[j]);
    fac_tensor *t = random_tensor(opencl, fac_shape(4), 1);
    OK(fac_tensor_read(t, row, sizeof row, &err));
    fac_tensor_free(t);
}

/* A check waits for kernels that look at indices, and tells once; the cpu has told all before. */
static void a_check_tells(void **state) {
    (void)state;
    OK(fac_device_check(cpu, &err));
    NEEDS_DEVICE();
    fac_program *p = program_of(opencl, 0, FAC_I64, NULL);
    for (int bad = 0; bad < 2; bad++) {
        fac_tensor *in[2] = { indices(FAC_I64, fac_shape(COUNT), 2, bad ? 9 : 4),
                              random_tensor(NULL, fac_shape(5, 4), 3) },
                   *y = NULL;
        fac_error e = { 0 };
        OK(fac_device_check(opencl, &err));
        OK(fac_program_run(p, in, &y, &err));
        assert_int_equal(fac_device_check(opencl, &e), bad ? FAC_E_ARGUMENT : FAC_OK);
        if (bad) told(&e, "gather", 9, 5);
        OK(fac_device_check(opencl, &err));
        fac_tensor_free(y);
        for (int j = 0; j < 2; j++) fac_tensor_free(in[j]);
    }
    fac_program_free(p);
}

/* A run that fails before a step wrote over a parameter leaves its version alone, so that whoever
 * asks can tell: contents that changed have another version. */
static void a_failed_run_tells_what_it_wrote(void **state) {
    (void)state;
    float from[20], to[20];
    for (int first = 0; first < 2; first++) { /* the update, or the gather */
        fac_graph *g = fac_graph_new();
        fac_tensor *w = random_tensor(NULL, fac_shape(5, 4), 7), *y = NULL,
                   *table = random_tensor(NULL, fac_shape(5, 4), 8),
                   *bad = indices(FAC_I64, fac_shape(COUNT), 2, 9),
                   *good = indices(FAC_I64, fac_shape(COUNT), 2, 4);
        fac_value *i = fac_input(g, "i", FAC_I64, fac_shape(COUNT)), *p = fac_param(g, "w", w),
                  *next = first ? NULL : fac_exp(p), *rows = fac_gather(fac_const(g, table), i, 0);
        fac_update(p, next ? next : fac_mul(p, fac_sum(rows, (fac_dims){ 0 }, false)));
        fac_output(g, "y", rows);
        fac_program *program;
        fac_error e = { 0 };
        OK(fac_program_new(g, cpu, NULL, &program, &err));
        OK(fac_program_run(program, &good, &y, &err));
        OK(fac_tensor_read(w, from, sizeof from, &err));
        const uint64_t version = fac_tensor_version(w);
        assert_int_equal(fac_program_run(program, &bad, &y, &e), FAC_E_ARGUMENT);
        OK(fac_tensor_read(w, to, sizeof to, &err));
        const bool same = !memcmp(from, to, sizeof from);
        if (first) assert_true(same); /* the update waits for the gather */
        assert_int_equal(fac_tensor_version(w) == version, same);
        fac_program_free(program);
        fac_graph_free(g);
        fac_tensor *all[] = { w, y, table, bad, good };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) fac_tensor_free(all[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_says_so_at_once),
        cmocka_unit_test(the_first_one_is_told),
        cmocka_unit_test(opencl_says_so_at_the_next_wait),
        cmocka_unit_test(it_is_not_lost),
        cmocka_unit_test(a_check_tells),
        cmocka_unit_test(a_failed_run_tells_what_it_wrote),
    };
    return cmocka_run_group_tests_name("indices", tests, open_devices, close_devices);
}
