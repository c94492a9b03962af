/* Starting and stopping the server of a language model. */
#include <time.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "serve/serve.h"

enum { SLOTS = 4, QUEUE = 64 };

static void log_for(void *self, const char *method, const char *path, int status) {
    const fac_serve *s = self;
    s->opts.http.log(s->opts.http.self, method, path, status);
}

static fac_status start(fac_serve *s, fac_error *err) {
    fac_http_opts http = s->opts.http;
    http.self = s;
    if (http.log) http.log = log_for;
    if (!http.connections) http.connections = s->opts.slots + s->opts.queue + 8;
    return fac_http_start(&http, fac_serve_routes, fac_serve_nroutes, &s->http, err);
}

static void free_all(fac_serve *s) {
    fac_engine_free(s->engine);
    pthread_mutex_destroy(&s->embeds);
    fac_release(s);
}

fac_status fac_serve_start(fac_lm *m, const fac_tokenizer *t, const fac_serve_opts *opts,
                           fac_serve **out, fac_error *err) {
    fac_serve *s = fac_alloc(1, sizeof *s);
    if (!s) return fac_raise_memory(err, "a server");
    s->opts = *opts;
    s->m = m;
    s->t = t;
    s->facts = fac_lm_about(m);
    s->created = (int64_t)time(NULL);
    s->seed = (uint64_t)fac_now_ns();
    if (!s->opts.name) s->opts.name = s->facts.architecture;
    if (s->opts.slots <= 0) s->opts.slots = SLOTS;
    if (s->opts.queue <= 0) s->opts.queue = QUEUE;
    pthread_mutex_init(&s->embeds, NULL);
    fac_status status = FAC_OK;
    const fac_engine_opts of_engine = { .slots = s->opts.slots,
                                        .queue = s->opts.queue,
                                        .draft = opts->draft,
                                        .lookup = opts->lookup,
                                        .guesses = opts->guesses };
    if (!fac_lm_encodes(m)) status = fac_engine_new(m, t, &of_engine, &s->engine, err);
    if (!status) status = start(s, err);
    if (status)
        free_all(s);
    else
        *out = s;
    return status;
}

int fac_serve_port(const fac_serve *s) { return fac_http_port(s->http); }

int fac_serve_close(fac_serve *s) {
    fac_http_close(s->http);
    return fac_http_running(s->http);
}

void fac_serve_stop(fac_serve *s) {
    if (!s) return;
    fac_http_stop(s->http);
    free_all(s);
}
