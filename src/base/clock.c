/* See clock.h: a function, not inline, so that tests may put a clock of their own in its place. */
#include "base/clock.h"

double fac_now(void) { return fac_seconds(); }
