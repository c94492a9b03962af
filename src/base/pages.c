/* Released memory goes back to the system. */
#include "base/pages.h"
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

void fac_release_pages(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
