/* facula/tokenizer.h: small vocabularies by hand, every kind; golden ids of real files where
 * FACULA_DATA says where they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/memory.h"
#include "base/rng.h"
#include "fresh_seed.h"
#include "gguf_files.h"
#include "text/normal.h"
#include "text/tokenizer.h"

static fac_error err;
static uint64_t seed, drawn;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)
static uint64_t draw(uint64_t below) { return fac_random_bits(seed, 0, drawn++) % below; }

static fac_tokenizer *parse(const char *data, size_t n) {
    fac_file *f = fac_file_memory(data, n);
    fac_tokenizer *t = NULL;
    OK(fac_tokenizer_parse(f, &t, &err));
    fac_file_free(f);
    return t;
}

/* "3 1 2": the ids of a text. */
static const char *ids_of(const fac_tokenizer *t, const char *text, unsigned flags) {
    static char to[1024];
    int32_t ids[100];
    const int64_t n = fac_tokenizer_encode(t, text, strlen(text), flags, ids, 100);
    size_t at = 0;
    *to = 0;
    for (int64_t k = 0; k < n && k < 100; k++)
        at += (size_t)snprintf(to + at, sizeof to - at, k ? " %d" : "%d", ids[k]);
    return to;
}

static void byte_level_bpe_of_gguf(void **state) {
    (void)state;
    fac_text file = { 0 };
    gguf_file(&file);
    fac_tokenizer *t = parse(file.s, file.n);
    fac_text_free(&file);
    assert_int_equal(fac_tokenizer_count(t), 5);
    assert_string_equal(ids_of(t, "abba ab", 0), "2 1 0 3 2");
    assert_string_equal(ids_of(t, "a<s>b", FAC_TEXT_SPECIAL), "0 4 1");
    assert_string_equal(ids_of(t, "a<s>b", 0),
                        "0 1"); /* text of users: no bytes for < s > here, no control token */
    assert_string_equal(ids_of(t, "", 0), "");
    assert_int_equal(fac_tokenizer_encode(t, "a\xff", 2, 0, NULL, 0), -1);
    assert_true(fac_tokenizer_control(t, 4) && !fac_tokenizer_control(t, 2));
    char text[20];
    const int32_t back[] = { 2, 3, 0, 4 };
    assert_int_equal(fac_tokenizer_decode(t, back, 4, 0, text, sizeof text), 4);
    assert_memory_equal(text, "ab a", 4);
    assert_int_equal(fac_tokenizer_decode(t, back, 4, FAC_TEXT_SPECIAL, text, sizeof text), 7);
    fac_tokenizer_free(t);
}

static void word_pieces(void **state) {
    (void)state;
    static const char json[] = "{\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":"
                               "true},{\"id\":1,\"content\":\"[CLS]\",\"special\":true},"
                               "{\"id\":2,\"content\":\"[SEP]\",\"special\":true}],\"normalizer\":{"
                               "\"type\":\"BertNormalizer\",\"clean_text\":true,"
                               "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":"
                               "true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
                               "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\","
                               "2],\"cls\":[\"[CLS]\",1]},"
                               "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
                               "\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"cafe\":3,"
                               "\"##s\":4,\".\":5,\"\xe6\x9d\xb1\":6}}}";
    fac_tokenizer *t = parse(json, sizeof json - 1);
    assert_string_equal(ids_of(t, "Caf\xc3\xa9s. nothing\xe6\x9d\xb1", FAC_TEXT_BOS),
                        "1 3 4 5 0 6 2");
    assert_string_equal(ids_of(t, "\t\r\n ", FAC_TEXT_BOS), "1 2");
    char text[30];
    const int32_t back[] = { 1, 3, 4, 5, 6, 2 };
    const size_t n = fac_tokenizer_decode(t, back, 6, 0, text, sizeof text);
    text[n] = 0;
    assert_string_equal(text, "cafes. \xe6\x9d\xb1");
    fac_tokenizer_free(t);
}

static void unigrams(void **state) {
    (void)state;
    static const char json[] = "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":"
                               "\"\xe2\x96\x81\",\"prepend_scheme\":\"always\"},"
                               "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\","
                               "0],[\"\xe2\x96\x81\",-3],[\"a\",-2],[\"b\",-2],[\"ab\",-5],"
                               "[\"\xe2\x96\x81"
                               "a\",-4]]}}";
    fac_tokenizer *t = parse(json, sizeof json - 1);
    assert_string_equal(ids_of(t, "ab", 0), "5 3"); /* -4 -2 beats -3 -2 -2 and -3 -5 */
    assert_string_equal(ids_of(t, "zz", 0), "1 0");
    fac_tokenizer_free(t);
}

/* Each text is pieces without a rest, and a million equal letters take no longer than their number
 * says. */
