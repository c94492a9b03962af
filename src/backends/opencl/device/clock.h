/* When the device did what: every command leaves an event that holds the times of the device's own
 * clock. */
#ifndef FACULA_OPENCL_CLOCK_H
#define FACULA_OPENCL_CLOCK_H
#include "backends/opencl/device/opencl.h"

/* fac_backend.watch. */
fac_status fac_cl_watch(fac_device *d, fac_command **out, size_t *n, fac_error *err);
bool fac_cl_watching(const fac_opencl *o); /* then every command must leave an event */
/* A kernel was submitted, under o->launch: takes a reference of its own to the event. */
void fac_cl_watch_add(fac_opencl *o, const char *name, size_t groups, size_t items, cl_event event);
/* The same of a command that is no kernel, by a thread without o->launch; the event, if there is
 * one, is given away. */
void fac_cl_watch_end(fac_opencl *o, const char *name, cl_event event);
void fac_cl_watch_fini(fac_opencl *o);
#endif
