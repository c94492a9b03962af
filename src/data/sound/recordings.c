/* Recordings become waveforms of one rate, one after the other, and windows of these. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "data/sound/recordings.h"
#include "data/sound/sound_bank.h"

/* What is read of one part. */
typedef struct waves {
    float *values; /* NULL where `files` */
    fac_cut *cuts;
    int64_t *labels;
    fac_sound_source *sources;
    size_t size, room, n, cut_room, label_room, nsources, source_room;
    bool files; /* there were too many samples: they stay in their files */
} waves;

/* The file that was read last: records of a table often share one. */
typedef struct reader {
    const char *path;
    fac_tensor *mono; /* NULL where only its length was wanted */
    int64_t size;
} reader;

static int64_t samples_of(const fac_recordings *r, double seconds) {
    return (int64_t)(seconds * r->opts->rate + 0.5);
}

static int64_t hop_of(const fac_recordings *r) {
    const fac_sounds_opts *o = r->opts;
    const int64_t hop = samples_of(r, o->hop > 0 ? o->hop : o->seconds / 2);
    return hop > 0 ? hop : 1;
}

static fac_status no_memory(const fac_recordings *r) {
    return fac_raise(r->err, FAC_E_NOMEM, "%s: no memory for its waveforms", r->from);
}

/* At least one window; what is left over of the last hop is heard where windows are cut anew. */
static fac_status cut(const fac_recordings *r, const fac_recording *one, int64_t size, waves *to) {
    const int64_t window = samples_of(r, r->opts->seconds), hop = hop_of(r),
                  windows = size > window ? 1 + (size - window) / hop : 1,
                  begin = (int64_t)to->size - size;
    for (int64_t k = 0; k < windows; k++) {
        if (!fac_reserve(&to->cuts, &to->cut_room, to->n + 1, sizeof *to->cuts) ||
            !fac_reserve(&to->labels, &to->label_room, to->n + 1, sizeof *to->labels))
            return no_memory(r);
        to->cuts[to->n] = (fac_cut){ begin, size, k * hop, (int64_t)to->nsources };
        to->labels[to->n++] = one->label;
    }
    return FAC_OK;
}

/* Its samples, or how many there are. */
static fac_status load(const fac_recordings *r, const fac_recording *one, bool length,
                       reader *last) {
    if (last->path && !strcmp(last->path, one->path) && (length || last->mono)) return FAC_OK;
    fac_sound s = { 0 };
    fac_tensor_free(last->mono);
    *last = (reader){ NULL, NULL, 0 };
    FAC_TRY(fac_sound_load(one->path, &s, r->err));
    fac_status status = FAC_OK;
    if (!length) status = fac_sound_mono(&s, r->opts->rate, &last->mono, r->err);
    last->size = fac_sound_length(&s, r->opts->rate);
    if (!status) last->path = one->path;
    fac_sound_free(&s);
    return status;
}

static fac_status keep_source(const fac_recordings *r, const fac_recording *one, int64_t whole,
                              int64_t from, waves *to) {
    if (!fac_reserve(&to->sources, &to->source_room, to->nsources + 1, sizeof *to->sources))
        return no_memory(r);
    to->sources[to->nsources++] = (fac_sound_source){ one->path, whole, from };
    return FAC_OK;
}

static int64_t most_bytes(const fac_recordings *r) {
    return r->opts->memory > 0 ? r->opts->memory : (int64_t)2 << 30;
}

/* What was read until now stays in its files as well. */
static void give_up_memory(waves *to) {
    fac_release(to->values);
    to->values = NULL;
    to->files = true;
}

static fac_status keep_samples(const fac_recordings *r, const reader *last, int64_t from,
                               int64_t end, waves *to) {
    const size_t n = (size_t)(end - from);
    if ((int64_t)((to->size + n) * sizeof *to->values) > most_bytes(r)) give_up_memory(to);
    if (!to->files) {
        if (!fac_reserve(&to->values, &to->room, to->size + n, sizeof *to->values))
            return no_memory(r);
        memcpy(to->values + to->size, (const float *)fac_tensor_data(last->mono) + from,
               n * sizeof *to->values);
    }
    to->size += n;
    return FAC_OK;
}

static fac_status read_recording(const fac_recordings *r, const fac_recording *one, reader *last,
                                 waves *to) {
    FAC_TRY(load(r, one, to->files, last));
    const int64_t size = last->size, from = samples_of(r, one->start);
    int64_t end = one->end > 0 ? samples_of(r, one->end) : size;
    if (end > size) end = size;
    if (!size) return fac_raise(r->err, FAC_E_FORMAT, "%s: a sound without samples", one->path);
    if (from >= end)
        return fac_raise(r->err, FAC_E_FORMAT, "%s: nothing from %g s on: it has %g s", one->path,
                         one->start, (double)size / r->opts->rate);
    FAC_TRY(keep_samples(r, last, from, end, to));
    FAC_TRY(cut(r, one, end - from, to));
    return keep_source(r, one, size, from, to);
}

static fac_status take_names(const fac_recordings *r, fac_dataset *d) {
    d->classes = (int)r->classes.n;
    d->class_names = fac_arena_texts(&d->memory->arena, r->classes.at, r->classes.n);
    return d->class_names ? FAC_OK
                          : fac_raise_memory(r->err, "the names of %zu classes", r->classes.n);
}

static fac_status keep_files(const fac_recordings *r, const waves *w, fac_dataset *out) {
    for (size_t i = 0; i < w->n; i++)
        out->memory->cuts[i].begin = w->sources[out->memory->cuts[i].source].from;
    out->values = NULL;
    return fac_sound_bank_new(r->opts->rate, most_bytes(r), w->nsources, w->sources,
                              &out->memory->bank, r->err);
}

static fac_status fill(const fac_recordings *r, const waves *w, fac_dataset *out) {
    const fac_dims item = fac_shape(samples_of(r, r->opts->seconds));
    const int64_t samples = w->files ? 0 : (int64_t)w->size;
    FAC_TRY(fac_dataset_new_cuts(out, (int64_t)w->n, item, samples, r->from, r->err));
    memcpy(out->memory->cuts, w->cuts, w->n * sizeof *w->cuts);
    memcpy(out->memory->labels, w->labels, w->n * sizeof *w->labels);
    out->zeros = r->opts->zeros;
    if (w->files)
        FAC_TRY(keep_files(r, w, out));
    else
        memcpy(out->memory->samples, w->values, w->size * sizeof *w->values);
    return take_names(r, out);
}

fac_status fac_recordings_windows(const fac_recordings *r, bool test, fac_dataset *out) {
    waves w = { 0 };
    reader last = { 0 };
    fac_status status = FAC_OK;
    for (size_t i = 0; i < r->n && !status; i++)
        if (r->all[i].test == test) status = read_recording(r, &r->all[i], &last, &w);
    if (!status) status = fill(r, &w, out);
    fac_tensor_free(last.mono);
    fac_release(w.values);
    fac_release(w.cuts);
    fac_release(w.labels);
    fac_release(w.sources);
    return status;
}
