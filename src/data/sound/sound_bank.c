/* A cache of decoded files: the one that was used longest ago goes first. */
#include "data/sound/sound_bank.h"
#include <pthread.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"

typedef struct file {
    char *path;
    int64_t whole;
    fac_tensor *mono; /* NULL: it is not here */
    bool loading;     /* a thread decodes it; its bytes are counted */
    int users;        /* between _begin and _end: it stays */
    uint64_t used;    /* which turn it was used in last */
} file;

struct fac_sound_bank {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a file was loaded or let go */
    int rate;
    int64_t most, bytes, reads;
    uint64_t turn;
    file *files;
    size_t nfiles, nsources;
    size_t *file_of; /* of each source */
    int64_t *from;
};

/* Sources of one file mostly follow one another; where they do not, it is here more than once. */
static fac_status add(fac_sound_bank *b, const fac_sound_source *s, fac_error *err) {
    const size_t k = b->nsources;
    if (!b->nfiles || strcmp(b->files[b->nfiles - 1].path, s->path)) {
        char *path = fac_copy_text(s->path);
        if (!path) return fac_raise_memory(err, "a list of recordings");
        b->files[b->nfiles++] = (file){ .path = path, .whole = s->whole };
    }
    b->file_of[k] = b->nfiles - 1;
    b->from[k] = s->from;
    b->nsources++;
    return FAC_OK;
}

fac_status fac_sound_bank_new(int rate, int64_t most, size_t n, const fac_sound_source *sources,
                              fac_sound_bank **out, fac_error *err) {
    fac_sound_bank *b = fac_alloc(1, sizeof *b);
    if (!b) return fac_raise_memory(err, "a list of recordings");
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    b->rate = rate;
    b->most = most;
    b->files = fac_alloc(n + 1, sizeof *b->files);
    b->file_of = fac_alloc(n + 1, sizeof *b->file_of);
    b->from = fac_alloc(n + 1, sizeof *b->from);
    fac_status status =
        b->files && b->file_of && b->from ? FAC_OK : fac_raise_memory(err, "a list of recordings");
    for (size_t k = 0; k < n && !status; k++) status = add(b, &sources[k], err);
    if (status)
        fac_sound_bank_free(b);
    else
        *out = b;
    return status;
}

void fac_sound_bank_free(fac_sound_bank *b) {
    if (!b) return;
    for (size_t k = 0; k < b->nfiles; k++) {
        fac_tensor_free(b->files[k].mono);
        fac_release(b->files[k].path);
    }
    fac_release(b->files);
    fac_release(b->file_of);
    fac_release(b->from);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    fac_release(b);
}

int64_t fac_sound_length(const fac_sound *s, int rate) {
    int64_t a = s->rate, b = rate;
    while (b) {
        const int64_t left = a % b;
        a = b;
        b = left;
    }
    const int64_t from = s->rate / a, to = rate / a;
    return (s->frames * to + from - 1) / from;
}

/* ---- files come and go ---- */

static int64_t bytes_of(const file *f) { return f->whole * (int64_t)sizeof(float); }

static void drop(fac_sound_bank *b, file *f) {
    fac_tensor_free(f->mono);
    f->mono = NULL;
    b->bytes -= bytes_of(f);
}

/* False: what is in use leaves no room yet.  A file that is too large comes when it is alone. */
static bool make_room(fac_sound_bank *b, int64_t bytes) {
    while (b->bytes > 0 && b->bytes + bytes > b->most) {
        file *oldest = NULL;
        for (size_t k = 0; k < b->nfiles; k++) {
            file *f = &b->files[k];
            if (f->mono && !f->users && (!oldest || f->used < oldest->used)) oldest = f;
        }
        if (!oldest) return false;
        drop(b, oldest);
    }
    return true;
}

/* Without the lock: of the file only what never changes is read. */
static fac_status decode(const fac_sound_bank *b, const file *f, fac_tensor **out, fac_error *err) {
    fac_sound s = { 0 };
    FAC_TRY(fac_sound_load(f->path, &s, err));
    const fac_status status = fac_sound_mono(&s, b->rate, out, err);
    fac_sound_free(&s);
    if (status) return status;
    const int64_t has = fac_tensor_type(*out).dims.d[0];
    if (has == f->whole) return FAC_OK;
    fac_tensor_free(*out);
    *out = NULL;
    return fac_raise(err, FAC_E_FORMAT,
                     "%s: it had %lld samples at %d Hz when it was read first, now %lld", f->path,
                     (long long)f->whole, b->rate, (long long)has);
}

/* The lock is free while the file is decoded; who wants the same one waits for it. */
static fac_status load(fac_sound_bank *b, file *f, fac_error *err) {
    fac_tensor *mono = NULL;
    f->loading = true;
    b->bytes += bytes_of(f);
    b->reads++;
    pthread_mutex_unlock(&b->lock);
    const fac_status status = decode(b, f, &mono, err);
    pthread_mutex_lock(&b->lock);
    f->loading = false;
    f->mono = mono;
    if (status) b->bytes -= bytes_of(f);
    pthread_cond_broadcast(&b->changed);
    return status;
}

fac_status fac_sound_bank_begin(fac_sound_bank *b, int64_t source, const float **x,
                                fac_error *err) {
    file *f = &b->files[b->file_of[source]];
    fac_status status = FAC_OK;
    pthread_mutex_lock(&b->lock);
    while (f->loading || (!f->mono && !make_room(b, bytes_of(f))))
        pthread_cond_wait(&b->changed, &b->lock);
    if (!f->mono) status = load(b, f, err);
    if (!status) {
        f->used = ++b->turn;
        f->users++;
        *x = (const float *)fac_tensor_data(f->mono) + b->from[source];
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

void fac_sound_bank_end(fac_sound_bank *b, int64_t source) {
    pthread_mutex_lock(&b->lock);
    b->files[b->file_of[source]].users--;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static int64_t read_locked(fac_sound_bank *b, const int64_t *what) {
    pthread_mutex_lock(&b->lock);
    const int64_t x = *what;
    pthread_mutex_unlock(&b->lock);
    return x;
}

int64_t fac_sound_bank_bytes(fac_sound_bank *b) { return read_locked(b, &b->bytes); }
int64_t fac_sound_bank_reads(fac_sound_bank *b) { return read_locked(b, &b->reads); }
