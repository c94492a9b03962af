/* What a session is, and its caches: states of the program, which double. */
#ifndef FACULA_LM_SESSION_H
#define FACULA_LM_SESSION_H
#include "facula/program.h"
#include "lm/lm.h"

enum { FAC_SESSION_CHUNKS = 4, FAC_LARGEST_CHUNK = 256 };

typedef struct fac_sequence_slot {
    int64_t length, pending; /* read; fed */
    const float *logits;     /* of the token read last, in the last step; NULL: of none */
} fac_sequence_slot;

struct fac_session {
    fac_lm *m;
    fac_program *program;
    fac_tensor **caches; /* of each layer keys, values: [slots, G, capacity, D] */
    fac_sequence_slot *slots;
    int32_t *fed;     /* [slots, context] */
    float *logits;    /* [slots, vocabulary]: of slots that wait for others' chunks */
    int nslots, last; /* the chunk of the last run */
    int64_t capacity, runs;
    /* The capacity that each chunk was planned for, and last a check; 0: none. */
    int64_t planned[FAC_SESSION_CHUNKS + 1];
    double plan_seconds;                         /* of all plans so far */
    fac_tensor *in[FAC_SESSION_CHUNKS][5], *out; /* inputs of each chunk; logits of a run */
    size_t copied;
    fac_tensor *rows, *checked; /* of fac_session_check, made when first asked for */
};

/* How many caches there are: two of each layer. */
static inline int64_t fac_session_caches(const fac_session *s) { return 2 * s->m->c.layers; }
void fac_caches_free(fac_tensor **all, int64_t n);

/* Room for so many rows in every slot; after an error all is as it was. */
fac_status fac_session_grow(fac_session *s, int64_t rows, fac_error *err);

/* The first `rows` rows of cache k, of slot `from` of a into slot `to` of b. */
fac_status fac_session_copy_rows(const fac_session *a, int from, fac_session *b, int to, int64_t k,
                                 int64_t rows, fac_error *err);
#endif
