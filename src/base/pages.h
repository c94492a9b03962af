/* Pages of memory, beyond what malloc promises. */
#ifndef FACULA_BASE_PAGES_H
#define FACULA_BASE_PAGES_H

/* The pages of what was released go back to the system, where the C library can do so: for large
 * things that are replaced by larger ones, into whose gaps nothing fits. */
void fac_release_pages(void);
#endif
