/* Sounds as they come: from a microphone by ALSA, opened at run time
 * (https://www.alsa-project.org/alsa-doc/alsa-lib), or from standard input, as a WAV stream or as
 * raw 16 bits. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/memory.h"
#include "data/sound/sound_internal.h"

typedef struct alsa {
    void *library, *pcm;
    int (*open)(void **pcm, const char *name, int stream, int mode);
    int (*set_params)(void *pcm, int format, int access, unsigned channels, unsigned rate,
                      int resample, unsigned latency);
    long (*readi)(void *pcm, void *to, unsigned long frames);
    int (*recover)(void *pcm, int error, int silent);
    int (*close)(void *pcm);
    const char *(*strerror)(int error);
} alsa;
enum { CAPTURE = 1, S16 = 2, INTERLEAVED = 3, LATENCY = 50000 };

enum { HEAD = 4096, BLOCK = 4096 };
struct fac_capture {
    alsa a;
    bool pipe;
    unsigned char head[HEAD]; /* of a WAV stream, up to its data; size 0: raw */
    size_t size, align;
    uint64_t left;         /* bytes of data that are still to come; UINT64_MAX: up to the end */
    unsigned char raw[12]; /* the first bytes of a raw stream, which were read to see what it is */
    size_t nraw;
    int channels;
};

/* ---- standard input ---- */

/* As many bytes as there are, up to n; what a signal interrupts goes on. */
static size_t read_bytes(unsigned char *to, size_t n) {
    size_t have = 0;
    while (have < n) {
        const ssize_t got = read(STDIN_FILENO, to + have, n - have);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        have += (size_t)got;
    }
    return have;
}

static uint32_t u32(const unsigned char *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static fac_status lost(const char *what, fac_error *err) {
    return fac_raise(err, FAC_E_FORMAT, "standard input: %s", what);
}

/* So many bytes that are not kept. */
static fac_status pass_over(size_t n, fac_error *err) {
    unsigned char block[BLOCK];
    while (n) {
        const size_t part = n < BLOCK ? n : BLOCK;
        if (read_bytes(block, part) != part)
            return lost("a WAV stream without chunk \"data\"", err);
        n -= part;
    }
    return FAC_OK;
}

/* A format is kept with its chunk's head; of ds64 the size of the data is looked at. */
static fac_status read_chunk(fac_capture *c, const unsigned char *head, uint64_t *data,
                             fac_error *err) {
    enum { SIZES = 24 };
    const bool format = !memcmp(head, "fmt ", 4);
    const size_t size = u32(head + 4), all = size + (size & 1);
    unsigned char sizes[SIZES];
    if (format) {
        if (all > HEAD - 16 - c->size) return lost("chunk \"fmt \" is too long", err);
        memcpy(c->head + c->size, head, 8);
        c->size += 8;
        if (read_bytes(c->head + c->size, all) != all)
            return lost("chunk \"fmt \": it is longer than the stream", err);
        c->align = size < 14 ? 1 : u32(c->head + c->size + 12) & 0xFFFF;
        c->size += all;
        return FAC_OK;
    }
    if (memcmp(head, "ds64", 4) != 0 || all < SIZES) return pass_over(all, err);
    if (read_bytes(sizes, SIZES) != SIZES)
        return lost("chunk \"ds64\": it is longer than the stream", err);
    *data = u32(sizes + 8) | (uint64_t)u32(sizes + 12) << 32;
    return pass_over(all - SIZES, err);
}

/* The chunks of a stream up to the data, whose size becomes that of a stream for the decoder. */
static fac_status read_head(fac_capture *c, int rate, fac_error *err) {
    static const unsigned char open_end[8] = { 'd', 'a', 't', 'a', 0xFF, 0xFF, 0xFF, 0xFF };
    unsigned char head[8];
    uint64_t large = 0;
    fac_sound s = { 0 };
    for (;;) {
        if (read_bytes(head, 8) != 8) return lost("a WAV stream without chunk \"data\"", err);
        if (!memcmp(head, "data", 4)) break;
        FAC_TRY(read_chunk(c, head, &large, err));
    }
    const bool by_ds64 = memcmp(c->raw, "RIFF", 4) && u32(head + 4) == 0xFFFFFFFF;
    const uint64_t data = by_ds64 ? large : u32(head + 4);
    c->left = fac_wav_is_open_ended(data) ? UINT64_MAX : data;
    memcpy(c->head + c->size, open_end, sizeof open_end);
    c->size += sizeof open_end;
    FAC_TRY(fac_wav_decode(c->head, c->size, "standard input", &s, err));
    c->channels = s.channels;
    const int has = s.rate;
    fac_sound_free(&s);
    if (has == rate) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT,
                     "standard input has %d Hz, the model hears %d: `ffmpeg -i SOUND -ar %d -f wav "
                     "-` makes that",
                     has, rate, rate);
}

