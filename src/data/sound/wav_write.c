/* WAV files written: one header, then samples. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "data/sound/sound_internal.h"
#include "facula/file.h"

typedef struct bytes {
    unsigned char at[128];
    size_t n;
} bytes;

static void put(bytes *b, uint64_t x, int count) {
    for (int k = 0; k < count; k++) b->at[b->n++] = (unsigned char)(x >> (8 * k));
}
static void put_id(bytes *b, const char *id) {
    memcpy(b->at + b->n, id, 4);
    b->n += 4;
}

static int width_of(fac_wav_format f) {
    static const int widths[] = { 2, 1, 3, 4, 4, 8 };
    return widths[f];
}

/* 1 of integers, 3 of floats; floats have a fact chunk, large files a ds64 chunk with what 32 bits
 * cannot say. */
static void header(bytes *b, const fac_sound *s, fac_wav_format f, uint64_t data) {
    const bool floats = f >= FAC_WAV_F32, large = data > 0xFFFFFF00u;
    const uint32_t align = (uint32_t)(s->channels * width_of(f));
    uint64_t all = 4 + 24 + 8 + data + (data & 1);
    if (floats) all += 14;
    if (large) all += 36;
    put_id(b, large ? "RF64" : "RIFF");
    put(b, large ? 0xFFFFFFFF : all, 4);
    put_id(b, "WAVE");
    if (large) {
        put_id(b, "ds64");
        put(b, 28, 4);
        put(b, all, 8);
        put(b, data, 8);
        put(b, (uint64_t)s->frames, 8);
        put(b, 0, 4);
    }
    put_id(b, "fmt ");
    put(b, floats ? 18 : 16, 4);
    put(b, floats ? 3 : 1, 2);
    put(b, (uint64_t)s->channels, 2);
    put(b, (uint64_t)s->rate, 4);
    put(b, (uint64_t)s->rate * align, 4);
    put(b, align, 2);
    put(b, (uint64_t)width_of(f) * 8, 2);
    if (floats) {
        put(b, 0, 2);
        put_id(b, "fact");
        put(b, 4, 4);
        put(b, large ? 0xFFFFFFFF : (uint64_t)s->frames, 4);
    }
    put_id(b, "data");
    put(b, large ? 0xFFFFFFFF : data, 4);
}

static int64_t rounded(double x, double scale) {
    const double v = rint(x * scale);
    if (!(v > -scale)) return (int64_t)-scale;
    return v > scale - 1 ? (int64_t)(scale - 1) : (int64_t)v;
}

static void put_sample(bytes *b, float x, fac_wav_format f) {
    uint32_t word;
    uint64_t wide;
    const double d = x;
    switch (f) {
    case FAC_WAV_8:
        put(b, (uint64_t)(rounded(x, 128) + 128), 1);
        return;
    case FAC_WAV_16:
        put(b, (uint64_t)rounded(x, 32768), 2);
        return;
    case FAC_WAV_24:
        put(b, (uint64_t)rounded(x, 8388608), 3);
        return;
    case FAC_WAV_32:
        put(b, (uint64_t)rounded(x, 2147483648.0), 4);
        return;
    case FAC_WAV_F32:
        memcpy(&word, &x, sizeof word);
        put(b, word, 4);
        return;
    case FAC_WAV_F64:
        memcpy(&wide, &d, sizeof wide);
        put(b, wide, 8);
        return;
    }
}

static fac_status write_all(fac_writer *w, const fac_sound *s, fac_wav_format f, fac_error *err) {
    const uint64_t count = (uint64_t)s->frames * (uint64_t)s->channels,
                   data = count * (uint64_t)width_of(f);
    bytes b = { .n = 0 };
    header(&b, s, f, data);
    for (uint64_t i = 0; i < count; i++) {
        if (b.n + 8 > sizeof b.at) {
            FAC_TRY(fac_writer_put(w, b.at, b.n, err));
            b.n = 0;
        }
        put_sample(&b, s->samples[i], f);
    }
    if (data & 1) put(&b, 0, 1);
    return fac_writer_put(w, b.at, b.n, err);
}

fac_status fac_wav_save(const fac_sound *s, const char *path, fac_wav_format format,
                        fac_error *err) {
    fac_writer *w = NULL;
    if (s->channels < 1 || s->channels > FAC_SOUND_CHANNELS || s->rate < 1 ||
        s->rate > FAC_SOUND_RATE || s->frames < 0 || (unsigned)format > FAC_WAV_F64)
        return fac_raise(err, FAC_E_ARGUMENT, "%s: a sound of %d channels at %d Hz cannot be saved",
                         path, s->channels, s->rate);
    FAC_TRY(fac_writer_open(path, &w, err));
    const fac_status status = write_all(w, s, format, err);
    if (status) {
        fac_writer_cancel(w);
        return status;
    }
    return fac_writer_close(w, err);
}
