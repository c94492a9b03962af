/* A server whose model is small and untrained: it writes any text, and answers at once. */
#ifndef FACULA_TESTS_SMALL_SERVER_H
#define FACULA_TESTS_SMALL_SERVER_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "http/microhttpd.h"
#include "openai_client.h"
#include "serve/serve.h"

static fac_error err;
static fac_device *cpu;
static fac_tokenizer *tokens;
static fac_lm *lm;
static fac_serve *server;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* format: its chat template. */
static inline int small_server_start(const char *format, int64_t context) {
    static const char text[] = "light door on off true false name arguments ";
    fac_lm_shape s = { .context = context, .seed = fresh_seed() };
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &cpu, &err));
    OK(fac_tokenizer_learn(text, strlen(text), 260, &tokens, &err));
    OK(fac_lm_shape_parse("llama:1x2x16", &s, &err));
    s.vocabulary = fac_tokenizer_count(tokens);
    OK(fac_lm_new(&s, cpu, &lm, &err));
    const fac_serve_opts o = { .name = "small", .format = format };
    OK(fac_serve_start(lm, tokens, &o, &server, &err));
    port = fac_serve_port(server);
    return 0;
}

static inline int small_server_end(void **state) {
    (void)state;
    fac_serve_stop(server);
    fac_lm_free(lm);
    fac_tokenizer_free(tokens);
    fac_device_free(cpu);
    return 0;
}

#endif