static void pieces_cover_a_text(void **state) {
    (void)state;
    static const fac_pretoken cuts[] = { FAC_CUT_NONE, FAC_CUT_GPT2, FAC_CUT_DIGITS, FAC_CUT_LLAMA3,
                                         FAC_CUT_QWEN2 };
    static const char *const parts[] = { "a",
                                         "'s",
                                         "'S",
                                         " ",
                                         "  ",
                                         "\n",
                                         "\r\n",
                                         "1",
                                         "23456",
                                         "!",
                                         "\xe1\xa0\x8e",
                                         "'\xc5\xbf",
                                         "\xf0\x9f\x99\x82",
                                         "\xc2\xa0",
                                         "\xe6\x9d\xb1",
                                         "\t" };
    for (int round = 0; round < 2000; round++) {
        char text[200] = "";
        for (uint64_t k = draw(20); k; k--) strcat(text, parts[draw(sizeof parts / sizeof *parts)]);
        const size_t n = strlen(text);
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++)
            for (size_t at = 0, used; at < n; at += used) {
                used = fac_pretoken_next(cuts[c], text + at, n - at);
                if (!used || used > n - at || !fac_is_utf8(text + at, used))
                    fail_msg("a piece of %zu bytes in \"%s\"", used, text);
            }
    }
}

static const char *cut(fac_pretoken how, const char *s) {
    static char to[200];
    size_t n = strlen(s), out = 0;
    for (size_t at = 0, used; at < n; at += used) {
        used = fac_pretoken_next(how, s + at, n - at);
        out +=
            (size_t)snprintf(to + out, sizeof to - out, "%s%.*s", at ? "|" : "", (int)used, s + at);
    }
    return to;
}

/* Cut by hand, from what the regular expressions say. */
static void texts_are_cut_as_the_expressions_do(void **state) {
    (void)state;
    assert_string_equal(cut(FAC_CUT_GPT2, "I'm 12  3a, don't  x"),
                        "I|'m| 12| | 3|a|,| don|'t| | x");
    assert_string_equal(cut(FAC_CUT_DIGITS, "a  12 b"), "a|  |1|2| b");
    assert_string_equal(cut(FAC_CUT_LLAMA3, "I'M 12345 x\n\n  y!\n"),
                        "I|'M| |123|45| x|\n\n| | y|!\n");
    assert_string_equal(cut(FAC_CUT_QWEN2, "12 (a) '\xc5\xbf"), "1|2| (|a|)| '|\xc5\xbf");
}

static void long_pieces_take_no_square(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    char *text = fac_alloc(N, 1);
    int32_t *ids = fac_alloc(N, sizeof *ids);
    fac_text file = { 0 };
    gguf_file(&file);
    fac_tokenizer *t = parse(file.s, file.n);
    fac_text_free(&file);
    for (int k = 0; k < N; k++) text[k] = k % 2 ? 'b' : 'a';
    assert_int_equal(fac_tokenizer_encode(t, text, N, 0, ids, N), N / 2);
    for (int k = 0; k < N / 2; k++) assert_int_equal(ids[k], 2);
    fac_tokenizer_free(t);
    fac_release(ids);
    fac_release(text);
}

static void normal_forms(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
    } cases[] = {
        /* Python's unicodedata.normalize("NFC", ...) */
        { "e\xcc\x81", "\xc3\xa9" },
        { "a\xcc\xa3\xcc\x82", "\xe1\xba\xad" },
        { "a\xcc\x82\xcc\xa3", "\xe1\xba\xad" },
        { "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81" },
        { "\xe2\x84\xab", "\xc3\x85" },
        { "plain", "plain" },
        { "\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc" },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fac_text to = { 0 };
        fac_nfc(cases[k].from, strlen(cases[k].from), &to);
        fac_text_add_bytes(&to, "", 1);
        assert_string_equal(to.s, cases[k].to);
        fac_text_free(&to);
    }
}

/* ---- real files ---- */

static fac_tokenizer *real(const char *name) {
    char path[1000];
    const char *data = getenv("FACULA_DATA");
    fac_tokenizer *t = NULL;
    if (data) snprintf(path, sizeof path, "%s/%s", data, name);
    if (data && !access(path, R_OK))
        OK(fac_tokenizer_load(path, &t, &err));
    else
        print_message("skipped: no %s in FACULA_DATA\n", name);
    return t;
}

/* By Hugging Face's tokenizers and llama.cpp on the same files. */
static void smollm2(void **state) {
    (void)state;
    fac_tokenizer *t = real("models/SmolLM2-135M-Instruct.Q4_1.gguf");
    if (!t) return;
    assert_string_equal(ids_of(t, "The capital of France is", FAC_TEXT_BOS),
                        "504 3575 282 4649 314");
    assert_string_equal(ids_of(t, "Hello, world! 12345", 0), "19556 28 905 17 216 33 34 35 36 37");
    assert_string_equal(ids_of(t, "  two  spaces\n\ttab", 0), "216 827 216 5600 198 197 15999");
    assert_string_equal(
        ids_of(t, "na\xc3\xafve caf\xc3\xa9 \xe2\x80\x94 \xe6\x9d\xb1\xe4\xba\xac \xf0\x9f\x99\x82",
               0),
        "3546 46494 37366 1841 17097 247 126 16736 122 47526");
    assert_string_equal(ids_of(t, "I'm don't 'S", 0), "57 5248 1326 982 637 67");
    assert_true(fac_tokenizer_ends(t, 2) && !fac_tokenizer_ends(t, 504));
    fac_tokenizer_free(t);
}

