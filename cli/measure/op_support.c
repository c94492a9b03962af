/* facula op --support: for each op, how many of its cases a device does with kernels of its own.
 * Each case is planned as a program would be, so the table cannot be wrong. */
#include <string.h>
#include "facula/backend.h"
#include "json.h"
#include "op.h"

enum { DEVICES = 2 };
typedef struct support {
    fac_device *d[DEVICES];
    int n;
} support;

static int count_cases(const fac_op *op) {
    int n = 0;
    for (const fac_case *c = op->cases; c && c->problem; c++) n++;
    return n;
}

/* Of its cases; on the cpu what is left is the reference kernels', elsewhere it is the cpu's. */
static int count_own(const fac_op *op, fac_device *d) {
    int own = 0;
    for (const fac_case *c = op->cases; c && c->problem; c++) {
        fac_support s;
        fac_error err = { 0 };
        own += !fac_problem_support(c->problem, d, &s, &err) && !s.fallbacks;
    }
    return own;
}

static int print(const support *s) {
    printf("%-22s", "op");
    for (int k = 0; k < s->n; k++) printf(" %-12s", fac_device_name(s->d[k]));
    printf("\n");
    for (const fac_op *const *op = fac_ops; *op; op++) {
        printf("%-22s", (*op)->name);
        for (int k = 0; k < s->n; k++) {
            char text[32];
            snprintf(text, sizeof text, "%d of %d", count_own(*op, s->d[k]), count_cases(*op));
            printf(" %-12s", text);
        }
        printf("\n");
    }
    printf("\nCases of each op that a device does itself; the others are the reference kernels' on "
           "the cpu, and the cpu's "
           "elsewhere.\n");
    return EXIT_OK;
}

static int print_json(const support *s) {
    cJSON *root = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(root, "support");
    for (const fac_op *const *op = fac_ops; *op; op++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "op", (*op)->name);
        cJSON_AddNumberToObject(one, "cases", count_cases(*op));
        cJSON *own = cJSON_AddObjectToObject(one, "own");
        for (int k = 0; k < s->n; k++)
            cJSON_AddNumberToObject(own, fac_device_name(s->d[k]), count_own(*op, s->d[k]));
        cJSON_AddItemToArray(all, one);
    }
    return json_print(root);
}

int op_support_list(const char *name, bool json) {
    support s = { .n = 0 };
    fac_error err = { 0 };
    if (device_ends_process(name))
        return fail_text("%s: its driver ends the process that opens it", name);
    if (fac_device_open("cpu", NULL, &s.d[s.n++], &err)) return fail(&err);
    if (strcmp(name, "cpu") && fac_device_open(name, NULL, &s.d[s.n++], &err)) {
        fac_device_free(s.d[0]);
        return fail(&err);
    }
    const int code = json ? print_json(&s) : print(&s);
    for (int k = 0; k < s.n; k++) fac_device_free(s.d[k]);
    return code;
}
