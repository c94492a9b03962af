/* facula devices: where programs can run, what the devices are, and the solvers there. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "drivers.h"
#include "facula/backend.h"
#include "json.h"

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
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status)
               ? WTERMSIG(status)
               : 0;
}

static void print_fact(void *self, const char *name, const char *value) {
    drivers_see(self, name, value);
    printf("           %-9s %s\n", name, value);
}

static void print_path(void *self, const char *name, const char *whether) {
    (void)self;
    printf("           path      %s: %s\n", name, whether);
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
static void print_backend(const fac_backend *b, opencl_platforms *seen) {
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
        fac_device_facts(d, print_fact, seen);
        fac_device_paths(d, print_path, NULL);
        fac_device_free(d);
        if (i == 0) print_solvers(b);
    }
}

/* Drivers that are there, but that the loader does not know. */
static void print_unregistered(const opencl_platforms *seen) {
    opencl_driver found[OPENCL_DRIVERS];
    const int n = drivers_unregistered(seen, found);
    for (int i = 0; i < n; i++)
        printf("opencl     %s's driver is installed but not registered; as root:\n"
               "           mkdir -p /etc/OpenCL/vendors && echo %s > "
               "/etc/OpenCL/vendors/%s.icd\n",
               found[i].vendor, found[i].library, found[i].vendor);
}

/* ---- for machines ---- */

static void add_fact(void *self, const char *name, const char *value) {
    cJSON_AddStringToObject(self, name, value);
}

static void see_fact(void *self, const char *name, const char *value) {
    drivers_see(self, name, value);
}

static cJSON *device_json(fac_device *d, opencl_platforms *seen) {
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "name", fac_device_name(d));
    cJSON_AddStringToObject(j, "about", fac_device_about(d));
    fac_device_facts(d, add_fact, cJSON_AddObjectToObject(j, "facts"));
    fac_device_facts(d, see_fact, seen);
    fac_device_paths(d, add_fact, cJSON_AddObjectToObject(j, "paths"));
    return j;
}

static cJSON *backend_json(const fac_backend *b, opencl_platforms *seen) {
    const bool numbered = strcmp(b->name, "cpu") != 0;
    const int ended = device_ends_process(b->name);
    cJSON *j = cJSON_CreateObject(), *all = cJSON_CreateArray(), *solvers = cJSON_CreateArray();
    fac_error err = { 0 };
    char why[128] = "";
    if (ended)
        snprintf(why, sizeof why, "its driver ends the process that opens it (signal %d)", ended);
    for (int i = 0; !ended && (i == 0 || numbered); i++) {
        fac_device *d;
        char name[64];
        snprintf(name, sizeof name, numbered ? "%s:%d" : "%s", b->name, i);
        if (fac_device_open(name, NULL, &d, &err)) break;
        cJSON_AddItemToArray(all, device_json(d, seen));
        fac_device_free(d);
    }
    for (const fac_solver *const *s = b->solvers; *s; s++)
        cJSON_AddItemToArray(solvers, cJSON_CreateString((*s)->name));
    cJSON_AddStringToObject(j, "name", b->name);
    cJSON_AddBoolToObject(j, "usable", cJSON_GetArraySize(all) > 0);
    if (!cJSON_GetArraySize(all)) cJSON_AddStringToObject(j, "why_not", ended ? why : err.text);
    cJSON_AddItemToObject(j, "devices", all);
    cJSON_AddItemToObject(j, "solvers", solvers);
    return j;
}

static struct { bool json; } o;
static const option options[] = {
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" }, { 0 }
};

static int devices_json(void) {
    cJSON *root = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(root, "backends");
    opencl_platforms seen = { 0 };
    for (const fac_backend *const *b = fac_backends; *b; b++)
        cJSON_AddItemToArray(all, backend_json(*b, &seen));
    opencl_driver found[OPENCL_DRIVERS];
    const int n = drivers_unregistered(&seen, found);
    cJSON *unregistered = cJSON_AddArrayToObject(root, "unregistered");
    for (int i = 0; i < n; i++)
        cJSON_AddItemToArray(unregistered, cJSON_CreateString(found[i].library));
    return json_print(root);
}

static int devices(list args) {
    if (args.n) return usage_error(verb_find("devices"), "it takes no arguments");
    if (o.json) return devices_json();
    opencl_platforms seen = { 0 };
    for (const fac_backend *const *b = fac_backends; *b; b++) {
        const int ended = device_ends_process((*b)->name);
        if (ended)
            printf("%-10s not usable: its driver ends the process that opens it (signal %d)\n",
                   (*b)->name, ended);
        else
            print_backend(*b, &seen);
    }
    print_unregistered(&seen);
    return EXIT_OK;
}
const verb verb_devices = {
    .name = "devices",
    .summary = "list where programs can run, what is known of the devices, and their solvers",
    .usage = "facula devices [--json]",
    .options = options,
    .examples = "devices\ndevices --json",
    .run = devices,
    .more =
        "--device takes the names on the left, and opencl:NAME, where NAME is a part of the name "
        "of a device,\nof its vendor or of its platform.  A path is a faster way that an extension "
        "of OpenCL promises; it is\ntaken where a probe of it gave the right numbers.\n\nCompiled "
        "kernels are kept in ~/.cache/facula/opencl, at most 256 MB; XDG_CACHE_HOME moves "
        "the\nfolder, FACULA_CACHE names another one, and when it is empty, none are kept."
};
