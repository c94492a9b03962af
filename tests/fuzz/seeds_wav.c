/* One file of each kind of samples, and a large one's header. */
#include <string.h>
#include "fuzz.h"

typedef struct file {
    uint8_t at[128];
    size_t n;
} file;
static void u(file *f, uint64_t x, int bytes) {
    for (int k = 0; k < bytes; k++) f->at[f->n++] = (uint8_t)(x >> 8 * k);
}
static void id(file *f, const char *s) {
    memcpy(f->at + f->n, s, 4);
    f->n += 4;
}

static file wav(int tag, int bits, int large) {
    file f = { .n = 0 };
    id(&f, large ? "RF64" : "RIFF");
    u(&f, 100, 4);
    id(&f, "WAVE");
    if (large) id(&f, "ds64"), u(&f, 28, 4), u(&f, 100, 8), u(&f, 16, 8), u(&f, 4, 8), u(&f, 0, 4);
    id(&f, "fmt ");
    u(&f, 16, 4), u(&f, (uint64_t)tag, 2), u(&f, 1, 2), u(&f, 8000, 4), u(&f, 8000, 4),
        u(&f, (uint64_t)bits / 8, 2);
    u(&f, (uint64_t)bits, 2);
    id(&f, "data");
    u(&f, large ? 0xFFFFFFFF : 16, 4);
    for (int k = 0; k < 16; k++) u(&f, (uint64_t)(k * 37), 1);
    return f;
}

void fac_seeds(fac_seed_taker *take, void *self) {
    static const struct {
        const char *name;
        int tag, bits, large;
    } kinds[] = { { "u8", 1, 8, 0 },   { "s16", 1, 16, 0 }, { "s24", 1, 24, 0 },
                  { "s32", 1, 32, 0 }, { "f32", 3, 32, 0 }, { "f64", 3, 64, 0 },
                  { "rf64", 1, 16, 1 } };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const file f = wav(kinds[k].tag, kinds[k].bits, kinds[k].large);
        take(self, kinds[k].name, f.at, f.n);
    }
}
