/* See facula/version.h. */
#include "facula/version.h"

int fac_version(void) { return FACULA_VERSION_NUMBER; }
