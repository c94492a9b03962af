/* Calls of tools: how they are read from answers, and a server whose small model must make one. */
#include "small_server.h"
#include "serve/tools.h"

/* ---- reading ---- */

typedef struct answer {
    fac_call_form form;
    const char *says, *calls; /* NULL: none */
    size_t text;              /* bytes before them */
} answer;

#define A "{\"name\":\"a\",\"arguments\":\"{\\\"x\\\":1}\"}"
#define B "{\"name\":\"b\",\"arguments\":\"{}\"}"
static const answer answers[] = {
    { FAC_CALL_TAGS,
      "Well.\n<tool_call>\n{\"name\": \"a\", \"arguments\": {\"x\": 1}}\n</tool_call>", "[" A "]",
      5 },
    { FAC_CALL_TAGS,
      "<tool_call>{\"name\":\"a\",\"arguments\":{\"x\":1}}</tool_call>\n<tool_call>\n{\"name\": "
      "\"b\"}\n</tool_call>",
      "[" A "," B "]", 0 },
    { FAC_CALL_TAGS, "<tool_call>{\"name\":\"a\",\"arguments\":{\"x\":1}", NULL, 0 },
    { FAC_CALL_TAGS, "<tool_call>{\"arguments\":{}}</tool_call>", NULL, 0 },
    { FAC_CALL_TAGS, "1 < 2 <tool", NULL, 0 },
    { FAC_CALL_XML,
      "Well.\n<tool_call>\n<function=a>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>",
      "[" A "]", 5 },
    { FAC_CALL_XML, "<function=a><parameter=x>1</parameter></function>", "[" A "]", 0 },
    { FAC_CALL_XML,
      "<tool_call>\n<function=a>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>\n"
      "<tool_call>\n<function=b>\n</function>\n</tool_call>",
      "[" A "," B "]", 0 },
    { FAC_CALL_XML,
      "<function=a>\n<parameter=s>\n\n<b>1</b>\n \n</parameter>\n<parameter=x>\n"
      "12345678901234567890\n</parameter>\n<parameter=y>\n7\n</parameter>\n<parameter=z>\nNone\n"
      "</parameter>\n<parameter=on>\nTrue\n</parameter>\n</function>",
      "[{\"name\":\"a\",\"arguments\":\"{\\\"s\\\":\\\"\\\\n<b>1</b>\\\\n \\\","
      "\\\"x\\\":12345678901234567890,\\\"y\\\":\\\"7\\\",\\\"z\\\":\\\"None\\\",\\\"on\\\":true}"
      "\"}]",
      0 },
    { FAC_CALL_XML, "<function=a>\n<parameter=x>\n1\n</parameter>", NULL, 0 },
    { FAC_CALL_XML, "<function=a>\n<parameter=x>\n1", NULL, 0 },
    { FAC_CALL_XML, "<function=>\n</function>", NULL, 0 },
    { FAC_CALL_XML, "<function=a", NULL, 0 },
    { FAC_CALL_XML, "1 < 2 <fun", NULL, 0 },
    { FAC_CALL_XML, "<tool_call>{\"name\":\"a\",\"arguments\":{\"x\":1}}</tool_call>", "[" A "]",
      0 },
    { FAC_CALL_LIST,
      "[TOOL_CALLS] [{\"name\": \"a\", \"arguments\": {\"x\": 1}}, {\"name\": \"b\"}]",
      "[" A "," B "]", 0 },
    { FAC_CALL_LIST, "So: [TOOL_CALLS]a{\"x\": 1}[TOOL_CALLS]b{}", "[" A "," B "]", 3 },
    { FAC_CALL_LIST, "[TOOL_CALLS]a[ARGS]{\"x\": 1}", "[" A "]", 0 },
    { FAC_CALL_LIST, "[TOOL_CALLS]{\"x\": 1}", NULL, 0 },
    { FAC_CALL_LIST, "[TOOL_CALLS]", NULL, 0 },
    { FAC_CALL_JSON, "{\"name\": \"a\", \"parameters\": {\"x\": 1}}", "[" A "]", 0 },
    { FAC_CALL_JSON,
      "<|python_tag|>{\"name\": \"a\", \"parameters\": {\"x\": 1}}; {\"name\": \"b\"}",
      "[" A "," B "]", 0 },
    { FAC_CALL_JSON, "{\"name\": \"unknown\", \"parameters\": {}}", NULL, 0 },
    { FAC_CALL_JSON, "{\"name\": \"a\"} is JSON", NULL, 0 },
    { FAC_CALL_JSON, "Plain {text}", NULL, 0 },
    { FAC_CALL_MUST, " {\"name\": \"b\", \"arguments\": \"{}\"}", "[" B "]", 0 },
    { FAC_CALL_NONE, "<tool_call>{\"name\":\"a\"}</tool_call>", NULL, 0 }
};

