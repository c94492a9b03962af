/* What tests of programs share: a cpu of two threads, and what to say when a call fails.  Included
 * last: it takes the name err. */
#ifndef FACULA_TESTS_PROGRAM_CHECK_H
#define FACULA_TESTS_PROGRAM_CHECK_H
#include "facula/facula.h"

static fac_device *device;

static inline int open_device(void **state) {
    (void)state;
    return fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &device, NULL);
}

static inline int close_device(void **state) {
    (void)state;
    fac_device_free(device);
    return 0;
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)
#endif
