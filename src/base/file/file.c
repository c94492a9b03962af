/* Files: mapped for reading, written whole. */
#include "base/file/file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/memory.h"

struct fac_file {
    atomic_int refs;
    const void *data;
    size_t size;
    bool mapped;
};

bool fac_is_folder(const char *path) {
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

/* strerror keeps its text in a shared place; this one does not. */
static fac_status io_error(fac_error *err, const char *path, int code) {
    char text[128];
    return fac_raise(err, code == ENOMEM ? FAC_E_NOMEM : FAC_E_IO, "%s: %s", path,
                     strerror_r(code, text, sizeof text));
}

static fac_status map(int fd, const char *path, fac_file *f, fac_error *err) {
    struct stat s;
    if (fstat(fd, &s)) return io_error(err, path, errno);
    if (S_ISDIR(s.st_mode)) return fac_raise(err, FAC_E_IO, "%s: is a directory", path);
    if (!S_ISREG(s.st_mode)) return fac_raise(err, FAC_E_IO, "%s: is not a regular file", path);
    if (!s.st_size) return fac_raise(err, FAC_E_FORMAT, "%s: is empty", path);
    if ((uintmax_t)s.st_size > PTRDIFF_MAX)
        return fac_raise(err, FAC_E_NOMEM, "%s: too large for memory", path);
    void *data = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return io_error(err, path, errno);
    f->data = data;
    f->size = (size_t)s.st_size;
    f->mapped = true;
    return FAC_OK;
}

fac_status fac_file_map(const char *path, fac_file **out, fac_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to hang on a pipe */
    if (fd < 0) return io_error(err, path, errno);
    fac_file *f = fac_alloc(1, sizeof *f);
    fac_status status =
        f ? map(fd, path, f, err) : fac_raise(err, FAC_E_NOMEM, "%s: no memory", path);
    close(fd);
    if (status) {
        fac_release(f);
        return status;
    }
    atomic_init(&f->refs, 1);
    *out = f;
    return FAC_OK;
}

fac_file *fac_file_adopt(void *data, size_t bytes) {
    fac_file *f = data ? fac_alloc(1, sizeof *f) : NULL;
    if (!f) {
        fac_release_aligned(data);
        return NULL;
    }
    atomic_init(&f->refs, 1);
    f->data = data;
    f->size = bytes;
    return f;
}

fac_file *fac_file_memory(const void *data, size_t bytes) {
    void *copy = fac_alloc_aligned(bytes);
    if (copy && bytes) memcpy(copy, data, bytes);
    return fac_file_adopt(copy, bytes);
}

fac_file *fac_file_retain(fac_file *f) {
    if (f) atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void fac_file_free(fac_file *f) {
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1) return;
    if (f->mapped)
        munmap((void *)(uintptr_t)f->data, f->size);
    else
        fac_release_aligned((void *)(uintptr_t)f->data);
    fac_release(f);
}

const void *fac_file_data(const fac_file *f) { return f->data; }
size_t fac_file_size(const fac_file *f) { return f->size; }

/* The mapping stays valid: whoever reads it again gets the page from the file again. */
void fac_file_drop(const fac_file *f, size_t at, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), first, end;
    if (!f->mapped || !fac_size_add(at, page - 1, &first) || !fac_size_add(at, bytes, &end) ||
        end > f->size)
        return;
    first = first / page * page;
    end = end / page * page;
    if (first < end) madvise((char *)(uintptr_t)f->data + first, end - first, MADV_DONTNEED);
}

/* ---- writing ---- */

enum { BUFFER = 64 << 10, TRIES = 1000 };

struct fac_writer {
    int fd;
    bool direct; /* a device or a pipe: there is nothing to rename */
    char path[PATH_MAX], temporary[PATH_MAX + 32];
    size_t used;
    unsigned char buffer[BUFFER];
};

