/* What `facula bench` consists of. */
#ifndef FACULA_CLI_BENCH_H
#define FACULA_CLI_BENCH_H
#include "job.h"

/* n threads call the program at once, each for `seconds`: prints runs and images a second.  An exit
 * code. */
int bench_callers(const job *j, int n, double seconds, bool json);

/* Two models in turn, and layer by layer, for `seconds`: a job that is open, and `what`. */
int bench_against(job *j, const job_options *o, const char *what, double seconds, bool json);

/* Measures what each line of standard input asks for, with the model read and the device opened
 * once:
 *   BATCH PRECISION infer|train SECONDS [IN.npy OUT.npy]
 * and answers each by a line of JSON.  The files: the first input, and where the first output of a
 * run with it goes.  An exit code. */
int bench_serve(const job_options *o, const char *what);
#endif
