/* What `facula run` says of a program that has run. */
#ifndef FACULA_CLI_RUN_STATS_H
#define FACULA_CLI_RUN_STATS_H
#include "cli.h"

/* Which nodes the device could not do itself, and after which ones a result was brought into
 * another layout; an exit code. */
int run_steps_print(fac_program *p, const fac_device *device);
/* The median ms of a run, of so many, and what the network is made of; an exit code. */
int run_stats_print(fac_program *p, const fac_device *device, const fac_graph *g, double ms,
                    int runs, size_t arena);
#endif
