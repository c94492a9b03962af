/* Data sets of sounds: recordings of folders, files whose names say class and speaker, or a table;
 * and which of them are for testing.  What is cut out of one recording is all in one part. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/sound/recordings.h"

bool fac_is_sound(const char *name) {
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

/* ---- names ---- */

fac_status fac_recordings_add(fac_recordings *r, fac_recording one) {
    if (!fac_reserve(&r->all, &r->room, r->n + 1, sizeof *r->all))
        return fac_raise(r->err, FAC_E_NOMEM, "%s: no memory for its list", r->from);
    r->all[r->n++] = one;
    return FAC_OK;
}

static bool find(const fac_names *names, const char *name, size_t length, int64_t *number) {
    for (size_t c = 0; c < names->n; c++)
        if (strlen(names->at[c]) == length && !memcmp(names->at[c], name, length)) {
            *number = (int64_t)c;
            return true;
        }
    return false;
}

fac_status fac_recordings_name(fac_recordings *r, fac_names *names, const char *name, size_t length,
                               int64_t *number) {
    if (find(names, name, length, number)) return FAC_OK;
    const char *text = fac_arena_print(&r->arena, "%.*s", (int)length, name);
    if (!text || !fac_reserve(&names->at, &names->room, names->n + 1, sizeof *names->at))
        return fac_raise(r->err, FAC_E_NOMEM, "%s: no memory for its names", r->from);
    *number = (int64_t)names->n;
    names->at[names->n++] = text;
    return FAC_OK;
}

fac_status fac_recordings_class(fac_recordings *r, const char *name, size_t length,
                                int64_t *label) {
    if (!r->opts->classes) return fac_recordings_name(r, &r->classes, name, length, label);
    if (find(&r->classes, name, length, label)) return FAC_OK;
    return fac_raise(r->err, FAC_E_FORMAT, "%s: class \"%.*s\" is none of the model's %d", r->from,
                     (int)(length < 99 ? length : 99), name, r->opts->nclasses);
}

/* ---- folders and names of files ---- */

/* Files are sorted, so classes are too. */
fac_status fac_recordings_digits(fac_recordings *r) {
    fac_names files = { 0 };
    fac_status status = fac_list_folder(r->from, fac_is_sound, &r->arena, &files, r->err);
    for (size_t i = 0; i < files.n && !status; i++) {
        const char *name = base_name(files.at[i]), *end = strchr(name, '_');
        int64_t label = 0;
        if (!end)
            status = fac_raise(r->err, FAC_E_FORMAT, "%s: its name is not CLASS_SPEAKER_INDEX",
                               files.at[i]);
        if (!status) status = fac_recordings_class(r, name, (size_t)(end - name), &label);
        if (!status)
            status = fac_recordings_add(
                r, (fac_recording){ .path = files.at[i], .label = label, .group = (int64_t)i });
    }
    fac_release(files.at);
    return status;
}

static fac_status one_class(fac_recordings *r, const char *folder) {
    const char *name = base_name(folder);
    fac_names files = { 0 };
    int64_t label = 0;
    FAC_TRY(fac_recordings_class(r, name, strlen(name), &label));
    fac_status status = fac_list_folder(folder, fac_is_sound, &r->arena, &files, r->err);
    for (size_t i = 0; i < files.n && !status; i++)
        status = fac_recordings_add(
            r, (fac_recording){ .path = files.at[i], .label = label, .group = (int64_t)r->n });
    fac_release(files.at);
    return status;
}

fac_status fac_recordings_folder(fac_recordings *r) {
    fac_names folders = { 0 };
    fac_status status = fac_list_folder(r->from, NULL, &r->arena, &folders, r->err);
    for (size_t c = 0; c < folders.n && !status; c++) status = one_class(r, folders.at[c]);
    fac_release(folders.at);
    return status;
}

/* ---- which part a recording is in ---- */

/* Whether a part of the name between underscores, or dots, is this word. */
static bool has_word(const char *name, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = name; n && (at = strstr(at, word)); at++) {
        const bool begins = at == name || at[-1] == '_',
                   ends = !at[n] || at[n] == '_' || at[n] == '.';
        if (begins && ends) return true;
    }
    return false;
}

/* The number after the last underscore. */
static long index_of(const char *name) {
    const char *last = strrchr(name, '_');
    return last ? strtol(last + 1, NULL, 10) : -1;
}

static bool is_held(const fac_recordings *r, const fac_recording *one) {
    const char *word = r->opts->hold_out;
    const bool grouped = r->groups.n && !strcmp(r->groups.at[one->group], word);
    return grouped || has_word(base_name(one->path), word);
}

