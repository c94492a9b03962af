/* One of each kind; the first byte as fuzz_text.c reads it. */
#include <string.h>
#include "fuzz.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    static const struct {
        const char *name, *data;
    } seeds[] = {
        { "vocabulary", "\x08"
                        "facula-vocab 1 word lower\n<pad>\n<unk>\nfilm\n's\n\\\\\\n\n" },
        { "vectors", "\x01"
                     "film 1 -2.5 3e-1\na b c 1 2 3\nthe 0.125 1E2 +7\r\n" },
        { "head", "\x01"
                  "2 2\nthe 1 2\nfilm .5 1.5\n" },
        { "tabs", "\x02"
                  "a good film\t1\nit's caf\xc3\xa9 \xff bad\t0" },
        { "header", "\x0b"
                    "text,label\n\"say \"\"no\"\"\r\n,\",bad\nfine,good\n" },
        { "commas", "\x14"
                    "up,a b c\ndown,\"\"\nup,\xe4\xb8\x80\xf0\x9f\x98\x80\n" },
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        take(self, seeds[i].name, seeds[i].data, strlen(seeds[i].data));
}
