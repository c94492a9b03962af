/* Numbers and paths in sentences. */
#include <math.h>
#include <string.h>
#include "cli.h"

const char *loss_text(double loss, char to[24]) {
    snprintf(to, 24, fabs(loss) < 1e6 ? "%.4f" : "%.4g", loss);
    return to;
}

const char *shell_word(const char *text, char *to, size_t size) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
    size_t n = 0;
    if (*text && strspn(text, plain) == strlen(text)) return text;
    if (size < 3) return text;
    to[n++] = '\'';
    for (; *text && n + 6 < size; text++) {
        if (*text == '\'') n += (size_t)snprintf(to + n, size - n, "'\\''");
        else to[n++] = *text;
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
