/* libFuzzer: any bytes are weights or an error; whatever was read can be read again from the
 * tensors. */
#include "base/memory.h"
#include "fuzz.h"
#include "tensor/weights.h"

static void read_all(const fac_weights *w) {
    for (int i = 0; i < fac_weights_count(w); i++) {
        const fac_tensor *t = fac_weights_tensor(w, i);
        fac_type type = fac_tensor_type(t);
        size_t bytes = fac_type_bytes(&type);
        void *to =
            bytes < 1 << 20 ? fac_alloc(bytes, 1) : NULL; /* a stride of 0 makes much of little */
        if (to) fac_tensor_read(t, to, bytes, NULL);
        fac_release(to);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fac_weights *w;
    fac_error err;
    fac_file *f = fac_file_memory(data, bytes);
    if (f && !fac_weights_parse(f, "fuzz", &w, &err)) {
        read_all(w);
        fac_weights_free(w);
    }
    fac_file_free(f);
    return 0;
}
