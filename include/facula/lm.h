/* facula/lm.h: language models that generate text.
 *
 *   fac_lm       weights and shape of a model: shared, never changes, any thread may read it
 *   fac_session  sequences in slots of one batch, each with what it has read (keys and values); one
 *                thread at a time
 *
 * A session has one graph; a plan belongs to a number of tokens a slot (1, 8, 64 or 256), so a step
 * of generation makes no plan and copies no cache.  The caches begin small and double.  Same seed,
 * chunks, threads and instruction set: the same tokens. */
#ifndef FACULA_LM_H
#define FACULA_LM_H

#include "facula/program.h"
#include "facula/tokenizer.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_lm fac_lm;
typedef struct fac_lm_opts { /* zero is the default everywhere */
    int64_t context; /* tokens of a slot at most; 0: what the model was made for, at most 4096 */
    int slots;       /* sequences at once; 0: 1                                          */
    fac_precision
        precision; /* highest: weights in blocks meet f32; else x is rounded to 8 bits for them */
} fac_lm_opts;

/* A .gguf, or llama2.c's .bin, or a folder with config.json and .safetensors.  Weights stay in the
 * file, which is mapped.  The device must outlive the model.  FAC_E_UNSUPPORTED: an architecture
 * that is not known, by name. */
fac_status fac_lm_load(const char *path, fac_device *device, const fac_lm_opts *opts, fac_lm **out,
                       fac_error *err);
void fac_lm_free(fac_lm *m); /* sessions must be gone; NULL is fine */

typedef struct fac_lm_facts {
    const char *architecture,
        *weights; /* "llama"; "q4_1": what most of the weights are stored as */
    int64_t layers, width, heads, kv_heads, head_size, hidden, vocabulary, trained_context, context;
    double params, bytes; /* elements and bytes of all weights */
    bool rounds;          /* x is rounded to 8 bits for weights in blocks */
} fac_lm_facts;
/* What the model is; texts live as long as m. */
fac_lm_facts fac_lm_about(const fac_lm *m);
bool fac_lm_encodes(const fac_lm *m); /* gives embeddings (fac_lm_embed), and writes no text */

/* The model as a graph: ids i64[batch, N] -> logits f32[batch, N, vocabulary], without caches; for
 * export, inspection, training.  batch 0: any number.  Its parameters are the model's own tensors.
 * Of an encoder: ids -> embedding f32[batch, width]. */
fac_status fac_lm_graph(const fac_lm *m, int64_t batch, fac_graph **out, fac_error *err);

typedef struct fac_session fac_session;
/* A session with the slots that the model's options say; the model must outlive it.
 * FAC_E_NOMEM. */
fac_status fac_session_new(fac_lm *m, fac_session **out, fac_error *err);
/* With so many slots, whatever the model's options say: a prompt is read fastest in a session of
 * one. */
fac_status fac_session_new_slots(fac_lm *m, int slots, fac_session **out, fac_error *err);
void fac_session_free(fac_session *s); /* NULL is fine */
/* More tokens for a slot, which the next step reads.  FAC_E_ARGUMENT: a slot or an id that is none,
 * more than the context. */
fac_status fac_session_feed(fac_session *s, int slot, const int32_t *ids, int64_t n,
                            fac_error *err);
/* Reads what was fed, all slots at once.  When it fails, slots are as they were before the failing
 * chunk. */
fac_status fac_session_step(fac_session *s, fac_error *err);
/* Of the token that a slot read last, f32[vocabulary]; until the next step; NULL: it has read none
 * in the last step. */
const float *fac_session_logits(const fac_session *s, int slot);
int64_t fac_session_length(const fac_session *s, int slot); /* tokens read and to be read */
fac_status fac_session_cut(fac_session *s, int slot, int64_t length,
                           fac_error *err); /* forgets what comes after */
fac_status fac_session_copy(fac_session *s, int from, int to, int64_t length,
                            fac_error *err); /* slot `to` becomes that prefix */
