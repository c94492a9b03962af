/* Texts that a verb is given: words of the command line, a file, or standard input. */
#ifndef FACULA_CLI_WORDS_H
#define FACULA_CLI_WORDS_H
#include "cli.h"

/* One text: the words joined by spaces; "-" alone, or --file: what stands there.  Ended with
 * free().  An exit code. */
int words_given(list words, const char *file, char **text, size_t *bytes);
#endif
