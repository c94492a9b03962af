/* OpenCL drivers that are installed but that no file in the loader's folder names.  Containers with
 * NVIDIA's driver are often like that: the library is there, and the GPU is not found. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "drivers.h"

static const opencl_driver drivers[] = { { "libnvidia-opencl.so.1", "NVIDIA" },
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

typedef struct search {
    const char *word;
    bool found;
} search;

static void look(void *self, const char *name, const char *value) {
    search *s = self;
    s->found |= !strcmp(name, "platform") && strstr(value, s->word);
}

/* Whether a device of that vendor's platform can be opened. */
static bool has_platform(const char *vendor) {
    search s = { vendor, false };
    for (int i = 0; !s.found; i++) {
        fac_device *d;
        char name[32];
        snprintf(name, sizeof name, "opencl:%d", i);
        if (fac_device_open(name, NULL, &d, NULL)) break;
        fac_device_facts(d, look, &s);
        fac_device_free(d);
    }
    return s.found;
}

int drivers_unregistered(opencl_driver *to, int max) {
    int n = 0;
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers && n < max; i++)
        if (opens(drivers[i].library) && !has_platform(drivers[i].vendor)) to[n++] = drivers[i];
    return n;
}
