/* Presets by name, in full, and in part. */
#include <string.h>
#include "fuzz.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    static const struct {
        const char *name, *data;
    } seeds[] = {
        { "name", "imagenet" },
        { "name_and_more", "caffe,crop=227" },
        { "full", "size=256,crop=224,order=bgr,range=0..255, mean=104,117,123" },
        { "numbers", "size=32x24 mean=1,2,3e0 std=0.229,0.224,0.225 range=-1..1" },
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        take(self, seeds[i].name, seeds[i].data, strlen(seeds[i].data));
}
