/* Sounds: which format it is, loading, mixing channels. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "data/sound/sound_internal.h"
#include "tensor/tensor_internal.h"

void fac_sound_free(fac_sound *s) {
    if (!s) return;
    fac_release(s->samples);
    *s = (fac_sound){ 0 };
}

fac_status fac_sound_new(int64_t frames, int channels, int rate, const char *name, fac_sound *out,
                         fac_error *err) {
    const bool sane = frames >= 0 && frames <= INT64_MAX / 8 / channels;
    float *samples =
        sane ? fac_alloc((size_t)frames * (size_t)channels + 1, sizeof *samples) : NULL;
    if (!samples)
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %lld frames of %d channels", name,
                         (long long)frames, channels);
    *out = (fac_sound){ frames, channels, rate, samples };
    return FAC_OK;
}

static bool begins(const void *data, size_t size, size_t at, const char *magic) {
    const size_t n = strlen(magic);
    return size >= at + n && !memcmp((const char *)data + at, magic, n);
}

fac_status fac_sound_settle(fac_sound *s, const char *name, const char *chunk, fac_error *err) {
    const int64_t count = s->frames * s->channels;
    for (int64_t i = 0; i < count; i++) {
        const float x = s->samples[i];
        if (fabsf(x) <= 0x1p40f) continue;
        fac_sound_free(s);
        return fac_raise(err, FAC_E_FORMAT,
                         "%s: %s: a sample is %g; expected numbers around -1 to 1", name, chunk,
                         (double)x);
    }
    return FAC_OK;
}

bool fac_sound_is_named(const void *data, size_t size) {
    static const char *const magic[] = {
        "fLaC", "OggS", "FORM", ".snd", "caff", "ID3", "riff", NULL
    };
    for (int k = 0; magic[k]; k++)
        if (begins(data, size, 0, magic[k])) return true;
    return false;
}

/* What libsndfile may know; an MP3 begins with a tag or with a frame's eleven ones. */
static bool other_sound(const void *data, size_t size) {
    const unsigned char *p = data;
    if (fac_sound_is_named(data, size)) return true;
    return size > 4 && p[0] == 0xFF && (p[1] & 0xE0) == 0xE0 && (p[1] & 6) != 0 &&
           (p[2] & 0xF0) != 0xF0;
}

static fac_status decode(const void *data, size_t size, const char *name, fac_sound *out,
                         fac_error *err) {
    static const char *const wave[] = { "RIFF", "RF64", "BW64", NULL };
    for (int k = 0; wave[k]; k++)
        if (begins(data, size, 0, wave[k]) && begins(data, size, 8, "WAVE"))
            return fac_wav_decode(data, size, name, out, err);
    if (other_sound(data, size)) return fac_sndfile_decode(data, size, name, out, err);
    return fac_raise(err, FAC_E_FORMAT,
                     "%s: not a sound: neither WAV, FLAC, Ogg, MP3, AIFF nor AU by its first bytes",
                     name);
}

fac_status fac_sound_load(const char *path, fac_sound *out, fac_error *err) {
    fac_file *file = NULL;
    FAC_TRY(fac_file_map(path, &file, err));
    const fac_status status = decode(fac_file_data(file), fac_file_size(file), path, out, err);
    fac_file_free(file);
    return status;
}

fac_status fac_sound_mono(const fac_sound *s, int rate, fac_tensor **out, fac_error *err) {
    float *mean = fac_alloc((size_t)s->frames + 1, sizeof *mean);
    if (!mean) return fac_raise_memory(err, "%lld samples", (long long)s->frames);
    for (int64_t i = 0; i < s->frames; i++) {
        double sum = 0;
        for (int c = 0; c < s->channels; c++) sum += s->samples[i * s->channels + c];
        mean[i] = (float)(sum / s->channels);
    }
    const fac_status status =
        fac_resample(mean, s->frames, s->rate, rate, FAC_RESAMPLE_BEST, out, err);
    fac_release(mean);
    return status;
}

fac_status fac_sound_windows(const fac_sound *s, int rate, int64_t length, int64_t hop,
                             fac_tensor **out, fac_error *err) {
    fac_tensor *mono = NULL, *y = NULL;
    void *to = NULL;
    if (length < 1 || hop < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "windows of %lld samples every %lld",
                         (long long)length, (long long)hop);
    FAC_TRY(fac_sound_mono(s, rate, &mono, err));
    const int64_t size = fac_tensor_type(mono).dims.d[0], last = size > length ? size - length : 0,
                  windows = 1 + last / hop + (last % hop != 0), n = size < length ? size : length;
    fac_status status = fac_tensor_new(NULL, FAC_F32, fac_shape(windows, length), &y, err);
    if (!status) status = fac_tensor_begin_write(y, &to, err);
    for (int64_t k = 0; k < windows && !status; k++) {
        const int64_t from = k * hop < last ? k * hop : last;
        memcpy((float *)to + k * length, (const float *)fac_tensor_data(mono) + from,
               (size_t)n * sizeof(float));
    }
    fac_tensor_free(mono);
    if (status)
        fac_tensor_free(y);
    else
        *out = y;
    return status;
}
