/* What the verbs of language models share. */
#ifndef FACULA_CLI_GENERATE_H
#define FACULA_CLI_GENERATE_H
#include "cli.h"
#include "facula/lm.h"

typedef struct lm_options {
    device_options on;
    double temperature, top_p, min_p, repeat, presence, frequency;
    long top_k, last, seed, tokens, context;
    list stop;
    bool json, stats, ignore_end;
    const char *precision, *tokenizer, *lora, *draft;
    long lookup, guesses, beams;
    const char *grammar, *grammar_file, *schema;
    bool shift;
    long keep;
} lm_options;
extern lm_options lm_given;
void lm_formats(void); /* lists those of --chat-template */

#define OPTION_LOOKUP "[2, 1000000000]" /* fewer tokens are no hint at what comes next */
#define LM_OPTIONS                                                                                 \
    { "-n",                                                                                        \
      OPTION_INT,                                                                                  \
      &lm_given.tokens,                                                                            \
      "N",                                                                                         \
      "most tokens of an answer; default 0: until the model ends it",                              \
      OPTION_TALLY },                                                                              \
        { "--predict", OPTION_INT, &lm_given.tokens, "N", "the same as -n", OPTION_TALLY },        \
        { "--temp",                                                                                \
          OPTION_REAL,                                                                             \
          &lm_given.temperature,                                                                   \
          "T",                                                                                     \
          "temperature; 0: always the most probable token; default 0.8",                           \
          "[0, 100]" },                                                                            \
        { "--top-k",                                                                               \
          OPTION_INT,                                                                              \
          &lm_given.top_k,                                                                         \
          "K",                                                                                     \
          "draw only from the K most probable tokens; 0: from all; default 40",                    \
          OPTION_TALLY },                                                                          \
        { "--top-p",                                                                               \
          OPTION_REAL,                                                                             \
          &lm_given.top_p,                                                                         \
          "P",                                                                                     \
          "of these, from the least set whose probabilities add up to P; default 0.95",            \
          "[0, 1]" },                                                                              \
        { "--min-p",                                                                               \
          OPTION_REAL,                                                                             \
          &lm_given.min_p,                                                                         \
          "P",                                                                                     \
          "of these, from those at least P times as probable as the first; default 0.05",          \
          "[0, 1]" },                                                                              \
        { "--repeat-penalty",                                                                      \
          OPTION_REAL,                                                                             \
          &lm_given.repeat,                                                                        \
          "R",                                                                                     \
          "divide the odds of tokens that were there by R; default 1: none",                       \
          "(0, 100]" },                                                                            \
        { "--repeat-last-n",                                                                       \
          OPTION_INT,                                                                              \
          &lm_given.last,                                                                          \
          "N",                                                                                     \
          "how many tokens penalties look back; default 64",                                       \
          OPTION_COUNT },                                                                          \
        { "--presence-penalty", OPTION_REAL, &lm_given.presence, "P",                              \
          "subtract this from the logits of tokens that were there; default 0" },                  \
        { "--frequency-penalty", OPTION_REAL, &lm_given.frequency, "P",                            \
          "likewise, once for each time that they were there; default 0" },                        \
        { "--grammar", OPTION_TEXT, &lm_given.grammar, "TEXT",                                     \
          "what the answer must look like, in GBNF: root ::= \"yes\" | \"no\"" },                  \
        { "--grammar-file", OPTION_TEXT, &lm_given.grammar_file, "FILE",                           \
          "the same, from a file" },                                                               \
        { "--json-schema", OPTION_TEXT, &lm_given.schema, "SCHEMA",                                \
          "the answer is JSON as this schema describes it; {}: any JSON" },                        \
        { "--stop", OPTION_LIST, &lm_given.stop, "TEXT",                                           \
          "text that ends the answer and is not printed; may be repeated" },                       \
        { "--seed", OPTION_INT, &lm_given.seed, "N", "random seed; default 0", OPTION_TALLY },     \
        { "--ctx-size",                                                                            \
          OPTION_INT,                                                                              \
          &lm_given.context,                                                                       \
          "N",                                                                                     \
          "tokens of the context; default: the model's, at most 4096",                             \
          OPTION_COUNT },                                                                          \
        { "--context-shift", OPTION_FLAG, &lm_given.shift, NULL,                                   \
          "when the context is full, forget the older half and go on; default: stop" },            \
        { "--keep",                                                                                \
          OPTION_INT,                                                                              \
          &lm_given.keep,                                                                          \
          "N",                                                                                     \
          "tokens at the beginning that --context-shift never forgets; default 0",                 \
          OPTION_TALLY },                                                                          \
        { "--ignore-eos", OPTION_FLAG, &lm_given.ignore_end, NULL,                                 \
          "go on where the model would end the answer" },                                          \
        { "--lora", OPTION_TEXT, &lm_given.lora, "DIR",                                            \
          "adapters as peft or `facula train text --lora` writes them" },                          \
        { "--lookup",                                                                              \
          OPTION_INT,                                                                              \
          &lm_given.lookup,                                                                        \
          "N",                                                                                     \
          "guess tokens from where the same last N were read "                                     \
          "before, and check several at once; "                                                    \
          "such as 4; default: off",                                                               \
          OPTION_LOOKUP },                                                                         \
        { "--draft", OPTION_TEXT, &lm_given.draft, "MODEL",                                        \
          "guess tokens by a smaller model with the same tokens; the text stays the same" },       \
        { "--guesses",                                                                             \
          OPTION_INT,                                                                              \
          &lm_given.guesses,                                                                       \
          "N",                                                                                     \
          "tokens guessed at once; default 7, of a draft 4",                                       \
          "[1, 7]" },                                                                              \
        { "--tokenizer", OPTION_TEXT, &lm_given.tokenizer, "FILE",                                 \
          "tokenizer.json or tokenizer.bin; default: the model's own" },                           \
        { "--precision", OPTION_TEXT, &lm_given.precision, "NAME",                                 \
          "highest: multiply weights in blocks with f32, not with 8-bit activations" },            \
        { "--stats", OPTION_FLAG, &lm_given.stats, NULL,                                           \
          "print tokens a second and memory to standard error" },                                  \
        DEVICE_OPTIONS(lm_given.on)

