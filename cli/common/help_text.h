/* The texts of a verb's table, piece by piece: --help fills them, the manual marks them up. */
#ifndef FACULA_CLI_HELP_TEXT_H
#define FACULA_CLI_HELP_TEXT_H
#include <stdbool.h>
#include <stddef.h>

typedef struct text_piece {
    const char *at;
    size_t n;
    bool kept; /* a line that keeps its form: it is indented, or empty and ends a paragraph */
} text_piece;

/* The next piece of *text, which moves after it: a paragraph to be filled, or a line to be kept.
 * False: nothing is left. */
bool text_paragraph(const char **text, text_piece *to);
/* The next line that is not empty, such as an example. */
bool text_line(const char **text, text_piece *to);
#endif
