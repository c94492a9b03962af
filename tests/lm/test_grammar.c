/* Grammars: which texts they take, JSON schemas, and that a walk through the vocabulary finds the
 * tokens that fit one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "base/rng.h"
#include "fresh_seed.h"
#include "lm/grammar.h"
#include "text/tokenizer.h"

static fac_error err;
static fac_tokenizer *tokens;
static uint64_t seed, drawn;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* Tokens 0 .. 255 are bytes, then come pieces of JSON and of words; the last one ends. */
static const char *const pieces[] = { "{\"",   "\": ", "\", \"",   "\"}",      "true",
                                      "false", "null", "[1",       ", ",       "]}",
                                      "ab",    "abc",  "\xc3\xa9", "\xe2\x82", "\xf0\x9f\x99\x82",
                                      "12",    "-1",   "\n ",      "\\u00e9",  "</s>" };
enum { PIECES = sizeof pieces / sizeof *pieces, END = 256 + PIECES - 1 };

static int start(void **state) {
    (void)state;
    seed = fresh_seed();
    tokens = fac_tokenizer_begin(256 + PIECES);
    for (int k = 0; k < 256; k++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", k);
        assert_true(fac_tokenizer_set(tokens, k, name, strlen(name), 0, FAC_TOKEN_BYTE));
    }
    for (int k = 0; k < PIECES; k++) {
        const int type = 256 + k == END ? FAC_TOKEN_CONTROL : FAC_TOKEN_NORMAL;
        assert_true(fac_tokenizer_set(tokens, 256 + k, pieces[k], strlen(pieces[k]), 0, type));
    }
    tokens->kind = FAC_TOKENS_SCORES;
    tokens->eos = END;
    return fac_tokenizer_finish(tokens, &err);
}

static int end(void **state) {
    (void)state;
    fac_tokenizer_free(tokens);
    return 0;
}

/* 2: the text is one of the grammar; 1: it begins one; 0: neither. */
static int taken(const fac_grammar *g, const char *text) {
    fac_matcher m;
    int how = 1;
    OK(fac_matcher_begin(&m, g, &err));
    for (const char *s = text; *s && how; s++) {
        how = fac_matcher_takes(&m, (unsigned char)*s);
        if (how) fac_matcher_step(&m, (unsigned char)*s);
    }
    if (how && fac_matcher_may_end(&m)) how = 2;
    fac_matcher_end(&m);
    return how;
}

static void takes(const fac_grammar *g, const char *text, int how) {
    const int got = taken(g, text);
    if (got != how) fail_msg("%d, not %d, for '%s'", got, how, text);
}

static void texts_of_grammars(void **state) {
    (void)state;
    static const struct {
        const char *grammar, *yes[5], *begun, *no[5];
    } of[] = {
        { "root ::= \"yes\" | \"no\"", { "yes", "no" }, "ye", { "maybe", "yesno" } },
        { "root ::= [a-c]+ \"x\"? # what\n", { "a", "abcx" }, NULL, { "d", "axx", "x" } },
        { "root ::= (\"a\" | \"b\" rest) \"!\"\nrest ::= [^x]{2,3}",
          { "a!", "b12!", "b\xc3\xa9\xe2\x82\xac!" },
          "b1",
          { "bx", "b1234" } },
        { "root ::= item (\",\" item)*\nitem ::= [0-9]{2} | \"(\" root \")\"",
          { "12", "12,34", "(12,(34)),56" },
          "((1",
          { "1,", "()", "12)" } },
        { "root ::= \"\\x41\\u00e9\\\"\" .",
          { "A\xc3\xa9\"z", "A\xc3\xa9\"\xf0\x9f\x99\x82" },
          "A\xc3",
          { "A\xc3\xa8", "B" } },
        { "root ::= [\xc3\xa0-\xc3\xbc]", { "\xc3\xa9" }, "\xc3", { "\xc3\xbd", "a" } },
        { "root ::= [\\u0400-\\U0001F642]{1,}",
          { "\xd0\x96", "\xf0\x9f\x99\x82\xe2\x82\xac" },
          "\xf0\x9f",
          { "\xf0\x9f\x99\x83", "a", "\xed\xa0\x80" } },
        { "root ::= \"a\" |\n  \"b\"\n", { "a", "b" }, NULL, { "ab" } },
        { "root ::= a{0,2} b{3}\na ::= \"a\"\nb ::= \"b\"",
          { "bbb", "abbb", "aabbb" },
          "aabb",
          { "aaabbb", "bbbb" } },
    };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        fac_grammar *g;
        OK(fac_grammar_new(tokens, of[k].grammar, &g, &err));
        for (int j = 0; j < 5 && of[k].yes[j]; j++) takes(g, of[k].yes[j], 2);
        for (int j = 0; j < 5 && of[k].no[j]; j++) takes(g, of[k].no[j], 0);
        if (of[k].begun) takes(g, of[k].begun, 1);
        fac_grammar_free(g);
    }
}

