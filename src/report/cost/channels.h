/* Which axis of a value counts channels. */
#ifndef FACULA_REPORT_CHANNELS_H
#define FACULA_REPORT_CHANNELS_H
#include "facula/op.h"

/* -1: none, of less than two dims.  Where no op around it tells: 1, or the last of three (tokens:
 * N,T,C). */
int fac_channel_axis(const fac_value *v);
#endif
