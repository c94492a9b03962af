/* OpenCL drivers that are installed but not registered. */
#ifndef CLI_DRIVERS_H
#define CLI_DRIVERS_H

#include <stdbool.h>

typedef struct opencl_driver {
    const char *library; /* as the dynamic linker finds it */
    const char *vendor;  /* a word in the name of its platform */
} opencl_driver;

enum { OPENCL_DRIVERS = 3 };

/* Whose platforms have a device, driver by driver; none at first. */
typedef struct opencl_platforms {
    bool of[OPENCL_DRIVERS];
} opencl_platforms;

/* Takes down the platform of a device; other facts say nothing. */
void drivers_see(opencl_platforms *seen, const char *fact, const char *value);

/* Writes the drivers, OPENCL_DRIVERS at most, whose library can be opened while no device of theirs
 * was seen, and says how many. */
int drivers_unregistered(const opencl_platforms *seen, opencl_driver *to);

#endif
