/* Numbers as people read them.  See facula/text.h. */
#include <stdio.h>
#include <string.h>
#include "facula/text.h"

static const char *scaled(double x, double step, const char *const *units, char *to, size_t size) {
    int k = 0;
    while (x >= step && units[k + 1]) {
        x /= step;
        k++;
    }
    const char *blank = *units[k] ? " " : "";
    const int decimals = k == 0 ? 0 : 1 + (x < 10);
    snprintf(to, size, "%.*f%s%s", decimals, x, blank, units[k]);
    return to;
}

const char *fac_bytes_text(double bytes, char *to, size_t size) {
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", NULL };
    return scaled(bytes, 1000, units, to, size);
}

const char *fac_count_text(double count, char *to, size_t size) {
    static const char *const units[] = { "", "k", "M", "G", "T", NULL };
    return scaled(count, 1000, units, to, size);
}

const char *fac_digits_text(double x, char *to, size_t size) {
    char plain[48];
    snprintf(plain, sizeof plain, "%.0f", x);
    const size_t n = strlen(plain);
    size_t at = 0;
    for (size_t i = 0; i < n && at + 2 < size; i++) {
        if (i && plain[0] != '-' && (n - i) % 3 == 0) to[at++] = ',';
        to[at++] = plain[i];
    }
    to[at] = 0;
    return to;
}
