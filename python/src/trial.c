/* Opening a device in a child first: some drivers of OpenCL end the process that opens one. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "module.h"

enum { PATIENCE = 10 }; /* seconds; a lock that another thread held at the fork is never let go */

static void open_and_leave(const char *name) {
    fac_device *device = NULL;
    const int null = open("/dev/null", O_WRONLY);
    if (null >= 0) dup2(null, STDERR_FILENO);
    if (null >= 0) dup2(null, STDOUT_FILENO);
    fac_device_open(name, NULL, &device, NULL);
    _exit(0);
}

/* Whether the child came to its own end within the time. */
static bool ended_well(pid_t child) {
    const struct timespec pause = { .tv_nsec = 1000 * 1000 };
    struct timespec begin, now;
    int status = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        const pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child) return WIFEXITED(status);
        if (got < 0 && errno != EINTR) return false;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begin.tv_sec > PATIENCE) break;
        nanosleep(&pause, NULL);
    }
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return false;
}

/* False says little: the child has one thread of many.  A process of its own tells for sure. */
static PyObject *opens_in_a_child(PyObject *module, PyObject *name) {
    (void)module;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    bool well = false;
    if (!text) return NULL;
    Py_BEGIN_ALLOW_THREADS const pid_t child = fork();
    if (child == 0) open_and_leave(text);
    if (child > 0) well = ended_well(child);
    Py_END_ALLOW_THREADS return PyBool_FromLong(well);
}

static PyMethodDef functions[] = { { "opens_in_a_child", opens_in_a_child, METH_O,
                                     "Whether a fork of this process outlives opening a device." },
                                   { 0 } };

int py_trial_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
