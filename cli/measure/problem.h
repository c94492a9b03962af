/* One op as a model. */
#ifndef FACULA_CLI_PROBLEM_H
#define FACULA_CLI_PROBLEM_H
#include "cli.h"

/* "softmax(f32[2,5]) axis=1": with params the operands after the first are parameters, with
 * numbers drawn from the seed. */
int problem_load(const char *text, bool params, uint64_t seed, fac_graph **out);
#endif
