/* facula/serve.h: answers whole and in streams, several at once, limits, those who leave, bodies
 * that are none.  The model is a small one with random weights, as llama2.c's file. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "http/microhttpd.h"
#include "openai_client.h"
#include "serve/serve.h"

static fac_error err;
static fac_device *cpu;
static fac_lm *lm;
static fac_tokenizer *tokens;
static fac_serve *server;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* ---- a small model ---- */

enum { WIDTH = 16, HIDDEN = 24, LAYERS = 2, HEADS = 4, KEYS = 2, VOCABULARY = 300, CONTEXT = 2000 };
static char model_path[] = "/tmp/facula-serve-XXXXXX", tokens_path[] = "/tmp/facula-words-XXXXXX";

static void write_model(void) {
    const int32_t head[7] = { WIDTH, HIDDEN, LAYERS, HEADS, KEYS, VOCABULARY, CONTEXT };
    const int D = WIDTH / HEADS, keys = KEYS * D;
    const size_t n =
        VOCABULARY * WIDTH +
        LAYERS * (2 * WIDTH + 2 * WIDTH * WIDTH + 2 * keys * WIDTH + 3 * HIDDEN * WIDTH) + WIDTH +
        CONTEXT * (size_t)D;
    float *x = fac_alloc(n, sizeof *x);
    fac_random_fill(11, 9, -0.6f, 0.6f, n, x);
    FILE *f = fdopen(mkstemp(model_path), "wb");
    fwrite(head, sizeof head, 1, f);
    fwrite(x, sizeof *x, n, f);
    fclose(f);
    fac_release(x);
}

/* Tokens from 259 on are letters and signs. */
static void write_tokens(void) {
    FILE *f = fdopen(mkstemp(tokens_path), "wb");
    const int32_t longest = 8;
    fwrite(&longest, 4, 1, f);
    for (int k = 0; k < VOCABULARY; k++) {
        char text[16];
        const float score = (float)-k;
        int32_t n = snprintf(text, sizeof text, "<0x%02X>", k < 3 ? 0 : k - 3);
        if (k >= 259) n = snprintf(text, sizeof text, "%c", 'A' + k - 259);
        fwrite(&score, 4, 1, f);
        fwrite(&n, 4, 1, f);
        fwrite(text, (size_t)n, 1, f);
    }
    fclose(f);
}

/* ---- a client ---- */

static void want(int status, const char *path, const char *body, const char *text) {
    static char to[ROOM];
    const int got = ask(path, body, to);
    if (got != status) fail_msg("%d instead of %d for %s\n%s", got, status, body, to);
    if (text && !strstr(to, text)) fail_msg("no '%s' in the answer to %s\n%s", text, body, to);
}

#define GREEDY "\"temperature\":0,\"ignore_eos\":true,\"max_tokens\":40"

/* ---- answers ---- */

