/* libFuzzer: any bytes are a model or an error; what is a model is a graph that can be written
 * again, or has an op that cannot. */
#include <stdlib.h>
#include "fuzz.h"
#include "onnx/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fac_source_files files = { .file = fac_file_memory(data, bytes) };
    fac_graph *g = NULL;
    if (!files.file) return 0;
    if (fac_onnx_load_files(&files, NULL, &g, NULL)) return 0;
    if (fac_onnx_save(g, "/dev/null", NULL, NULL) == FAC_E_INTERNAL) abort();
    fac_graph_free(g);
    return 0;
}
