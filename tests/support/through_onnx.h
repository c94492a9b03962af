/* A graph written as an ONNX file and read again; no file is left, whatever goes wrong. */
#ifndef FACULA_TESTS_THROUGH_ONNX_H
#define FACULA_TESTS_THROUGH_ONNX_H
#include <stdlib.h>
#include <unistd.h>
#include "facula/onnx.h"

/* NULL: the graph cannot be written or read; the reason is in e. */
static inline fac_graph *through_onnx(const fac_graph *g, fac_error *e) {
    char path[] = "/tmp/facula-test-XXXXXX";
    fac_graph *again = NULL;
    const int file = mkstemp(path);
    if (file < 0) return NULL;
    close(file);
    if (!fac_onnx_save(g, path, NULL, e)) (void)fac_onnx_load(path, NULL, &again, e);
    unlink(path);
    return again;
}
#endif
