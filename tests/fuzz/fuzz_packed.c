/* libFuzzer: any bytes are a packed network or an error. */
#include "fuzz.h"
#include "tensor/weights.h"
#include "train/train_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fac_weights *w;
    fac_graph *g;
    fac_error err;
    fac_file *f = fac_file_memory(data, bytes);
    if (f && !fac_weights_parse(f, "fuzz", &w, &err)) {
        if (!fac_packed_take(w, "fuzz", &g, &err)) fac_graph_free(g);
        fac_weights_free(w);
    }
    fac_file_free(f);
    return 0;
}
