/* WAV files: Microsoft's RIFF WAVE, and EBU Tech 3306's RF64 for those of 4 GB and more. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "data/sound/sound_internal.h"

typedef struct chunk {
    char id[5];
    const unsigned char *at;
    uint64_t size;
} chunk;

/* What the file says of itself. */
typedef struct wav {
    const unsigned char *bytes;
    size_t size;
    const char *name;
    bool large, sized;  /* RF64, BW64; whether ds64 was there */
    uint64_t data_size; /* by ds64 */
    chunk format, data;
} wav;

static uint32_t u16(const unsigned char *p) { return (uint32_t)(p[0] | p[1] << 8); }
static uint32_t u32(const unsigned char *p) { return u16(p) | u16(p + 2) << 16; }
static uint64_t u64(const unsigned char *p) { return u32(p) | (uint64_t)u32(p + 4) << 32; }

static fac_status lie(const wav *w, const char *id, const char *what, fac_error *err) {
    return fac_raise(err, FAC_E_FORMAT, "%s: chunk \"%s\": %s", w->name, id, what);
}

bool fac_wav_is_open_ended(uint64_t size) {
    enum { SOX = 0x7FFFF000 };
    const uint64_t ffmpeg = 0xFFFFFFFF, arecord = 0x80000000;
    return !size || size == SOX || size == ffmpeg || size == arecord || size == UINT64_MAX;
}

static fac_status take_data(wav *w, chunk *c, uint64_t rest, fac_error *err) {
    if (w->data.at) return lie(w, "data", "there are two", err);
    if (w->large && c->size == 0xFFFFFFFF) {
        if (!w->sized) return lie(w, "ds64", "it is missing, and the data need it", err);
        c->size = w->data_size;
    }
    const bool ends_here = c->size && c->size <= rest;
    if (!ends_here && fac_wav_is_open_ended(c->size)) c->size = rest;
    if (c->size > rest) return lie(w, "data", "it is longer than the file", err);
    w->data = *c;
    return FAC_OK;
}

/* ds64 begins with the sizes of the file and of the data. */
static fac_status take_other(wav *w, const chunk *c, uint64_t rest, fac_error *err) {
    const bool format = !strcmp(c->id, "fmt "), sizes = !strcmp(c->id, "ds64");
    if (c->size > rest)
        return format || sizes ? lie(w, c->id, "it is longer than the file", err) : FAC_OK;
    if (format && c->size < 16) return lie(w, "fmt ", "it has less than 16 bytes", err);
    if (format && w->format.at) return lie(w, "fmt ", "there are two", err);
    if (format) w->format = *c;
    if (!sizes || !w->large) return FAC_OK;
    if (c->size < 24) return lie(w, "ds64", "it has less than 24 bytes", err);
    w->data_size = u64(c->at + 8);
    w->sized = true;
    return FAC_OK;
}

static fac_status read_chunks(wav *w, fac_error *err) {
    for (size_t at = 12; w->size - at >= 8;) {
        chunk c = { .at = w->bytes + at + 8, .size = u32(w->bytes + at + 4) };
        const uint64_t rest = w->size - at - 8;
        memcpy(c.id, w->bytes + at, 4);
        const bool data = !strcmp(c.id, "data");
        FAC_TRY(data ? take_data(w, &c, rest, err) : take_other(w, &c, rest, err));
        const uint64_t next = c.size + (c.size & 1);
        if (next >= rest) break;
        at += 8 + (size_t)next;
    }
    if (!w->format.at) return lie(w, "fmt ", "it is missing", err);
    return w->data.at ? FAC_OK : lie(w, "data", "it is missing", err);
}

/* ---- samples ---- */

typedef enum kind { U8, S16, S24, S32, F32, F64, NONE } kind;
static const int widths[] = { 1, 2, 3, 4, 4, 8, 0 };

