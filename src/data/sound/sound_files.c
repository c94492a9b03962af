/* Which sounds a path means, for those who want to hear all of them. */
#include <string.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "data/sound/recordings.h"

struct fac_sound_files_memory {
    fac_arena arena;
    const char **path;
    double *start, *end;
};

/* The sounds of a folder, after those of the folders in it. */
static fac_status walk(fac_recordings *r) {
    fac_names folders = { 0 }, files = { 0 };
    fac_status status = fac_list_folder(r->from, NULL, &r->arena, &folders, r->err);
    for (size_t k = 0; k < folders.n && !status; k++)
        status = fac_list_folder(folders.at[k], fac_is_sound, &r->arena, &files, r->err);
    if (!status) status = fac_list_folder(r->from, fac_is_sound, &r->arena, &files, r->err);
    for (size_t k = 0; k < files.n && !status; k++)
        status = fac_recordings_add(r, (fac_recording){ .path = files.at[k] });
    fac_release(folders.at);
    fac_release(files.at);
    return status;
}

static fac_status find(fac_recordings *r) {
    if (fac_is_folder(r->from)) return walk(r);
    if (!fac_is_sound(r->from)) return fac_recordings_table(r);
    const char *path = fac_arena_print(&r->arena, "%s", r->from);
    return path ? fac_recordings_add(r, (fac_recording){ .path = path })
                : fac_raise(r->err, FAC_E_NOMEM, "%s: no memory for its name", r->from);
}

/* The arena goes over to the list. */
static fac_status list(fac_recordings *r, fac_sound_files *out) {
    struct fac_sound_files_memory *m = fac_alloc(1, sizeof *m);
    *out = (fac_sound_files){ .count = (int64_t)r->n, .memory = m };
    if (!m || !(m->path = fac_alloc(r->n + 1, sizeof *m->path)) ||
        !(m->start = fac_alloc(r->n + 1, sizeof *m->start)) ||
        !(m->end = fac_alloc(r->n + 1, sizeof *m->end))) {
        fac_sound_files_free(out);
        return fac_raise(r->err, FAC_E_NOMEM, "%s: no memory for its list", r->from);
    }
    for (size_t i = 0; i < r->n; i++) {
        m->path[i] = r->all[i].path;
        m->start[i] = r->all[i].start;
        m->end[i] = r->all[i].end;
    }
    out->path = m->path;
    out->start = m->start;
    out->end = m->end;
    m->arena = r->arena;
    r->arena = (fac_arena){ 0 };
    return FAC_OK;
}

fac_status fac_sound_files_find(const char *path, fac_sound_files *out, fac_error *err) {
    static const fac_sounds_opts any = { 0 };
    fac_recordings r = { .from = path, .opts = &any, .err = err };
    fac_status status = find(&r);
    if (!status && !r.n) status = fac_raise(err, FAC_E_FORMAT, "%s: there is no sound in it", path);
    if (!status) status = list(&r, out);
    fac_release(r.classes.at);
    fac_release(r.groups.at);
    fac_release(r.all);
    fac_arena_free(&r.arena);
    return status;
}

void fac_sound_files_free(fac_sound_files *f) {
    if (f->memory) {
        fac_arena_free(&f->memory->arena);
        fac_release(f->memory->path);
        fac_release(f->memory->start);
        fac_release(f->memory->end);
        fac_release(f->memory);
    }
    *f = (fac_sound_files){ 0 };
}
