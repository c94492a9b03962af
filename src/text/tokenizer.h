/* Between the files of tokenizers. */
#ifndef FACULA_TEXT_TOKENIZER_H
#define FACULA_TEXT_TOKENIZER_H
#include "base/arena.h"
#include "base/file/file.h"
#include "facula/tokenizer.h"
#include "tensor/gguf.h"

typedef enum fac_token_type { /* as GGUF numbers them */
                              FAC_TOKEN_NORMAL = 1,
                              FAC_TOKEN_UNKNOWN,
                              FAC_TOKEN_CONTROL,
                              FAC_TOKEN_USER,
                              FAC_TOKEN_UNUSED,
                              FAC_TOKEN_BYTE
} fac_token_type;

/* spelling: as the file has it; text: what it stands for, which may hold zero bytes. */
typedef struct fac_token {
    const char *spelling, *text;
    uint32_t bytes, spelled; /* lengths of text and spelling */
    float score;
    uint8_t type;
    bool left, right; /* takes the spaces before it, after it */
} fac_token;

/* Bytes to ids. */
typedef struct fac_token_map {
    int32_t *slots;
    size_t room;
} fac_token_map;
/* Pairs of neighbours that become one. */
typedef struct fac_merge {
    int32_t left, right, to;
    uint32_t rank;
} fac_merge;
typedef struct fac_merges {
    fac_merge *slots;
    size_t room, n;
} fac_merges;

typedef enum fac_tokens {
    FAC_TOKENS_BYTES,
    FAC_TOKENS_RANKS,
    FAC_TOKENS_SCORES,
    FAC_TOKENS_UNIGRAM,
    FAC_TOKENS_WORDS
} fac_tokens;

/* How a text is cut before it is merged. */
typedef enum fac_pretoken {
    FAC_CUT_NONE,
    FAC_CUT_GPT2,
    FAC_CUT_DIGITS,
    FAC_CUT_LLAMA3,
    FAC_CUT_QWEN2
} fac_pretoken;

struct fac_tokenizer {
    fac_arena arena;
    fac_tokens kind;
    fac_pretoken cut;
    int32_t n;
    fac_token *tokens;
    fac_token_map map; /* of spellings */
    fac_merges merges;
    int32_t byte[256];            /* the token of a single byte, -1 */
    int32_t *specials, nspecials; /* control and user tokens, longest first */
    int32_t bos, eos, eot, unknown, cls, sep;
    bool add_bos, add_eos;             /* FAC_TEXT_BOS */
    bool lead;                         /* a space comes before the text */
    bool every_lead;                   /* and after each special token, too */
    bool spares_lead;                  /* but none where a text begins with one */
    bool join_spaces;                  /* several become one */
    bool whole;                        /* a piece that is a token is not merged */
    bool lower, strip, chinese, clean; /* WordPiece */
    bool nfc;                          /* texts are brought into that form first */
    bool decode_drops;                 /* the space before the text is dropped again */
    float least;                       /* score, for unknown characters of Unigram */
    uint32_t longest;                  /* bytes of a token */
    const char *join;                  /* "##" */
    const char *chat;
    const char *json; /* tokenizer.json of what was learned here; else NULL */
};

/* ---- vocabulary.c ---- */
fac_tokenizer *fac_tokenizer_begin(int32_t n); /* NULL: no memory */
/* Token id with a copy of its spelling; text is set by fac_tokenizer_finish. */
bool fac_tokenizer_set(fac_tokenizer *t, int32_t id, const char *spelling, size_t bytes,
                       float score, int type);
bool fac_tokenizer_merge(fac_tokenizer *t, const char *left, size_t nleft, const char *right,
                         size_t nright, uint32_t rank);
int32_t fac_tokenizer_look(const fac_tokenizer *t, const char *spelling, size_t bytes); /* -1 */
const fac_merge *fac_merges_find(const fac_merges *m, int32_t left, int32_t right);     /* NULL */
bool fac_tokenizer_index(
    fac_tokenizer *t); /* spellings can be looked up: before merges are added */
fac_status fac_tokenizer_finish(fac_tokenizer *t, fac_error *err);

/* The code point that GPT-2 writes for a byte. */
uint32_t fac_byte_name(int b);
uint64_t fac_spelling_hash(const char *s, size_t n);

/* ---- pairs.c: which neighbours are joined to make a vocabulary ---- */
/* A pair becomes token first + its place in the list; several pairs may spell the same token, which
 * then is made once. */
typedef struct fac_learned {
    int32_t left, right, to;
} fac_learned;
typedef struct fac_learning {
    fac_learned *at;
    size_t n, room;
    int32_t tokens; /* ids so far */
} fac_learning;
/* words: ids of all pieces, each ending in -1; counts: how often each piece is there.  Until there
 * are `most` tokens.  spell: the id of what a joined pair spells, a new one if it is new. */
typedef int32_t fac_spell_fn(void *self, int32_t left, int32_t right);
fac_status fac_learn_pairs(int32_t *words, size_t n, const int64_t *counts, size_t nwords,
                           int32_t most, fac_spell_fn *spell, void *self, fac_learning *out,
                           fac_error *err);

/* ---- pretoken.c ---- */
/* Bytes of the first piece of n > 0 bytes of UTF-8. */
size_t fac_pretoken_next(fac_pretoken cut, const char *s, size_t n);
/* By the name that GGUF gives it; false: none that is known. */
bool fac_pretoken_named(const char *name, fac_pretoken *cut, bool *whole);
extern const char fac_pretoken_names[];
uint32_t fac_code_point(const char *s, size_t n, size_t *bytes); /* of valid UTF-8 */
bool fac_is_utf8(const char *s, size_t n);

/* ---- encoding ---- */
typedef struct fac_ids {
    int32_t *at;
    size_t n, room;
    bool failed;
} fac_ids;
void fac_ids_add(fac_ids *ids, int32_t id);
void fac_bpe(const fac_tokenizer *t, const char *s, size_t n, fac_ids *out); /* bpe.c: one piece */
void fac_unigram(const fac_tokenizer *t, const char *s, size_t n, fac_ids *out); /* unigram.c */
void fac_wordpiece(const fac_tokenizer *t, const char *s, size_t n,
                   fac_ids *out); /* wordpiece.c: all of a text */
void fac_encode(const fac_tokenizer *t, const char *s, size_t n, unsigned flags, bool first,
                fac_ids *out);

/* ---- files ---- */
/* By contents. */
fac_status fac_tokenizer_parse(fac_file *f, fac_tokenizer **out, fac_error *err);
fac_status fac_tokenizer_gguf(fac_gguf *g, fac_tokenizer **out, fac_error *err);
fac_status fac_tokenizer_json(const char *text, size_t bytes, fac_tokenizer **out, fac_error *err);
fac_status fac_tokenizer_llama2c(const void *data, size_t bytes, fac_tokenizer **out,
                                 fac_error *err);
/* vocab.json and merges.txt of a folder: are they there, and read. */
bool fac_tokenizer_merges_here(const char *folder);
fac_status fac_tokenizer_merges(const char *folder, fac_tokenizer **out, fac_error *err);
/* What tokenizer_config.json and chat_template.jinja of a folder say. */
fac_status fac_tokenizer_config(fac_tokenizer *t, const char *folder, fac_error *err);
#endif
