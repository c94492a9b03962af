/* Pages of the manual, to the standard output. */
#ifndef FACULA_CLI_MAN_H
#define FACULA_CLI_MAN_H
#include "cli.h"
void man_verb(const verb *v); /* facula-run(1) */
void man_overview(void);      /* facula(1) */
#endif
