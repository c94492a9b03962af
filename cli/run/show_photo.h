/* A photo drawn in the terminal beside its best classes with bars; plain text where stdout is no
 * terminal. */
#ifndef FACULA_CLI_SHOW_PHOTO_H
#define FACULA_CLI_SHOW_PHOTO_H
#include "labels.h"
int show_photo(const char *path, const fac_class *top, int n);
#endif
