/* What the terminal can show, and how numbers read. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "cli.h"

bool colour(void) {
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") && !(no && *no);
}

/* The first of these that is set decides; where none is, a terminal is taken for one of today. */
bool unicode(void) {
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *term = getenv("TERM");
    if (term && !strcmp(term, "dumb")) return false;
    for (int k = 0; k < 3; k++) {
        const char *locale = getenv(names[k]);
        if (locale && *locale) return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
    }
    return isatty(STDOUT_FILENO);
}

int columns(void) {
    struct winsize w;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0) return w.ws_col;
    const char *text = getenv("COLUMNS");
    int n = text ? atoi(text) : 0;
    return n > 0 ? n : 80;
}

const char *end_of(const char *name, int width) {
    const int over = (int)strlen(name) - width;
    if (over <= 0) return name;
    for (name += over; (*name & 0xc0) == 0x80;) name++; /* not in the middle of a letter */
    return name;
}

void table_row(FILE *to, const int *widths, int n, ...) {
    va_list cells;
    va_start(cells, n);
    for (int i = 0; i < n; i++) {
        const char *cell = va_arg(cells, const char *);
        const bool last = i == n - 1;
        if (last && widths[i] < 0)
            fprintf(to, "%s", cell);
        else
            fprintf(to, widths[i] < 0 ? "%-*s" : "%*s", abs(widths[i]), cell);
        fputs(last ? "\n" : "  ", to);
    }
    va_end(cells);
}

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double median_of(double *times, int n) {
    qsort(times, (size_t)n, sizeof *times, by_value);
    return times[n / 2];
}

void progress(const char *what, long done, long total, double since) {
    double seconds = now() - since;
    if (!isatty(STDERR_FILENO) || (seconds < 1 && done < total)) return;
    if (done >= total) {
        if (seconds >= 1) clear_line(stderr);
        return;
    }
    double rate = (double)done / seconds;
    int width = 24, full = total > 0 ? (int)(width * done / total) : 0;
    fprintf(stderr, "\r\033[K%s [%.*s%*s] %ld/%ld  %.1f/s  ETA %.0f s", what, full,
            "########################", width - full, "", done, total, rate,
            rate > 0 ? (double)(total - done) / rate : 0);
    fflush(stderr);
}