static const char *names[] = { "a", "b" };
static const char described[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"a\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"s\":{\"type\":\"string\"},\"x\":{\"type\":\"integer\"},"
    "\"z\":{\"type\":[\"string\",\"null\"]},\"on\":{\"type\":\"boolean\"}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"b\"}}]";

/* What is told while the answer is written is never more than its text, and grows. */
static void check_told(const answer *a, size_t text) {
    size_t before = 0;
    for (size_t n = 0; n <= strlen(a->says); n++) {
        char *part = strndup(a->says, n); /* for the sanitizer: no byte after it */
        const size_t told = fac_call_text(a->form, part, n);
        if (told > text || told < before || told > n)
            fail_msg("%zu bytes of \"%s\" are told", told, part);
        before = told;
        free(part);
    }
}

static void calls_are_read(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof answers / sizeof *answers; k++) {
        const answer *a = &answers[k];
        const fac_wish w = { .tools = described, .names = names, .nnames = 2 };
        size_t text;
        cJSON *calls = fac_calls_read(a->form, &w, a->says, strlen(a->says), &text);
        char *have = calls ? cJSON_PrintUnformatted(calls) : NULL;
        if (!have != !a->calls || (have && strcmp(have, a->calls)))
            fail_msg("\"%s\" is read as %s", a->says, have ? have : "a text");
        assert_int_equal(text, a->calls ? a->text : strlen(a->says));
        check_told(a, text);
        cJSON_free(have);
        cJSON_Delete(calls);
    }
}

static void forms_are_found(void **state) {
    (void)state;
    const fac_wish none = { 0 }, some = { .tools = "[]" },
                   must = { .tools = "[]", .must_call = true };
    assert_int_equal(fac_call_form_of("<tool_call>", &none), FAC_CALL_NONE);
    assert_int_equal(fac_call_form_of("x <tool_call> y", &some), FAC_CALL_TAGS);
    assert_int_equal(fac_call_form_of("x [TOOL_CALLS] y", &some), FAC_CALL_LIST);
    assert_int_equal(fac_call_form_of("<tool_call> <function=", &some), FAC_CALL_XML);
    assert_int_equal(fac_call_form_of("x", &some), FAC_CALL_JSON);
    assert_int_equal(fac_call_form_of("x <tool_call> y", &must), FAC_CALL_MUST);
}

/* ---- the server ---- */

static void want(int status, const char *body, const char *text) {
    static char to[ROOM];
    const int got = ask("/v1/chat/completions", body, to);
    if (got != status) fail_msg("%d instead of %d for %s\n%s", got, status, body, to);
    if (!strstr(to, text)) fail_msg("no '%s' in the answer to %s\n%s", text, body, to);
}

#define QUESTION "\"messages\":[{\"role\":\"user\",\"content\":\"on?\"}]"
#define TOOL(name, more)                                                                           \
    "{\"type\":\"function\",\"function\":{\"name\":\"" name                                        \
    "\",\"parameters\":{\"type\":\"object\",\"properties\":{\"on\":{\"type\":\"boolean\"" more     \
    "}},\"required\":[\"on\"]}}}"
#define TOOLS "\"tools\":[" TOOL("light", "") "," TOOL("door", "") "]"
#define GREEDY "\"temperature\":0,\"max_tokens\":200"

