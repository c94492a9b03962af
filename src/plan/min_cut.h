/* Each of some things gets one of two sides, so that the whole costs least: what a side costs a
 * thing by itself, and what it costs two things to be on different ones. */
#ifndef FACULA_RUN_SIDES_H
#define FACULA_RUN_SIDES_H
#include <stdbool.h>
#include "facula/status.h"

typedef struct fac_sides fac_sides;

fac_sides *fac_sides_new(int things); /* NULL: no memory */
void fac_sides_free(fac_sides *s);    /* NULL is fine    */
/* Costs are at least 0 and add up when they are told again; without memory the answer will be an
 * error. */
void fac_sides_alone(fac_sides *s, int thing, double on_0, double on_1);
void fac_sides_apart(fac_sides *s, int a, int b, double a_on_0_b_on_1, double a_on_1_b_on_0);
/* side[thing] is true for side 1; where both are as good, 0. */
fac_status fac_sides_choose(fac_sides *s, bool *side, fac_error *err);
#endif
