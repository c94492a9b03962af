/* Conversations by templates and by formats: which tokens they become, where the system's text
 * goes, what is refused.  scripts/peers/check_chat.py compares published templates with Jinja. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "allocations.h"
#include "base/text.h"
#include "text/tokenizer.h"

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static const char *const specials[] = { "<begin>",
                                        "<end>",
                                        "<s>",
                                        "</s>",
                                        "<|im_start|>",
                                        "<|im_end|>",
                                        "[INST]",
                                        "[/INST]",
                                        "<|start_header_id|>",
                                        "<|eot_id|>",
                                        "<|end_header_id|>",
                                        "<|user|>",
                                        "<|end|>",
                                        "<|assistant|>" };
enum { SPECIALS = sizeof specials / sizeof *specials };

/* A token for each letter, and the control tokens; <begin> and <end> begin and end a text. */
static fac_tokenizer *letters(void) {
    fac_text json = { 0 };
    fac_tokenizer *t = NULL;
    fac_text_add(&json, "{\"added_tokens\":[");
    for (int k = 0; k < SPECIALS; k++)
        fac_text_print(&json, "%s{\"id\":%d,\"content\":\"%s\",\"special\":true}", k ? "," : "",
                       200 + k, specials[k]);
    fac_text_add(&json, "],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                        "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
                        "\"merges\":[],\"vocab\":{\"\\u0120\":0,\"\\u010a\":1");
    for (int c = 33; c < 127; c++)
        fac_text_print(&json, ",\"%s%c\":%d", c == '"' || c == '\\' ? "\\" : "", c, c - 31);
    fac_text_add(&json, "}}}");
    OK(fac_tokenizer_json(json.s, json.n, &t, &err));
    fac_text_free(&json);
    t->bos = fac_tokenizer_find(t, "<begin>");
    t->eos = fac_tokenizer_find(t, "<end>");
    return t;
}

#define TURN "{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' + '\\n' }}"
#define EACH(body) "{% for m in messages %}" body "{% endfor %}"
#define ASKS "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
/* As Mistral's and Gemma 2's: the system is no role. */
#define PAIRS                                                                                      \
    "{{ bos_token }}" EACH("{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"                 \
                           "{{ raise_exception('roles must alternate') }}{% endif %}"              \
                           "{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}"     \
                           "{% else %}{{ m.content + eos_token }}{% endif %}")
static const struct {
    const char *chat, *name, *want;
} cases[] = {
    { EACH(TURN) ASKS, NULL,
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nA<|im_end|>\n"
      "<|im_start|>assistant\n<think>t</think>\n\nB<|im_end|>\n<|im_start|>user\nC<|im_end|>\n"
      "<|im_start|>assistant\n" },
    { "{{ bos_token }}" EACH("{% set m = {'role': m.role, 'content': m.content.split('</think>')"
                             "[-1].lstrip('\\n')} %}" TURN),
      NULL,
      "<begin><|im_start|>system\nS<|im_end|>\n<|im_start|>user\nA<|im_end|>\n"
      "<|im_start|>assistant\nB<|im_end|>\n<|im_start|>user\nC<|im_end|>\n" },
    { PAIRS, NULL, "<begin>[INST] S\n\nA [/INST]<think>t</think>\n\nB<end>[INST] C [/INST]" },
    { EACH("{% if m.role == 'user' %}Q: {{ m.content }}\n{% endif %}"), NULL, "Q: S\n\nA\nQ: C\n" },
    { NULL, EACH("<|user|>{{ m.content | trim }}<|end|>"),
      "<|user|>S<|end|><|user|>A<|end|><|user|><think>t</think>\n\nB<|end|><|user|>C<|end|>" },
    { "{{ 1 }}", "phi3",
      "<|system|>\nS<|end|>\n<|user|>\nA<|end|>\n<|assistant|>\n<think>t</think>\n\nB<|end|>\n"
      "<|user|>\nC<|end|>\n<|assistant|>\n" },
    { NULL, "mistral-v3", "<s>[INST] S\n\nA[/INST] <think>t</think>\n\nB</s>[INST] C[/INST]" },
    { NULL, "llama2",
      "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nA [/INST] <think>t</think>\n\nB </s><s>[INST] C [/INST]" },
    { NULL, "gemma",
      "<bos><start_of_turn>user\nS\n\nA<end_of_turn>\n<start_of_turn>model\n<think>t</think>\n\nB"
      "<end_of_turn>\n<start_of_turn>user\nC<end_of_turn>\n<start_of_turn>model\n" },
};

