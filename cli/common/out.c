/* See out.h.  In parentheses, names of functions are no macros: those of the C library. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli.h"

enum { SHORT = 512, SPEC = 64 };

static bool is_ours(const FILE *to) { return to == stdout || to == stderr; }

/* ---- text ---- */

/* How many of n bytes are left when a character that was cut at the end is left out. */
static size_t whole_letters(const char *text, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char c = (unsigned char)text[n - back];
        const size_t length = 2 + (size_t)(c >= 0xe0) + (size_t)(c >= 0xf0);
        if (c >= 0xc0) return length > back ? n - back : n;
        if (c < 0x80) return n;
    }
    return n;
}

/* At most `most` bytes of text, which need not end before, as one plain line: in *room or in new
 * memory, which is the caller's to free. */
static char *plain_copy(const char *text, size_t most, char room[SHORT]) {
    size_t n = strnlen(text, most);
    if (n == most) n = whole_letters(text, n);
    char *to = n < SHORT ? room : malloc(n + 1);
    if (!to) return NULL;
    memcpy(to, text, n);
    to[n] = 0;
    fac_plain(to);
    return to;
}

static int put_plain(FILE *to, const char *spec, const char *text, size_t most) {
    char room[SHORT], *copy = plain_copy(text ? text : "(null)", most, room);
    if (!copy) return (fprintf)(to, "%s", "?");
    const int n = (fprintf)(to, spec, copy);
    if (copy != room) free(copy);
    return n;
}

int out_raw(const char *text, FILE *to) { return (fputs)(text, to); }
int out_char(int c, FILE *to) { return putc(c, to); }

int out_text(const char *text, FILE *to) {
    if (!is_ours(to)) return (fputs)(text, to);
    while (*text) {
        const size_t n = strcspn(text, "\n\t");
        if (n) put_plain(to, "%s", text, n);
        text += n;
        if (*text) putc(*text++, to);
    }
    return ferror(to) ? EOF : 0;
}

int out_lines(const char *text) {
    out_text(text, stdout);
    return putc('\n', stdout) == EOF ? EOF : 0;
}

int out_line(const char *text) {
    put_plain(stdout, "%s", text, SIZE_MAX);
    return putchar('\n');
}

/* ---- formats ---- */

/* "%-*.3lu": what stands before the type, with stars replaced by their numbers. */
typedef struct directive {
    char text[SPEC];
    size_t n;
    int precision, longs;
    bool size;
    char type;
} directive;
typedef struct arguments {
    va_list at;
} arguments;

static void keep(directive *d, const char *s, size_t n) {
    if (n >= SPEC - d->n) n = SPEC - 1 - d->n;
    memcpy(d->text + d->n, s, n);
    d->n += n;
    d->text[d->n] = 0;
}

static void keep_number(directive *d, const char *before, int x) {
    char text[24];
    keep(d, text, (size_t)snprintf(text, sizeof text, "%s%d", before, x));
}

static const char *read_width(const char *s, directive *d, arguments *a) {
    const size_t n = strspn(s, "-+ #0"), digits = strspn(s + n, "0123456789");
    keep(d, s, n + digits);
    s += n + digits;
    if (*s != '*') return s;
    keep_number(d, "", va_arg(a->at, int));
    return s + 1;
}

/* A negative one is none. */
static const char *read_precision(const char *s, directive *d, arguments *a) {
    char *end;
    d->precision = -1;
    if (*s != '.') return s;
    if (s[1] == '*') {
        d->precision = va_arg(a->at, int);
        return s + 2;
    }
    d->precision = (int)strtol(s + 1, &end, 10);
    return end;
}

static const char *read_size(const char *s, directive *d) {
    for (; *s && strchr("hljzt", *s); s++) {
        if (*s == 'l') d->longs++;
        if (*s == 'j') d->longs = 2;
        if (*s == 'z' || *s == 't') d->size = true;
        if (*s != 'h') keep(d, s, 1);
    }
    d->type = *s;
    return s + (*s != 0);
}

static const char *read_directive(const char *s, directive *d, arguments *a) {
    *d = (directive){ .text = "%", .n = 1 };
    s = read_width(s, d, a);
    s = read_precision(s, d, a);
    if (d->precision >= 0 && *s != 's') keep_number(d, ".", d->precision);
    return read_size(s, d);
}

static int put_integer(FILE *to, directive *d, arguments *a) {
    _Static_assert(sizeof(size_t) == sizeof(long), "z and t are long");
    _Static_assert(sizeof(intmax_t) == sizeof(long long), "j is long long");
    if (d->longs > 1) return (fprintf)(to, d->text, va_arg(a->at, long long));
    if (d->longs || d->size) return (fprintf)(to, d->text, va_arg(a->at, long));
    return (fprintf)(to, d->text, va_arg(a->at, int));
}

static int put_argument(FILE *to, directive *d, arguments *a) {
    keep(d, &d->type, 1);
    switch (d->type) {
    case 's': {
        const char *text = va_arg(a->at, const char *);
        return put_plain(to, d->text, text, d->precision < 0 ? SIZE_MAX : (size_t)d->precision);
    }
    case 'c': {
        const int c = va_arg(a->at, int);
        return (fprintf)(to, d->text, c < ' ' || c > '~' ? '?' : c);
    }
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        return put_integer(to, d, a);
    case 'e':
    case 'f':
    case 'g':
    case 'a':
    case 'E':
    case 'F':
    case 'G':
        return (fprintf)(to, d->text, va_arg(a->at, double));
    case 'p':
        return (fprintf)(to, d->text, va_arg(a->at, void *));
    default:
        return (fprintf)(to, "%%");
    }
}

int out_list(FILE *to, const char *format, va_list args) {
    if (!is_ours(to)) return vfprintf(to, format, args);
    arguments a;
    directive d;
    int all = 0;
    va_copy(a.at, args);
    while (*format) {
        const int n = (int)strcspn(format, "%");
        all += (fprintf)(to, "%.*s", n, format);
        format += n;
        if (!*format) break;
        format = read_directive(format + 1, &d, &a);
        all += put_argument(to, &d, &a);
    }
    va_end(a.at);
    return all;
}

int out_print(FILE *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = out_list(to, format, args);
    va_end(args);
    return n;
}

/* ---- what steers the terminal ---- */

void style(FILE *to, const char *code) {
    if (colour()) fprintf(to, "\033[%sm", code);
}

void clear_line(FILE *to) { fprintf(to, "\r\033[K"); }

/* ---- the streams ---- */

/* In place of a closed one comes /dev/null, opened the other way round: who reads it, or writes it,
 * gets an error. */
void out_begin(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int out_end(int code) {
    const bool before = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) == 0 && !before) return code;
    fail_text("standard output: %s", errno ? strerror(errno) : "not all of it could be written");
    return code ? code : EXIT_FAILED;
}
