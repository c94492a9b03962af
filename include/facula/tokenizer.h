/* facula/tokenizer.h: texts as the tokens of a language model, and back.
 *
 * Four kinds, as files hold them: byte-level BPE (Sennrich et al.,
 * https://arxiv.org/abs/1508.07909, over bytes as GPT-2 does), SentencePiece's BPE by scores and
 * its Unigram model (Kudo, https://arxiv.org/abs/1804.10959), and WordPiece of BERT. A tokenizer
 * never changes: any thread may use it.  Texts are UTF-8. */
#ifndef FACULA_TOKENIZER_H
#define FACULA_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "facula/status.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_tokenizer fac_tokenizer;

/* From a .gguf, a tokenizer.json, a tokenizer.bin of llama2.c, or a folder that has one of them, or
 * vocab.json and merges.txt.  FAC_E_UNSUPPORTED names a part of a tokenizer that is not known here;
 * FAC_E_FORMAT, FAC_E_IO, FAC_E_NOMEM. */
fac_status fac_tokenizer_load(const char *path, fac_tokenizer **out, fac_error *err);
void fac_tokenizer_free(fac_tokenizer *t);              /* NULL is fine */
int32_t fac_tokenizer_count(const fac_tokenizer *t);    /* ids are 0 .. count - 1 */
const char *fac_tokenizer_kind(const fac_tokenizer *t); /* "byte-level BPE" */

enum {
    FAC_TEXT_SPECIAL =
        1,            /* control tokens that stand in the text count as such; else they are text */
    FAC_TEXT_BOS = 2, /* what the model wants around a text is added: <s>, or [CLS] and [SEP]    */
};
/* Writes the first `room` ids of a text, whose length is in bytes; how many there are.  -1: it is
 * no UTF-8, -2: no memory. */
int64_t fac_tokenizer_encode(const fac_tokenizer *t, const char *text, size_t bytes, unsigned flags,
                             int32_t *ids, int64_t room);
/* The bytes of one token, without a zero at the end, maybe no whole character; how many there are.
 * Control tokens have none unless flags say FAC_TEXT_SPECIAL.  At most `room` are written. */
size_t fac_tokenizer_piece(const fac_tokenizer *t, int32_t id, unsigned flags, char *to,
                           size_t room);
/* Of many tokens, without the space that some tokenizers put before a text; how many there are. */
size_t fac_tokenizer_decode(const fac_tokenizer *t, const int32_t *ids, int64_t n, unsigned flags,
                            char *to, size_t room);
/* The token's own spelling in the vocabulary; NULL: no such id. */
const char *fac_tokenizer_token(const fac_tokenizer *t, int32_t id);
int32_t fac_tokenizer_find(const fac_tokenizer *t, const char *token); /* by that spelling; -1 */
bool fac_tokenizer_ends(const fac_tokenizer *t,
                        int32_t id); /* of a text, or of a turn: generation stops */
bool fac_tokenizer_control(const fac_tokenizer *t, int32_t id); /* stands for no text */
int32_t fac_tokenizer_bos(const fac_tokenizer *t);              /* -1: there is none */
/* The token that ends a text; -1: there is none. */
int32_t fac_tokenizer_eos(const fac_tokenizer *t);
/* The chat template that the file has, in Jinja; NULL: none.  See fac_chat_encode. */
const char *fac_tokenizer_template(const fac_tokenizer *t);

/* ---- learning a tokenizer from a text ---- */

/* A byte-level BPE of so many tokens: <|endoftext|>, the 256 bytes, then the pair of neighbours
 * that is seen most often in pieces cut as GPT-2 does, again and again, of equals the one of lower
 * ids; pairs that are seen once make no token, so there may be fewer.  tokens 0: one token for each
 * character of the text instead, in the order of their code points; others have none.
 * FAC_E_ARGUMENT: the text is empty or no UTF-8, fewer than 257 tokens. */
fac_status fac_tokenizer_learn(const char *text, size_t bytes, int32_t tokens, fac_tokenizer **out,
                               fac_error *err);
/* As tokenizer.json of Hugging Face; FAC_E_UNSUPPORTED: only what was learned here is written. */
fac_status fac_tokenizer_save(const fac_tokenizer *t, const char *path, fac_error *err);

/* ---- conversations ---- */

typedef struct fac_message {
    const char *role, *text;
} fac_message; /* "system", "user", "assistant", "tool" */

/* The n messages as the model was trained to read them; answer: followed by what asks for an
 * answer.  format: NULL for the file's own template, the name of a format (fac_chat_format_name),
 * or a template in Jinja.  A template gets what transformers gives it; where it has no place for
 * the system, that text comes before the next question.  The texts of messages never become control
 * tokens. *ids is the caller's, who ends it with fac_chat_free.  FAC_E_UNSUPPORTED: there is no
 * template, or a part of Jinja that is not known; FAC_E_ARGUMENT: it refuses these messages. */
fac_status fac_chat_encode(const fac_tokenizer *t, const char *format, int n, const fac_message m[],
                           bool answer, int32_t **ids, int64_t *count, fac_error *err);
typedef struct fac_chat_opts {
    const char *format; /* as above */
    const char *tools;  /* what the model may call, a JSON list as OpenAI has it; NULL: nothing */
    const char *variables; /* of the template, a JSON object: {"enable_thinking": false}; NULL */
    const char *const
        *more; /* of each message further fields, a JSON object such as
                  {"tool_calls": [...]}, beside which its text may be NULL; NULL: none */
    bool answer;
} fac_chat_opts;
/* The same with what templates know beside messages.  FAC_E_UNSUPPORTED: tools, and the format has
 * no place for them. */
fac_status fac_chat_encode_with(const fac_tokenizer *t, const fac_chat_opts *o, int n,
                                const fac_message m[], int32_t **ids, int64_t *count,
                                fac_error *err);
void fac_chat_free(int32_t *ids);        /* NULL is fine */
const char *fac_chat_format_name(int i); /* of all that are known; NULL after the last one */

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
