/* facula generate: a text that a language model goes on with. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "generate.h"
#include "json.h"
#include "words.h"

lm_options lm_given = {
    .temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05, .repeat = 1, .last = 64
};
static struct {
    bool special;
    const char *file;
    double length_penalty;
} o = { .length_penalty = 1 };

static const option options[] = {
    { "--file", OPTION_TEXT, &o.file, "FILE", "read the prompt from a file" },
    { "--special", OPTION_FLAG, &o.special, NULL,
      "read control tokens in the prompt as such, not as text" },
    { "--beams", OPTION_INT, &lm_given.beams, "N",
      "beam search: print the most probable of N texts that are followed at once", "[1, 256]" },
    { "--length-penalty", OPTION_REAL, &o.length_penalty, "X",
      "with --beams: divide log p by the length to the power of X; default 1" },
    { "--json", OPTION_FLAG, &lm_given.json, NULL, "print JSON, as docs/JSON.md describes" },
    LM_OPTIONS,
    { 0 }
};

/* ---- Ctrl-C stops the answer ---- */

static volatile sig_atomic_t interrupted;
static void on_signal(int signal_) { interrupted = signal_; }

void lm_catch(void) {
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
    interrupted = 0;
    sigaction(SIGINT, &a, NULL);
}
bool lm_interrupted(void) { return interrupted; }

/* ---- loading ---- */

static int read_grammar(lm_open_model *to) {
    fac_error err = { 0 };
    const lm_options *g = &lm_given;
    const int given = (g->grammar != NULL) + (g->grammar_file != NULL) + (g->schema != NULL);
    char *text = NULL;
    if (given > 1)
        return usage_error(verb_find("generate"),
                           "only one of --grammar, --grammar-file and --json-schema");
    if (g->grammar_file &&
        fac_read_text(g->grammar_file, 1 << 20, FAC_READ_FILE_OR_PIPE, &text, NULL, &err))
        return fail(&err);
    const char *grammar = text ? text : g->grammar;
    fac_status status = FAC_OK;
    if (grammar)
        status = fac_grammar_new(to->tokens, grammar, &to->grammar, &err);
    else if (g->schema)
        status = fac_grammar_json(to->tokens, g->schema, &to->grammar, &err);
    fac_read_free(text);
    return status ? fail(&err) : EXIT_OK;
}

int lm_tokenizer(const char *given, const char *path, fac_tokenizer **out) {
    fac_error err = { 0 };
    if (!fac_tokenizer_load(given ? given : path, out, &err)) return EXIT_OK;
    const bool other = strstr(err.text, "tokenizer") != NULL;
    if (given || access(path, F_OK) || !other) return fail(&err);
    return fail_text("%s; --tokenizer FILE names another", err.text);
}

int lm_not_utf8(const char *file) {
    return file ? fail_text("%s: the text is not UTF-8", file) : fail_text("the text is not UTF-8");
}

int lm_same_tokens(const char *given, const fac_tokenizer *t, const fac_lm *m) {
    const long long rows = fac_lm_about(m).vocabulary;
    if (fac_tokenizer_bos(t) >= rows || fac_tokenizer_eos(t) >= rows)
        return fail_text("the tokenizer begins or ends texts beyond the model's %lld tokens", rows);
    if (!given || fac_tokenizer_count(t) <= rows) return EXIT_OK;
    return fail_text("%s has %d tokens, the model knows %lld: it is another model's", given,
                     fac_tokenizer_count(t), rows);
}

int lm_open(const char *path, lm_open_model *to) {
    fac_error err = { 0 };
    numerics precision = { FAC_PRECISION_DEFAULT, FAC_NONE };
    const double begin = now();
    int code = precision_read(verb_find("generate"), lm_given.precision, &precision);
    if (!code) code = device_open(&lm_given.on, &to->device);
    if (code) return code;
    const fac_lm_opts opts = { .context = lm_given.context,
                               .precision = precision.products,
                               .slots = (int)lm_given.beams };
    const fac_lm_opts opts_of_draft = { .precision = precision.products };
    code = lm_tokenizer(lm_given.tokenizer, path, &to->tokens);
    if (code) return code;
    if (fac_lm_load(path, to->device, &opts, &to->lm, &err) ||
        (lm_given.lora && fac_lm_lora_load(to->lm, lm_given.lora, &err)) ||
        fac_session_new(to->lm, &to->session, &err))
        code = fail(&err);
    if (!code && lm_given.draft &&
        (fac_lm_load(lm_given.draft, to->device, &opts_of_draft, &to->small, &err) ||
         fac_session_new(to->small, &to->draft, &err)))
        code = fail(&err);
    if (!code) code = lm_same_tokens(lm_given.tokenizer, to->tokens, to->lm);
    if (!code) code = read_grammar(to);
    to->load_seconds = now() - begin;
    return code;
}