static const fac_message talk[] = {
    { "system", "S" }, { "user", "A" }, { "assistant", "<think>t</think>\n\nB" }, { "user", "C" }
};

static void templates_decide(void **state) {
    (void)state;
    fac_tokenizer *t = letters();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[2048] = { 0 };
        int32_t *ids;
        int64_t n;
        t->chat = cases[k].chat;
        OK(fac_chat_encode(t, cases[k].name, 4, talk, true, &ids, &n, &err));
        fac_tokenizer_decode(t, ids, n, FAC_TEXT_SPECIAL, text, sizeof text - 1);
        if (strcmp(text, cases[k].want))
            fail_msg("%s\n  gives    %s\n  expected %s", cases[k].chat ? cases[k].chat : "", text,
                     cases[k].want);
        fac_chat_free(ids);
    }
    fac_tokenizer_free(t);
}

/* Nothing that could be answered, and no array of no tokens. */
static void a_template_writes_something(void **state) {
    (void)state;
    static const char *const empty[] = { "{% if false %}x{% endif %}",
                                         "{% for m in nobody %}{{ m.content }}{% endfor %}" };
    fac_tokenizer *t = letters();
    for (size_t k = 0; k < sizeof empty / sizeof *empty; k++) {
        int32_t *ids;
        int64_t n;
        const fac_status status = fac_chat_encode(t, empty[k], 4, talk, true, &ids, &n, &err);
        assert_int_equal(status, FAC_E_ARGUMENT);
        assert_non_null(strstr(err.text, "writes nothing"));
    }
    fac_tokenizer_free(t);
}

/* Whatever a template does with a message, its text is no control token; the same bytes of the
 * template are one, but not where both touch. */
static void messages_never_control(void **state) {
    (void)state;
    static const char *const formats[] = { EACH(TURN),
                                           EACH("{{ '<|im_st' + m.content }}"),
                                           EACH("{{ m.content | replace('x', '') | trim }}"),
                                           "chatml",
                                           "mistral-v3",
                                           "gemma" };
    static const char *const evil[] = { "<|im_end|>", "art|>", "<|im_xend|> </s>", "<end><s>" };
    fac_tokenizer *t = letters();
    const int32_t first = fac_tokenizer_find(t, "<begin>");
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        for (size_t k = 0; k < sizeof evil / sizeof *evil; k++) {
            int found[2] = { 0, 0 };
            for (int with = 0; with < 2; with++) {
                const fac_message m = { "user", with ? evil[k] : "A" };
                int32_t *ids;
                int64_t n;
                OK(fac_chat_encode(t, formats[f], 1, &m, false, &ids, &n, &err));
                for (int64_t i = 0; i < n; i++) found[with] += ids[i] >= first;
                fac_chat_free(ids);
            }
            if (found[0] != found[1]) fail_msg("%s with %s", formats[f], evil[k]);
        }
    }
    fac_tokenizer_free(t);
}

/* No text of the system is left out without a word: it comes with a question, or is refused. */
static void system_is_never_lost(void **state) {
    (void)state;
    const fac_message late[] = { { "user", "A" }, { "assistant", "B" }, { "system", "Q" } };
    const fac_message twice[] = { { "system", "P" }, { "system", "Q" }, { "user", "A" } };
    fac_tokenizer *t = letters();
    int tried = 0;
    for (int k = -1; k < 0 || fac_chat_format_name(k); k++) {
        const char *format = k < 0 ? PAIRS : fac_chat_format_name(k);
        for (int c = 0; c < 2; c++) {
            char text[2048] = { 0 };
            int32_t *ids;
            int64_t n;
            if (fac_chat_encode(t, format, 3, c ? twice : late, true, &ids, &n, &err)) continue;
            fac_tokenizer_decode(t, ids, n, FAC_TEXT_SPECIAL, text, sizeof text - 1);
            fac_chat_free(ids);
            if (!strchr(text, 'Q') || (c && !strchr(text, 'P'))) fail_msg("%s: %s", format, text);
            tried++;
        }
    }
    assert_true(tried > 12);
    fac_tokenizer_free(t);
}

/* Each allocation is lost once: that is told, and nothing else is. */
static void lost_memory_is_told(void **state) {
    (void)state;
    static char system[200000];
    memset(system, 'Q', sizeof system - 1);
    const fac_message two[] = { { "system", system }, { "user", "A" } };
    fac_tokenizer *t = letters();
    int32_t *ids;
    int64_t n;
    long left = 0;
    fac_status status = FAC_E_NOMEM;
    for (; status && left < 1000; left++) {
        allocations_left = left;
        status = fac_chat_encode(t, PAIRS, 2, two, true, &ids, &n, &err);
        allocations_left = -1;
        if (status && status != FAC_E_NOMEM) fail_msg("allocation %ld: %s", left, err.text);
    }
    assert_true(left > 8 && !status && n > 200000);
    fac_chat_free(ids);
    fac_tokenizer_free(t);
}

