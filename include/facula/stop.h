/* facula/stop.h: ending long work from outside, such as at Ctrl-C. */
#ifndef FACULA_STOP_H
#define FACULA_STOP_H
#include <stdbool.h>
#include "facula/device.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* Asked before each step of a run, each body of a loop and each kernel that a plan makes, on the
 * thread that works.  It may be called by many threads at once, often, and while locks of the
 * library are held, so it only looks at a flag: it takes no lock and calls nothing of facula's. */
typedef bool (*fac_stop_asked)(void *self);

/* From now on work on d ends when asked(self) says so: the call that works fails with
 * FAC_E_ARGUMENT and "stopped".  What was begun ends as any failed run does (facula/program.h), and
 * the device can be used on.  NULL: never.  Set it before d is used; not thread safe. */
void fac_device_stop(fac_device *d, fac_stop_asked asked, void *self);
/* Does it say so now? */
bool fac_device_stopping(const fac_device *d);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