void lm_close(lm_open_model *m) {
    fac_session_free(m->session);
    fac_session_free(m->draft);
    fac_lm_free(m->small);
    fac_grammar_free(m->grammar);
    fac_lm_free(m->lm);
    fac_tokenizer_free(m->tokens);
    fac_device_free(m->device);
}

fac_generate_opts lm_how(const lm_open_model *m) {
    const lm_options *g = &lm_given;
    return (fac_generate_opts){ .sampler = { .repeat = g->repeat,
                                             .presence = g->presence,
                                             .frequency = g->frequency,
                                             .last = (int)g->last,
                                             .top_k = (int)g->top_k,
                                             .top_p = g->top_p,
                                             .min_p = g->min_p,
                                             .temperature = g->temperature,
                                             .seed = (uint64_t)g->seed },
                                .tokens = g->tokens,
                                .stop = g->stop.at,
                                .nstop = g->stop.n,
                                .ignore_end = g->ignore_end,
                                .grammar = m->grammar,
                                .shift = g->shift,
                                .keep = g->keep,
                                .lookup = (int)g->lookup,
                                .draft = m->draft,
                                .guesses = (int)g->guesses };
}

int lm_format(const verb *v, const char *given, const char **format) {
    static char *jinja; /* stays, as the name of a format does */
    fac_error err = { 0 };
    *format = NULL;
    if (!given) return EXIT_OK;
    for (int k = 0; fac_chat_format_name(k) && !*format; k++)
        if (!strcmp(given, fac_chat_format_name(k))) *format = fac_chat_format_name(k);
    if (*format) return EXIT_OK;
    fac_read_free(jinja);
    jinja = NULL;
    if (fac_read_text(given, 1 << 20, FAC_READ_FILE_OR_PIPE, &jinja, NULL, &err))
        return usage_error(v, "--chat-template %s is neither a format nor a file: %s", given,
                           err.text);
    if (!strstr(jinja, "{{") && !strstr(jinja, "{%"))
        return fail_text("%s: not a template in Jinja: it has neither {{ nor {%%", given);
    *format = jinja;
    return EXIT_OK;
}

int lm_chats(const fac_tokenizer *t, const char *path, const char *format) {
    const fac_message ask = { "user", "?" };
    fac_error err = { 0 };
    int32_t *ids;
    int64_t n;
    if (fac_chat_encode(t, format, 1, &ask, true, &ids, &n, &err))
        return fail_text(
            "%s: %s%s", path, err.text,
            format || !fac_tokenizer_template(t) ? "" : "; --chat-template NAME is another");
    fac_chat_free(ids);
    return EXIT_OK;
}

/* ---- options that need another ---- */

int lm_guessing(const verb *v, const char *draft, long lookup, long guesses) {
    if (!guesses || draft || lookup) return EXIT_OK;
    return usage_error(v, "--guesses needs --lookup or --draft: nothing guesses without them");
}

/* Where nothing is drawn, --temp 0 leaves the first `DRAWS` of them without effect, beams all.
 * A seed may stand beside --temp 0: the same seed gives the same text there, too. */
enum { DRAWS = 3 };
static const struct {
    const void *to;
    const char *name;
} draws[] = { { &lm_given.top_k, "--top-k" },
              { &lm_given.top_p, "--top-p" },
              { &lm_given.min_p, "--min-p" },
              { &lm_given.seed, "--seed" },
              { &lm_given.temperature, "--temp" },
              { &lm_given.repeat, "--repeat-penalty" },
              { &lm_given.presence, "--presence-penalty" },
              { &lm_given.frequency, "--frequency-penalty" } };

static int draws_fit(const verb *v, const char *without, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (option_given(draws[k].to))
            return usage_error(v, "%s cannot go with %s: nothing is drawn", without, draws[k].name);
    return EXIT_OK;
}