static bool wave(const unsigned char *p) {
    const bool riff = !memcmp(p, "RIFF", 4) || !memcmp(p, "RF64", 4) || !memcmp(p, "BW64", 4);
    return riff && !memcmp(p + 8, "WAVE", 4);
}

static fac_status open_pipe(fac_capture *c, int rate, fac_error *err) {
    c->pipe = true;
    c->channels = 1;
    c->align = 2;
    c->left = UINT64_MAX;
    c->nraw = read_bytes(c->raw, sizeof c->raw);
    if (fac_sound_is_named(c->raw, c->nraw))
        return fac_raise(err, FAC_E_FORMAT,
                         "standard input: a compressed sound, expected WAV or raw 16 bits: `ffmpeg "
                         "-i SOUND -ar %d -f wav -` makes that",
                         rate);
    if (c->nraw < sizeof c->raw || !wave(c->raw)) return FAC_OK;
    memcpy(c->head, c->raw, c->nraw);
    memcpy(c->head, "RIFF", 4); /* where the size of a stream is not looked up in another chunk */
    c->size = c->nraw;
    c->nraw = 0;
    return read_head(c, rate, err);
}

/* Frames of a WAV stream are read as a file of that many. */
static fac_status decoded(const fac_capture *c, const unsigned char *data, size_t bytes, float *to,
                          int64_t n, fac_error *err) {
    fac_sound s = { 0 };
    unsigned char *file = fac_alloc(c->size + bytes + 1, 1);
    if (!file) return fac_raise_memory(err, "a part of a stream");
    memcpy(file, c->head, c->size);
    memcpy(file + c->size, data, bytes);
    const fac_status status = fac_wav_decode(file, c->size + bytes, "standard input", &s, err);
    fac_release(file);
    for (int64_t i = 0; i < n && !status; i++) {
        double sum = 0;
        for (int k = 0; k < c->channels; k++) sum += s.samples[i * c->channels + k];
        to[i] = (float)(sum / c->channels);
    }
    fac_sound_free(&s);
    return status;
}

static float of_16_bits(const unsigned char *p) {
    return (float)(int16_t)(p[0] | p[1] << 8) / 32768;
}

static fac_status read_pipe(fac_capture *c, float *to, int64_t n, int64_t *count, fac_error *err) {
    const int64_t most = n < BLOCK ? n : BLOCK;
    unsigned char *data = fac_alloc((size_t)most * c->align + 16, 1);
    if (!data) return fac_raise_memory(err, "a part of a stream");
    memcpy(data, c->raw, c->nraw);
    const size_t most_bytes = (size_t)most * c->align,
                 want = most_bytes < c->left ? most_bytes : (size_t)c->left,
                 first = c->nraw < want ? c->nraw : want;
    const size_t bytes = first + read_bytes(data + first, want - first);
    memmove(c->raw, c->raw + first, c->nraw - first);
    c->nraw -= first;
    if (c->left != UINT64_MAX) c->left -= bytes;
    *count = (int64_t)(bytes / c->align);
    fac_status status = FAC_OK;
    if (c->size && *count) status = decoded(c, data, (size_t)*count * c->align, to, *count, err);
    for (int64_t i = 0; i < *count && !c->size; i++) to[i] = of_16_bits(data + 2 * i);
    fac_release(data);
    return status;
}