static void streams_say_the_same(void **state) {
    (void)state;
    static char whole[ROOM], stream[ROOM], a[ROOM], b[ROOM];
    assert_int_equal(ask("/v1/completions", "{\"prompt\":\"ABC\"," GREEDY "}", whole), 200);
    assert_int_equal(
        ask("/v1/completions", "{\"prompt\":\"ABC\"," GREEDY ",\"stream\":true}", stream), 200);
    join(whole, "text", a);
    join(stream, "text", b);
    assert_true(strlen(a) >= 40);
    assert_string_equal(a, b);
    assert_non_null(strstr(stream, "data: [DONE]"));
    assert_non_null(strstr(whole, "\"completion_tokens\":40"));
    static const char chat[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"ABC\"}]," GREEDY "%s}";
    char body[256];
    snprintf(body, sizeof body, chat, "");
    assert_int_equal(ask("/v1/chat/completions", body, whole), 200);
    snprintf(body, sizeof body, chat,
             ",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    assert_int_equal(ask("/v1/chat/completions", body, stream), 200);
    join(whole, "content", a);
    join(stream, "content", b);
    assert_string_equal(a, b);
    assert_non_null(strstr(stream, "\"delta\":{\"role\":\"assistant\""));
    assert_non_null(strstr(stream, "\"finish_reason\":\"length\""));
    assert_non_null(strstr(stream, "\"choices\":[],\"usage\":{"));
}

static void fields_do_what_they_say(void **state) {
    (void)state;
    static char one[ROOM], a[ROOM], b[ROOM];
    want(200, "/v1/completions",
         "{\"prompt\":\"A\",\"max_tokens\":3,\"logit_bias\":{\"265\":100},\"temperature\":0}",
         "\"text\":\"GGG\"");
    want(200, "/v1/completions",
         "{\"prompt\":\"A\",\"max_tokens\":9,\"logit_bias\":{\"265\":100},\"stop\":[\"x\",\"GG\"],"
         "\"temperature\":0}",
         "\"text\":\"\",\"logprobs\":null,\"finish_reason\":\"stop\"");
    want(200, "/v1/completions",
         "{\"prompt\":\"A\",\"max_tokens\":1,\"logprobs\":2,\"temperature\":0}",
         "\"top_logprobs\":[{");
    want(200, "/v1/completions", "{\"prompt\":[1,262,263],\"max_tokens\":1}",
         "\"prompt_tokens\":3");
    want(200, "/v1/completions", "{\"prompt\":[\"A\",\"B\"],\"n\":2,\"max_tokens\":1}",
         "\"index\":3");
    want(200, "/v1/completions", "{\"prompt\":\"A\"," GREEDY ",\"max_tokens\":100000}",
         "\"finish_reason\":\"length\"");
    static const char seeded[] = "{\"prompt\":\"A\",\"max_tokens\":30,\"seed\":%d}";
    char body[128];
    for (int k = 0; k < 3; k++) {
        snprintf(body, sizeof body, seeded, k < 2 ? 5 : 6);
        assert_int_equal(ask("/v1/completions", body, one), 200);
        join(one, "text", b);
        if (k == 1) assert_string_equal(a, b);
        if (k == 2) assert_string_not_equal(a, b);
        memcpy(a, b, sizeof a);
    }
    want(200, "/tokenize", "{\"content\":\"AB\"}", "{\"tokens\":[");
    want(200, "/detokenize", "{\"tokens\":[265,266]}", "{\"content\":\"GH\"}");
}

static void what_is_wrong_is_named(void **state) {
    (void)state;
    static const struct {
        const char *path, *body, *text;
    } of[] = {
        { "/v1/completions", "", "no JSON" },
        { "/v1/completions", "[1]", "no JSON object" },
        { "/v1/completions", "{}", "prompt: " },
        { "/v1/completions", "{\"prompt\":\"\\u0000\"}", "zero byte" },
        { "/v1/completions", "{\"prompt\":\"A\",\"temperature\":\"hot\"}",
          "temperature: a number from 0 to 2" },
        { "/v1/completions", "{\"prompt\":\"A\",\"max_tokens\":0}", "max_tokens: " },
        { "/v1/completions", "{\"prompt\":\"A\",\"max_tokens\":1.5}",
          "max_tokens: a whole number" },
        { "/v1/completions", "{\"prompt\":\"A\",\"stop\":[\"\"]}", "stop: " },
        { "/v1/completions", "{\"prompt\":\"A\",\"n\":17}", "n: " },
        { "/v1/completions", "{\"prompt\":\"A\",\"echo\":true}", "echo: not supported" },
        { "/v1/completions", "{\"prompt\":[300]}", "token 300 of 300" },
        { "/v1/completions", "{\"prompt\":[-1]}", "prompt: " },
        { "/v1/completions", "{\"prompt\":\"\xff\"}", "UTF-8" },
        { "/v1/completions", "{\"prompt\":\"A\",\"logit_bias\":{\"x\":1}}", "logit_bias: " },
        { "/v1/completions", "{\"prompt\":\"A\",\"stream\":1}", "stream: true or false" },
        { "/v1/chat/completions", "{\"messages\":[]}", "messages: " },
        { "/v1/chat/completions", "{\"messages\":[{\"role\":\"robot\",\"content\":\"\"}]}",
          "role: " },
        { "/v1/chat/completions",
          "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}",
          "content: " },
        { "/v1/chat/completions",
          "{\"messages\":[{\"role\":\"user\",\"content\":\"A\"}],\"functions\":[1]}",
          "functions: not supported" },
        { "/v1/chat/completions",
          "{\"messages\":[{\"role\":\"user\",\"content\":\"A\"}],\"response_format\":{\"type\":"
          "\"xml\"}}",
          "response_format: " },
        { "/v1/embeddings", "{\"input\":\"A\"}", "gives no embeddings" },
        { "/tokenize", "{\"content\":[1]}", "content: " },
        { "/detokenize", "{\"tokens\":[300]}", "token 300" },
    };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        want(400, of[k].path, of[k].body, of[k].text);
    char *long_prompt = malloc(2 * CONTEXT);
    int n = sprintf(long_prompt, "{\"prompt\":\"");
    for (int k = 0; k < CONTEXT; k++) long_prompt[n++] = 'A';
    strcpy(long_prompt + n, "\"}");
    want(400, "/v1/completions", long_prompt, "context_length_exceeded");
    free(long_prompt);
}

/* ---- several at once ---- */

typedef struct client {
    int number;
    char answer[ROOM];
} client;

static void body_of(int number, char to[512]) {
    static const char letters[] = "AHIFXPQZ";
    int n = sprintf(to, "{\"prompt\":\"");
    for (int k = 0; k <= number * 37 % 290; k++) to[n++] = letters[(k * (number + 3) + number) % 8];
    sprintf(to + n, "\"," GREEDY ",\"stream\":true}");
}

static void *run_client(void *self) {
    client *c = self;
    char body[512];
    body_of(c->number, body);
    ask("/v1/completions", body, c->answer);
    return NULL;
}

static void clients_do_not_see_each_other(void **state) {
    (void)state;
    enum { N = 12 };
    static client of[N];
    static char alone[ROOM], a[ROOM], b[ROOM];
    pthread_t threads[N];
    for (int k = 0; k < N; k++) {
        of[k].number = k;
        assert_false(pthread_create(&threads[k], NULL, run_client, &of[k]));
    }
    for (int k = 0; k < N; k++) pthread_join(threads[k], NULL);
    for (int k = 0; k < N; k++) {
        char body[512];
        body_of(k, body);
        assert_int_equal(ask("/v1/completions", body, alone), 200);
        join(alone, "text", a);
        join(of[k].answer, "text", b);
        assert_true(strlen(a) >= 40);
        if (strcmp(a, b)) fail_msg("client %d got\n%s\ninstead of\n%s", k, b, a);
    }
}

static fac_engine_stat when_idle(void) {
    fac_engine_stat e = { .active = 1 };
    for (int k = 0; k < 200 && (e.active || e.queued); k++) {
        usleep(25000);
        e = fac_engine_about(server->engine);
    }
    assert_int_equal(e.active, 0);
    assert_int_equal(e.queued, 0);
    return e;
}

/* Answers as long as the context, which clients do not wait for. */
static void who_leaves_is_forgotten(void **state) {
    (void)state;
    static const char body[] = "{\"prompt\":\"A\",\"ignore_eos\":true,\"max_tokens\":1900%s}";
    const int64_t before = when_idle().tokens;
    char text[128];
    enum { N = 8 };
    int s[N];
    for (int k = 0; k < N; k++) {
        snprintf(text, sizeof text, body, k % 2 ? ",\"stream\":true" : "");
        s[k] = post("/v1/completions", text);
    }
    usleep(20000);
    for (int k = 0; k < N; k++) close(s[k]);
    const int64_t written = when_idle().tokens - before;
    if (written >= N * 1900) fail_msg("all %d tokens were written for nobody", (int)written);
    want(200, "/v1/completions", "{\"prompt\":\"A\"," GREEDY "}", NULL);
}

static void the_queue_has_an_end(void **state) {
    (void)state;
    static char to[ROOM];
    assert_int_equal(
        ask("/v1/completions", "{\"prompt\":[\"A\",\"B\",\"C\"],\"n\":16,\"max_tokens\":1}", to),
        429);
    assert_non_null(strstr(to, "queue_full"));
    when_idle();
}

/* ---- bodies that are none ---- */

static void a_thousand_bad_bodies(void **state) {
    (void)state;
    static const char good[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"A\"}]}],"
        "\"max_tokens\":1,\"stop\":[\"x\"],\"logit_bias\":{\"5\":1},\"seed\":3,\"logprobs\":true}";
    static char to[ROOM];
    uint64_t at = 0;
    for (int k = 0; k < 1000; k++) {
        char bad[sizeof good];
        memcpy(bad, good, sizeof good);
        for (int j = 0; j < 1 + k % 4; j++) {
            const uint64_t bits = fac_random_bits(7, 1, at++);
            bad[bits % (sizeof good - 1)] = (char)(1 + (bits >> 32) % 255);
        }
        if (k % 5 == 0) bad[fac_random_bits(7, 2, at) % (sizeof good - 1)] = 0;
        const int status = ask("/v1/chat/completions", bad, to);
        if (status != 200 && status != 400) fail_msg("%d for %s\n%s", status, bad, to);
    }
    when_idle();
}

static void it_ends_while_answers_are_written(void **state) {
    (void)state;
    static char to[ROOM];
    int s[3];
    for (int k = 0; k < 3; k++)
        s[k] = post("/v1/completions",
                    "{\"prompt\":\"A\",\"ignore_eos\":true,\"max_tokens\":1900,\"stream\":true}");
    usleep(10000);
    fac_serve_close(server);
    fac_serve_stop(server);
    for (int k = 0; k < 3; k++) {
        http_get(s[k], to, ROOM);
        close(s[k]);
    }
}

static int start(void **state) {
    (void)state;
    write_model();
    write_tokens();
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &cpu, &err));
    OK(fac_lm_load(model_path, cpu, NULL, &lm, &err));
    OK(fac_tokenizer_load(tokens_path, &tokens, &err));
    const fac_serve_opts o = { .name = "small", .format = "chatml", .slots = 3, .queue = 40 };
    OK(fac_serve_start(lm, tokens, &o, &server, &err));
    port = fac_serve_port(server);
    return 0;
}

static int end(void **state) {
    (void)state;
    fac_lm_free(lm);
    fac_tokenizer_free(tokens);
    fac_device_free(cpu);
    unlink(model_path);
    unlink(tokens_path);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_say_the_same),
        cmocka_unit_test(fields_do_what_they_say),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(clients_do_not_see_each_other),
        cmocka_unit_test(who_leaves_is_forgotten),
        cmocka_unit_test(the_queue_has_an_end),
        cmocka_unit_test(a_thousand_bad_bodies),
        cmocka_unit_test(it_ends_while_answers_are_written),
    };
    fac_mhd library;
    if (fac_mhd_open(&library, &err)) {
        printf("skipped: %s\n", err.text);
        return 0;
    }
    return cmocka_run_group_tests_name("serve", tests, start, end);
}
