/* GGUF files (github.com/ggml-org/ggml, its page gguf.md): keys with values, then tensors. */
#ifndef FACULA_TENSOR_GGUF_H
#define FACULA_TENSOR_GGUF_H
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/file/file.h"
#include "base/table.h"
#include "facula/io.h"

/* Types of values. */
enum {
    FAC_GGUF_U8,
    FAC_GGUF_I8,
    FAC_GGUF_U16,
    FAC_GGUF_I16,
    FAC_GGUF_U32,
    FAC_GGUF_I32,
    FAC_GGUF_F32,
    FAC_GGUF_FLAG,
    FAC_GGUF_TEXT,
    FAC_GGUF_ARRAY,
    FAC_GGUF_U64,
    FAC_GGUF_I64,
    FAC_GGUF_F64,
    FAC_GGUF_TYPES
};

size_t fac_gguf_bytes(uint32_t type); /* of one value; 0: a text or an array */

/* A value lies at `at` in the file: one of them, or n elements of an array (`type` is theirs). */
typedef struct fac_gguf_key {
    const char *name;
    uint32_t type;
    bool array;
    uint64_t n;
    const unsigned char *at;
} fac_gguf_key;

typedef struct fac_gguf_tensor {
    const char *name;
    fac_type type;
    uint32_t id;
    uint64_t offset;
} fac_gguf_tensor;

/* All of the file's head, checked: every count and every offset lies within the file.  Texts belong
 * to it. */
typedef struct fac_gguf {
    fac_file *file;
    fac_arena arena;
    fac_gguf_key *keys;
    fac_gguf_tensor *tensors;
    size_t nkeys, ntensors, data; /* data: where tensors begin, a byte of the file */
    fac_table by_name;            /* keys */
    const fac_gguf_key *wrong;    /* the first that was asked for and has another type */
} fac_gguf;

bool fac_gguf_here(const fac_file *f);
fac_status fac_gguf_open(fac_file *f, fac_gguf **out, fac_error *err);
void fac_gguf_free(fac_gguf *g); /* NULL is fine */

/* NULL: there is none. */
const fac_gguf_key *fac_gguf_find(const fac_gguf *g, const char *name);
/* Of a number or a flag of any type; `missing` where there is none.  A key of another kind is no
 * missing one: fac_gguf_right says so, after all have been asked for. */
int64_t fac_gguf_int(fac_gguf *g, const char *name, int64_t missing);
double fac_gguf_real(fac_gguf *g, const char *name, double missing);
/* A copy in the arena, its length in *bytes (may be NULL); NULL: no such text, or no memory. */
const char *fac_gguf_text(fac_gguf *g, const char *name, size_t *bytes);
fac_status fac_gguf_right(const fac_gguf *g, fac_error *err);
/* Element i of an array of numbers. */
double fac_gguf_number(const fac_gguf_key *k, uint64_t i);
/* The text at *p, which moves after it; its bytes are those of the file, without a zero at the end.
 */
const char *fac_gguf_next_text(const unsigned char **p, size_t *bytes);

/* Tensors into w: those of types that are none here are skipped with their names. */
fac_status fac_gguf_weights(const fac_gguf *g, fac_weights *w, fac_error *err);
fac_status fac_gguf_read(fac_file *file, fac_weights *w, fac_error *err);
#endif
