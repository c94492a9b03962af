/* OpenCL drivers that are installed but that no file in the loader's folder names.  Containers with
 * NVIDIA's driver are often like that: the library is there, and the GPU is not found. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "drivers.h"

static const opencl_driver drivers[OPENCL_DRIVERS] = { { "libnvidia-opencl.so.1", "NVIDIA" },
                                                       { "libamdocl64.so", "AMD" },
                                                       { "libigdrcl.so", "Intel" } };

/* In a process of its own: a driver may start threads, or end the process. */
static bool opens(const char *library) {
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) _exit(dlopen(library, RTLD_LAZY | RTLD_LOCAL) ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

void drivers_see(opencl_platforms *seen, const char *fact, const char *value) {
    for (size_t i = 0; i < OPENCL_DRIVERS && !strcmp(fact, "platform"); i++)
        seen->of[i] |= strstr(value, drivers[i].vendor) != NULL;
}

int drivers_unregistered(const opencl_platforms *seen, opencl_driver *to) {
    int n = 0;
    for (size_t i = 0; i < OPENCL_DRIVERS; i++)
        if (!seen->of[i] && opens(drivers[i].library)) to[n++] = drivers[i];
    return n;
}
