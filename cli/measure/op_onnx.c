/* facula op --onnx: how each op is said in ONNX.  What is written from which opset on is found by
 * writing every case of the op at every opset, so the list cannot be wrong. */
#include <string.h>
#include "facula/backend.h"
#include "facula/onnx.h"
#include "op.h"

/* FAC_OK, FAC_E_UNSUPPORTED where it cannot be said, or what went wrong. */
static fac_status writes(const fac_case *c, int opset, fac_error *err) {
    fac_graph *g = NULL;
    fac_status status = fac_problem_graph(c->problem, true, &g, err);
    if (status) return status;
    status = fac_onnx_save(g, "/dev/null", &(fac_onnx_save_opts){ .opset = opset }, err);
    fac_graph_free(g);
    return status;
}

int op_first_opset(const fac_op *op, int *written, int *cases) {
    int first = FAC_ONNX_OLDEST;
    fac_error err = { 0 };
    *written = *cases = 0;
    for (const fac_case *c = op->cases; c && c->problem; c++) {
        ++*cases;
        fac_status status = writes(c, FAC_ONNX_NEWEST, &err);
        *written += !status;
        while (!status && first < FAC_ONNX_NEWEST &&
               (status = writes(c, first, &err)) == FAC_E_UNSUPPORTED) {
            first++;
            status = FAC_OK;
        }
        if (status && status != FAC_E_UNSUPPORTED) {
            fail(&err);
            return -1;
        }
    }
    return first;
}

/* "Conv 1, ai.onnx.ml.Scaler 1": the spellings, each with its opsets. */
static const char *spellings_text(const fac_onnx *how, char *to, size_t size) {
    size_t n = 0;
    *to = 0;
    for (; how && how->type && n < size; how++) {
        n += (size_t)snprintf(to + n, size - n, "%s%s%s%s %d", n ? ", " : "", how->domain,
                              *how->domain ? "." : "", how->type, how->since);
        if (how->until && n < size) n += (size_t)snprintf(to + n, size - n, "-%d", how->until);
    }
    return *to ? to : "-";
}

int op_onnx_list(void) {
    char read[400];
    printf("%-18s %-44s %s\n", "op", "read from", "written");
    for (const fac_op *const *o = fac_ops; *o; o++) {
        int written, cases, first = op_first_opset(*o, &written, &cases);
        if (first < 0) return EXIT_FAILED;
        printf("%-18s %-44s ", (*o)->name, spellings_text((*o)->onnx, read, sizeof read));
        if (!written)
            puts("no");
        else if (written < cases)
            printf("%d on; %d of %d cases\n", first, written, cases);
        else
            printf("%d on\n", first);
    }
    for (const fac_onnx *const *how = fac_onnx_readers; *how; how++)
        printf("%-18s %-44s %s\n", "(several)", spellings_text(*how, read, sizeof read),
               "as these");
    return EXIT_OK;
}

void op_case_list(void) {
    for (const fac_op *const *o = fac_ops; *o; o++)
        for (const fac_case *c = (*o)->cases; c && c->problem; c++)
            printf("%s\t%.9g\t%.9g\t%s\n", (*o)->name, c->lo, c->hi, c->problem);
}