typedef struct lm_open_model {
    fac_device *device;
    fac_tokenizer *tokens;
    fac_lm *lm;
    fac_session *session;
    fac_grammar *grammar; /* NULL: none */
    fac_lm *small;        /* guesses; NULL: there is none */
    fac_session *draft;
    double load_seconds;
} lm_open_model;
/* What does nothing without another option; an exit code. */
int lm_fits(const verb *v);
int lm_guessing(const verb *v, const char *draft, long lookup, long guesses);
/* The tokenizer of --tokenizer, or the model's own; not more tokens than the model knows, and
 * none around texts that it does not know. */
int lm_tokenizer(const char *given, const char *path, fac_tokenizer **out);
/* file: what the text was read from, or NULL. */
int lm_not_utf8(const char *file);
int lm_same_tokens(const char *given, const fac_tokenizer *t, const fac_lm *m);
int lm_open(const char *path, lm_open_model *to); /* an exit code; lm_close in any case */
void lm_close(lm_open_model *m);
fac_generate_opts lm_how(const lm_open_model *m);
const char *lm_finish(fac_finish f);
bool lm_tell(void *self, int32_t id, const char *text, size_t bytes); /* to standard output */
void lm_stats(const lm_open_model *m, const fac_generate_stat *s);
void lm_catch(void); /* the next Ctrl-C stops the answer, one more the program */
bool lm_interrupted(void);
/* beams.c: the best of --beams texts, with length_penalty; an exit code. */
int lm_beams(lm_open_model *m, const int32_t *ids, int64_t n, const char *prompt,
             double length_penalty);
/* --chat-template: the name of a format, or the text of a file of Jinja. */
int lm_format(const verb *v, const char *given, const char **format);
/* Can a question be put in this format, or by the model's own template?  An exit code. */
int lm_chats(const fac_tokenizer *t, const char *path, const char *format);
#endif