static void a_call_is_made(void **state) {
    (void)state;
    static char whole[ROOM], stream[ROOM], a[ROOM], b[ROOM];
    static const char body[] = "{" QUESTION "," TOOLS "," GREEDY ",\"tool_choice\":\"required\"%s}";
    char with[1024];
    snprintf(with, sizeof with, body, "");
    assert_int_equal(ask("/v1/chat/completions", with, whole), 200);
    assert_non_null(strstr(whole, "\"finish_reason\":\"tool_calls\""));
    assert_non_null(strstr(whole, "\"content\":null,\"tool_calls\":[{\"id\":\""));
    snprintf(with, sizeof with, body, ",\"stream\":true");
    assert_int_equal(ask("/v1/chat/completions", with, stream), 200);
    assert_non_null(strstr(stream, "\"finish_reason\":\"tool_calls\""));
    join(whole, "arguments", a);
    join(stream, "arguments", b);
    assert_true(!strcmp(a, "{\\\"on\\\":true}") || !strcmp(a, "{\\\"on\\\":false}"));
    assert_string_equal(a, b);
    want(200,
         "{" QUESTION "," TOOLS "," GREEDY
         ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"door\"}}}",
         "\"name\":\"door\"");
    /* a schema that no grammar is made of: any arguments */
    want(200,
         "{" QUESTION ",\"tools\":[" TOOL(
             "pick", ",\"not\":{}") "]," GREEDY ",\"tool_choice\":\"required\",\"max_tokens\":12}",
         "\"finish_reason\":");
}

static void conversations_have_calls(void **state) {
    (void)state;
    want(200,
         "{\"messages\":[{\"role\":\"user\",\"content\":\"on?\"},{\"role\":\"assistant\","
         "\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"light\","
         "\"arguments\":\"{\\\"on\\\":true}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"1\","
         "\"content\":\"done\"}]," TOOLS "," GREEDY ",\"max_tokens\":3}",
         "\"content\":");
    want(200, "{" QUESTION "," TOOLS "," GREEDY ",\"max_tokens\":3,\"tool_choice\":\"none\"}",
         "\"content\":");
    want(200, "{" QUESTION "," GREEDY ",\"max_tokens\":3,\"chat_template_kwargs\":{\"loud\":true}}",
         "\"content\":");
    want(400, "{" QUESTION "," GREEDY ",\"chat_template_kwargs\":{\"refuse\":true}}",
         "as you said");
}

static void what_is_wrong_is_named(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        { "{" QUESTION ",\"tools\":[1]}", "tools: a list of" },
        { "{" QUESTION ",\"tools\":{}}", "tools: a list of" },
        { "{" QUESTION ",\"tools\":[{\"type\":\"function\",\"function\":{}}]}",
          "tools: a list of" },
        { "{" QUESTION "," TOOLS ",\"tool_choice\":\"some\"}", "tool_choice: none, auto" },
        { "{" QUESTION "," TOOLS ",\"tool_choice\":{\"function\":{\"name\":\"x\"}}}",
          "tool_choice: one of the tools" },
        { "{" QUESTION ",\"tool_choice\":\"required\"}", "tool_choice: one of the tools" },
        { "{" QUESTION "," TOOLS
          ",\"tool_choice\":\"required\",\"response_format\":{\"type\":\"json_object\"}}",
          "tool_choice: auto or none" },
        { "{" QUESTION ",\"chat_template_kwargs\":1}", "chat_template_kwargs: an object" },
        { "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":{}}]}", "tool_calls: a list" },
        { "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{}]}]}", "tool_calls: {" },
        { "{\"messages\":[{\"role\":\"tool\",\"tool_call_id\":1,\"content\":\"\"}]}",
          "tool_call_id: a text" },
        { "{\"messages\":[{\"role\":\"assistant\"}]}", "content: a text" }
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) want(400, wrong[k][0], wrong[k][1]);
}

static const char format[] =
    "{% if refuse %}{{ raise_exception('as you said') }}{% endif %}"
    "{% for m in messages %}{{ m.role }}: {{ m.content or '' }}{% if m.tool_calls %}"
    "{{ m.tool_calls[0].function.arguments.on }}{% endif %}\n{% endfor %}"
    "{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}";

static int start(void **state) {
    (void)state;
    return small_server_start(format, 700);
}

int main(void) {
    const struct CMUnitTest alone[] = { cmocka_unit_test(calls_are_read),
                                        cmocka_unit_test(forms_are_found) };
    const struct CMUnitTest served[] = { cmocka_unit_test(a_call_is_made),
                                         cmocka_unit_test(conversations_have_calls),
                                         cmocka_unit_test(what_is_wrong_is_named) };
    fac_mhd library;
    const int failed = cmocka_run_group_tests_name("calls of tools", alone, NULL, NULL);
    if (fac_mhd_open(&library, &err)) {
        printf("skipped: %s\n", err.text);
        return failed;
    }
    return failed +
           cmocka_run_group_tests_name("serve with tools", served, start, small_server_end);
}