/* Beams are the most probable texts: nothing is drawn, and penalties are for draws. */
static int beams_fit(const verb *v) {
    const lm_options *g = &lm_given;
    if (!g->beams) return EXIT_OK;
    if (g->grammar || g->grammar_file || g->schema || g->draft || g->lookup || g->stop.n ||
        g->shift || g->stats)
        return usage_error(
            v, "--beams cannot go with grammars, guesses, --stop, --context-shift or --stats");
    return draws_fit(v, "--beams", sizeof draws / sizeof *draws);
}

int lm_fits(const verb *v) {
    const lm_options *g = &lm_given;
    const bool penalties = g->repeat != 1 || g->presence != 0 || g->frequency != 0;
    if (option_given(&g->last) && !penalties)
        return usage_error(v, "--repeat-last-n needs --repeat-penalty, --presence-penalty or "
                              "--frequency-penalty: there is nothing to look back for");
    if (g->keep && !g->shift)
        return usage_error(v, "--keep needs --context-shift: nothing is forgotten without it");
    if (!(g->temperature > 0) && draws_fit(v, "--temp 0", DRAWS)) return EXIT_USAGE;
    return lm_guessing(v, g->draft, g->lookup, g->guesses);
}

/* ---- telling ---- */

const char *lm_finish(fac_finish f) {
    static const char *const names[] = { "end", "stop", "length", "context", "interrupted" };
    return names[f];
}

/* Of others: what steers a terminal is not shown. */
bool lm_tell(void *self, int32_t id, const char *text, size_t bytes) {
    char plain[1024];
    (void)self, (void)id;
    memcpy(plain, text, bytes);
    plain[bytes] = 0;
    out_text(plain, stdout);
    fflush(stdout);
    return !interrupted;
}

/* Tokens a second. */
static double rate(int64_t tokens, double seconds) {
    return seconds > 0 ? (double)tokens / seconds : 0;
}

void lm_stats(const lm_open_model *m, const fac_generate_stat *s) {
    const fac_lm_facts f = fac_lm_about(m->lm);
    char weights[32], caches[32];
    fprintf(stderr, "model      %s, %s, %s of weights; loaded in %.2f s\n", f.architecture,
            f.weights, bytes_text(f.bytes, weights, sizeof weights), m->load_seconds);
    fprintf(stderr, "arithmetic %s\n",
            f.rounds
                ? "activations rounded to 8 bits for weights in blocks (--precision highest: f32)"
                : "f32");
    fprintf(stderr, "plans      %.2f s, once for each size\n",
            s->prompt_plan_seconds + s->plan_seconds);
    fprintf(stderr, "prompt     %lld tokens, %.1f tok/s\n", (long long)s->prompt,
            rate(s->prompt, s->prompt_seconds - s->prompt_plan_seconds));
    fprintf(stderr, "answer     %lld tokens, %.1f tok/s, ended by %s\n", (long long)s->generated,
            rate(s->generated, s->seconds - s->plan_seconds), lm_finish(s->finish));
    if (s->guessed)
        fprintf(stderr, "guesses    %lld of %lld accepted (%.0f %%)\n", (long long)s->accepted,
                (long long)s->guessed, 100 * (double)s->accepted / (double)s->guessed);
    fprintf(stderr, "caches     %s\n",
            bytes_text((double)fac_session_about(m->session).cache_bytes, caches, sizeof caches));
}

typedef struct kept {
    char *s;
    size_t n, room;
    bool lost;
} kept;

static bool keep(void *self, int32_t id, const char *text, size_t bytes) {
    kept *k = self;
    (void)id;
    if (k->n + bytes + 1 > k->room) {
        char *wide = realloc(k->s, 2 * (k->n + bytes) + 256);
        if (!wide) return !(k->lost = true);
        k->s = wide;
        k->room = 2 * (k->n + bytes) + 256;
    }
    memcpy(k->s + k->n, text, bytes);
    k->n += bytes;
    k->s[k->n] = 0;
    return !interrupted;
}

static int print_json(const lm_open_model *m, const kept *k, const fac_generate_stat *s) {
    const fac_lm_facts f = fac_lm_about(m->lm);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "text", k->s ? k->s : "");
    cJSON_AddStringToObject(root, "finish", lm_finish(s->finish));
    cJSON_AddNumberToObject(root, "prompt_tokens", (double)s->prompt);
    cJSON_AddNumberToObject(root, "tokens", (double)s->generated);
    json_number(root, "prompt_seconds", s->prompt_seconds, 6);
    json_number(root, "seconds", s->seconds, 6);
    json_number(root, "prompt_plan_seconds", s->prompt_plan_seconds, 6);
    json_number(root, "plan_seconds", s->plan_seconds, 6);
    if (s->guessed) cJSON_AddNumberToObject(root, "guessed", (double)s->guessed);
    if (s->guessed) cJSON_AddNumberToObject(root, "accepted", (double)s->accepted);
    json_number(root, "load_seconds", m->load_seconds, 6);
    cJSON_AddStringToObject(root, "architecture", f.architecture);
    cJSON_AddStringToObject(root, "weights", f.weights);
    json_number(root, "weight_bytes", f.bytes, 17);
    cJSON_AddNumberToObject(root, "cache_bytes", (double)fac_session_about(m->session).cache_bytes);
    cJSON_AddBoolToObject(root, "rounded", f.rounds);
    return json_print(root);
}

