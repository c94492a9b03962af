/* Patterns of every kind, with texts. */
#include "fuzz.h"

void fac_seeds(fac_seed_taker *take, void *self) {
#define SEED(name, text) take(self, name, text, sizeof text - 1)
    SEED("groups", "(?i:a|b(?P<n>c)*)+?(?s).\0abc");
    SEED("counts", "(a{2,3}b{1,}c{4})?\0aabcccc");
    SEED("brackets", "[^]a-z[:digit:]\\d\\x41-\\x{5A}]+\0A");
    SEED("escapes", "\\Qa.b\\E\\t\\123\\pL\\P{^N}\\w\\S\0a.b");
    SEED("places", "(?m)^a$\\n\\bb\\B\\z\0a\nb");
    SEED("nested", "((a*)*)*b\0aaaaaaaaaaaaaaaaaaaaaaaa");
#undef SEED
}
