/* libFuzzer: any bytes are a request to a language model, or an error.  The first byte says to
 * which path. */
#include "fuzz.h"
#include "serve/wish.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fac_wish w;
    fac_error err;
    if (!bytes) return 0;
    fac_wish_read((fac_wish_kind)(data[0] % 5), (const char *)data + 1, bytes - 1, &w, &err);
    fac_wish_free(&w);
    return 0;
}
