/* A chain of zeroed chunks; the newest one serves, older ones only wait to be freed.  The newest
 * also holds what other arenas gave up: see spare.h. */
#include "base/arena.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/clamp.h"
#include "base/memory.h"
#include "base/spare.h"

enum { ALIGN = 16, FIRST = 4 << 10, LARGEST = 1 << 20 };

struct fac_arena_chunk {
    fac_arena_chunk *older, *spare;
    size_t room, used; /* used: of a spare one, what must be zeroed */
    _Alignas(ALIGN) unsigned char data[];
};

/* The first one with so much room. */
static fac_arena_chunk *take_spare(fac_arena *a, size_t bytes) {
    fac_arena_chunk **at = a->chunk ? &a->chunk->spare : NULL;
    while (at && *at && (*at)->room < bytes) at = &(*at)->older;
    fac_arena_chunk *c = at ? *at : NULL;
    if (!c) return NULL;
    *at = c->older;
    memset(c->data, 0, c->used);
    c->used = 0;
    c->spare = NULL;
    return c;
}

void *fac_arena_alloc(fac_arena *a, size_t n, size_t size) {
    size_t bytes;
    if (!fac_size_mul(n, size, &bytes) || bytes > PTRDIFF_MAX - LARGEST) return NULL;
    bytes = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    if (bytes <= a->room - a->used) {
        void *p = a->chunk->data + a->used;
        a->used += bytes;
        return p;
    }
    /* What is large gets a chunk of its own after the newest, whose rest stays in use. */
    bool own = a->chunk && bytes > LARGEST / 4;
    size_t room = (size_t)fac_clamp((int64_t)a->room * 2, FIRST, LARGEST);
    if (own || room < bytes) room = bytes;
    fac_arena_chunk *chunk = own ? NULL : take_spare(a, bytes);
    if (!chunk) chunk = fac_alloc(1, sizeof *chunk + room);
    if (!chunk) return NULL;
    if (!chunk->room) chunk->room = room;
    room = chunk->room;
    if (own) {
        chunk->older = a->chunk->older;
        a->chunk->older = chunk;
    } else {
        chunk->older = a->chunk;
        chunk->spare = a->chunk ? a->chunk->spare : NULL;
        if (a->chunk) a->chunk->spare = NULL;
        *a = (fac_arena){ chunk, bytes, room };
    }
    return chunk->data;
}

char *fac_arena_text(fac_arena *a, const char *s) {
    if (!s) return NULL;
    size_t bytes = strlen(s) + 1;
    char *copy = fac_arena_alloc(a, bytes, 1);
    if (copy) memcpy(copy, s, bytes);
    return copy;
}

const char **fac_arena_texts(fac_arena *a, const char *const *s, size_t n) {
    const char **copies = fac_arena_alloc(a, n, sizeof *copies);
    for (size_t k = 0; copies && k < n; k++)
        if (!(copies[k] = fac_arena_text(a, s[k]))) copies = NULL;
    return copies;
}

char *fac_arena_print(fac_arena *a, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = length < 0 ? NULL : fac_arena_alloc(a, (size_t)length + 1, 1);
    if (text) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

static void append(fac_arena_chunk **list, fac_arena_chunk *more) {
    while (*list) list = &(*list)->older;
    *list = more;
}

/* Its newest chunk comes first, which is the largest. */
void fac_arena_give(fac_arena *to, fac_arena *from) {
    if (!to->chunk || !from->chunk) return;
    fac_arena_pass_on(to, from);
    for (fac_arena_chunk *c = from->chunk; c; c = c->older) c->used = c->room;
    from->chunk->used = from->used;
    append(&to->chunk->spare, from->chunk);
    *from = (fac_arena){ 0 };
}

void fac_arena_pass_on(fac_arena *to, fac_arena *from) {
    if (!to->chunk || !from->chunk || !from->chunk->spare) return;
    append(&to->chunk->spare, from->chunk->spare);
    from->chunk->spare = NULL;
}

static void free_chain(fac_arena_chunk *c) {
    while (c) {
        fac_arena_chunk *older = c->older;
        fac_release(c);
        c = older;
    }
}

void fac_arena_drop_spare(fac_arena *a) {
    if (!a->chunk) return;
    free_chain(a->chunk->spare);
    a->chunk->spare = NULL;
}

void fac_arena_free(fac_arena *a) {
    fac_arena_drop_spare(a);
    free_chain(a->chunk);
    *a = (fac_arena){ 0 };
}

void fac_arena_reset(fac_arena *a) {
    size_t room = 0;
    if (!a->chunk) return;
    for (const fac_arena_chunk *c = a->chunk; c; c = c->older) room += c->room;
    if (!a->chunk->older) {
        memset(a->chunk->data, 0, a->used);
        a->used = 0;
        return;
    }
    fac_arena_free(a);
    a->chunk = fac_alloc(1, sizeof *a->chunk + room);
    if (!a->chunk) return;
    a->chunk->room = a->room = room;
}
