/* One of each kind of tokenizer and of file. */
#include <string.h>
#include "base/text.h"
#include "fuzz.h"
#include "gguf_files.h"

static const struct {
    const char *name, *text;
} json[] = {
    { "bpe", "{\"added_tokens\":[{\"id\":3,\"content\":\"<s>\",\"special\":true,\"lstrip\":true}],"
             "\"normalizer\":{\"type\":\"NFC\"},"
             "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true},\"model\":{"
             "\"type\":\"BPE\",\"vocab\":{\"a\":0,"
             "\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}" },
    { "fallback", "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"<0x41>"
                  "\":1,\"aa\":2},"
                  "\"merges\":[[\"a\",\"a\"]]},\"normalizer\":{\"type\":\"Sequence\","
                  "\"normalizers\":[{\"type\":\"Prepend\","
                  "\"prepend\":\"\xe2\x96\x81\"}]}}" },
    { "words", "{\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true,\"clean_text\":"
               "true},\"model\":{"
               "\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"he\":1,\"##l\":2,"
               "\",\":3}}}" },
    { "unigram", "{\"pre_tokenizer\":{\"type\":\"Metaspace\"},\"model\":{\"type\":\"Unigram\","
                 "\"unk_id\":0,\"vocab\":[[\"u\",0],"
                 "[\"H\",-1],[\"el\",-2]]}}" },
};

void fac_seeds(fac_seed_taker *take, void *self) {
    fac_text t = { 0 };
    gguf_file(&t);
    take(self, "gguf", t.s, t.n);
    fac_text_free(&t);
    for (size_t k = 0; k < sizeof json / sizeof *json; k++)
        take(self, json[k].name, json[k].text, strlen(json[k].text));
}
