/* Whether there is an OpenCL device to test on.  A driver may end the process that asks it (PoCL
 * does where it finds no /sys), so a process of its own asks first: this program once more, with
 * OPENCL_TRIAL in its environment.  A mere fork will not do: threads that are not there in the
 * child may hold the locks of a sanitizer's allocator, and the child would wait for them for ever.
 */
#ifndef FACULA_TESTS_OPENCL_CHECK_H
#define FACULA_TESTS_OPENCL_CHECK_H
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "facula/device.h"
#include "base/optional.h"

#define OPENCL_TRIAL "FACULA_TESTS_TRY_DEVICE"
extern char **environ;

__attribute__((constructor)) static void opencl_trial(void) {
    const char *name = getenv(OPENCL_TRIAL);
    fac_device *d = NULL;
    if (!name) return;
    fac_device_open(name, NULL, &d, NULL);
    _exit(0);
}

/* How a process ends that opens the device, as waitpid says it; -1 for a failure. */
static inline int opencl_try(const char *name) {
    char trial[200], *program[] = { "trial", NULL };
    int n = 0, status = 0;
    while (environ[n]) n++;
    char **with = calloc((size_t)n + 2, sizeof *with);
    if (!with) return -1;
    memcpy(with, environ, (size_t)n * sizeof *with);
    snprintf(trial, sizeof trial, OPENCL_TRIAL "=%s", name);
    with[n] = trial;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        execve("/proc/self/exe", program, with);
        _exit(0);
    }
    free(with);
    return child < 0 || waitpid(child, &status, 0) < 0 ? -1 : status;
}

/* Whether this process may open the device: one of another name than "opencl..." always, one of
 * OpenCL where its driver does not end the process. */
static inline bool opencl_survives(const char *name) {
    static char asked[128];
    static bool survives;
    if (strncmp(name, "opencl", 6)) return true;
    if (!strcmp(name, asked)) return survives;
    const int status = opencl_try(name);
    survives = status < 0 || !WIFSIGNALED(status);
    snprintf(asked, sizeof asked, "%s", name);
    if (!survives) printf("the driver ends the process that opens a device: skipped\n");
    return survives;
}

/* *out stays NULL when there is none of this name; 0, or -1 for a failure. */
static inline int opencl_open_name(const char *name, fac_device **out, fac_error *err) {
    if (!opencl_survives(name)) return 0;
    fac_status opened = fac_device_open(name, &(fac_device_opts){ .threads = 1 }, out, err);
    printf("%s\n", opened ? err->text : fac_device_about(*out));
    return opened && opened != FAC_E_UNSUPPORTED ? -1 : 0;
}

/* FACULA_OPENCL=which asks for another device than the first. */
static inline int opencl_open(fac_device **out, fac_error *err) {
    const char *which = getenv("FACULA_OPENCL");
    char name[128];
    snprintf(name, sizeof name, "opencl%s%s", fac_text_if(which, ":"), fac_text_or(which, ""));
    return opencl_open_name(name, out, err);
}

/* Another device than this one, or where there is no other, this one again, with a context and a
 * queue of its own. */
static inline int opencl_open_other(const fac_device *first, fac_device **out, fac_error *err) {
    enum { DEVICES = 8 };
    for (int k = 0; k < DEVICES; k++) {
        char name[32];
        snprintf(name, sizeof name, "opencl:%d", k);
        if (!strcmp(name, fac_device_name(first))) continue;
        if (opencl_open_name(name, out, err)) break; /* no more of them */
        if (*out) return 0;
    }
    return opencl_open_name(fac_device_name(first), out, err);
}
#endif
