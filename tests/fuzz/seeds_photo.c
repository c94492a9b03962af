/* Options as lines: preset, size, crop, mean, std, scale, layout, interpolation; the first byte as fuzz_photo.c reads it. */
#include <string.h>
#include "fuzz.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    static const struct { const char *name, *data; } seeds[] = {
        { "usual", "0imagenet\n" },
        { "sizes", "4tf\n40\n32x24\n" },
        { "whole", "1mnist\n28x28\n\n0.5\n0.25\n1/255\nnhwc\nbicubic\n" },
        { "numbers", "2raw\n32\n16\n1,2,3e0\n0.229,0.224,0.225\n1\nnchw\nnearest" },
        { "no_image", "3\n\n\n" },
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) take(self, seeds[i].name, seeds[i].data, strlen(seeds[i].data));
}
