/* An expression of each kind, drawings, settings. */
#include <string.h>
#include "fuzz.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    static const struct {
        const char *name, *data;
    } seeds[] = {
        { "sums", "e(x*x)*x + 10.0*x - x/3" },
        { "calls", "etanh(x) * max(x, 1e-3) + x.sigmoid().sum()" },
        { "powers", "e-x**2 < x == (x > .5)" },
        { "three", "e clip(x, 0, 1).mean()" },
        { "stroke", "d[[0.1,0.2,0.8,0.9],[0.5,0.5]]" },
        { "settings",
          "s{\"set\":\"xor\",\"net\":\"4,3,tanh\",\"lr\":0.1,\"count\":60,\"optimizer\":\"sgd\"}" },
        { "own", "s{\"set\":\"own\",\"points\":[[0.5,0.5,1],[0,1,0]],\"decay\":0.001,\"seed\":7}" },
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        take(self, seeds[i].name, seeds[i].data, strlen(seeds[i].data));
}
