/* Grammars of texts in bytes: rules whose alternatives are rows of byte ranges and rules. */
#ifndef FACULA_LM_GRAMMAR_H
#define FACULA_LM_GRAMMAR_H
#include "facula/lm.h"

enum { FAC_GRAMMAR_BYTES, FAC_GRAMMAR_RULE, FAC_GRAMMAR_OR, FAC_GRAMMAR_END };
typedef struct fac_grammar_item {
    uint8_t kind, low, high; /* FAC_GRAMMAR_BYTES: from low to high */
    int32_t rule;
} fac_grammar_item;

struct fac_grammar {
    fac_grammar_item *items; /* alternatives lie one after the other, between OR, up to END */
    size_t n, room;
    int32_t *rules; /* where each begins */
    size_t nrules, room_rules;
    int32_t root;
    /* the vocabulary in the order of its bytes */
    char *bytes;
    size_t *at;     /* of token k in `bytes`; [count + 1] */
    int32_t *order; /* tokens that have bytes */
    int32_t count, ordered;
    const fac_tokenizer *tokens;
};

/* ---- grammar_text.c, and what it calls: grammar_text.h ---- */
fac_status fac_grammar_parse(fac_grammar *g, const char *text, fac_error *err);
/* ---- grammar_schema.c: JSON Schema as the text of a grammar, which the caller releases ---- */
fac_status fac_grammar_of_schema(const char *schema, size_t bytes, char **text, fac_error *err);

/* ---- matcher.c: how far a text has come ---- */

typedef struct fac_place { /* the item to come, and what comes after its rule; at < 0: all is over
                            */
    int32_t at, after;     /* after: in `frames`, -1: nothing */
} fac_place;
typedef struct fac_places {
    fac_place *of;
    size_t n, room;
} fac_places;
typedef struct fac_matcher {
    const fac_grammar *g;
    fac_places now, next;
    fac_places frames; /* of rules that are open: what comes after them, and after that */
    fac_places *depth; /* of a walk through the vocabulary, by bytes */
    size_t depths;
    bool *allowed; /* of a walk; [count] */
    size_t work;   /* places looked at since this was asked */
    int deep;      /* rules that are being opened */
    bool failed;   /* no memory, or too ambiguous */
} fac_matcher;

fac_status fac_matcher_begin(fac_matcher *m, const fac_grammar *g, fac_error *err);
void fac_matcher_end(fac_matcher *m);
bool fac_matcher_takes(fac_matcher *m, int32_t id); /* would the token fit? */
void fac_matcher_step(fac_matcher *m, int32_t id);  /* it is written */
bool fac_matcher_may_end(const fac_matcher *m);
bool fac_matcher_must_end(const fac_matcher *m);
/* Which tokens fit; those that end the text where it may end. */
const bool *fac_matcher_walk(fac_matcher *m);
#endif
