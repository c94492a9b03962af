/* The page of sounds: incoming samples. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/data/sound.h"
#include "studio/hearing/hearing.h"

enum { BLOCK_SECONDS = 2, KEPT_SECONDS = 30 };

static fac_status check_finite(const float *x, int64_t n, fac_error *err) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return fac_raise(err, FAC_E_FORMAT, "sample %lld of the sound is not a finite number",
                             (long long)i);
    return FAC_OK;
}

static fac_status check_rate(int64_t rate, fac_error *err) {
    if (rate >= HEARING_LEAST_RATE && rate <= HEARING_MOST_RATE) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "the sample rate must be %d to %d Hz", HEARING_LEAST_RATE,
                     HEARING_MOST_RATE);
}

/* Starts a sound, from its first sample.  Takes ownership of x. */
static fac_status begin(hearing *p, float *x, int64_t n, int rate, fac_error *err) {
    hearing old = *p;
    p->rate = rate;
    p->at = 0;
    p->first = 0;
    const fac_status status = fac_hearing_build(p, &p->setup, err);
    if (status) {
        p->rate = old.rate;
        p->at = old.at;
        p->first = old.first;
        fac_release(x);
        return status;
    }
    fac_release(old.x);
    p->x = x;
    p->n = n;
    p->room = n;
    p->owed = 0;
    p->last = 0;
    p->nbest = 0;
    p->runs = 0;
    p->run_seconds = 0;
    p->unseen = (fac_error){ 0 };
    p->unheard = (fac_error){ 0 };
    return FAC_OK;
}

static fac_status mono(const fac_sound *s, float **out, int64_t *n, fac_error *err) {
    fac_tensor *t;
    FAC_TRY(fac_sound_mono(s, s->rate, &t, err));
    *n = fac_tensor_type(t).dims.d[0];
    float *x = fac_alloc((size_t)*n + 1, sizeof *x);
    fac_status status =
        x ? fac_tensor_read(t, x, (size_t)*n * sizeof *x, err) : fac_raise_memory(err, "a sound");
    fac_tensor_free(t);
    if (!status) status = check_finite(x, *n, err);
    if (status)
        fac_release(x);
    else
        *out = x;
    return status;
}

fac_status fac_hearing_file(hearing *p, const void *bytes, size_t size, fac_error *err) {
    fac_sound s = { 0 };
    float *x = NULL;
    int64_t n = 0;
    fac_status status = fac_wav_decode(bytes, size, "the file", &s, err);
    if (!status) status = check_rate(s.rate, err);
    if (!status && s.frames < 1) status = fac_raise(err, FAC_E_FORMAT, "the file has no samples");
    if (!status) status = mono(&s, &x, &n, err);
    if (!status) status = begin(p, x, n, s.rate, err);
    fac_sound_free(&s);
    if (status) return status;
    p->source = HEARING_FILE;
    p->playing = true;
    return FAC_OK;
}

fac_status fac_hearing_microphone(hearing *p, int64_t rate, fac_error *err) {
    FAC_TRY(check_rate(rate, err));
    float *x = fac_alloc(1, sizeof *x);
    if (!x) return fac_raise_memory(err, "a sound");
    FAC_TRY(begin(p, x, 0, (int)rate, err));
    p->room = 1;
    p->source = HEARING_MICROPHONE;
    p->playing = true;
    return FAC_OK;
}

/* A microphone may be on for hours: the older half is dropped, even if parts of it were not
 * processed yet. */
static void forget(hearing *p) {
    const int64_t most = (int64_t)KEPT_SECONDS * p->rate, gone = p->n - most;
    if (p->n < 2 * most) return;
    memmove(p->x, p->x + gone, (size_t)most * sizeof *p->x);
    p->n = most;
    p->first += gone;
    if (p->next < p->first) p->next = p->first;
    if (p->at < p->first) p->at = p->first;
}

fac_status fac_hearing_block(hearing *p, const void *bytes, size_t size, fac_error *err) {
    const size_t n = size / sizeof(float);
    if (p->source != HEARING_MICROPHONE)
        return fac_raise(err, FAC_E_ARGUMENT, "no microphone was started");
    if (!n || size % sizeof(float) || n > (size_t)BLOCK_SECONDS * (size_t)p->rate)
        return fac_raise(err, FAC_E_FORMAT,
                         "a block must be f32, little endian, of at most %d seconds; this one has "
                         "%zu bytes",
                         BLOCK_SECONDS, size);
    forget(p);
    size_t room = (size_t)p->room;
    if (!fac_reserve(&p->x, &room, (size_t)p->n + n, sizeof *p->x))
        return fac_raise_memory(err, "a sound");
    p->room = (int64_t)room;
    memcpy(p->x + p->n, bytes, size);
    FAC_TRY(check_finite(p->x + p->n, (int64_t)n, err));
    if (p->playing) p->n += (int64_t)n;
    p->dirty = true;
    return FAC_OK;
}
