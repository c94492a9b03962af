/* facula serve: a language model behind OpenAI's HTTP interface. */
#include "facula/serve.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "generate.h"

enum { PORT = 8080, GRACE = 10 }; /* seconds for answers under way, after the first signal */

static struct {
    device_options on;
    const char *host, *key, *cors, *name, *format, *tokenizer, *precision, *lora, *draft;
    long port, slots, queue, context, lookup, guesses;
    bool verbose;
} o = { .host = "127.0.0.1", .port = PORT, .slots = 4, .queue = 64 };

static const option options[] = {
    { "--host", OPTION_TEXT, &o.host, "ADDRESS",
      "address to listen on; default 127.0.0.1; one that other machines reach needs a key" },
    { "--port", OPTION_INT, &o.port, "N", "port to listen on; 0: any that is free; default 8080",
      "[0, 65535]" },
    { "--api-key", OPTION_TEXT, &o.key, "KEY",
      "key that clients must send (Authorization: Bearer KEY); default: FACULA_API_KEY of the "
      "environment" },
    { "--cors-origin", OPTION_TEXT, &o.cors, "ORIGIN",
      "a page from elsewhere that may call, such as http://localhost:3000" },
    { "--slots", OPTION_INT, &o.slots, "N", "answers that are written at once; default 4",
      "[1, 64]" },
    { "--queue", OPTION_INT, &o.queue, "N",
      "requests that may wait; more are refused with status 429; default 64", "[1, 4096]" },
    { "--alias", OPTION_TEXT, &o.name, "NAME",
      "what clients call the model; default: the file's name" },
    { "--chat-template", OPTION_TEXT, &o.format, "NAME|FILE",
      "format of the turns, or a template in Jinja, instead of the file's own" },
    { "--ctx-size", OPTION_INT, &o.context, "N",
      "tokens of a conversation; default: the model's, at most 4096", OPTION_COUNT },
    { "--lora", OPTION_TEXT, &o.lora, "DIR",
      "adapters as peft or `facula train text --lora` writes them" },
    { "--lookup", OPTION_INT, &o.lookup, "N",
      "while one answer is written alone, guess tokens from where the same last N were read "
      "before, and check several at once; such as 4; default: off",
      OPTION_LOOKUP },
    { "--draft", OPTION_TEXT, &o.draft, "MODEL",
      "guess tokens by a smaller model with the same tokens; the text stays the same" },
    { "--guesses", OPTION_INT, &o.guesses, "N", "tokens guessed at once; default 7, of a draft 4",
      "[1, 7]" },
    { "--tokenizer", OPTION_TEXT, &o.tokenizer, "FILE",
      "tokenizer.json or tokenizer.bin; default: the model's own" },
    { "--precision", OPTION_TEXT, &o.precision, "NAME",
      "highest: multiply weights in blocks with f32, not with 8-bit activations" },
    { "--verbose", OPTION_FLAG, &o.verbose, NULL, "print a line for each request" },
    DEVICE_OPTIONS(o.on),
    { 0 }
};

typedef struct served {
    fac_device *device;
    fac_tokenizer *tokens;
    fac_lm *lm, *draft;
    char *name;
} served;

static void log_line(void *self, const char *method, const char *path, int status) {
    (void)self;
    fprintf(stderr, "%s %s %d\n", method, path, status);
}

/* "models/small.gguf": "small" */
static char *name_of(const char *path) {
    const char *base = folder_name(path);
    const char *slash = strrchr(base, '/');
    char *name = strdup(slash ? slash + 1 : base);
    const size_t n = name ? strlen(name) : 0;
    if (n > 5 && !strcmp(name + n - 5, ".gguf")) name[n - 5] = 0;
    return name;
}

/* Encoders write no text, and each request is answered where it comes in. */
static int encoder_fits(const char *path) {
    const struct {
        bool given;
        const char *name;
    } texts[] = { { o.draft, "--draft" },
                  { o.lookup, "--lookup" },
                  { o.format, "--chat-template" },
                  { option_given(&o.slots), "--slots" },
                  { option_given(&o.queue), "--queue" } };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (texts[k].given)
            return fail_text("%s gives embeddings, and writes no text: %s is for texts", path,
                             texts[k].name);
    return EXIT_OK;
}

