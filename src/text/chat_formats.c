/* The formats of conversations that are known, and the marks by which templates are recognized. */
#include "text/chat_formats.h"
#include <string.h>
#include "facula/tokenizer.h"

/* More special marks first: phi4 also has those of chatml. */
static const fac_chat_turns formats[] = {
    { "phi4",
      { "<|im_start|>", "<|im_sep|>" },
      "",
      { "<|im_start|>system<|im_sep|>", "<|im_end|>" },
      { "<|im_start|>user<|im_sep|>", "<|im_end|>" },
      { "<|im_start|>assistant<|im_sep|>", "<|im_end|>" },
      "<|im_start|>assistant<|im_sep|>",
      NULL,
      false },
    { "chatml",
      { "<|im_start|>", NULL },
      "",
      { "<|im_start|>system\n", "<|im_end|>\n" },
      { "<|im_start|>user\n", "<|im_end|>\n" },
      { "<|im_start|>assistant\n", "<|im_end|>\n" },
      "<|im_start|>assistant\n",
      NULL,
      false },
    { "llama3",
      { "<|start_header_id|>", NULL },
      "<|begin_of_text|>",
      { "<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>" },
      { "<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>" },
      { "<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>" },
      "<|start_header_id|>assistant<|end_header_id|>\n\n",
      NULL,
      true },
    { "mistral-v7",
      { "[SYSTEM_PROMPT]", "[INST]" },
      "<s>",
      { "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]" },
      { "[INST]", "[/INST]" },
      { "", "</s>" },
      "",
      NULL,
      false },
    { "llama2",
      { "[INST]", "<<SYS>>" },
      "",
      { NULL, NULL },
      { "<s>[INST] ", " [/INST]" },
      { " ", " </s>" },
      "",
      "llama2",
      true },
    { "mistral-v1",
      { "' [INST] '", NULL },
      "<s>",
      { NULL, NULL },
      { " [INST] ", " [/INST]" },
      { " ", "</s>" },
      "",
      "\n\n",
      false },
    { "mistral-v0",
      { "' [/INST]'", NULL },
      "<s>",
      { NULL, NULL },
      { "[INST] ", " [/INST]" },
      { "", "</s>" },
      "",
      "\n\n",
      false },
    { "mistral-v3-tekken",
      { "\"[INST]\"", NULL },
      "<s>",
      { NULL, NULL },
      { "[INST]", "[/INST]" },
      { "", "</s>" },
      "",
      "\n\n",
      false },
    { "mistral-v3",
      { "[INST]", NULL },
      "<s>",
      { NULL, NULL },
      { "[INST] ", "[/INST]" },
      { " ", "</s>" },
      "",
      "\n\n",
      false },
    { "phi3",
      { "<|assistant|>", "<|end|>" },
      "",
      { "<|system|>\n", "<|end|>\n" },
      { "<|user|>\n", "<|end|>\n" },
      { "<|assistant|>\n", "<|end|>\n" },
      "<|assistant|>\n",
      NULL,
      false },
    { "zephyr",
      { "<|user|>", "eos_token" },
      "",
      { "<|system|>\n", "</s>\n" },
      { "<|user|>\n", "</s>\n" },
      { "<|assistant|>\n", "</s>\n" },
      "<|assistant|>\n",
      NULL,
      false },
    { "gemma",
      { "<start_of_turn>", NULL },
      "<bos>",
      { NULL, NULL },
      { "<start_of_turn>user\n", "<end_of_turn>\n" },
      { "<start_of_turn>model\n", "<end_of_turn>\n" },
      "<start_of_turn>model\n",
      "\n\n",
      true },
    { "deepseek",
      { "<\xef\xbd\x9cUser\xef\xbd\x9c>", NULL },
      "<\xef\xbd\x9c"
      "begin\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
      { "", "" },
      { "<\xef\xbd\x9cUser\xef\xbd\x9c>", "" },
      { "<\xef\xbd\x9c"
        "Assistant\xef\xbd\x9c>",
        "<\xef\xbd\x9c"
        "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>" },
      "<\xef\xbd\x9c"
      "Assistant\xef\xbd\x9c>",
      NULL,
      false },
    { "command-r",
      { "<|START_OF_TURN_TOKEN|>", NULL },
      "<BOS_TOKEN>",
      { "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>" },
      { "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>" },
      { "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>" },
      "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
      NULL,
      true },
};
enum { FORMATS = sizeof formats / sizeof *formats };

const fac_chat_turns *fac_chat_recognized(const char *chat) {
    for (int k = 0; chat && k < FORMATS; k++)
        if (strstr(chat, formats[k].marks[0]) &&
            (!formats[k].marks[1] || strstr(chat, formats[k].marks[1])))
            return &formats[k];
    return NULL;
}

const char *fac_chat_format_of(const char *jinja) {
    const fac_chat_turns *f = fac_chat_recognized(jinja);
    return f ? f->name : NULL;
}

const char *fac_chat_format_name(int i) { return i >= 0 && i < FORMATS ? formats[i].name : NULL; }

const fac_chat_turns *fac_chat_named(const char *name) {
    for (int k = 0; k < FORMATS; k++)
        if (!strcmp(formats[k].name, name)) return &formats[k];
    return NULL;
}