/* The same from a slot of another session of the model, which stays as it is. */
fac_status fac_session_bring(const fac_session *a, int from, fac_session *s, int to, int64_t length,
                             fac_error *err);
/* As fac_session_step for one slot, with the logits of all n tokens that were fed to it, at most
 * FAC_SESSION_CHECKED: *logits is f32[n, vocabulary], until the next step of any kind. */
enum { FAC_SESSION_CHECKED = 8 };
fac_status fac_session_check(fac_session *s, int slot, const float **logits, int64_t *n,
                             fac_error *err);
/* What the last step ran, to measure it: running it again computes the same.  All is the session's,
 * until its next step; a program NULL: there was none. */
typedef struct fac_session_run {
    struct fac_program *program;
    struct fac_tensor **in, **out;
    int nin, nout;
} fac_session_run;
fac_session_run fac_session_last(fac_session *s);
typedef struct fac_session_stat {
    int64_t plans, runs;
    size_t cache_bytes, copied;
} fac_session_stat;
fac_session_stat fac_session_about(
    const fac_session *s); /* copied: bytes of caches that a run copies */

/* ---- sampling ---- */

typedef struct fac_logit_bias {
    int32_t id;
    float bias; /* added to its logit; -INFINITY: never */
} fac_logit_bias;
/* In the order in which they work; zeros: the most probable token. */
typedef struct fac_sampler {
    double repeat, presence, frequency; /* penalties of the `last` tokens: l > 0 ? l / r : l r; - p;
                                           - f count.  repeat 0: 1 */
    int last;                           /* 0: 64 */
    int top_k;                          /* 0: all */
    double top_p, min_p; /* 0: all; the least set whose probabilities add up to p; those >= p times
                            the largest */
    double temperature;  /* 0: the most probable one */
    const fac_logit_bias *bias; /* after the penalties; ids that are none are passed over */
    int nbias;
    uint64_t seed; /* with the position it decides the draw, so batching changes nothing */
} fac_sampler;
/* One token by its logits, after the n tokens of past.  logprob (may be NULL): its logarithm before
 * any of the above.  Ties: the lower id.  -1: no memory, or
 * no logit is a number. */
int32_t fac_sample(const fac_sampler *s, const float *logits, int64_t vocabulary,
                   const int32_t *past, int64_t n, double *logprob);

/* ---- grammars: what an answer must look like ---- */

typedef struct fac_grammar fac_grammar; /* never changes: any thread may use it */
/* From GBNF, the notation of llama.cpp: rules NAME ::= ..., of which one is `root`; "texts",
 * [classes], (groups), alternatives |, repetitions * + ? {m,n}, . for any character, # comments.
 * FAC_E_FORMAT names the line. The tokenizer must outlive it. */
fac_status fac_grammar_new(const fac_tokenizer *t, const char *gbnf, fac_grammar **out,
                           fac_error *err);
/* JSON that a schema describes (https://json-schema.org): type, properties (in their order),
 * required, items, minItems, maxItems, minLength, maxLength, enum, const, anyOf, oneOf, $ref to
 * $defs.  NULL: any object. FAC_E_UNSUPPORTED names what else would restrict it. */
fac_status fac_grammar_json(const fac_tokenizer *t, const char *schema, fac_grammar **out,
                            fac_error *err);
void fac_grammar_free(fac_grammar *g); /* NULL is fine */

/* ---- generating ---- */

/* Text that is ready: whole characters only; id: the token that brought it (several may bring
 * none).  false stops. */