/* Groups are numbered as they were met. */
static int64_t count_groups(const fac_recordings *r) {
    int64_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->all[i].group >= n) n = r->all[i].group + 1;
    return n;
}

/* The first of the groups in a random order are for testing. */
static fac_status draw_parts(fac_recordings *r) {
    const double part = r->opts->test > 0 ? r->opts->test : 0.1;
    const int64_t n = count_groups(r), most = (int64_t)((double)n * part + 0.5);
    bool *chosen = fac_alloc((size_t)n + 1, sizeof *chosen);
    if (!chosen) return fac_raise(r->err, FAC_E_NOMEM, "%s: no memory for its parts", r->from);
    for (int64_t k = 0; k < (most ? most : 1) && k < n; k++)
        chosen[fac_permute(r->opts->seed, 0, n, k)] = true;
    for (size_t i = 0; i < r->n; i++) r->all[i].test = chosen[r->all[i].group];
    fac_release(chosen);
    return FAC_OK;
}

static fac_status choose_parts(fac_recordings *r) {
    const fac_sounds_opts *o = r->opts;
    if (!o->hold_out && !o->digits) return draw_parts(r);
    for (size_t i = 0; i < r->n; i++) {
        const long index = index_of(base_name(r->all[i].path));
        r->all[i].test = o->hold_out ? is_held(r, &r->all[i]) : index >= 0 && index < 5;
    }
    return FAC_OK;
}

static fac_status check_parts(const fac_recordings *r) {
    size_t tests = 0;
    for (size_t i = 0; i < r->n; i++) tests += r->all[i].test;
    if (tests && tests < r->n) return FAC_OK;
    return fac_raise(r->err, FAC_E_ARGUMENT, "%s: %zu of %zu recordings are for testing", r->from,
                     tests, r->n);
}

/* ---- all of it ---- */

static bool is_file(const char *path) {
    struct stat s;
    return !stat(path, &s) && !S_ISDIR(s.st_mode);
}

static fac_status take_classes(fac_recordings *r) {
    int64_t number;
    for (int c = 0; c < r->opts->nclasses && r->opts->classes; c++)
        FAC_TRY(fac_recordings_name(r, &r->classes, r->opts->classes[c],
                                    strlen(r->opts->classes[c]), &number));
    return FAC_OK;
}

static fac_status find_recordings(fac_recordings *r, bool split) {
    const bool table = is_file(r->from), digits = r->opts->digits && !table;
    static const struct form {
        fac_status (*read)(fac_recordings *r);
        const char *needs;
    } forms[] = {
        { fac_recordings_folder, "a folder of sounds for each of two classes or more" },
        { fac_recordings_digits, "files called CLASS_SPEAKER_INDEX.wav" },
        { fac_recordings_table, "records FILE,label[,start,end] of two classes or more" },
    };
    const struct form *form = &forms[table ? 2 : digits];
    FAC_TRY(take_classes(r));
    FAC_TRY(form->read(r));
    if (r->classes.n < 2 || !r->n)
        return fac_raise(r->err, FAC_E_FORMAT, "%s: %zu sounds of %zu classes: it needs %s",
                         r->from, r->n, r->classes.n, form->needs);
    for (size_t i = 0; i < r->n && !split; i++) r->all[i].test = true;
    if (!split) return FAC_OK;
    FAC_TRY(choose_parts(r));
    return check_parts(r);
}

fac_status fac_dataset_sounds(const char *path, const fac_sounds_opts *opts, fac_dataset *train,
                              fac_dataset *test, fac_error *err) {
    const double samples = opts->seconds * opts->rate;
    fac_recordings r = { .from = path, .opts = opts, .err = err };
    fac_dataset a = { 0 }, b = { 0 };
    if (opts->rate < 1 || opts->rate > FAC_SOUND_RATE || !(samples >= 1 && samples < 1 << 28) ||
        opts->test >= 1)
        return fac_raise(err, FAC_E_ARGUMENT, "%g seconds at %d Hz, %g of it for testing",
                         opts->seconds, opts->rate, opts->test);
    fac_status status = find_recordings(&r, train != NULL);
    if (!status && train) status = fac_recordings_windows(&r, false, &a);
    if (!status) status = fac_recordings_windows(&r, true, &b);
    fac_release(r.classes.at);
    fac_release(r.groups.at);
    fac_release(r.all);
    fac_arena_free(&r.arena);
    if (status) {
        fac_dataset_free(&a);
        fac_dataset_free(&b);
        return status;
    }
    a.anew = true;
    if (train) *train = a;
    *test = b;
    return FAC_OK;
}
