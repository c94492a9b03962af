/* What `facula bench` consists of. */
#ifndef FACULA_CLI_BENCH_H
#define FACULA_CLI_BENCH_H
#include "job.h"

/* n threads call the program at once, each for `seconds`: prints runs and images a second.  An exit code. */
int bench_callers(const job *j, int n, double seconds, bool json);
#endif