static int answer(lm_open_model *m, const int32_t *ids, int64_t n, const char *prompt) {
    fac_error err = { 0 };
    fac_generate_stat stat;
    kept all = { 0 };
    const fac_generate_opts how = lm_how(m);
    if (!lm_given.json) out_text(prompt, stdout);
    lm_catch();
    const fac_status status = fac_generate(m->session, m->tokens, ids, n, &how,
                                           lm_given.json ? keep : lm_tell, &all, &stat, &err);
    if (!lm_given.json) out_char('\n', stdout);
    int code = status ? fail(&err) : EXIT_OK;
    if (!status && all.lost) code = fail_text("out of memory");
    if (!code && lm_given.json) code = print_json(m, &all, &stat);
    if (!code && lm_given.stats) lm_stats(m, &stat);
    free(all.s);
    if (code) return code;
    return interrupted ? 130 : EXIT_OK;
}

static int with_prompt(lm_open_model *m, const char *text, size_t bytes) {
    const unsigned flags = FAC_TEXT_BOS | (o.special ? FAC_TEXT_SPECIAL : 0u);
    const int64_t n = fac_tokenizer_encode(m->tokens, text, bytes, flags, NULL, 0);
    if (n == -1) return lm_not_utf8(o.file);
    if (!n) return fail_text("an empty prompt: this model has no token that begins a text");
    if (n > fac_lm_about(m->lm).context)
        return fail_text("the prompt has %lld tokens, the context %lld: --ctx-size N", (long long)n,
                         (long long)fac_lm_about(m->lm).context);
    int32_t *ids = n < 0 ? NULL : malloc((size_t)n * sizeof *ids);
    if (!ids || fac_tokenizer_encode(m->tokens, text, bytes, flags, ids, n) != n) {
        free(ids);
        return fail_text("out of memory");
    }
    const int code =
        lm_given.beams ? lm_beams(m, ids, n, text, o.length_penalty) : answer(m, ids, n, text);
    free(ids);
    return code;
}

static int generate(list args) {
    lm_open_model m = { 0 };
    char *text;
    size_t bytes;
    const int wrong = arguments_fit(verb_find("generate"), args, 1, ANY_NUMBER, "which model?");
    if (wrong) return wrong;
    if (option_given(&o.length_penalty) && !lm_given.beams)
        return usage_error(verb_find("generate"),
                           "--length-penalty needs --beams: it compares their texts");
    int code = lm_fits(verb_find("generate"));
    if (!code) code = beams_fit(verb_find("generate"));
    if (!code) code = words_given((list){ args.at + 1, args.n - 1 }, o.file, &text, &bytes);
    if (code) return code;
    code = lm_open(args.at[0], &m);
    if (!code) code = with_prompt(&m, text, bytes);
    lm_close(&m);
    free(text);
    return code;
}

void lm_formats(void) {
    char all[1024] = "";
    for (int k = 0; fac_chat_format_name(k); k++) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, " %s", fac_chat_format_name(k));
    }
    printf("\nformats of --chat-template\n");
    help_row("", 0, all);
}

const verb verb_generate = {
    .name = "generate",
    .summary = "continue a text with a language model",
    .usage = "facula generate MODEL [PROMPT...] [options]",
    .options = options,
    .examples =
        "generate model.gguf 'Once upon a time' -n 100\ngenerate model.gguf --file prompt.txt "
        "--temp 0\ngenerate model.gguf 'Is water wet?' --grammar 'root ::= \"yes\" | \"no\"'",
    .run = generate,
    .more = "MODEL is a .gguf, a folder with config.json, weights and tokenizer.json, or a .bin of "
            "llama2.c (with\n--tokenizer).  The same seed gives the same text.  Ctrl-C stops the "
            "answer.",
};