/* ---- ALSA ---- */

/* ALSA prints what it cannot open, unless somebody else takes the message; NULL: as before. */
typedef void print_error(const char *file, int line, const char *function, int code,
                         const char *format, ...);
static void say_nothing(const char *file, int line, const char *function, int code,
                        const char *format, ...) {
    (void)file, (void)line, (void)function, (void)code, (void)format;
}

static fac_status open_alsa(alsa *a, const char *name, int rate, fac_error *err) {
    struct {
        const char *name;
        void *to;
    } calls[] = { { "snd_pcm_open", &a->open },   { "snd_pcm_set_params", &a->set_params },
                  { "snd_pcm_readi", &a->readi }, { "snd_pcm_recover", &a->recover },
                  { "snd_pcm_close", &a->close }, { "snd_strerror", &a->strerror } };
    a->library = dlopen("libasound.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!a->library)
        return fac_raise(
            err, FAC_E_UNSUPPORTED,
            "a microphone needs libasound, which is not there (Debian: libasound2); \"-\" hears "
            "standard input");
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        void *symbol = dlsym(a->library, calls[k].name);
        if (!symbol) return fac_raise(err, FAC_E_UNSUPPORTED, "libasound has no %s", calls[k].name);
        memcpy(calls[k].to, &symbol, sizeof symbol);
    }
    void (*print)(print_error *) = NULL;
    void *symbol = dlsym(a->library, "snd_lib_error_set_handler");
    memcpy(&print, &symbol, sizeof print);
    if (print) print(say_nothing);
    int code = a->open(&a->pcm, name, CAPTURE, 0);
    if (print) print(NULL);
    if (code >= 0) code = a->set_params(a->pcm, S16, INTERLEAVED, 1, (unsigned)rate, 1, LATENCY);
    return code < 0 ? fac_raise(err, FAC_E_IO, "the microphone %s: %s", name, a->strerror(code))
                    : FAC_OK;
}

static fac_status read_alsa(const alsa *a, float *to, int64_t n, int64_t *count, fac_error *err) {
    int16_t samples[BLOCK] = { 0 }; /* the device "null" leaves them as they are */
    const long got = a->readi(a->pcm, samples, (unsigned long)(n < BLOCK ? n : BLOCK));
    *count = 0;
    if (got < 0 && a->recover(a->pcm, (int)got, 1) < 0)
        return fac_raise(err, FAC_E_IO, "the microphone: %s", a->strerror((int)got));
    for (long i = 0; i < got; i++) to[i] = (float)samples[i] / 32768;
    *count = got > 0 ? got : 0;
    return FAC_OK;
}

/* ---- both ---- */

fac_status fac_capture_open(const char *name, int rate, fac_capture **out, fac_error *err) {
    if (rate < 1 || rate > FAC_SOUND_RATE)
        return fac_raise(err, FAC_E_ARGUMENT, "hearing at %d Hz", rate);
    fac_capture *c = fac_alloc(1, sizeof *c);
    if (!c) return fac_raise(err, FAC_E_NOMEM, "no memory to hear");
    const bool pipe = !strcmp(name, "-");
    const fac_status status = pipe ? open_pipe(c, rate, err) : open_alsa(&c->a, name, rate, err);
    if (status)
        fac_capture_free(c);
    else
        *out = c;
    return status;
}

fac_status fac_capture_read(fac_capture *c, float *to, int64_t n, int64_t *count, fac_error *err) {
    return c->pipe ? read_pipe(c, to, n, count, err) : read_alsa(&c->a, to, n, count, err);
}

bool fac_capture_ends(const fac_capture *c) { return c->pipe; }

void fac_capture_free(fac_capture *c) {
    if (c && c->a.pcm) c->a.close(c->a.pcm);
    if (c && c->a.library) dlclose(c->a.library);
    fac_release(c);
}
