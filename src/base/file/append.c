/* Files that grow.  See facula/file.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/memory.h"

struct fac_appender {
    int fd;
    off_t size; /* of what is whole */
    char path[];
};

static fac_status io_error(fac_error *err, const char *path, int code) {
    char text[128];
    if (code == ELOOP)
        return fac_raise(err, FAC_E_IO, "%s: is a link, and no log goes through one", path);
    return fac_raise(err, FAC_E_IO, "%s: %s", path, strerror_r(code, text, sizeof text));
}

/* O_NONBLOCK: a pipe that nothing reads is an error and no wait. */
static fac_status open_end(fac_appender *a, fac_error *err) {
    struct stat s;
    const int how = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    a->fd = open(a->path, how, 0666);
    const bool pipe = a->fd < 0 && errno == ENXIO;
    if (!pipe && (a->fd < 0 || fstat(a->fd, &s))) return io_error(err, a->path, errno);
    if (pipe || !S_ISREG(s.st_mode))
        return fac_raise(err, FAC_E_IO, "%s: is not a regular file", a->path);
    a->size = s.st_size;
    return FAC_OK;
}

fac_status fac_appender_open(const char *path, fac_appender **out, fac_error *err) {
    const size_t n = strlen(path) + 1;
    fac_appender *a = fac_alloc(1, sizeof *a + n);
    if (!a) return fac_raise(err, FAC_E_NOMEM, "%s: no memory to write it", path);
    memcpy(a->path, path, n);
    const fac_status status = open_end(a, err);
    if (status)
        fac_appender_close(a, NULL);
    else
        *out = a;
    return status;
}

fac_status fac_appender_put(fac_appender *a, const void *data, size_t bytes, fac_error *err) {
    size_t at = 0;
    while (at < bytes) {
        const ssize_t done = write(a->fd, (const char *)data + at, bytes - at);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) break;
        at += (size_t)done;
    }
    if (at == bytes) {
        a->size += (off_t)bytes;
        return FAC_OK;
    }
    const int code = errno;
    if (at && ftruncate(a->fd, a->size)) return io_error(err, a->path, errno); /* no half a line */
    return io_error(err, a->path, code);
}

fac_status fac_appender_close(fac_appender *a, fac_error *err) {
    if (!a) return FAC_OK;
    fac_status status = FAC_OK;
    if (a->fd >= 0 && close(a->fd)) status = io_error(err, a->path, errno);
    fac_release(a);
    return status;
}