typedef bool (*fac_token_fn)(void *self, int32_t id, const char *text, size_t bytes);
typedef enum fac_finish {
    FAC_FINISH_END,
    FAC_FINISH_STOP,
    FAC_FINISH_LENGTH,
    FAC_FINISH_CONTEXT,
    FAC_FINISH_CALLER
} fac_finish;
typedef struct fac_generate_opts {
    fac_sampler sampler;
    int64_t tokens;          /* at most; 0: until the model ends or the context is full */
    const char *const *stop; /* texts that end it, and are not told; nstop of them */
    int nstop, slot;
    bool ignore_end; /* go on after the model's own end */
    bool control;    /* control tokens are told as they are spelled */
    bool shift;   /* when the context is full: forget the older half after `keep` tokens, go on */
    int64_t keep; /* tokens at the beginning that are never forgotten */
    const fac_grammar *grammar; /* tokens that do not fit are never chosen; NULL: none */
    /* Speculative decoding (Leviathan et al. 2023, https://arxiv.org/abs/2211.17192): tokens are
     * guessed, and several are checked in one step.  A guess is taken where it is what would have
     * been chosen, so the text is the same as without, up to rounding.  Guesses come from where the
     * same last `lookup` tokens (or fewer, 2 at least) were read before, else from a smaller model
     * of the same vocabulary, whose session is for this alone. */
    int lookup;         /* 0: none, else 2 at least; usual: 4 */
    fac_session *draft; /* NULL: none */
    int guesses;        /* at most in a step, 7 of them; 0: 7, of a draft 4 */
} fac_generate_opts;
typedef struct fac_generate_stat {
    int64_t prompt, generated;      /* tokens */
    double prompt_seconds, seconds; /* reading the prompt; generating */
    fac_finish finish;
    int64_t guessed, accepted; /* tokens of speculative decoding */
    /* How much of the two above made plans and packed weights, which happens once for each size of
     * a chunk and of the caches. */
    double prompt_plan_seconds, plan_seconds;
} fac_generate_stat;
/* Feeds the prompt to the slot, then generates.  What the slot has read before stays.  o and stat
 * may be NULL. */
fac_status fac_generate(fac_session *s, const fac_tokenizer *t, const int32_t *prompt, int64_t n,
                        const fac_generate_opts *o, fac_token_fn tell, void *self,
                        fac_generate_stat *stat, fac_error *err);

/* ---- beam search ---- */

/* The most probable continuations: `beams` of them are followed at once, each in a slot of its own,
 * as transformers does (GenerationMixin's beam search).  Score: the sum of log p of the tokens,
 * divided by their number to the power of length_penalty. */
typedef struct fac_beam_opts {
    int beams;             /* 0: 4; the session has so many slots at least, which are overwritten */
    int64_t tokens;        /* at most; 0: until the context is full */
    double length_penalty; /* above 0 for longer texts; NAN: 1 */
    bool early;      /* ends as soon as `beams` texts have ended; else when none can get better */
    bool ignore_end; /* the model's own ends are tokens like others */
} fac_beam_opts;
typedef struct fac_beam {
    int32_t *ids; /* without the prompt, with the token that ends it */
    int64_t n;
    double score;
} fac_beam;
typedef struct fac_beams {
    fac_beam *at;
    int n;
} fac_beams; /* the best one first */
fac_status fac_generate_beams(fac_session *s, const fac_tokenizer *t, const int32_t *prompt,
                              int64_t n, const fac_beam_opts *o, fac_beams *out, fac_error *err);
void fac_beams_free(fac_beams *b); /* and clears; an empty one is fine */

/* ---- training ---- */

/* A model with fresh weights, drawn as GPT-2's: normal with deviation 0.02, what is added to the
 * stream 0.02 / sqrt(2 layers), biases 0, norms 1.  The head is the table of tokens. */
typedef struct fac_lm_shape {
    char family[16]; /* "gpt" (GPT-2) or "llama" */
    int64_t layers, heads, width;
    int64_t context, vocabulary; /* tokens */
    double dropout; /* of the embeddings and of what is added to the stream, while trained */
    uint64_t seed;
} fac_lm_shape;
/* "gpt:4x4x128", "llama:6x6x192": layers, heads, width; the rest of the shape stays as it was.
 * FAC_E_ARGUMENT says what cannot be. */
fac_status fac_lm_shape_parse(const char *text, fac_lm_shape *out, fac_error *err);
/* Such a model on a device, which must outlive it; *out is the caller's. */
fac_status fac_lm_new(const fac_lm_shape *shape, fac_device *device, fac_lm **out, fac_error *err);

