/* What tests of language models that are trained share. */
#ifndef FACULA_TESTS_LM_TRAIN_CHECK_H
#define FACULA_TESTS_LM_TRAIN_CHECK_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/memory.h"
#include "fresh_seed.h"
#include "facula/train.h"
#include "lm/lm.h"
#include "tensor/tensor_internal.h"

static fac_error err;
static fac_device *cpu;
static uint64_t seed;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

enum { VOCABULARY = 13, CONTEXT = 12, BATCH = 4 };

static inline fac_lm *fresh(const char *shape) {
    fac_lm_shape s = { .context = CONTEXT, .vocabulary = VOCABULARY, .seed = seed };
    fac_lm *m;
    OK(fac_lm_shape_parse(shape, &s, &err));
    OK(fac_lm_new(&s, cpu, &m, &err));
    return m;
}

static inline fac_tensor *some_ids(void) {
    fac_tensor *t;
    int64_t ids[2 * 5] = { 1, 4, 2, 0, 3, 12, 11, 4, 4, 4 };
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(2, 5), &t, &err));
    OK(fac_tensor_write(t, ids, sizeof ids, &err));
    return t;
}

/* Logits of a model's graph; the caller frees them. */
static inline fac_tensor *logits(const fac_lm *m) {
    fac_graph *g;
    fac_program *p;
    fac_tensor *x = some_ids(), *y = NULL;
    OK(fac_lm_graph(m, 0, &g, &err));
    fac_graph *quiet = fac_graph_inference(g);
    OK(fac_program_new(quiet, cpu, NULL, &p, &err));
    OK(fac_program_run(p, &x, &y, &err));
    fac_program_free(p);
    fac_graph_free(quiet);
    fac_graph_free(g);
    fac_tensor_free(x);
    return y;
}

static inline double distance(const fac_tensor *a, const fac_tensor *b) {
    const fac_type type = fac_tensor_type(a);
    const float *x = fac_tensor_data(a), *y = fac_tensor_data(b);
    double most = 0;
    for (int64_t k = 0; k < fac_dims_count(&type.dims); k++)
        most = fmax(most, fabs((double)x[k] - (double)y[k]));
    return most;
}
#endif
