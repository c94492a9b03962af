/* One file of each kind. */
#include "base/text.h"
#include "fuzz.h"
#include "weight_files.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    for (int k = 0; k < WEIGHT_FILES; k++) {
        fac_text t = { 0 };
        weight_file(&t, k);
        take(self, weight_file_names[k], t.s, t.n);
        fac_text_free(&t);
    }
}