static kind kind_of(uint32_t tag, uint32_t bits) {
    if (tag == 3 && bits == 32) return F32;
    if (tag == 3) return bits == 64 ? F64 : NONE;
    if (tag != 1 || bits < 1 || bits > 32) return NONE;
    return (kind)((bits + 7) / 8 - 1);
}

static float sample(kind k, const unsigned char *p) {
    uint32_t word = 0;
    uint64_t wide = 0;
    float f;
    double d;
    switch (k) {
    case U8:
        return (float)((int)p[0] - 128) / 128;
    case S16:
        return (float)(int16_t)u16(p) / 32768;
    case S24:
        return (float)((int32_t)((u16(p) << 8) | (uint32_t)p[2] << 24) >> 8) / 8388608;
    case S32:
        return (float)((double)(int32_t)u32(p) / 2147483648.0);
    case F32:
        word = u32(p);
        memcpy(&f, &word, sizeof f);
        return f;
    default:
        wide = u64(p);
        memcpy(&d, &wide, sizeof d);
        return (float)d;
    }
}

/* The subformat's GUID begins with the tag that it stands for. */
static fac_status format_of(const wav *w, kind *k, int *channels, int *rate, uint32_t *align,
                            fac_error *err) {
    static const unsigned char rest[14] = { 0, 0, 0,    0, 0x10, 0,    0x80,
                                            0, 0, 0xAA, 0, 0x38, 0x9B, 0x71 };
    const unsigned char *p = w->format.at;
    uint32_t tag = u16(p), bits = u16(p + 14);
    if (tag == 0xFFFE) {
        if (w->format.size < 40)
            return lie(w, "fmt ", "an extensible format of less than 40 bytes", err);
        if (memcmp(p + 26, rest, sizeof rest) != 0)
            return lie(w, "fmt ", "a subformat that is not known", err);
        tag = u16(p + 24);
    }
    *channels = (int)u16(p + 2);
    *align = u16(p + 12);
    *k = kind_of(tag, bits);
    if (u32(p + 4) < 1 || u32(p + 4) > FAC_SOUND_RATE)
        return lie(w, "fmt ", "a rate of 0 or above 10 MHz", err);
    *rate = (int)u32(p + 4);
    if (*channels < 1 || *channels > FAC_SOUND_CHANNELS)
        return lie(w, "fmt ", "no channels, or more than 256", err);
    if (*k == NONE)
        return fac_raise(
            err, FAC_E_UNSUPPORTED,
            "%s: chunk \"fmt \": format %u of %u bits; integers of 8 to 32 and floats of 32 and "
            "64 bits are read",
            w->name, tag, bits);
    if (*align != (uint32_t)(*channels * widths[*k]))
        return lie(w, "fmt ", "its block align is not that of its channels", err);
    return FAC_OK;
}

fac_status fac_wav_decode(const void *bytes, size_t size, const char *name, fac_sound *out,
                          fac_error *err) {
    wav w = { .bytes = bytes, .size = size, .name = name ? name : "sound" };
    const unsigned char *p = bytes;
    kind k;
    int channels, rate;
    uint32_t align;
    fac_sound s = { 0 };
    if (size < 12 || (memcmp(p, "RIFF", 4) && memcmp(p, "RF64", 4) && memcmp(p, "BW64", 4)) ||
        memcmp(p + 8, "WAVE", 4))
        return fac_raise(err, FAC_E_FORMAT, "%s: not a WAV file by its first bytes", w.name);
    w.large = p[0] != 'R' || p[1] != 'I';
    FAC_TRY(read_chunks(&w, err));
    FAC_TRY(format_of(&w, &k, &channels, &rate, &align, err));
    FAC_TRY(fac_sound_new((int64_t)(w.data.size / align), channels, rate, w.name, &s, err));
    const size_t step = (size_t)widths[k], count = (size_t)s.frames * (size_t)channels;
    for (size_t i = 0; i < count; i++) s.samples[i] = sample(k, w.data.at + i * step);
    FAC_TRY(fac_sound_settle(&s, w.name, "chunk \"data\"", err));
    *out = s;
    return FAC_OK;
}
