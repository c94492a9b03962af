/* Between the files of language models. */
#ifndef FACULA_LM_LM_H
#define FACULA_LM_LM_H
#include "base/arena.h"
#include "base/table.h"
#include "facula/graph.h"
#include "facula/io.h"
#include "facula/lm.h"
#include "lm/grammar.h"
#include "tensor/gguf.h"

enum {                        /* fac_lm_config.is */
       FAC_LM_LAYER_NORM = 1, /* with mean and bias, not root mean squares   */
       FAC_LM_LEARNED = 2,    /* positions are vectors that are added        */
       FAC_LM_NEIGHBOURS = 4, /* rotary pairs are neighbours                 */
       FAC_LM_PARALLEL = 8,   /* h += att(n1 h) + mlp(n2 h)                  */
       FAC_LM_GELU_TANH = 16, /* instead of silu                             */
       FAC_LM_GELU_ERF = 32,
       FAC_LM_SCALED = 64,      /* embeddings times sqrt(width)                */
       FAC_LM_PLUS_ONE = 128,   /* norms are stored less 1                     */
       FAC_LM_TRANSPOSED = 256, /* matrices are stored [in, out]               */
       FAC_LM_PER_HEAD = 512,   /* rows of qkv lie by heads                    */
       FAC_LM_ENCODER = 1024,   /* gives an embedding of a text, and writes none */
};

typedef struct fac_lm_config {
    const char *family; /* "llama" */
    unsigned is;
    int64_t layers, width, heads, kv_heads, head, hidden, vocabulary, context,
        rotary; /* rotary: elements of a head */
    double eps, base, local_base,
        factor; /* local_base: of layers with a window; factor: positions are divided */
    double cap, last_cap, scale; /* softcaps of scores and logits; of scores, 0: 1 / sqrt(head) */
    int64_t window, global_every,
        global_at; /* layer global_at of every so many sees all; every 0: all have the window */
    double low, high,
        original;           /* of config.json: Llama 3's scaling, with factor; original 0: none */
    double before, stretch; /* longrope: tokens that short factors are for, of cos and sin; 0 */
} fac_lm_config;

struct fac_lm {
    fac_arena arena;
    fac_device *device;
    fac_lm_opts opts;
    fac_lm_config c;
    const char *(*name)(const fac_lm *m, const char *canonical, int64_t layer,
                        char to[256]); /* in the file */
    const char *path;                  /* where it came from; NULL: from no file */
    fac_weights **files;
    size_t nfiles;
    fac_table made; /* tensors that were transposed or converted, by canonical name */
    fac_tensor **own;
    size_t nown, room_own, nsettled; /* nsettled: how many there are once it is loaded */
    int64_t context;
    int slots;
    fac_program *encoder; /* of fac_lm_embed, made when first asked for */
    const char *settings; /* the folder's config.json; NULL: of a file, or fresh */
    bool trains, fresh;   /* all weights are f32; it came from no file */
    double dropout;       /* of fresh models */
    uint64_t seed;        /* of what is dropped */
    fac_lora lora;        /* rank 0: there are no adapters */
    fac_table adapters;   /* "blk.0.attn_q.lora_a" and .lora_b */
};

/* New tensors: [in, out] as [out, in]; f32 with `by` added to each number. */
fac_status fac_lm_transposed(fac_tensor *t, fac_tensor **out, fac_error *err);
fac_status fac_lm_shifted(fac_tensor *t, float by, fac_tensor **out, fac_error *err);

/* ---- config.c: hyperparameters ---- */
fac_status fac_lm_config_gguf(fac_gguf *g, fac_lm_config *c, fac_arena *a, fac_error *err);
fac_status fac_lm_config_json(const char *text, size_t bytes, fac_lm_config *c, fac_error *err);

/* angles.c: what config.json says of them, as tensors that GGUF files have. */
fac_status fac_lm_keep_angles(fac_lm *m, fac_error *err);

/* ---- names.c ---- */
const char *fac_lm_name_gguf(const fac_lm *m, const char *canonical, int64_t layer, char to[256]);
const char *fac_lm_name_hf(const fac_lm *m, const char *canonical, int64_t layer, char to[256]);

/* The stems of weights, "blk.%d.attn_q": those of layers, and those outside; NULL after the last
 * one. */
const char *fac_lm_stem(int i);
/* rows.c: rows of a weight or an adapter by heads, as Hugging Face has them, or as they are here;
 * *out is a new reference. */
fac_status fac_lm_by_heads(const fac_lm *m, const char *canonical, bool theirs, fac_tensor *t,
                           fac_tensor **out, fac_error *err);

