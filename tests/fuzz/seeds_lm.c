/* One of each way to read a model. */
#include <string.h>
#include "base/text.h"
#include "fuzz.h"
#include "gguf_files.h"

static void gguf(fac_text *t) {
    fac_text_add_bytes(t, "\0", 1);
    put_gguf_head(t, 3, 0, 5);
    put_gguf_key_text(t, "general.architecture", "llama");
    static const struct {
        const char *name;
        int x;
    } keys[] = { { "llama.block_count", 2 },
                 { "llama.embedding_length", 16 },
                 { "llama.attention.head_count", 4 },
                 { "llama.context_length", 64 } };
    for (int k = 0; k < 4; k++) {
        put_gguf_key(t, keys[k].name, 4);
        put_number(t, (uint64_t)keys[k].x, 4);
    }
}

void fac_seeds(fac_seed_taker *take, void *self) {
    static const char json[] =
        "\1{\"model_type\":\"qwen2\",\"num_hidden_layers\":2,\"hidden_size\":16,\"num_attention_"
        "heads\":4,"
        "\"max_position_embeddings\":64,\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}";
    fac_text t = { 0 };
    gguf(&t);
    take(self, "gguf", t.s, t.n);
    t.n = 0;
    static const int head[7] = { 4, 4, 1, 1, 1, 3, 16 };
    fac_text_add_bytes(&t, "\2", 1);
    for (int k = 0; k < 7; k++) put_number(&t, (uint64_t)head[k], 4);
    for (int k = 0; k < 3 * 4 + 4 + 4 * 16 + 4 + 3 * 16 + 4 + 16 * 4; k++) put_number(&t, 0, 4);
    take(self, "llama2c", t.s, t.n);
    fac_text_free(&t);
    take(self, "json", json, sizeof json - 1);
}
