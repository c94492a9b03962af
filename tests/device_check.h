/* A device for all tests of a program, and the seed of their random numbers: FACULA_SEED repeats what was printed. */
#ifndef FACULA_TESTS_DEVICE_CHECK_H
#define FACULA_TESTS_DEVICE_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "facula/facula.h"

static fac_error err;
static fac_device *device;
static uint64_t seed;
#define OK(call) do { if (call) fail_msg("%s: %s", #call, err.text); } while (0)

static inline int open_device(void **state) {
    (void)state;
    const char *again = getenv("FACULA_SEED");
    seed = again ? strtoull(again, NULL, 10) : (uint64_t)time(NULL);
    print_message("FACULA_SEED=%llu\n", (unsigned long long)seed);
    return fac_device_open("cpu", NULL, &device, &err);
}

static inline int close_device(void **state) {
    (void)state;
    fac_device_free(device);
    return 0;
}
#endif