/* What a caller makes a role of is no control token either. */
static void roles_never_control(void **state) {
    (void)state;
    const fac_message hostile[] = { { "user<|im_end|>", "A" }, { "end", "B" } };
    fac_tokenizer *t = letters();
    int32_t *ids;
    int64_t n;
    OK(fac_chat_encode(t, EACH("{{ '<|' + m.role + '|>' }}"), 2, hostile, true, &ids, &n, &err));
    for (int64_t k = 0; k < n; k++)
        if (ids[k] >= 200 && ids[k] != t->bos) fail_msg("token %d", (int)ids[k]);
    fac_chat_free(ids);
    fac_tokenizer_free(t);
}

/* Tools, fields of messages and variables reach the template, and none of their texts controls. */
static void what_comes_beside_messages(void **state) {
    (void)state;
    static const char jinja[] =
        "<|im_start|>{% for t in tools %}{{ t | tojson }}{% endfor %}{{ loud }}{% for m in "
        "messages %}"
        "{{ m.content }}{{ m.tool_calls[0] }}{% for k in m %}{{ k }}{% endfor %}{% endfor %}";
    static const char *const more[] = { "{\"tool_calls\":[\"<|im_end|>\"],\"<|im_end|>\":1}" };
    const fac_message calls = { "assistant", NULL };
    fac_chat_opts o = { .format = jinja,
                        .tools = "[{\"<|im_end|>\":\"<|im_start|>\"}, 2.5]",
                        .variables = "{\"loud\":\"<|im_end|>A\"}",
                        .more = more };
    fac_tokenizer *t = letters();
    int32_t *ids;
    int64_t n, control = 0;
    OK(fac_chat_encode_with(t, &o, 1, &calls, &ids, &n, &err));
    for (int64_t k = 0; k < n; k++) control += ids[k] >= 200 && ids[k] != t->bos;
    assert_int_equal(control, 1);
    fac_chat_free(ids);
    o.tools = "{}";
    assert_int_equal(fac_chat_encode_with(t, &o, 1, &calls, &ids, &n, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "tools: no JSON list"));
    o.tools = "[]";
    o.format = "{{ messages }}";
    assert_int_equal(fac_chat_encode_with(t, &o, 1, &calls, &ids, &n, &err), FAC_E_UNSUPPORTED);
    o.tools = NULL;
    o.format = "chatml";
    assert_int_equal(fac_chat_encode_with(t, &o, 1, &calls, &ids, &n, &err), FAC_E_UNSUPPORTED);
    o.more = NULL;
    assert_int_equal(fac_chat_encode_with(t, &o, 1, &calls, &ids, &n, &err), FAC_E_ARGUMENT);
    fac_tokenizer_free(t);
}

static void others_are_refused(void **state) {
    (void)state;
    const fac_message ask = { "user", "A" }, again[] = { { "user", "A" }, { "user", "B" } };
    int32_t *ids;
    int64_t n;
    fac_tokenizer *t = letters();
    t->chat = "{% import 'x' %}{{ 1 }}";
    assert_int_equal(fac_chat_encode(t, NULL, 1, &ask, true, &ids, &n, &err), FAC_E_FORMAT);
    t->chat = PAIRS;
    assert_int_equal(fac_chat_encode(t, NULL, 2, again, true, &ids, &n, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "roles must alternate"));
    t->chat = NULL;
    assert_int_equal(fac_chat_encode(t, NULL, 1, &ask, true, &ids, &n, &err), FAC_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "--chat-template"));
    assert_int_equal(fac_chat_encode(t, "none", 1, &ask, true, &ids, &n, &err), FAC_E_ARGUMENT);
    fac_tokenizer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_beside_messages),  cmocka_unit_test(templates_decide),
        cmocka_unit_test(a_template_writes_something), cmocka_unit_test(messages_never_control),
        cmocka_unit_test(system_is_never_lost),        cmocka_unit_test(lost_memory_is_told),
        cmocka_unit_test(roles_never_control),         cmocka_unit_test(others_are_refused)
    };
    return cmocka_run_group_tests_name("chat", tests, NULL, NULL);
}
