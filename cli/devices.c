/* facula devices: where programs can run, what the devices are, and the solvers there. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli.h"
#include "facula/backend.h"

int device_ends_process(const char *name) {
    int status = 0;
    if (!strcmp(name, "cpu")) return 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        fac_device *d = NULL;
        int null = open("/dev/null", O_WRONLY);
        if (null >= 0) dup2(null, STDERR_FILENO);
        fac_device_open(name, NULL, &d, NULL);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void print_fact(void *self, const char *name, const char *value) {
    (void)self;
    printf("           %-9s %s\n", name, value);
}

static void print_solvers(const fac_backend *b) {
    int column = 19;
    printf("           solvers:");
    for (const fac_solver *const *s = b->solvers; *s; s++) {
        int n = (int)strlen((*s)->name) + 1;
        if (column + n > columns()) printf("\n%*s", column = 19, "");
        printf(" %s", (*s)->name);
        column += n;
    }
    printf("%s\n", b->host ? " ref" : "");
}

/* Devices of a backend by number, until there is none. */
static void print_backend(const fac_backend *b) {
    const bool numbered = strcmp(b->name, "cpu") != 0;
    for (int i = 0; i == 0 || numbered; i++) {
        fac_device *d;
        fac_error err = { 0 };
        char name[64];
        snprintf(name, sizeof name, numbered ? "%s:%d" : "%s", b->name, i);
        if (fac_device_open(name, NULL, &d, &err)) {
            if (i == 0) printf("%-10s not usable: %s\n", b->name, err.text);
            return;
        }
        printf("%-10s %s\n", fac_device_name(d), fac_device_about(d));
        fac_device_facts(d, print_fact, NULL);
        fac_device_free(d);
        if (i == 0) print_solvers(b);
    }
}

static int devices(list args) {
    (void)args;
    for (const fac_backend *const *b = fac_backends; *b; b++) {
        const int ended = device_ends_process((*b)->name);
        if (ended) printf("%-10s not usable: its driver ends the process that opens it (signal %d)\n", (*b)->name, ended);
        else print_backend(*b);
    }
    return EXIT_OK;
}
const verb verb_devices = {
    .name = "devices", .summary = "where programs can run, what is known of the devices, and their solvers", .usage = "facula devices", .run = devices,
    .more = "A path is a faster way that an extension of OpenCL promises; it is taken when a probe of it gave the right numbers." };
