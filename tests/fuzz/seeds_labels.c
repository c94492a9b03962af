/* Names of classes as other projects write them. */
#include <string.h>
#include "fuzz.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    static const struct {
        const char *name, *data;
    } seeds[] = {
        { "plain", "tench\ngoldfish\ngreat white shark, white shark\n" },
        { "windows", "cat\r\ndog\r\n\r\nhorse" },
        { "wordnet", "n01440764 tench, Tinca tinca\nn01443537 goldfish\n" },
        { "utf8", "\xe7\x8c\xab\n\xe7\x8a\xac\n\xf0\x9f\x90\xb4\n" },
        { "blank", "\n\n \n" },
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        take(self, seeds[i].name, seeds[i].data, strlen(seeds[i].data));
}
