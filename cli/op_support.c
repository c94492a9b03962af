/* facula op --support: for each op, how many of its cases a device does with kernels of its own.  Each case is planned as a
 * program would be, so the table cannot be wrong. */
#include <stdio.h>
#include <string.h>
#include "cli.h"
#include "facula/backend.h"

enum { DEVICES = 2 };

/* "12 of 12"; on the cpu what is left is the reference kernels', elsewhere it is the cpu's. */
static void cell(const fac_op *op, fac_device *d, char *to, size_t size) {
    int own = 0, cases = 0;
    for (const fac_case *c = op->cases; c && c->problem; c++) {
        fac_support s;
        fac_error err = { 0 };
        cases++;
        own += !fac_problem_support(c->problem, d, &s, &err) && !s.fallbacks;
    }
    snprintf(to, size, "%d of %d", own, cases);
}

int op_support_list(const char *name) {
    fac_device *d[DEVICES] = { NULL };
    fac_error err = { 0 };
    int n = 0;
    if (device_ends_process(name)) return fail_text("%s: its driver ends the process that opens it", name);
    if (fac_device_open("cpu", NULL, &d[n++], &err)) return fail(&err);
    if (strcmp(name, "cpu") && fac_device_open(name, NULL, &d[n++], &err)) {
        fac_device_free(d[0]);
        return fail(&err);
    }
    printf("%-22s", "op");
    for (int k = 0; k < n; k++) printf(" %-12s", fac_device_name(d[k]));
    printf("\n");
    for (const fac_op *const *op = fac_ops; *op; op++) {
        printf("%-22s", (*op)->name);
        for (int k = 0; k < n; k++) {
            char text[32];
            cell(*op, d[k], text, sizeof text);
            printf(" %-12s", text);
        }
        printf("\n");
    }
    printf("\nCases of each op that a device does itself; the others are the reference kernels' on the cpu, and the cpu's elsewhere.\n");
    for (int k = 0; k < n; k++) fac_device_free(d[k]);
    return EXIT_OK;
}
