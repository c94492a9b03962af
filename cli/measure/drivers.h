/* OpenCL drivers that are installed but not registered. */
#ifndef CLI_DRIVERS_H
#define CLI_DRIVERS_H

#include "facula/backend.h"

typedef struct opencl_driver {
    const char *library; /* as the dynamic linker finds it */
    const char *vendor;  /* a word in the name of its platform */
} opencl_driver;

enum { OPENCL_DRIVERS = 3 };

/* Writes at most max drivers whose library can be opened while no device of theirs can be, and says
 * how many. */
int drivers_unregistered(opencl_driver *to, int max);

#endif
