/* Thoughts: how they are found in answers, whole and while they are written, and a server whose
 * small model thinks. */
#include "small_server.h"
#include "serve/thought.h"

/* ---- reading ---- */

typedef struct answer {
    fac_thought_form form;
    const char *says, *thought, *text;
} answer;

static const answer answers[] = {
    { FAC_THOUGHT_TAGS, "<think>\nWhy not?\n</think>\n\nYes.", "Why not?", "Yes." },
    { FAC_THOUGHT_TAGS, "\n<think>a</think>b</think>c", "a", "b</think>c" },
    { FAC_THOUGHT_TAGS, "<think></think>b", "", "b" },
    { FAC_THOUGHT_TAGS, "<think>\n\n</think>\n\n", "", "" },
    { FAC_THOUGHT_TAGS, "<think> a </thin", "a </thin", "" },
    { FAC_THOUGHT_TAGS, "<think>", "", "" },
    { FAC_THOUGHT_TAGS, "<thin", "", "<thin" },
    { FAC_THOUGHT_TAGS, " <thing> here", "", " <thing> here" },
    { FAC_THOUGHT_TAGS, "I <think>x</think>", "", "I <think>x</think>" },
    { FAC_THOUGHT_TAGS, "", "", "" },
    { FAC_THOUGHT_OPEN, "Why not?\n</think>\nYes.", "Why not?", "Yes." },
    { FAC_THOUGHT_OPEN, "<think>Why not?\n</think>\nYes.", "Why not?", "Yes." },
    { FAC_THOUGHT_OPEN, "cut off", "cut off", "" },
    { FAC_THOUGHT_OPEN, "</think>b", "", "b" },
    { FAC_THOUGHT_OPEN, "  ", "", "" },
    { FAC_THOUGHT_NONE, "<think>a</think>b", "", "<think>a</think>b" },
};

/* What is told while the answer is written only grows, and is what the whole answer has. */
static void check_told(const answer *a) {
    size_t thought = 0, text = 0;
    for (size_t n = 0; n <= strlen(a->says); n++) {
        char *part = strndup(a->says, n); /* for the sanitizer: no byte after it */
        const fac_thought t = fac_thought_find(a->form, part, n, false);
        assert_true(t.from <= t.to && t.to <= n && t.text <= n);
        if (t.to - t.from < thought || n - t.text < text)
            fail_msg("\"%s\": what was told is taken back", part);
        thought = t.to - t.from;
        text = n - t.text;
        if (strncmp(a->thought, part + t.from, thought) || strncmp(a->text, part + t.text, text))
            fail_msg("\"%s\": told are \"%.*s\" and \"%s\"", part, (int)thought, part + t.from,
                     part + t.text);
        free(part);
    }
}

static void thoughts_are_found(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof answers / sizeof *answers; k++) {
        const answer *a = &answers[k];
        const fac_thought t = fac_thought_find(a->form, a->says, strlen(a->says), true);
        if (t.to - t.from != strlen(a->thought) ||
            strncmp(a->says + t.from, a->thought, t.to - t.from))
            fail_msg("\"%s\": the thought is \"%.*s\"", a->says, (int)(t.to - t.from),
                     a->says + t.from);
        assert_string_equal(a->says + t.text, a->text);
        check_told(a);
    }
}

/* ---- the server: the prompt ends within a thought ---- */

#define ASK(more)                                                                                  \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"on?\"}],\"temperature\":0,\"max_tokens\":"    \
    "24" more "}"

static void thoughts_stand_apart(void **state) {
    (void)state;
    static char whole[ROOM], stream[ROOM], raw[ROOM], a[ROOM], b[ROOM];
    assert_int_equal(ask("/v1/chat/completions", ASK(""), whole), 200);
    join(whole, "reasoning_content", a);
    assert_true(*a != 0); /* the model knows no </think>: all is a thought */
    assert_non_null(strstr(whole, "\"content\":\"\""));
    assert_int_equal(ask("/v1/chat/completions", ASK(",\"stream\":true"), stream), 200);
    join(stream, "reasoning_content", b);
    assert_string_equal(a, b);
    assert_int_equal(ask("/v1/chat/completions", ASK(",\"reasoning_format\":\"none\""), raw), 200);
    assert_null(strstr(raw, "reasoning_content"));
    join(raw, "content", b);
    assert_true(*b != 0);
}

/* A grammar says what the answer is from its first byte on. */
static void grammars_leave_no_room_for_thoughts(void **state) {
    (void)state;
    static char to[ROOM];
    const char *body = ASK(",\"grammar\":\"root ::= \\\"light\\\"\"");
    assert_int_equal(ask("/v1/chat/completions", body, to), 200);
    assert_null(strstr(to, "reasoning_content"));
    assert_non_null(strstr(to, "\"content\":\"light\""));
}

static void wrong_formats_are_named(void **state) {
    (void)state;
    static char to[ROOM];
    assert_int_equal(ask("/v1/chat/completions", ASK(",\"reasoning_format\":\"some\""), to), 400);
    assert_non_null(strstr(to, "reasoning_format: none, auto or deepseek"));
    assert_int_equal(ask("/v1/chat/completions", ASK(",\"reasoning_format\":1"), to), 400);
}

static const char format[] =
    "{% for m in messages %}{% set c = m.content.split('</think>')[-1] %}{{ m.role }}: {{ c }}\n"
    "{% endfor %}<think>\n";

static int start(void **state) {
    (void)state;
    return small_server_start(format, 200);
}

int main(void) {
    const struct CMUnitTest alone[] = { cmocka_unit_test(thoughts_are_found) };
    const struct CMUnitTest served[] = { cmocka_unit_test(thoughts_stand_apart),
                                         cmocka_unit_test(grammars_leave_no_room_for_thoughts),
                                         cmocka_unit_test(wrong_formats_are_named) };
    fac_mhd library;
    const int failed = cmocka_run_group_tests_name("thoughts", alone, NULL, NULL);
    if (fac_mhd_open(&library, &err)) {
        printf("skipped: %s\n", err.text);
        return failed;
    }
    return failed + cmocka_run_group_tests_name("serve thoughts", served, start, small_server_end);
}
