/* Where the files of a page are, below the folder that the command line names. */
#ifndef FACULA_STUDIO_DATA_H
#define FACULA_STUDIO_DATA_H
#include <stdbool.h>
#include <stddef.h>

/* Writes to `to` the first of root, root/MORE[0], root/MORE[1] ... (NULL ends the list) that holds
 * a file with one of the names.  False: none does, or root is NULL. */
bool fac_data_find(const char *root, const char *const more[], const char *const names[], char *to,
                   size_t size);
#endif
