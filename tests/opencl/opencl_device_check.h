/* A device with a folder of its own for compiled programs. */
#ifndef FACULA_OPENCL_DEVICE_CHECK_H
#define FACULA_OPENCL_DEVICE_CHECK_H
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "backends/opencl/device/cache.h"
#include "backends/opencl/device/opencl.h"
#include "backends/opencl/device/probe.h"
#include "base/memory.h"
#include "base/rng.h"
#include "opencl_check.h"

static fac_error err;
static fac_device *device;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)
#define NEEDS_DEVICE()                                                                             \
    do {                                                                                           \
        if (!device) skip();                                                                       \
    } while (0)

static char folder[] = "/tmp/facula-opencl-XXXXXX";

static int open_device(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    setenv("FACULA_CACHE", folder, 1);
    return opencl_open(&device, &err);
}

static int close_device(void **state) {
    (void)state;
    char command[128];
    fac_device_free(device);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static int entries_of(const char *where) {
    char command[256];
    int n = -1;
    snprintf(command, sizeof command, "ls %s | wc -l", where);
    FILE *f = popen(command, "r");
    assert_int_equal(fscanf(f, "%d", &n), 1);
    pclose(f);
    return n;
}

static int entries(void) { return entries_of(folder); }
#endif