/* Before fac_lm_graph, for a model that shall be trained: all weights become f32 parameters. */
fac_status fac_lm_make_trainable(fac_lm *m, fac_error *err);
/* config.json and model.safetensors of a folder as Hugging Face's transformers reads it, from the
 * weights as they are now: those of a folder in the types that they had there.  The folder must
 * exist.  FAC_E_UNSUPPORTED: the model came from a file, whose settings are no config.json: see
 * fac_lm_save_gguf. */
fac_status fac_lm_save(fac_lm *m, const char *folder, fac_error *err);

/* Low-rank adapters (Hu et al. 2021, https://arxiv.org/abs/2106.09685): W x + alpha / rank B A x of
 * the linear layers that `targets` names, as peft does.  W stays as it is. */
typedef struct fac_lora {
    int64_t rank;      /* 0: 8 */
    double alpha;      /* 0: twice the rank */
    double dropout;    /* of what A reads, while trained */
    char targets[256]; /* names with commas, Hugging Face's (q_proj) or GGUF's (attn_q); "": what
                          peft takes for the family, "all-linear": every one but the head */
    uint64_t seed;
} fac_lora;
/* "r=8,alpha=16,dropout=0.05,q_proj,v_proj", any of them.  FAC_E_ARGUMENT. */
fac_status fac_lora_parse(const char *text, fac_lora *out, fac_error *err);
/* Fresh adapters: A as torch's linear layers begin, B zeros.  In fac_lm_graph they alone are
 * parameters.  FAC_E_ARGUMENT: no layer has such a name, or the model has adapters already. */
fac_status fac_lm_lora_new(fac_lm *m, const fac_lora *how, fac_error *err);
/* adapter_config.json and adapter_model.safetensors of a folder, as peft writes and reads them.  A
 * model with adapters generates with them, whatever its weights are stored as.  Before sessions. */
fac_status fac_lm_lora_load(fac_lm *m, const char *folder, fac_error *err);
/* base: what the file calls the model that it belongs to; NULL: nothing. */
fac_status fac_lm_lora_save(const fac_lm *m, const char *folder, const char *base, fac_error *err);
/* The weights take in what the adapters add, which are gone then. */
fac_status fac_lm_lora_merge(fac_lm *m, fac_error *err);

/* What an encoder (BERT, MiniLM) makes of n tokens: the mean over its tokens, divided by its
 * length; width numbers. FAC_E_UNSUPPORTED: the model is no encoder.  FAC_E_ARGUMENT: no tokens,
 * more than the context, an id that is none. One thread at a time. */
fac_status fac_lm_embed(fac_lm *m, const int32_t *ids, int64_t n, float *to, fac_error *err);

/* Writes a model and its tokenizer as a GGUF file, its matrices in the type that `scheme` names
 * (fac_lm_scheme): "q8_0", "q4_0"... Tables of tokens get q8_0 where others get fewer bits; what
 * has one dim stays f32.  The file appears whole or not at all. */
fac_status fac_lm_quantize(const char *path, const char *scheme, const char *out, fac_error *err);
const char *fac_lm_scheme(int i); /* NULL after the last one */
/* The same of a model that is there, from the weights as they are now.  scheme NULL: each in the
 * type that it had in its file.  path NULL: says only whether it could be written.
 * FAC_E_UNSUPPORTED: a type that is read and not written (q4_k), a tokenizer that GGUF files do not
 * have. */
fac_status fac_lm_save_gguf(fac_lm *m, const fac_tokenizer *t, const char *scheme, const char *path,
                            fac_error *err);

/* The mean of -log p of tokens 1 .. n - 1 given those before them, in windows of `window` tokens
 * whose second halves count (of the first one all), and its standard error.  window 0: the model's
 * context. */
typedef struct fac_perplexity {
    double nll, error, perplexity;
    int64_t tokens;
} fac_perplexity;
fac_status fac_lm_perplexity(fac_lm *m, const int32_t *ids, int64_t n, int64_t window,
                             fac_perplexity *out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