static void stories(void **state) {
    (void)state;
    fac_tokenizer *t = real("models/stories260K/tok512.bin");
    if (!t) return;
    assert_string_equal(ids_of(t, "Once upon a time, there was a little girl", FAC_TEXT_BOS),
                        "1 403 407 261 378 432 383 286 261 376 298 315 421");
    fac_tokenizer_free(t);
}

static int start(void **state) {
    (void)state;
    seed = fresh_seed();
    return 0;
}

/* Metaspace gives a text that begins with a space none, Prepend does always; ByteLevel asks for a
 * space, not for any blank. */
static void the_space_before_a_text(void **state) {
    (void)state;
    static const char vocab[] = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\xe2\x96\x81\":0,\"a\":"
                                "1,\"\xc4\xa0\":2,\"\xc4\x8a\":3},"
                                "\"merges\":[]},%s}";
    static const struct {
        const char *part, *text, *ids;
    } of[] = {
        { "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_"
          "scheme\":\"first\"}",
          "a", "0 1" },
        { "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_"
          "scheme\":\"first\"}",
          " a", "0 1" },
        { "\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"}", " a", "0 0 1" },
        { "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "a", "2 1" },
        { "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", " a", "2 1" },
        { "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "\na", "2 3 1" },
    };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        char file[1024];
        snprintf(file, sizeof file, vocab, of[k].part);
        fac_tokenizer *t = parse(file, strlen(file));
        assert_string_equal(ids_of(t, of[k].text, 0), of[k].ids);
        fac_tokenizer_free(t);
    }
}

/* ---- vocab.json and merges.txt ---- */

static void write_file(const char *folder, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void clear(const char *folder) {
    static const char *const names[] = { "vocab.json", "merges.txt", "tokenizer_config.json",
                                         "added_tokens.json" };
    char path[256];
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[k]);
        unlink(path);
    }
    rmdir(folder);
}

static void vocabulary_and_merges(void **state) {
    (void)state;
    static const char vocabulary[] =
        "{\"a\":0,\"b\":1,\"\\\"\":2,\"ab\":3,\"\\u0120\":4,\"\\u0120ab\":5,\"<|endoftext|>\":6}";
    static const struct {
        const char *merges, *config, *says;
    } bad[] = {
        { "a b c\n", "{}", "line 1 is no pair" },
        { "#version: 0.2\na\n", "{}", "line 2 is no pair" },
        { "a b\n", "{\"tokenizer_class\":\"LlamaTokenizer\"}", "LlamaTokenizer" },
        { "a b\n", "[]", "no JSON object" },
        { "a b\n", "{\"bos_token\":\"<s>\"}", "bos_token \"<s>\" is no token of the vocabulary" },
        { "a b\n", "{\"eos_token\":{\"content\":\"</s>\"}}", "eos_token \"</s>\" is no token" },
    };
    char folder[] = "/tmp/facula-tokens-XXXXXX";
    static const int32_t want[] = { 3, 5, 2, 6, 7 };
    int32_t ids[16];
    fac_tokenizer *t;
    assert_non_null(mkdtemp(folder));
    write_file(folder, "vocab.json", vocabulary);
    write_file(folder, "merges.txt", "#version: 0.2\na b\r\n\xc4\xa0 ab\n");
    write_file(folder, "added_tokens.json", "{\"<more>\":7}");
    write_file(folder, "tokenizer_config.json", "{\"bos_token\":\"\",\"eos_token\":null}");
    OK(fac_tokenizer_load(folder, &t, &err));
    assert_int_equal(
        fac_tokenizer_encode(t, "ab ab\"<|endoftext|><more>", 25, FAC_TEXT_SPECIAL, ids, 16), 5);
    assert_memory_equal(ids, want, sizeof want);
    assert_true(fac_tokenizer_ends(t, 6));
    fac_tokenizer_free(t);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        write_file(folder, "merges.txt", bad[k].merges);
        write_file(folder, "tokenizer_config.json", bad[k].config);
        assert_int_not_equal(fac_tokenizer_load(folder, &t, &err), FAC_OK);
        if (!strstr(err.text, bad[k].says))
            fail_msg("'%s' does not say '%s'", err.text, bad[k].says);
    }
    clear(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_bpe_of_gguf),
        cmocka_unit_test(word_pieces),
        cmocka_unit_test(unigrams),
        cmocka_unit_test(pieces_cover_a_text),
        cmocka_unit_test(texts_are_cut_as_the_expressions_do),
        cmocka_unit_test(long_pieces_take_no_square),
        cmocka_unit_test(normal_forms),
        cmocka_unit_test(vocabulary_and_merges),
        cmocka_unit_test(the_space_before_a_text),
        cmocka_unit_test(smollm2),
        cmocka_unit_test(stories),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