/* O_EXCL with the usual mode rather than mkstemp, whose files nobody else may read. */
static int open_beside(fac_writer *w) {
    for (int k = 0; k < TRIES; k++) {
        snprintf(w->temporary, sizeof w->temporary, "%s.%ld-%d.tmp", w->path, (long)getpid(), k);
        int fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

/* Whether a file is at path.  A link that leads nowhere, or to itself, is neither a file nor a free
 * place. */
static fac_status look_at(const char *path, struct stat *s, bool *exists, fac_error *err) {
    struct stat link;
    *exists = !stat(path, s);
    if (*exists) return FAC_OK;
    const int code = errno;
    if (code != ENOENT) return io_error(err, path, code);
    if (lstat(path, &link)) return FAC_OK;
    return fac_raise(err, FAC_E_IO, "%s: is a link to a file that is not there", path);
}

static fac_status open_writer(fac_writer *w, const char *path, fac_error *err) {
    struct stat s;
    bool exists;
    FAC_TRY(look_at(path, &s, &exists, err));
    if (exists && S_ISDIR(s.st_mode)) return fac_raise(err, FAC_E_IO, "%s: is a directory", path);
    if (exists ? !realpath(path, w->path) /* a link stays a link */
               : (size_t)snprintf(w->path, sizeof w->path, "%s", path) >= sizeof w->path)
        return io_error(err, path, exists ? errno : ENAMETOOLONG);
    w->direct = exists && !S_ISREG(s.st_mode);
    w->fd = w->direct ? open(w->path, O_WRONLY | O_CLOEXEC) : open_beside(w);
    return w->fd < 0 ? io_error(err, path, errno) : FAC_OK;
}

fac_status fac_writer_open(const char *path, fac_writer **out, fac_error *err) {
    fac_writer *w = fac_alloc(1, sizeof *w);
    if (!w) return fac_raise(err, FAC_E_NOMEM, "%s: no memory to write it", path);
    fac_status status = open_writer(w, path, err);
    if (status)
        fac_release(w);
    else
        *out = w;
    return status;
}

static fac_status write_all(fac_writer *w, const void *data, size_t bytes, fac_error *err) {
    const char *p = data;
    while (bytes) {
        ssize_t done = write(w->fd, p, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return io_error(err, w->path, errno);
        p += done;
        bytes -= (size_t)done;
    }
    return FAC_OK;
}

static fac_status flush(fac_writer *w, fac_error *err) {
    size_t n = w->used;
    w->used = 0;
    return write_all(w, w->buffer, n, err);
}

fac_status fac_writer_put(fac_writer *w, const void *data, size_t bytes, fac_error *err) {
    if (bytes > BUFFER - w->used) FAC_TRY(flush(w, err));
    if (bytes > BUFFER) return write_all(w, data, bytes, err);
    if (bytes) memcpy(w->buffer + w->used, data, bytes);
    w->used += bytes;
    return FAC_OK;
}

/* So that the file's new entry outlives a loss of power.  Folders that cannot be opened, and file
 * systems that sync none, have to do without. */
static fac_status sync_folder(fac_writer *w, fac_error *err) {
    char *slash = strrchr(w->path, '/');
    if (slash) slash[slash == w->path] = 0;
    const int fd = open(slash ? w->path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return FAC_OK;
    const int code = fsync(fd) ? errno : 0;
    close(fd);
    const bool lost = code == EIO || code == ENOSPC || code == EDQUOT;
    if (!lost) return FAC_OK;
    return io_error(err, slash ? w->path : ".", code);
}

static fac_status settle(fac_writer *w, fac_error *err) {
    FAC_TRY(flush(w, err));
    if (w->direct) return FAC_OK;
    if (fsync(w->fd)) return io_error(err, w->path, errno);
    int fd = w->fd;
    w->fd = -1;
    if (close(fd) || rename(w->temporary, w->path)) return io_error(err, w->path, errno);
    w->direct = true; /* nothing is left to remove */
    return sync_folder(w, err);
}

fac_status fac_writer_close(fac_writer *w, fac_error *err) {
    fac_status status = settle(w, err);
    fac_writer_cancel(w);
    return status;
}

void fac_writer_cancel(fac_writer *w) {
    if (!w) return;
    if (w->fd >= 0) close(w->fd);
    if (!w->direct) unlink(w->temporary);
    fac_release(w);
}

fac_status fac_file_write(const char *path, const void *data, size_t bytes, fac_error *err) {
    fac_writer *w;
    FAC_TRY(fac_writer_open(path, &w, err));
    const fac_status status = fac_writer_put(w, data, bytes, err);
    if (!status) return fac_writer_close(w, err);
    fac_writer_cancel(w);
    return status;
}
