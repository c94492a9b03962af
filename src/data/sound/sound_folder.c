/* Data sets of sounds: a folder for each class, or files whose names say class and speaker.  The
 * parts for training and for testing are parts of the recordings; what is cut out of one recording
 * is all in one part. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/sets/dataset_internal.h"
#include "data/sets/listing.h"
#include "data/sound/sound_internal.h"

/* One file, its class and its part. */
typedef struct recording {
    const char *path;
    int64_t label;
    bool test;
} recording;

/* A data set in the making. */
typedef struct maker {
    const char *folder;
    const fac_sounds_opts *opts;
    fac_arena arena;
    fac_names classes; /* names, no paths */
    recording *all;
    size_t n, room;
    int64_t samples; /* of one waveform */
    fac_error *err;
} maker;

static bool is_sound(const char *name) {
    static const char *const ends[] = { ".wav", ".flac", ".ogg",  ".oga", ".opus",
                                        ".mp3", ".aif",  ".aiff", ".au",  NULL };
    const char *dot = strrchr(name, '.');
    for (const char *const *e = ends; dot && *e; e++)
        if (!strcasecmp(dot, *e)) return true;
    return false;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- which part a recording is in ---- */

/* Whether a part of the name between underscores, or dots, is this word. */
static bool has_word(const char *name, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = name; (at = strstr(at, word)); at++) {
        const bool begins = at == name || at[-1] == '_',
                   ends = !at[n] || at[n] == '_' || at[n] == '.';
        if (begins && ends) return true;
    }
    return false;
}

/* The number behind the last underscore. */
static long index_of(const char *name) {
    const char *last = strrchr(name, '_');
    return last ? strtol(last + 1, NULL, 10) : -1;
}

/* Place k of the recordings in a random order is for testing when it is among the first. */
static void choose_parts(maker *m) {
    const fac_sounds_opts *o = m->opts;
    const double part = o->test > 0 ? o->test : 0.1;
    const int64_t n = (int64_t)m->n, tests = (int64_t)((double)n * part + 0.5);
    for (size_t i = 0; i < m->n; i++) {
        const char *name = base_name(m->all[i].path);
        const bool held = o->hold_out && has_word(name, o->hold_out),
                   first = index_of(name) >= 0 && index_of(name) < 5;
        m->all[i].test = o->hold_out ? held : o->digits && first;
    }
    if (o->hold_out || o->digits) return;
    for (int64_t k = 0; k < (tests ? tests : 1) && k < n; k++)
        m->all[fac_permute(o->seed, 0, n, k)].test = true;
}

/* ---- classes ---- */

static fac_status add(maker *m, const char *path, int64_t label) {
    if (!fac_reserve(&m->all, &m->room, m->n + 1, sizeof *m->all))
        return fac_raise(m->err, FAC_E_NOMEM, "%s: no memory for its list", m->folder);
    m->all[m->n++] = (recording){ path, label, false };
    return FAC_OK;
}

/* The class of a name is what stands before its first underscore. */
static fac_status class_of(maker *m, const char *path, int64_t *label) {
    const char *name = base_name(path), *end = strchr(name, '_');
    if (!end)
        return fac_raise(m->err, FAC_E_FORMAT, "%s: its name is not CLASS_SPEAKER_INDEX", path);
    const size_t length = (size_t)(end - name);
    for (size_t c = 0; c < m->classes.n; c++)
        if (strlen(m->classes.at[c]) == length && !memcmp(m->classes.at[c], name, length)) {
            *label = (int64_t)c;
            return FAC_OK;
        }
    const char *text = fac_arena_print(&m->arena, "%.*s", (int)length, name);
    if (!text ||
        !fac_reserve(&m->classes.at, &m->classes.room, m->classes.n + 1, sizeof *m->classes.at))
        return fac_raise(m->err, FAC_E_NOMEM, "%s: no memory for its classes", m->folder);
    *label = (int64_t)m->classes.n;
    m->classes.at[m->classes.n++] = text;
    return FAC_OK;
}

/* Files are sorted, so classes are too. */
static fac_status by_names(maker *m) {
    fac_names files = { 0 };
    fac_status status = fac_list_folder(m->folder, is_sound, &m->arena, &files, m->err);
    for (size_t i = 0; i < files.n && !status; i++) {
        int64_t label = 0;
        status = class_of(m, files.at[i], &label);
        if (!status) status = add(m, files.at[i], label);
    }
    fac_release(files.at);
    return status;
}

static fac_status by_folders(maker *m) {
    fac_names folders = { 0 };
    fac_status status = fac_list_folder(m->folder, NULL, &m->arena, &folders, m->err);
    for (size_t c = 0; c < folders.n && !status; c++) {
        fac_names files = { 0 };
        status = fac_list_folder(folders.at[c], is_sound, &m->arena, &files, m->err);
        for (size_t i = 0; i < files.n && !status; i++) status = add(m, files.at[i], (int64_t)c);
        fac_release(files.at);
        folders.at[c] = base_name(folders.at[c]);
    }
    m->classes = folders;
    return status;
}

