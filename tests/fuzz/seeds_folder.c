/* One of each file; the first byte as fuzz_folder.c reads it. */
#include <string.h>
#include "fuzz.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    static const struct {
        const char *name, *data;
    } seeds[] = {
        { "run", "\x04{\"set\":\"toy:xor\",\"epochs\":3,\"lr\":0.01,\"freeze\":[\"conv1.*\",\"fc.*"
                 "\"],\"nesterov\":true,"
                 "\"optimizer\":\"adam\",\"facula\":\"1.0\",\"device\":\"cpu\"}\n" },
        { "log", "\x01{\"epoch\":1,\"step\":2,\"train_loss\":0.6931,\"test_loss\":0.5,\"lr\":1e-3,"
                 "\"seconds\":0.1}\n"
                 "{\"epoch\":2,\"step\":4,\"train_loss\":0.6,\"images_per_s\":9812}\n"
                 "{\"epoch\":2,\"step\":4,\"train_loss\":0.5}\n{\"ep" },
        { "matrix", "\x02{\"classes\":[\"cat\",\"dog\"],\"counts\":[[5,1],[0,7]]}" },
        { "images", "\x03{\"kind\":\"images\",\"item\":[3,32,32],\"mean\":[0.4,0.5,0.6],"
                    "\"std\":[1,1,1],\"classes\":[\"0\",\"1\"]}" },
        { "texts", "\x07{\"kind\":\"texts\",\"item\":[40],\"classes\":[\"bad\",\"good\"]}" },
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        take(self, seeds[i].name, seeds[i].data, strlen(seeds[i].data));
}
