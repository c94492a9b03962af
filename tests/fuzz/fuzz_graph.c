/* libFuzzer: any bytes are a graph's text or an error.  What was read prints, and the printed text
 * reads back to itself; as a problem and as a body it is refused or taken; graphs and problems are
 * written as ONNX, or refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "facula/backend.h"
#include "facula/onnx.h"
#include "fuzz.h"
#include "graph/graph_internal.h"

static fac_graph *read_bytes(const void *data, size_t bytes) {
    fac_graph *g = NULL;
    FILE *f = bytes ? fmemopen((void *)data, bytes, "r") : NULL;
    if (!f) return NULL;
    fac_graph_read(f, &g, NULL);
    fclose(f);
    return g;
}

static char *print(const fac_graph *g) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    fac_status s = fac_graph_write(g, f, NULL);
    fclose(f);
    if (!s) return text;
    free(text);
    return NULL;
}

static void there_and_back(const uint8_t *data, size_t bytes) {
    fac_graph *g = read_bytes(data, bytes), *again = NULL;
    char *once = g ? print(g) : NULL, *twice = NULL;
    if (once && *once) again = read_bytes(once, strlen(once));
    if (again) twice = print(again);
    if (once && *once && (!twice || strcmp(once, twice))) abort();
    fac_graph *copy = g ? fac_graph_clone(g) : NULL;
    if (copy) fac_graph_sweep(copy);
    if (g && fac_onnx_save(g, "/dev/null", NULL, NULL) == FAC_E_INTERNAL) abort();
    free(once);
    free(twice);
    fac_graph_free(copy);
    fac_graph_free(again);
    fac_graph_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    there_and_back(data, bytes);
    char *text = fac_alloc(bytes + 1, 1);
    if (!text) return 0;
    memcpy(text, data, bytes);
    fac_graph *g = NULL;
    if (!fac_problem_graph(text, bytes & 1, &g, NULL)) {
        if (fac_onnx_save(g, "/dev/null", NULL, NULL) == FAC_E_INTERNAL) abort();
        fac_graph_free(g);
    }
    const fac_type in[] = { { FAC_F32, fac_shape(2, 3) }, { FAC_F32, fac_shape(3) } };
    fac_graph_free(fac_body_parse(text, bytes, 2, in, NULL));
    fac_release(text);
    return 0;
}
