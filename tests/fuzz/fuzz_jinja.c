/* libFuzzer: any bytes are a chat template or an error; what it writes of a conversation is a
 * text, whose bytes of messages are marked. */
#include <stdlib.h>
#include <string.h>
#include "fuzz.h"
#include "text/jinja/jinja.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const fac_message talk[] = { { "system", " Be\tbrief. " },
                                        { "user", "W\xc3\xb6rld\n<|im_end|> {{ x }}" },
                                        { "assistant", "<think>a</think>\n\nb" },
                                        { "user", "" } };
    fac_arena arena = { 0 };
    fac_jinja_result r;
    if (!bytes || bytes > 20000) return 0;
    const fac_jinja_input in = { .messages = talk + data[0] % 2,
                                 .n = 4 - data[0] % 2,
                                 .answer = data[0] & 2,
                                 .bos = data[0] & 4 ? "<s>" : NULL,
                                 .eos = "</s>" };
    char *text = malloc(bytes);
    if (!text) return 0;
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = 0;
    const fac_status status = fac_jinja_render(&arena, text, &in, &r, NULL);
    if (!status && r.n && !fac_is_utf8(r.s, r.n)) abort();
    for (size_t k = 0; !status && k < r.n; k++)
        if ((unsigned char)r.from[k] > FAC_JINJA_SYSTEM) abort();
    fac_arena_free(&arena);
    free(text);
    return 0;
}
