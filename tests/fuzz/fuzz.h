/* What a fuzz target consists of. */
#ifndef FACULA_FUZZ_H
#define FACULA_FUZZ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Any bytes at all: no crash, no leak, no undefined behaviour.  Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* seeds_<name>.c: gives well-formed inputs, small ones, at least one for each branch of the format.
 */
typedef void fac_seed_taker(void *self, const char *name, const void *data, size_t bytes);
void fac_seeds(fac_seed_taker *take, void *self) __attribute__((weak));
#endif
