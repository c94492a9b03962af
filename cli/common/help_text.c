/* See help_text.h. */
#include "help_text.h"
#include <string.h>

/* A paragraph ends before a line that is empty or indented. */
bool text_paragraph(const char **text, text_piece *to) {
    const char *at = *text;
    if (!*at) return false;
    const bool kept = *at == ' ' || *at == '\n';
    const char *end = strchr(at, '\n');
    while (!kept && end && end[1] && end[1] != '\n' && end[1] != ' ') end = strchr(end + 1, '\n');
    const size_t n = end ? (size_t)(end - at) : strlen(at);
    *to = (text_piece){ at, n, kept };
    *text = at + n + (end != NULL);
    return true;
}

bool text_line(const char **text, text_piece *to) {
    const char *at = *text + strspn(*text, "\n");
    *to = (text_piece){ at, strcspn(at, "\n"), true };
    *text = at + to->n;
    return to->n > 0;
}