static fac_status find_recordings(maker *m) {
    FAC_TRY(m->opts->digits ? by_names(m) : by_folders(m));
    if (m->classes.n < 2 || !m->n)
        return fac_raise(m->err, FAC_E_FORMAT, "%s: %zu sounds of %zu classes: it needs %s",
                         m->folder, m->n, m->classes.n,
                         m->opts->digits ? "files called CLASS_SPEAKER_INDEX.wav"
                                         : "a folder of sounds for each of two classes or more");
    choose_parts(m);
    size_t tests = 0;
    for (size_t i = 0; i < m->n; i++) tests += m->all[i].test;
    if (tests && tests < m->n) return FAC_OK;
    return fac_raise(m->err, FAC_E_ARGUMENT, "%s: %zu of %zu recordings are for testing", m->folder,
                     tests, m->n);
}

/* ---- waveforms ---- */

typedef struct waves {
    float *values; /* one waveform after the other */
    int64_t *labels;
    size_t n, room, label_room;
} waves;

static int64_t hop_of(const maker *m) {
    const fac_sounds_opts *o = m->opts;
    const int64_t hop = (int64_t)((o->hop > 0 ? o->hop : o->seconds / 2) * o->rate + 0.5);
    return hop > 0 ? hop : 1;
}

/* Windows of one recording: at least one, which is repeated or filled up. */
static fac_status cut(const maker *m, const recording *r, const float *x, int64_t size, waves *to) {
    int64_t windows = size > m->samples ? 1 + (size - m->samples) / hop_of(m) : 1;
    if (!size) return fac_raise(m->err, FAC_E_FORMAT, "%s: a sound without samples", r->path);
    for (int64_t k = 0; k < windows; k++) {
        const size_t need = (to->n + 1) * (size_t)m->samples;
        if (!fac_reserve(&to->values, &to->room, need, sizeof *to->values) ||
            !fac_reserve(&to->labels, &to->label_room, to->n + 1, sizeof *to->labels))
            return fac_raise(m->err, FAC_E_NOMEM, "%s: no memory for its waveforms", m->folder);
        float *wave = to->values + to->n * (size_t)m->samples;
        const int64_t from = k * hop_of(m);
        for (int64_t i = 0; i < m->samples; i++) {
            const int64_t at = from + i;
            wave[i] = at < size ? x[at] : m->opts->zeros ? 0 : x[at % size];
        }
        to->labels[to->n++] = r->label;
    }
    return FAC_OK;
}

static fac_status read_recording(const maker *m, const recording *r, waves *to) {
    fac_sound s = { 0 };
    fac_tensor *mono = NULL;
    fac_status status = fac_sound_load(r->path, &s, m->err);
    if (!status) status = fac_sound_mono(&s, m->opts->rate, &mono, m->err);
    if (!status) status = cut(m, r, fac_tensor_data(mono), fac_tensor_type(mono).dims.d[0], to);
    fac_tensor_free(mono);
    fac_sound_free(&s);
    return status;
}

static fac_status take_names(const maker *m, fac_dataset *d) {
    d->classes = (int)m->classes.n;
    d->class_names = fac_arena_texts(&d->memory->arena, m->classes.at, m->classes.n);
    return d->class_names ? FAC_OK
                          : fac_raise(m->err, FAC_E_NOMEM, "no memory for the names of %zu classes",
                                      m->classes.n);
}

static fac_status make_part(const maker *m, bool test, fac_dataset *out) {
    waves w = { 0 };
    fac_status status = FAC_OK;
    for (size_t i = 0; i < m->n && !status; i++)
        if (m->all[i].test == test) status = read_recording(m, &m->all[i], &w);
    if (!status)
        status = fac_dataset_new(out, (int64_t)w.n, fac_shape(m->samples), true, m->folder, m->err);
    if (!status) {
        memcpy(fac_dataset_values(out), w.values, w.n * (size_t)m->samples * sizeof *w.values);
        memcpy(fac_dataset_labels(out), w.labels, w.n * sizeof *w.labels);
        status = take_names(m, out);
    }
    fac_release(w.values);
    fac_release(w.labels);
    return status;
}

fac_status fac_dataset_sounds(const char *folder, const fac_sounds_opts *opts, fac_dataset *train,
                              fac_dataset *test, fac_error *err) {
    const double samples = opts->seconds * opts->rate;
    maker m = { .folder = folder, .opts = opts, .samples = (int64_t)(samples + 0.5), .err = err };
    fac_dataset a = { 0 }, b = { 0 };
    if (opts->rate < 1 || opts->rate > FAC_SOUND_RATE || !(samples >= 1 && samples < 1 << 28) ||
        opts->test >= 1)
        return fac_raise(err, FAC_E_ARGUMENT, "%g seconds at %d Hz, %g of it for testing",
                         opts->seconds, opts->rate, opts->test);
    fac_status status = find_recordings(&m);
    if (!status) status = make_part(&m, false, &a);
    if (!status) status = make_part(&m, true, &b);
    fac_release(m.classes.at);
    fac_release(m.all);
    fac_arena_free(&m.arena);
    if (status) {
        fac_dataset_free(&a);
        fac_dataset_free(&b);
        return status;
    }
    *train = a;
    *test = b;
    return FAC_OK;
}
