/* Between the files that read texts. */
#ifndef FACULA_DATA_TEXT_INTERNAL_H
#define FACULA_DATA_TEXT_INTERNAL_H
#include <stdint.h>
#include "base/arena.h"
#include "base/table.h"
#include "base/unicode/unicode.h"
#include "facula/data/data.h"

struct fac_texts_memory {
    fac_arena arena;
    const char **text;
    int64_t *labels;
};

/* The parts of a reader that do not touch files: any bytes, `name` is for errors. */
fac_status fac_texts_scan(const char *data, size_t bytes, const char *name,
                          const fac_texts_opts *opts, fac_texts *out, fac_error *err);
fac_status fac_vocab_parse(const char *data, size_t bytes, const char *name, fac_vocab **out,
                           fac_error *err);
fac_status fac_vectors_parse(const fac_vocab *v, const char *data, size_t bytes, const char *name,
                             uint64_t seed, fac_tensor **out, int64_t *found, fac_error *err);

/* ---- tokens ---- */

enum { FAC_TOKEN_ROOM = 256 }; /* longer ones are never in a vocabulary */

/* The next token of a text, written to `token` with a NUL; *p moves after it.  False at the end of
 * the text. What is too long for `token` is given as an empty string. */
bool fac_token_next(fac_token_kind kind, bool keep_case, const unsigned char **p,
                    char token[FAC_TOKEN_ROOM]);

struct fac_vocab {
    fac_token_kind kind;
    bool keep_case;
    fac_arena arena;
    const char **words; /* by number */
    int64_t count;
    fac_table numbers; /* word -> its place in `words` */
};

/* A vocabulary without words yet, with room for so many; NULL: no memory. */
fac_vocab *fac_vocab_begin(fac_token_kind kind, bool keep_case, int64_t room);
fac_status fac_vocab_add(fac_vocab *v, const char *word, fac_error *err); /* room must be left */
#endif
