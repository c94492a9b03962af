/* Small files, whole.  What is opened may be anything: a device never ends, and a pipe may keep its
 * reader waiting forever. */
#include "facula/read.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/memory.h"

enum { PIECE = 16 << 10 };

typedef struct reading {
    const char *path;
    fac_error *err;
    int fd;
    size_t most, n, room;
    bool pipe;
    char *text;
} reading;

static fac_status io_error(const reading *r, int code) {
    char text[128];
    return fac_raise(r->err, FAC_E_IO, "%s: cannot be read: %s", r->path,
                     strerror_r(code, text, sizeof text));
}

static fac_status check_kind(reading *r, fac_read_from from) {
    struct stat s;
    if (fstat(r->fd, &s)) return io_error(r, errno);
    r->pipe = S_ISFIFO(s.st_mode) && from == FAC_READ_FILE_OR_PIPE;
    if (S_ISDIR(s.st_mode))
        return fac_raise(r->err, FAC_E_IO, "%s: cannot be read: it is a folder", r->path);
    if (!S_ISREG(s.st_mode) && !r->pipe)
        return fac_raise(r->err, FAC_E_IO, "%s: cannot be read: it is not a regular file%s",
                         r->path, from == FAC_READ_FILE_OR_PIPE ? " or a pipe" : "");
    /* a first guess: files of /proc say 0, and others may grow */
    r->room = PIECE;
    if (s.st_size > 0 && (uintmax_t)s.st_size < r->most) r->room += (size_t)s.st_size;
    return FAC_OK;
}

static fac_status grow(reading *r) {
    size_t room = 0;
    char *more = fac_size_mul(r->room, 2, &room) ? fac_resize(r->text, room, 1) : NULL;
    if (!more) return fac_raise(r->err, FAC_E_NOMEM, "%s: no memory to read it", r->path);
    r->text = more;
    r->room = room;
    return FAC_OK;
}

/* Until the writer has written more. */
static fac_status wait_for_more(const reading *r) {
    struct pollfd p = { .fd = r->fd, .events = POLLIN };
    return poll(&p, 1, -1) < 0 ? io_error(r, errno) : FAC_OK;
}

/* Whether a pipe that has no writer gets one: a program that is started at the same time
 * may be late. */
static bool has_writer(const reading *r) {
    enum { LATE = 1000 }; /* milliseconds */
    struct pollfd p = { .fd = r->fd, .events = POLLIN };
    return poll(&p, 1, LATE) > 0 && p.revents & POLLIN;
}

static fac_status read_all(reading *r) {
    for (;;) {
        if (r->n + 1 >= r->room) FAC_TRY(grow(r));
        const ssize_t got = read(r->fd, r->text + r->n, r->room - r->n - 1);
        if (!got && !(r->pipe && !r->n && has_writer(r))) break;
        if (got < 0 && errno == EAGAIN)
            FAC_TRY(wait_for_more(r));
        else if (got < 0 && errno != EINTR)
            return io_error(r, errno);
        if (got > 0) r->n += (size_t)got;
        if (r->n > r->most)
            return fac_raise(r->err, FAC_E_FORMAT,
                             "%s: cannot be read: it holds more than %zu bytes", r->path, r->most);
    }
    r->text[r->n] = 0;
    if (r->pipe && !r->n)
        return fac_raise(r->err, FAC_E_IO, "%s: cannot be read: nothing writes to this pipe",
                         r->path);
    return FAC_OK;
}

static fac_status read_open(reading *r, fac_read_from from) {
    FAC_TRY(check_kind(r, from));
    r->text = fac_alloc(r->room, 1);
    if (!r->text) return fac_raise(r->err, FAC_E_NOMEM, "%s: no memory to read it", r->path);
    return read_all(r);
}

fac_status fac_read_text(const char *path, size_t most, fac_read_from from, char **text,
                         size_t *bytes, fac_error *err) {
    if (!path || !text)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_read_text: %s is NULL", path ? "text" : "path");
    reading r = { .path = path, .err = err, .most = most };
    r.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
                          O_NOCTTY); /* a pipe without a writer is open at once */
    if (r.fd < 0) return io_error(&r, errno);
    const fac_status status = read_open(&r, from);
    close(r.fd);
    if (status) {
        fac_release(r.text);
        return status;
    }
    *text = r.text;
    if (bytes) *bytes = r.n;
    return FAC_OK;
}

void fac_read_free(char *text) { fac_release(text); }
