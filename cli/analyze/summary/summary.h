/* What the files of `facula summary` share. */
#ifndef FACULA_CLI_SUMMARY_H
#define FACULA_CLI_SUMMARY_H
#include "cli.h"

/* The columns that --columns may name; false after a usage error was printed. */
bool tree_columns(const char *names, int *to, int *n);
void tree_print(const fac_analysis *a, const fac_branch *root, long depth, const int *columns,
                int n);

/* Who counts what. */
void conventions_print(const fac_analysis *a);
#endif
