/* What tests of gradients share: a device and fresh random tensors. */
#ifndef FACULA_TESTS_GRAD_CHECK_H
#define FACULA_TESTS_GRAD_CHECK_H
#include "random_check.h"
#include "facula/backend.h"
#include "facula/ops.h"
#include "facula/program.h"
#include "graph/graph_internal.h"

static inline int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, &err);
}
#endif
