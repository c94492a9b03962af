/* What a case of `facula conformance` came to. */
#ifndef FACULA_CLI_CONFORMANCE_H
#define FACULA_CLI_CONFORMANCE_H
#include "facula/facula.h"

typedef enum verdict { PASSED, FAILED, UNSUPPORTED } verdict;

typedef struct result {
    verdict v;
    double worst;
    char why[512];
    bool drawn; /* of random numbers, which are nobody else's: types are compared alone */
} result;

/* ---- conformance_compare.c ---- */
void explain(result *r, verdict v, const fac_error *err);
/* Equal within the tolerances; the first bad element is reported. */
void compare_output(result *r, const char *output, const fac_tensor *got, const fac_tensor *want,
                    double rtol, double atol);
#endif
