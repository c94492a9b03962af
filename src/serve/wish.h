/* What a client asks for, read from JSON. */
#ifndef FACULA_SERVE_WISH_H
#define FACULA_SERVE_WISH_H
#include "base/arena.h"
#include "facula/lm.h"

enum { FAC_WISH_PROMPTS = 64, FAC_WISH_STOPS = 16, FAC_WISH_TOP = 20 };

typedef struct fac_prompt { /* a text, or tokens */
    const char *text;
    int32_t *ids;
    int64_t n;
} fac_prompt;

typedef struct fac_wish {
    fac_arena arena; /* of all that it points to */
    fac_message *messages;
    const char **more; /* of each: fac_chat_opts */
    int nmessages;
    const char *tools, *variables; /* JSON for the template; NULL: none */
    const char **names;            /* of the tools' functions: nnames */
    int nnames;
    bool must_call, one_call; /* the answer is a call; no more than one */
    fac_prompt *prompts;
    int nprompts;
    int choices; /* for each prompt */
    fac_generate_opts how;
    bool seeded, stream, usage, base64, special;
    bool raw_thoughts;   /* thoughts stay in the text */
    const char *grammar; /* GBNF; NULL: none */
    const char *schema;  /* of JSON; NULL: none */
    const char *loose;   /* the same with any arguments of calls, where a grammar cannot say more */
    int logprobs;        /* of so many tokens beside the chosen one; -1: none at all */
} fac_wish;

typedef enum fac_wish_kind {
    FAC_WISH_CHAT,     /* messages */
    FAC_WISH_COMPLETE, /* prompt: a text or tokens, or several of either */
    FAC_WISH_EMBED,    /* input: the same */
    FAC_WISH_TOKENIZE, /* content: a text */
    FAC_WISH_WORDS     /* tokens */
} fac_wish_kind;

/* FAC_E_FORMAT: no JSON; FAC_E_ARGUMENT: a field is missing or wrong, with its name and what is
 * expected; FAC_E_UNSUPPORTED: one that asks for what is not there; FAC_E_NOMEM.  Fields that
 * change nothing of the answer are passed over.  fac_wish_free in any case. */
fac_status fac_wish_read(fac_wish_kind kind, const char *json, size_t bytes, fac_wish *w,
                         fac_error *err);
void fac_wish_free(fac_wish *w);
#endif
