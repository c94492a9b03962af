/* Numbers of graphs with quantizers of few bits. */
#ifndef FACULA_LOW_BITS_CHECK_H
#define FACULA_LOW_BITS_CHECK_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"

static fac_device *dev;

static int open_device(void **state) {
    (void)state;
    return fac_device_open("cpu", NULL, &dev, NULL);
}
static int close_device(void **state) {
    (void)state;
    fac_device_free(dev);
    return 0;
}

static fac_tensor *tensor_of(fac_dims d, const float *x) {
    fac_tensor *t;
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, d, &t, NULL), FAC_OK);
    assert_int_equal(fac_tensor_write(t, x, (size_t)fac_dims_count(&d) * sizeof *x, NULL), FAC_OK);
    return t;
}
static fac_value *param(fac_graph *g, const char *name, fac_dims d, const float *x) {
    fac_tensor *t = tensor_of(d, x);
    fac_value *v = fac_param(g, name, t);
    fac_tensor_free(t);
    return v;
}
static void eval(fac_value *v, float *to, size_t n) {
    fac_tensor *t;
    fac_error err = { 0 };
    if (fac_eval(v, dev, &t, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_read(t, to, n * sizeof *to, NULL), FAC_OK);
    fac_tensor_free(t);
}
#endif
