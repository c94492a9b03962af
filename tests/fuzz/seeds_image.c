/* The files of the golden test: each format, and each kind of pixels in it. */
#include "facula/data/image.h"
#include "fuzz.h"
#include "golden/image.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    for (size_t i = 0; i < sizeof golden_files / sizeof *golden_files; i++)
        take(self, golden_files[i].name, golden_files[i].data, golden_files[i].bytes);
}