static int load(const char *path, served *s) {
    fac_error err = { 0 };
    numerics precision = { FAC_PRECISION_DEFAULT, FAC_NONE };
    int code = precision_read(verb_find("serve"), o.precision, &precision);
    if (!code) code = device_open(&o.on, &s->device);
    if (code) return code;
    const fac_lm_opts opts = { .context = o.context, .precision = precision.products };
    const fac_lm_opts of_draft = { .precision = precision.products };
    code = lm_tokenizer(o.tokenizer, path, &s->tokens);
    if (code) return code;
    if (fac_lm_load(path, s->device, &opts, &s->lm, &err) ||
        (o.lora && fac_lm_lora_load(s->lm, o.lora, &err)) ||
        (o.draft && fac_lm_load(o.draft, s->device, &of_draft, &s->draft, &err)))
        return fail(&err);
    code = lm_same_tokens(o.tokenizer, s->tokens, s->lm);
    if (code) return code;
    if (fac_lm_encodes(s->lm)) code = encoder_fits(path);
    if (code) return code;
    if (o.format || fac_tokenizer_template(s->tokens)) code = lm_chats(s->tokens, path, o.format);
    if (code && o.format) return code; /* else texts are served all the same */
    s->name = name_of(path);
    return s->name ? EXIT_OK : fail_text("out of memory");
}

/* After a signal answers under way have some seconds; a second signal ends the process at once. */
static void wait_for_end(fac_serve *server, const sigset_t *signals) {
    int which;
    sigwait(signals, &which);
    sigprocmask(SIG_UNBLOCK, signals, NULL);
    if (fac_serve_close(server)) fprintf(stderr, "waiting for answers; once more ends at once\n");
    for (int k = 0; k < GRACE * 20 && fac_serve_close(server); k++) usleep(50000);
    fac_serve_stop(server);
}

static int answer(const served *s, const sigset_t *signals) {
    fac_error err = { 0 };
    fac_serve *server;
    const char *key = o.key ? o.key : getenv("FACULA_API_KEY");
    const fac_serve_opts opts = {
        .http = { .host = o.host,
                  .port = (int)o.port,
                  .key = key && *key ? key : NULL,
                  .cors_origin = o.cors,
                  .log = o.verbose ? log_line : NULL },
        .name = o.name ? o.name : s->name,
        .format = o.format,
        .slots = (int)o.slots,
        .queue = (int)o.queue,
        .draft = s->draft,
        .lookup = (int)o.lookup,
        .guesses = (int)o.guesses,
    };
    if (fac_serve_start(s->lm, s->tokens, &opts, &server, &err)) return fail(&err);
    const char *form =
        strchr(o.host, ':') ? "%s at http://[%s]:%d/v1\n" : "%s at http://%s:%d/v1\n";
    printf(form, opts.name, o.host, fac_serve_port(server));
    fflush(stdout);
    wait_for_end(server, signals);
    return EXIT_OK;
}

static int serve(list args) {
    served s = { 0 };
    sigset_t signals;
    const int wrong = arguments_fit(verb_find("serve"), args, 1, 1, "which model?");
    if (wrong) return wrong;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL); /* threads inherit it: the signal waits for this one */
    int code = lm_guessing(verb_find("serve"), o.draft, o.lookup, o.guesses);
    if (!code) code = lm_format(verb_find("serve"), o.format, &o.format);
    if (!code) code = load(args.at[0], &s);
    if (!code) code = answer(&s, &signals);
    fac_lm_free(s.lm);
    fac_lm_free(s.draft);
    fac_tokenizer_free(s.tokens);
    fac_device_free(s.device);
    free(s.name);
    return code;
}

const verb verb_serve = {
    .name = "serve",
    .summary = "serve a language model by OpenAI's HTTP interface",
    .usage = "facula serve MODEL [options]",
    .options = options,
    .examples = "serve model.gguf --port 8080 --alias tiny\nserve model.gguf --host 0.0.0.0 "
                "--api-key SECRET --slots 8",
    .run = serve,
    .list = lm_formats,
    .more = "POST /v1/chat/completions, /v1/completions, /v1/embeddings (of encoders), /tokenize, "
            "/detokenize;\nGET /v1/models, /health, /metrics.  Streams are server-sent events.  "
            "Ctrl-C ends the server when the\nanswers under way are written, a second one at once. "
            " It needs libmicrohttpd (Debian:\nlibmicrohttpd12).",
};
