/* Whether there is an OpenCL device to test on.  A driver may end the process that asks it (PoCL does where it finds no /sys), so
 * a child asks first. */
#ifndef FACULA_TESTS_OPENCL_CHECK_H
#define FACULA_TESTS_OPENCL_CHECK_H
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "facula/device.h"

/* FACULA_OPENCL=which asks for another device than the first.  *out stays NULL when there is none; 0, or -1 for a failure. */
static inline int opencl_open(fac_device **out, fac_error *err) {
    const char *which = getenv("FACULA_OPENCL");
    char name[128];
    int status = 0;
    snprintf(name, sizeof name, "opencl%s%s", which ? ":" : "", which ? which : "");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        fac_device *d = NULL;
        fac_device_open(name, NULL, &d, NULL);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
    if (WIFSIGNALED(status)) {
        printf("the driver ends the process that opens a device: skipped\n");
        return 0;
    }
    fac_status opened = fac_device_open(name, &(fac_device_opts){ .threads = 1 }, out, err);
    printf("%s\n", opened ? err->text : fac_device_about(*out));
    return opened && opened != FAC_E_UNSUPPORTED ? -1 : 0;
}
#endif
