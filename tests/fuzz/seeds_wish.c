/* One of each kind of request. */
#include <string.h>
#include "fuzz.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    static const struct {
        const char *name, *text;
    } of[] = {
        { "chat",
          "\5{\"messages\":[{\"role\":\"system\",\"content\":\"a\"},{\"role\":\"user\",\"content\":"
          "[{\"type\":\"text\",\"text\":\"b\"}]}],\"stream\":true,\"stream_options\":{\"include_"
          "usage\":true},"
          "\"logprobs\":true,\"top_logprobs\":3,\"response_format\":{\"type\":\"text\"}}" },
        { "complete", "\1{\"prompt\":[\"a\",[1,2]],\"n\":2,\"stop\":[\"x\"],\"logit_bias\":{\"3\":"
                      "1.5},\"logprobs\":1,"
                      "\"temperature\":0.5,\"top_p\":0.9,\"top_k\":4,\"min_p\":0.1,\"seed\":7,"
                      "\"max_tokens\":3}" },
        { "embed", "\2{\"input\":[\"a\",\"b\"],\"encoding_format\":\"base64\"}" },
        { "tokenize", "\3{\"content\":\"a\\u00e9\",\"add_special\":true}" },
        { "words", "\4{\"tokens\":[1,2,3]}" },
    };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        take(self, of[k].name, of[k].text, strlen(of[k].text));
}
