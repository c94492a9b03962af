/* What diff.c tells of a pair of nodes that takes some work to find out. */
#ifndef FACULA_REPORT_DIFF_H
#define FACULA_REPORT_DIFF_H
#include "report/match.h"

/* Attributes that are not the same in both: "stride=1,1 -> stride=2,2"; what is at its default says so. */
void fac_diff_attrs(const fac_node *x, const fac_node *y, fac_text *to);

/* By place in b: nodes outside of the longest sequence of pairs that has one order in both.  False when memory is gone. */
bool fac_diff_moved(const fac_match *m, bool *moved);
#endif
