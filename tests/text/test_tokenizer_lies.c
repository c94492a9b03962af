/* Tokenizers that cannot be: what is not known, ids that are no tokens, scores that are no numbers.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "gguf_files.h"
#include "text/tokenizer.h"

static fac_error err;

static fac_status parse(const char *data, size_t n, fac_tokenizer **t) {
    fac_file *f = fac_file_memory(data, n);
    const fac_status status = fac_tokenizer_parse(f, t, &err);
    fac_file_free(f);
    return status;
}

static void refused(const char *data, size_t n, const char *says) {
    fac_tokenizer *t;
    if (!parse(data, n, &t)) fail_msg("accepted, where '%s' is expected", says);
    if (!strstr(err.text, says)) fail_msg("\"%s\" does not say %s", err.text, says);
}

static void taken(const char *data, size_t n) {
    fac_tokenizer *t;
    if (parse(data, n, &t)) fail_msg("%s", err.text);
    fac_tokenizer_free(t);
}

static void what_is_unknown_is_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *json, *says;
    } bad[] = {
        { "{\"model\":{\"type\":\"Magic\",\"vocab\":{}}}", "\"Magic\"" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"normalizer\":{"
          "\"type\":\"Odd\"}}",
          "\"Odd\"" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"pre_tokenizer\":{"
          "\"type\":\"Split\","
          "\"pattern\":{\"Regex\":\"x+\"}}}",
          "\"x+\"" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}",
          "ids are no numbers" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"ab\"]}}",
          "merge 1 is no pair" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":\"a b\"}}",
          "merges that are no list" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":[0,1],\"merges\":[]}}", "ids are no numbers" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}",
          "two tokens with the id 0, \"a\" and \"b\"" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"a\":1},\"merges\":[]}}",
          "the token \"a\" has two ids, 0 and 1" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},"
          "\"added_tokens\":[{\"id\":1,\"content\":\"<s>\"}]}",
          "two tokens with the id 1, \"b\" and \"<s>\"" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},"
          "\"added_tokens\":[{\"id\":2,\"content\":\"a\"}]}",
          "the token \"a\" has two ids, 0 and 2" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"post_processor\":{"
          "\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}}]}}",
          "post_processor: \"<s>\" is no token" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"post_processor\":{"
          "\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"a\"}}],"
          "\"special_tokens\":{\"a\":{\"ids\":[9]}}}}",
          "post_processor: \"a\" is no token" },
        { "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}},\"post_processor\":{"
          "\"type\":\"BertProcessing\",\"cls\":[\"a\",0],\"sep\":[\"[SEP]\",1]}}",
          "post_processor: \"[SEP]\" is no token" },
        { "{\"model\":{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"a\",0]]}}",
          "unk_id is no token" },
        { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0],[\"b\"]]}}",
          "token 1 is no pair" },
        { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0],[\"b\",-1e99]]}}",
          "the score of token 1 is -inf" },
        { "{}", "no tokenizer" },
        { "{", "no JSON" },
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        refused(bad[k].json, strlen(bad[k].json), bad[k].says);
}

/* Byte-level BPE of one token, and a key that is a number. */
static void one_key(fac_text *t, const char *name, int type, uint64_t value, int bytes) {
    put_gguf_head(t, 3, 0, 4);
    put_gguf_key_text(t, "tokenizer.ggml.model", "gpt2");
    put_gguf_key(t, "tokenizer.ggml.tokens", 9);
    put_number(t, 8, 4);
    put_number(t, 1, 8);
    put_gguf_text(t, "a");
    put_gguf_key(t, "tokenizer.ggml.merges", 9);
    put_number(t, 8, 4);
    put_number(t, 0, 8);
    put_gguf_key(t, name, type);
    put_number(t, value, bytes);
}

static void ids_of_gguf_are_tokens(void **state) {
    (void)state;
    static const char *const names[] = { "tokenizer.ggml.bos_token_id",
                                         "tokenizer.ggml.eos_token_id",
                                         "tokenizer.ggml.eot_token_id",
                                         "tokenizer.ggml.unknown_token_id" };
    enum { U32 = 4, I32 = 5, F32 = 6, TEXT = 8 };
    for (int k = 0; k < 4; k++) {
        fac_text t = { 0 };
        one_key(&t, names[k], U32, 1, 4);
        refused(t.s, t.n, "1 is no token: there are 1");
        t.n = 0;
        one_key(&t, names[k], I32, (uint32_t)-2, 4);
        refused(t.s, t.n, "-2 is no token");
        t.n = 0;
        one_key(&t, names[k], F32, 0, 4);
        refused(t.s, t.n, "a number with a fraction, where something else");
        t.n = 0;
        one_key(&t, names[k], TEXT, 0, 8);
        refused(t.s, t.n, "a text, where something else");
        t.n = 0;
        one_key(&t, names[k], U32, UINT32_MAX, 4);
        taken(t.s, t.n);
        fac_text_free(&t);
    }
}

/* tokenizer.bin of llama2.c: the longest, then score, length and bytes of each token. */
static void scores_are_numbers(void **state) {
    (void)state;
    static const float wrong[] = { NAN, INFINITY, -INFINITY };
    for (int k = 0; k < 4; k++) {
        fac_text t = { 0 };
        put_number(&t, 1, 4);
        for (int id = 0; id < 300; id++) {
            const float score = k < 3 && id == 280 ? wrong[k] : -(float)id;
            fac_text_add_bytes(&t, (const char *)&score, 4);
            put_number(&t, 1, 4);
            fac_text_add(&t, "x");
        }
        if (k < 3)
            refused(t.s, t.n, "the score of token 280 is");
        else
            taken(t.s, t.n);
        fac_text_free(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_unknown_is_refused_by_name),
        cmocka_unit_test(ids_of_gguf_are_tokens),
        cmocka_unit_test(scores_are_numbers),
    };
    return cmocka_run_group_tests_name("tokenizer_lies", tests, NULL, NULL);
}