/* ---- model.c ---- */
/* A tensor that is kept under a canonical name, instead of what files hold.  Takes it. */
fac_status fac_lm_keep(fac_lm *m, const char *name, fac_tensor *t, fac_error *err);
/* folder/name, or an error where that is too long. */
fac_status fac_lm_path(char to[4096], const char *folder, const char *name, fac_error *err);
/* The tensor of a file that a canonical weight comes from; NULL: there is none. */
fac_tensor *fac_lm_in_file(const fac_lm *m, const char *canonical, int64_t layer, char name[300]);
fac_status fac_lm_settle(fac_lm *m, fac_error *err); /* what the weights say of the shape */
/* By GGUF's name, "%d" is the layer: as a matrix of `linear` (stored types), or as f32.  *out NULL:
 * there is none. */
fac_status fac_lm_weight(fac_lm *m, const char *canonical, int64_t layer, bool as_floats,
                         fac_tensor **out, fac_error *err);
/* Without files yet, for fac_lm_free; NULL: no memory. */
fac_lm *fac_lm_empty(void);
fac_status fac_lm_read_llama2c(fac_lm *m, fac_file *f, fac_error *err);

/* ---- block.c: the graph ---- */
/* caches: keys and values of each layer, 2 x layers tensors; NULL: without.  Inputs ids, positions,
 * at, lengths, rows with them; ids alone without. */
fac_status fac_lm_build(fac_lm *m, int64_t batch, int64_t capacity, fac_tensor *const *caches,
                        fac_graph **out, fac_error *err);

/* ---- session.c ---- */
fac_lm_facts fac_session_facts(const fac_session *s); /* of its model */
int64_t fac_session_past(const fac_session *s, int slot,
                         int32_t *to); /* what a slot was fed; how many */

/* ---- stream.c: text that may be shown ---- */
typedef struct fac_stream {
    char *held; /* bytes that are no whole character yet, or may begin a stop text */
    size_t n, room;
    const char *const *stop;
    int nstop;
} fac_stream;
/* Adds bytes; how many of `held` may be told now; *stopped: a stop text follows them.  SIZE_MAX: no
 * memory. */
size_t fac_stream_add(fac_stream *s, const char *bytes, size_t n, bool *stopped);
void fac_stream_take(fac_stream *s, size_t n); /* these were told */
void fac_stream_end(fac_stream *s);            /* what is no UTF-8 becomes U+FFFD */

/* ---- sample.c ---- */
typedef struct fac_token_chance {
    float logit;
    int32_t id;
    double p;
} fac_token_chance;
/* fac_sample in the caller's room for `vocabulary` candidates; allowed: which tokens, NULL: all. */
int32_t fac_sample_in(const fac_sampler *s, const float *logits, int64_t vocabulary,
                      const bool *allowed, const int32_t *past, int64_t n, fac_token_chance *room);
/* log of the sum of exp(logits): what is taken from a logit to get its log probability */
double fac_log_sum(const float *logits, int64_t n);

/* ---- writer.c: the text of one sequence, token by token ---- */
typedef struct fac_writer {
    const fac_tokenizer *t;
    const fac_generate_opts *o;
    fac_token_fn tell;
    void *self;
    fac_lm_facts facts;
    fac_generate_stat *stat;
    fac_stream stream;
    int32_t *past; /* all tokens of the slot: those before, the prompt, the answer */
    int64_t n;
    fac_token_chance *room;
    uint64_t shifts;     /* how often the context was full: draws go on with other numbers */
    fac_matcher matcher; /* where o->grammar is */
} fac_writer;
/* What the first line of the struct says is the caller's; past: what was read before and the
 * prompt. */
fac_status fac_writer_begin(fac_writer *w, const int32_t *past, int64_t n, fac_error *err);
/* The next token by these logits, and its text as far as it is ready; *go_on false: the answer is
 * over, and stat->finish says why.  Else *id is to be read next. */
fac_status fac_writer_next(fac_writer *w, const float *logits, int32_t *id, bool *go_on,
                           fac_error *err);
/* The context is full: forgets the older half of what comes after o->keep tokens; how many tokens
 * stay at the beginning. */
int64_t fac_writer_shift(fac_writer *w);
void fac_writer_rest(fac_writer *w); /* tells what was held back */
void fac_writer_end(fac_writer *w);

/* ---- guess.c: speculative decoding ---- */
typedef struct fac_guesses {
    int32_t ids[FAC_SESSION_CHECKED]; /* of what may come after a token, n of them */
    int n;
    const float *logits; /* [1 + n, vocabulary]: of the token, of each guess */
} fac_guesses;
/* FAC_E_ARGUMENT: the draft has other tokens, or is the session itself.  NULL: no draft. */
fac_status fac_guess_fits(const fac_session *s, const fac_session *draft, int lookup,
                          fac_error *err);
/* Reads a token in w's slot, with guesses after it where w's options ask for them. */
fac_status fac_guess_read(fac_session *s, fac_writer *w, int32_t id, fac_guesses *g,
                          fac_error *err);
/* Token `id` was chosen by row k of the logits.  *right: it is guess k, so the next row counts,
 * too; else what was read beyond it is forgotten. */
fac_status fac_guess_take(fac_session *s, fac_writer *w, const fac_guesses *g, int k, int32_t id,
                          bool go_on, bool *right, fac_error *err);
#endif
