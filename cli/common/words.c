/* Numbers and paths in sentences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cli.h"
#include "words.h"

const char *loss_text(double loss, char to[24]) {
    snprintf(to, 24, fabs(loss) < 1e6 ? "%.4f" : "%.4g", loss);
    return to;
}

const char *shell_word(const char *text, char *to, size_t size) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
    size_t n = 0;
    if (*text && strspn(text, plain) == strlen(text)) return text;
    if (size < 3) return text;
    to[n++] = '\'';
    for (; *text && n + 6 < size; text++) {
        if (*text == '\'')
            n += (size_t)snprintf(to + n, size - n, "'\\''");
        else
            to[n++] = *text;
    }
    to[n++] = '\'';
    to[n] = 0;
    return to;
}

const char *folder_name(const char *path) {
    static char kept[16][4096];
    static int used;
    size_t n = strlen(path);
    if (n < 2 || path[n - 1] != '/' || n >= sizeof kept[0] || used == 16) return path;
    while (n > 1 && path[n - 1] == '/') n--;
    memcpy(kept[used], path, n);
    kept[used][n] = 0;
    return kept[used++];
}

enum { LARGEST_TEXT = 64 << 20 };

static int words_joined(list words, char **text, size_t *bytes) {
    size_t room = 1, at = 0;
    for (int k = 0; k < words.n; k++) room += strlen(words.at[k]) + 1;
    char *to = malloc(room);
    if (!to) return fail_text("out of memory");
    for (int k = 0; k < words.n; k++) {
        const size_t n = strlen(words.at[k]);
        if (k) to[at++] = ' ';
        memcpy(to + at, words.at[k], n);
        at += n;
    }
    to[at] = 0;
    *text = to;
    *bytes = at;
    return EXIT_OK;
}

int words_given(list words, const char *file, char **text, size_t *bytes) {
    fac_error err = { 0 };
    if (file && words.n) return usage_text("a text or --file, not both");
    if (!file && !(words.n == 1 && !strcmp(words.at[0], "-")))
        return words_joined(words, text, bytes);
    if (fac_read_text(file ? file : "/dev/stdin", LARGEST_TEXT, FAC_READ_FILE_OR_PIPE, text, bytes,
                      &err))
        return fail(&err);
    return EXIT_OK;
}
