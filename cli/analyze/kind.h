/* Files that were given for something else: what they are, and what to do. */
#ifndef FACULA_CLI_KIND_H
#define FACULA_CLI_KIND_H
#include "cli.h"

/* A message and EXIT_FAILED where the path is surely no model; EXIT_OK where that is for the reader
 * to say. */
int kind_check_model(const char *path);
/* The same for an input, a photo or a tensor, that the readers of those do not take. */
fac_status kind_check_input(const char *path, fac_error *err);
/* A picture that facula reads, whatever it is called. */
bool kind_is_picture(const char *path);
/* A folder with pictures in it. */
bool kind_is_album(const char *path);
/* A failed run, where inputs may be to blame that are random numbers: names them.  random[i]: the
 * graph's input i is. */
int kind_fail_run(const fac_error *err, const fac_graph *g, const bool *random);
#endif