static void what_is_no_grammar(void **state) {
    (void)state;
    static const struct {
        const char *grammar, *says;
    } of[] = {
        { "", "no rule root" },
        { "root ::= rest", "no rule rest" },
        { "root ::= \"a", "line 1" },
        { "root ::= \"a\"\nx ::= [a", "line 2" },
        { "root ::= root \"a\" | \"b\"", "rule root begins with itself" },
        { "root ::= (\"\" | \"t\")* \"!\"", "a group that may be nothing is repeated" },
        { "root ::= a\na ::= b? a | \"x\"\nb ::= \"b\"", "rule a begins with itself" },
        { "root ::= (\"a\"", "')'" },
        { "root ::= \"a\")", "no ')'" },
        { "root ::= \"a\"{3,2}", "{m,n}" },
        { "root ::= \"a\"{9999}", "up to 2000" },
        { "root ::= \"\\q\"", "\\U" },
        { "root ::= [z-a]", "range" },
        { "root ::= \"a\"\nroot ::= \"b\"", "not there yet" },
    };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        fac_grammar *g = NULL;
        const fac_status status = fac_grammar_new(tokens, of[k].grammar, &g, &err);
        if (!status) fail_msg("it was taken: %s", of[k].grammar);
        if (!strstr(err.text, of[k].says)) fail_msg("'%s' does not say '%s'", err.text, of[k].says);
    }
}

/* Rules that can be nothing in very many ways, or very many rules that can be nothing: an error,
 * soon. */
static void ambiguous_ones_are_given_up(void **state) {
    (void)state;
    enum { MANY = 20000 };
    char *text = fac_alloc(MANY * 2 + 200, 1);
    fac_grammar *g;
    fac_matcher m;
    for (int round = 0; round < 2; round++) {
        size_t n = (size_t)sprintf(text, "x ::= \"\" | %s\nroot ::= ", round ? "\"a\"" : "\"\"");
        for (int k = 0; k < (round ? MANY : 60); k++) n += (size_t)sprintf(text + n, " x");
        sprintf(text + n, " \"b\"");
        OK(fac_grammar_new(tokens, text, &g, &err));
        assert_int_not_equal(fac_matcher_begin(&m, g, &err), FAC_OK);
        assert_non_null(strstr(err.text, "ambiguous"));
        fac_grammar_free(g);
    }
    fac_release(text);
}

