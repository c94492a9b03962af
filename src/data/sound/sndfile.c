/* FLAC, Ogg Vorbis, Opus, MP3, AIFF ... by libsndfile, opened at run time: its interface, in our
 * words, is that of version 1.0.x and later (https://libsndfile.github.io/libsndfile/api.html). */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "data/sound/sound_internal.h"

typedef struct info {
    int64_t frames;
    int rate, channels, format, sections, seekable;
} info;
typedef struct virtual_io {
    int64_t (*length)(void *self);
    int64_t (*seek)(int64_t to, int whence, void *self);
    int64_t (*read)(void *to, int64_t count, void *self);
    int64_t (*write)(const void *from, int64_t count, void *self);
    int64_t (*tell)(void *self);
} virtual_io;
typedef struct library {
    void *handle;
    void *(*open_virtual)(virtual_io *io, int mode, info *i, void *self);
    int64_t (*readf_float)(void *file, float *to, int64_t frames);
    const char *(*strerror)(void *file);
    int (*close)(void *file);
} library;
enum { MODE_READ = 0x10 };

static fac_status open_library(library *l, const char *name, fac_error *err) {
    static const char *const names[] = { "libsndfile.so.1", "libsndfile.so", "libsndfile.1.dylib",
                                         "libsndfile.dylib", NULL };
    struct {
        const char *name;
        void *to;
    } calls[] = { { "sf_open_virtual", &l->open_virtual },
                  { "sf_readf_float", &l->readf_float },
                  { "sf_strerror", &l->strerror },
                  { "sf_close", &l->close } };
    for (int k = 0; names[k] && !l->handle; k++)
        l->handle = dlopen(names[k], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!l->handle)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "%s: no WAV file: others are read by libsndfile, which is not there "
                         "(Debian: libsndfile1)",
                         name);
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        void *symbol = dlsym(l->handle, calls[k].name);
        if (!symbol)
            return fac_raise(err, FAC_E_UNSUPPORTED, "%s: libsndfile has no %s", name,
                             calls[k].name);
        memcpy(calls[k].to, &symbol, sizeof symbol);
    }
    return FAC_OK;
}

/* ---- the file's bytes in memory ---- */

typedef struct memory {
    const char *data;
    int64_t size, at;
} memory;
static int64_t length(void *self) { return ((memory *)self)->size; }
static int64_t tell(void *self) { return ((memory *)self)->at; }
static int64_t no_write(const void *from, int64_t count, void *self) {
    (void)from, (void)count, (void)self;
    return 0;
}
static int64_t seek(int64_t to, int whence, void *self) {
    memory *m = self;
    int64_t at = to;
    if (whence == SEEK_CUR) at += m->at;
    if (whence == SEEK_END) at += m->size;
    if (at < 0 || at > m->size) return -1;
    return m->at = at;
}
static int64_t take(void *to, int64_t count, void *self) {
    memory *m = self;
    const int64_t n = count < m->size - m->at ? count : m->size - m->at;
    if (n <= 0) return 0;
    memcpy(to, m->data + m->at, (size_t)n);
    m->at += n;
    return n;
}

/* Frames until there are no more: what the header says may be a guess. */
static fac_status read_all(const library *l, void *file, const info *i, const char *name,
                           fac_sound *out, fac_error *err) {
    enum { PART = 1 << 14 };
    float *samples = NULL;
    size_t room = 0;
    int64_t frames = 0, n;
    do {
        const size_t need = ((size_t)frames + PART) * (size_t)i->channels;
        if (!fac_reserve(&samples, &room, need, sizeof *samples)) {
            fac_release(samples);
            return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %lld frames", name,
                             (long long)frames);
        }
        n = l->readf_float(file, samples + (size_t)frames * (size_t)i->channels, PART);
        frames += n > 0 ? n : 0;
    } while (n > 0);
    *out = (fac_sound){ frames, i->channels, i->rate, samples };
    return FAC_OK;
}

/* An Ogg stream is pages, each with the sizes of its parts: the file may end within one.  Asked
 * before libsndfile opens it, which loses memory where the first pages are cut. */
static fac_status whole_pages(const void *bytes, size_t size, const char *name, fac_error *err) {
    enum { HEAD = 27 };
    const unsigned char *p = bytes;
    for (size_t at = 0, page; at < size; at += page) {
        const size_t left = size - at, parts = left < HEAD ? 0 : p[at + HEAD - 1];
        if (memcmp(p + at, "OggS", left < 4 ? left : 4)) return FAC_OK; /* no page */
        page = HEAD + parts;
        for (size_t k = 0; k < parts && HEAD + parts <= left; k++) page += p[at + HEAD + k];
        if (left < page)
            return fac_raise(err, FAC_E_FORMAT, "%s: the file is cut: it ends within a page", name);
    }
    return FAC_OK;
}

/* A FLAC file says how many frames it has; of a stream of unknown length, libsndfile says
 * INT64_MAX. */
static fac_status whole(const info *i, const char *name, fac_sound *s, fac_error *err) {
    enum { FORMATS = 0xFFF0000, FLAC = 0x170000 };
    const bool told = (i->format & FORMATS) == FLAC && i->frames < INT64_MAX;
    const long long frames = (long long)s->frames;
    if (!told || frames >= i->frames) return FAC_OK;
    fac_sound_free(s);
    return fac_raise(err, FAC_E_FORMAT, "%s: the file is cut: %lld of %lld frames are there", name,
                     frames, (long long)i->frames);
}

fac_status fac_sndfile_decode(const void *bytes, size_t size, const char *name, fac_sound *out,
                              fac_error *err) {
    library l = { 0 };
    memory m = { bytes, (int64_t)size, 0 };
    virtual_io io = { length, seek, take, no_write, tell };
    info i = { 0 };
    fac_status status = open_library(&l, name, err);
    if (!status) status = whole_pages(bytes, size, name, err);
    void *file = status ? NULL : l.open_virtual(&io, MODE_READ, &i, &m);
    if (!status && !file)
        status = fac_raise(err, FAC_E_FORMAT, "%s: libsndfile: %s", name, l.strerror(NULL));
    if (!status && (i.channels < 1 || i.channels > FAC_SOUND_CHANNELS || i.rate < 1 ||
                    i.rate > FAC_SOUND_RATE))
        status = fac_raise(err, FAC_E_FORMAT, "%s: %d channels at %d Hz", name, i.channels, i.rate);
    if (!status) status = read_all(&l, file, &i, name, out, err);
    if (!status) status = whole(&i, name, out, err);
    if (!status) status = fac_sound_settle(out, name, "samples", err);
    if (file) l.close(file);
    if (l.handle) dlclose(l.handle);
    return status;
}
