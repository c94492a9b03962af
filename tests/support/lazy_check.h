/* What tests of the recorder share: a cpu, a recorder, values from numbers, ops by name. */
#ifndef FACULA_TESTS_LAZY_CHECK_H
#define FACULA_TESTS_LAZY_CHECK_H
#include "random_check.h"
#include "facula/facula.h"

static fac_recorder *rec;

static inline int open_recorder(void **state) {
    (void)state;
    return fac_recorder_new(device, NULL, &rec, &err);
}

static inline int close_recorder(void **state) {
    (void)state;
    fac_recorder_free(rec);
    rec = NULL;
    return 0;
}

static inline int open_cpu(void **state) {
    (void)state;
    seed = fresh_seed();
    return fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &device, &err);
}

static inline fac_tensor *tensor_of(fac_dims dims, const float *x) {
    fac_tensor *t;
    const fac_type type = { FAC_F32, dims };
    OK(fac_tensor_new(NULL, FAC_F32, dims, &t, &err));
    OK(fac_tensor_write(t, x, fac_type_bytes(&type), &err));
    return t;
}

static inline fac_lazy *lazy_of(fac_dims dims, const float *x) {
    fac_lazy *v;
    fac_tensor *t = tensor_of(dims, x);
    OK(fac_lazy_of(rec, t, &v, &err));
    fac_tensor_free(t);
    return v;
}

/* A random f32 tensor between -1 and 1; state: bound. */
static inline fac_lazy *lazy_random(fac_dims dims, bool state) {
    fac_lazy *v;
    fac_tensor *t = random_tensor((fac_type){ FAC_F32, dims }, -1, 1);
    if (state)
        OK(fac_lazy_state(rec, t, &v, &err));
    else
        OK(fac_lazy_of(rec, t, &v, &err));
    fac_tensor_free(t);
    return v;
}

static inline fac_lazy *number(double x) {
    fac_lazy *v;
    OK(fac_lazy_number(rec, FAC_F32, x, &v, &err));
    return v;
}

/* Ops of values that the caller keeps; the result is the caller's. */
static inline fac_lazy *op_with(const char *name, const char *attrs, int n, fac_lazy *const in[]) {
    fac_lazy *y;
    OK(fac_record_text(rec, fac_op_find(name), attrs, n, in, 0, 1, &y, &err));
    return y;
}
static inline fac_lazy *op1(const char *name, fac_lazy *x) { return op_with(name, NULL, 1, &x); }
static inline fac_lazy *op2(const char *name, fac_lazy *x, fac_lazy *y) {
    return op_with(name, NULL, 2, (fac_lazy *[]){ x, y });
}

/* Replaces *x by an op of it, which frees what it was. */
static inline void then1(fac_lazy **x, const char *name) {
    fac_lazy *y = op1(name, *x);
    fac_lazy_free(*x);
    *x = y;
}
static inline void then2(fac_lazy **x, const char *name, fac_lazy *with) {
    fac_lazy *y = op2(name, *x, with);
    fac_lazy_free(*x);
    *x = y;
}

static inline void read_lazy(fac_lazy *x, float *to, size_t n) {
    fac_tensor *t;
    OK(fac_lazy_tensor(x, &t, &err));
    OK(fac_tensor_read(t, to, n * sizeof *to, &err));
    fac_tensor_free(t);
}

static inline float item(fac_lazy *x) {
    float y;
    read_lazy(x, &y, 1);
    return y;
}

static inline void assert_floats(fac_lazy *x, const float *want, size_t n, double within) {
    float have[256];
    read_lazy(x, have, n);
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)have[i] - (double)want[i]) <= within))
            fail_msg("element %zu is %g, not %g", i, (double)have[i], (double)want[i]);
}
#endif
