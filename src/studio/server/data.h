/* Where the files of a page are, below the folder that the command line allowed. */
#ifndef FACULA_STUDIO_DATA_H
#define FACULA_STUDIO_DATA_H
#include <stdbool.h>
#include <stddef.h>

/* The first of root, root/MORE[0], root/MORE[1] ... (NULL ends them) that holds a file of one of
 * the names, into to; false: none does, or root is NULL. */
bool fac_data_find(const char *root, const char *const more[], const char *const names[], char *to,
                   size_t size);
#endif
