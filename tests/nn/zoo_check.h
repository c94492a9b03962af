/* Runs networks of the zoo. */
#ifndef FACULA_ZOO_CHECK_H
#define FACULA_ZOO_CHECK_H
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
#include "allocations.h"
#include "facula/facula.h"
#include "golden/zoo.h"
#include "graph/graph_internal.h"

static void run(fac_graph *g, fac_tensor *x, float *to, size_t n) {
    fac_error err = { 0 };
    fac_device *device = NULL;
    fac_program *p = NULL;
    fac_tensor *y = NULL;
    if (fac_device_open("cpu", NULL, &device, &err) || fac_program_new(g, device, NULL, &p, &err) ||
        fac_program_run(p, &x, &y, &err) || fac_tensor_read(y, to, n * sizeof *to, &err))
        fail_msg("%s", err.text);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_device_free(device);
}
#endif