static void schemas(void **state) {
    (void)state;
    static const struct {
        const char *schema, *yes[6], *no[6];
    } of[] = {
        { NULL,
          { "{}", "{\"a\": [1, -2.5e3, \"x\\n\\u00e9\"], \"b\": {\"c\": null}}" },
          { "[]", "{a", "{\"a\": 01", "{,}" } },
        { "{}", { "[]", "1", "true", "\"a\"" }, { "nul!", "'" } },
        { "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":"
          "\"string\"},\"c\":{\"type\":\"boolean\"}},"
          "\"required\":[\"b\"]}",
          { "{\"a\": 1, \"b\": \"x\"}", "{\"b\":\"\"}", "{\"b\": \"\", \"c\": true}",
            "{\"a\": 1, \"b\": \"x\", \"c\": false}" },
          { "{}", "{\"a\": 1}", "{\"b\": 1", "{\"c\"", "{\"a\": 1.5" } },
        { "{\"type\":\"array\",\"items\":{\"enum\":[\"x\",2]},\"minItems\":1,\"maxItems\":2}",
          { "[\"x\"]", "[2,\"x\"]" },
          { "[]", "[2,2,2", "[3" } },
        { "{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"maxItems\":1}",
          { "[]", "[null]" },
          { "[null," } },
        { "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
          { "\"ab\"", "\"\xc3\xa9\xc3\xa9\xc3\xa9\"" },
          { "\"a\"", "\"abcd" } },
        { "{\"anyOf\":[{\"const\":\"a\\\"b\"},{\"type\":[\"number\",\"null\"]}]}",
          { "\"a\\\"b\"", "1.5", "null" },
          { "\"b", "[" } },
        { "{\"$ref\":\"#/$defs/"
          "tree\",\"$defs\":{\"tree\":{\"type\":\"object\",\"properties\":{\"kids\":{\"type\":"
          "\"array\","
          "\"items\":{\"$ref\":\"#/$defs/tree\"}}}}}}",
          { "{}", "{\"kids\": [{\"kids\": []}, {}]}" },
          { "{\"kids\": [1", "{\"kid\"" } },
    };
    static const char *const not_known[] = { "{\"allOf\":[]}",
                                             "{\"type\":\"string\",\"pattern\":\"a\"}",
                                             "{\"type\":\"date\"}",
                                             "{\"type\":\"integer\",\"minimum\":1}",
                                             "{\"$ref\":\"other.json\"}",
                                             "{",
                                             "3",
                                             "{\"required\":[\"a\"],\"type\":\"object\"}",
                                             "{\"$ref\":\"#/x\"}",
                                             "{\"$ref\":\"#\"}",
                                             "{\"type\":\"array\",\"minItems\":5,\"maxItems\":2}",
                                             "{\"type\":\"array\",\"minItems\":5,\"maxItems\":0}",
                                             "{\"type\":\"string\",\"minLength\":2,"
                                             "\"maxLength\":1}",
                                             "{\"enum\":[]}" };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        fac_grammar *g;
        OK(fac_grammar_json(tokens, of[k].schema, &g, &err));
        for (int j = 0; j < 6 && of[k].yes[j]; j++) takes(g, of[k].yes[j], 2);
        for (int j = 0; j < 6 && of[k].no[j]; j++) takes(g, of[k].no[j], 0);
        fac_grammar_free(g);
    }
    for (size_t k = 0; k < sizeof not_known / sizeof *not_known; k++) {
        fac_grammar *g;
        if (!fac_grammar_json(tokens, not_known[k], &g, &err))
            fail_msg("it was taken: %s", not_known[k]);
        if (strncmp(err.text, "JSON schema: ", 13) || strstr(err.text, "grammar"))
            fail_msg("%s says: %s", not_known[k], err.text);
    }
}

/* Random answers: at each step the walk allows just the tokens that fit alone. */
static void a_walk_finds_what_fits(void **state) {
    (void)state;
    fac_grammar *g;
    OK(fac_grammar_json(tokens, NULL, &g, &err));
    for (int round = 0; round < 20; round++) {
        fac_matcher m;
        OK(fac_matcher_begin(&m, g, &err));
        for (int step = 0; step < 60 && !fac_matcher_must_end(&m); step++) {
            int32_t fit[256 + PIECES];
            int n = 0;
            const bool *allowed = fac_matcher_walk(&m);
            assert_non_null(allowed);
            bool copy[256 + PIECES];
            memcpy(copy, allowed, sizeof copy);
            for (int32_t id = 0; id < 256 + PIECES; id++) {
                if (copy[id] != fac_matcher_takes(&m, id))
                    fail_msg("token %d: the walk says %d", id, copy[id]);
                if (copy[id] && id != END) fit[n++] = id;
            }
            if (!n) break;
            fac_matcher_step(&m, fit[fac_random_bits(seed, 1, drawn++) % (uint64_t)n]);
        }
        fac_matcher_end(&m);
    }
    fac_grammar_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_grammars),
        cmocka_unit_test(what_is_no_grammar),
        cmocka_unit_test(schemas),
        cmocka_unit_test(ambiguous_ones_are_given_up),
        cmocka_unit_test(a_walk_finds_what_fits),
    };
    return cmocka_run_group_tests_name("grammar", tests, start, end);
}
