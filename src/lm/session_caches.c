/* The caches of a session: they begin small and double, with a program of their own for each size.
 */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/pages.h"
#include "lm/session.h"
#include "tensor/tensor_internal.h"

enum { FIRST_ROWS = 256 };

void fac_caches_free(fac_tensor **all, int64_t n) {
    for (int64_t k = 0; all && k < n; k++) fac_tensor_free(all[k]);
    fac_release(all);
}

static fac_dims dims_of(const fac_session *s, int64_t capacity) {
    return fac_shape(s->nslots, s->m->c.kv_heads, capacity, s->m->c.head);
}

/* Of unknown contents: pages that nothing wrote take no memory. */
static fac_status new_caches(const fac_session *s, int64_t capacity, fac_tensor ***out,
                             fac_error *err) {
    const int64_t n = fac_session_caches(s);
    const fac_type type = { FAC_F32, dims_of(s, capacity) };
    fac_tensor **all = fac_alloc((size_t)n, sizeof *all);
    fac_status status = all ? FAC_OK : fac_raise_memory(err, "caches");
    for (int64_t k = 0; k < n && !status; k++)
        status = fac_tensor_new_on(NULL, NULL, type, false, &all[k], err);
    if (status)
        fac_caches_free(all, n);
    else
        *out = all;
    return status;
}

static fac_status writable(fac_tensor *t, float **x, fac_error *err) {
    void *data;
    if (!fac_tensor_data(t)) return fac_raise(err, FAC_E_DEVICE, "a cache cannot be read");
    FAC_TRY(fac_tensor_begin_write(t, &data, err));
    *x = data;
    return FAC_OK;
}

typedef struct place {
    const float *x;
    float *y;
    int64_t x_rows, y_rows; /* capacities */
} place;

/* The first `rows` rows of every head of slot `from` into those of slot `to`. */
static void move_rows(const fac_session *s, const place *p, int from, int to, int64_t rows) {
    const int64_t G = s->m->c.kv_heads, D = s->m->c.head;
    for (int64_t g = 0; g < G; g++)
        memmove(p->y + ((int64_t)to * G + g) * p->y_rows * D,
                p->x + ((int64_t)from * G + g) * p->x_rows * D, (size_t)(rows * D) * sizeof *p->x);
}

fac_status fac_session_copy_rows(const fac_session *a, int from, fac_session *b, int to, int64_t k,
                                 int64_t rows, fac_error *err) {
    place p = { NULL, NULL, a->capacity, b->capacity };
    FAC_TRY(writable(b->caches[k], &p.y, err));
    p.x = fac_tensor_data(a->caches[k]);
    if (!p.x) return fac_raise(err, FAC_E_DEVICE, "a cache cannot be read");
    move_rows(b, &p, from, to, rows);
    return FAC_OK;
}

static fac_status make_program(fac_session *s, fac_tensor **caches, int64_t capacity,
                               fac_program **out, fac_error *err) {
    fac_graph *g;
    const fac_program_opts o = { .precision = s->m->opts.precision };
    FAC_TRY(fac_lm_build(s->m, s->nslots, capacity, caches, &g, err));
    const fac_status status = fac_program_new(g, s->m->device, &o, out, err);
    fac_graph_free(g);
    return status;
}

/* From the old caches into new ones, the rest of which is 0.  Each takes the place of the old one
 * before the next is touched: there is never more than one cache twice.  What may fail comes
 * first. */
static fac_status move_caches(fac_session *s, fac_tensor **caches, int64_t capacity,
                              fac_program *program, fac_error *err) {
    const int64_t n = fac_session_caches(s);
    const fac_dims d = dims_of(s, capacity);
    const size_t bytes = (size_t)fac_dims_count(&d) * sizeof(float);
    place *p = fac_alloc((size_t)n, sizeof *p);
    fac_status status = p ? FAC_OK : fac_raise_memory(err, "caches");
    for (int64_t k = 0; k < n && !status; k++) {
        p[k] = (place){ NULL, NULL, s->capacity, capacity };
        status = writable(caches[k], &p[k].y, err);
        if (!s->caches) continue;
        p[k].x = fac_tensor_data(s->caches[k]);
        if (!status && !p[k].x) status = fac_raise(err, FAC_E_DEVICE, "a cache cannot be read");
    }
    if (!status) {
        fac_program_free(s->program); /* which has the old ones, too */
        s->program = program;
    }
    for (int64_t k = 0; k < n && !status; k++) {
        memset(p[k].y, 0, bytes);
        if (!s->caches) continue;
        for (int b = 0; b < s->nslots; b++) move_rows(s, &p[k], b, b, s->slots[b].length);
        fac_tensor_free(s->caches[k]);
        s->caches[k] = NULL;
        fac_release_pages();
    }
    fac_release(p);
    return status;
}

fac_status fac_session_grow(fac_session *s, int64_t rows, fac_error *err) {
    int64_t capacity = s->capacity ? s->capacity : FIRST_ROWS;
    const int64_t most = s->m->context + FAC_LARGEST_CHUNK;
    while (capacity < rows) capacity *= 2;
    if (capacity > most) capacity = most;
    if (capacity == s->capacity) return FAC_OK;
    fac_tensor **caches;
    fac_program *program = NULL;
    FAC_TRY(new_caches(s, capacity, &caches, err));
    fac_status status = make_program(s, caches, capacity, &program, err);
    if (!status) status = move_caches(s, caches, capacity, program, err);
    if (status) {
        fac_program_free(program);
        fac_caches_free(caches, fac_session_caches(s));
        return status;
    }
    fac_caches_free(s->caches, fac_session_caches(s));
    s->caches = caches;
    s->capacity = capacity;
    return FAC_OK;
}
