/* A chain of zeroed chunks; the newest one serves, older ones only wait to be freed. */
#include "base/arena.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/memory.h"

enum { ALIGN = 16, FIRST = 4 << 10, LARGEST = 1 << 20 };

struct fac_arena_chunk {
    fac_arena_chunk *older;
    size_t           room;
    _Alignas(ALIGN) unsigned char data[];
};

void *fac_arena_alloc(fac_arena *a, size_t n, size_t size) {
    size_t bytes;
    if (!fac_size_mul(n, size, &bytes) || bytes > PTRDIFF_MAX - LARGEST) return NULL;
    bytes = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    if (bytes <= a->room - a->used) {
        void *p = a->chunk->data + a->used;
        a->used += bytes;
        return p;
    }
    /* What is large gets a chunk of its own behind the newest, whose rest stays in use. */
    bool own = a->chunk && bytes > LARGEST / 4;
    size_t room = a->room * 2 < FIRST ? FIRST : a->room * 2 > LARGEST ? LARGEST : a->room * 2;
    if (own || room < bytes) room = bytes;
    fac_arena_chunk *chunk = fac_alloc(1, sizeof *chunk + room);
    if (!chunk) return NULL;
    chunk->room = room;
    if (own) {
        chunk->older = a->chunk->older;
        a->chunk->older = chunk;
    } else {
        chunk->older = a->chunk;
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

void fac_arena_free(fac_arena *a) {
    while (a->chunk) {
        fac_arena_chunk *older = a->chunk->older;
        fac_release(a->chunk);
        a->chunk = older;
    }
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
