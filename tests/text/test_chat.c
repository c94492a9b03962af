/* Conversations as the templates of files want them: what begins and ends a text by name or in
 * full, where the system's text goes, what Llama is told, what models that think read again.  The
 * templates here only have the marks; scripts/check_chat.py compares whole ones with Jinja. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
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

#define CHATML "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>'}}"
#define LLAMA3 "{{ '<|start_header_id|>' }}"
static const struct {
    const char *chat, *name, *want;
} cases[] = {
    { CHATML, NULL,
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nA<|im_end|>\n"
      "<|im_start|>assistant\n<think>t</think>\n\nB<|im_end|>\n<|im_start|>user\nC<|im_end|>\n"
      "<|im_start|>assistant\n" },
    { "{{ bos_token }}" CHATML, NULL,
      "<begin><|im_start|>system\nS<|im_end|>\n<|im_start|>user\nA<|im_end|>\n"
      "<|im_start|>assistant\n<think>t</think>\n\nB<|im_end|>\n<|im_start|>user\nC<|im_end|>\n"
      "<|im_start|>assistant\n" },
    { CHATML "content.split('</think>')[-1].lstrip('\\n')", NULL,
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nA<|im_end|>\n"
      "<|im_start|>assistant\nB<|im_end|>\n<|im_start|>user\nC<|im_end|>\n"
      "<|im_start|>assistant\n" },
    { "{{ bos_token }}'[INST] ' + message['content'] + ' [/INST]' message['content'] + eos_token",
      NULL, "<begin>[INST] S\n\nA [/INST]<think>t</think>\n\nB<end>[INST] C [/INST]" },
    { "{{ bos_token }}'[INST] ' + ' [/INST]' ' ' + message['content'] + eos_token", NULL,
      "<begin>[INST] S\n\nA [/INST] <think>t</think>\n\nB<end>[INST] C [/INST]" },
    { "{{ bos_token }} loop.last and system_message \"[INST]\" + eos_token", NULL,
      "<begin>[INST]A[/INST]<think>t</think>\n\nB<end>[INST]S\n\nC[/INST]" },
    { "<|begin_of_text|>" LLAMA3 "Cutting Knowledge Date: December 2023\\n", NULL,
      "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: "
      "December 2023\nToday Date: 26 Jul 2024\n\nS<|eot_id|><|start_header_id|>user"
      "<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
      "<think>t</think>\n\nB<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nC<|eot_id|>"
      "<|start_header_id|>assistant<|end_header_id|>\n\n" },
    { "<|user|> <|assistant|> <|end|>", NULL,
      "<|system|>\nS<|end|>\n<|user|>\nA<|end|>\n<|assistant|>\n<think>t</think>\n\nB<|end|>\n"
      "<|user|>\nC<|end|>\n<|assistant|>\n" },
    { "{{ bos_token }}", "mistral-v3",
      "<s>[INST] S\n\nA[/INST] <think>t</think>\n\nB</s>[INST] C[/INST]" },
};

static void templates_decide(void **state) {
    (void)state;
    const fac_message talk[] = { { "system", "S" },
                                 { "user", "A" },
                                 { "assistant", "<think>t</think>\n\nB" },
                                 { "user", "C" } };
    fac_tokenizer *t = letters();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[2048] = { 0 };
        int32_t *ids;
        int64_t n;
        t->chat = cases[k].chat;
        OK(fac_chat_encode(t, cases[k].name, 4, talk, true, &ids, &n, &err));
        fac_tokenizer_decode(t, ids, n, FAC_TEXT_SPECIAL, text, sizeof text - 1);
        if (strcmp(text, cases[k].want))
            fail_msg("%s\n  gives    %s\n  expected %s", cases[k].chat, text, cases[k].want);
        fac_chat_free(ids);
    }
    fac_tokenizer_free(t);
}

/* What Llama is told is there without a message of the system, too. */
static void dates_alone(void **state) {
    (void)state;
    const fac_message ask = { "user", "A" };
    char text[1024] = { 0 };
    int32_t *ids;
    int64_t n;
    fac_tokenizer *t = letters();
    t->chat = LLAMA3 "Cutting Knowledge Date: December 2023";
    OK(fac_chat_encode(t, NULL, 1, &ask, false, &ids, &n, &err));
    fac_tokenizer_decode(t, ids, n, FAC_TEXT_SPECIAL, text, sizeof text - 1);
    assert_non_null(strstr(text, "26 Jul 2024\n\n<|eot_id|><|start_header_id|>user"));
    fac_chat_free(ids);
    fac_tokenizer_free(t);
}

static void others_are_refused(void **state) {
    (void)state;
    const fac_message ask = { "user", "A" };
    int32_t *ids;
    int64_t n;
    fac_tokenizer *t = letters();
    t->chat = "{{ 'USER: ' + message['content'] }}";
    assert_null(fac_chat_format(t));
    assert_int_equal(fac_chat_encode(t, NULL, 1, &ask, true, &ids, &n, &err), FAC_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "--chat-template"));
    t->chat = NULL;
    assert_int_equal(fac_chat_encode(t, NULL, 1, &ask, true, &ids, &n, &err), FAC_E_UNSUPPORTED);
    assert_int_equal(fac_chat_encode(t, "none", 1, &ask, true, &ids, &n, &err), FAC_E_ARGUMENT);
    fac_tokenizer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(templates_decide),
                                        cmocka_unit_test(dates_alone),
                                        cmocka_unit_test(others_are_refused) };
    return cmocka_run_group_tests_name("chat", tests, NULL, NULL);
}
