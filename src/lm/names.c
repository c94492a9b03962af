/* Names of weights: GGUF's are ours, "%d" is the layer; those of Hugging Face follow from tables.
 */
#include <stdio.h>
#include <string.h>
#include "lm/lm.h"

typedef struct row {
    const char *ours, *theirs;
} row;

static const row llama[] = { { "token_embd", "model.embed_tokens" },
                             { "output_norm", "model.norm" },
                             { "output", "lm_head" },
                             { "blk.%d.attn_norm", "model.layers.%d.input_layernorm" },
                             { "blk.%d.attn_q", "model.layers.%d.self_attn.q_proj" },
                             { "blk.%d.attn_k", "model.layers.%d.self_attn.k_proj" },
                             { "blk.%d.attn_v", "model.layers.%d.self_attn.v_proj" },
                             { "blk.%d.attn_qkv", "model.layers.%d.self_attn.qkv_proj" },
                             { "blk.%d.attn_output", "model.layers.%d.self_attn.o_proj" },
                             { "blk.%d.attn_q_norm", "model.layers.%d.self_attn.q_norm" },
                             { "blk.%d.attn_k_norm", "model.layers.%d.self_attn.k_norm" },
                             { "blk.%d.ffn_norm", "model.layers.%d.post_attention_layernorm" },
                             { "blk.%d.ffn_gate", "model.layers.%d.mlp.gate_proj" },
                             { "blk.%d.ffn_up", "model.layers.%d.mlp.up_proj" },
                             { "blk.%d.ffn_down", "model.layers.%d.mlp.down_proj" },
                             { 0 } };
static const row gemma[] = {
    { "blk.%d.ffn_norm", "model.layers.%d.pre_feedforward_layernorm" },
    { "blk.%d.post_attention_norm", "model.layers.%d.post_attention_layernorm" },
    { "blk.%d.post_ffw_norm", "model.layers.%d.post_feedforward_layernorm" },
    { 0 }
};
static const row phi3[] = { { "blk.%d.ffn_up", "model.layers.%d.mlp.gate_up_proj" }, { 0 } };
static const row gpt2[] = { { "token_embd", "transformer.wte" },
                            { "position_embd", "transformer.wpe" },
                            { "output_norm", "transformer.ln_f" },
                            { "output", "lm_head" },
                            { "blk.%d.attn_norm", "transformer.h.%d.ln_1" },
                            { "blk.%d.attn_qkv", "transformer.h.%d.attn.c_attn" },
                            { "blk.%d.attn_output", "transformer.h.%d.attn.c_proj" },
                            { "blk.%d.ffn_norm", "transformer.h.%d.ln_2" },
                            { "blk.%d.ffn_up", "transformer.h.%d.mlp.c_fc" },
                            { "blk.%d.ffn_down", "transformer.h.%d.mlp.c_proj" },
                            { 0 } };
static const row neo[] = { { "blk.%d.attn_q", "transformer.h.%d.attn.attention.q_proj" },
                           { "blk.%d.attn_k", "transformer.h.%d.attn.attention.k_proj" },
                           { "blk.%d.attn_v", "transformer.h.%d.attn.attention.v_proj" },
                           { "blk.%d.attn_output", "transformer.h.%d.attn.attention.out_proj" },
                           { 0 } };
static const row neox[] = { { "token_embd", "gpt_neox.embed_in" },
                            { "output_norm", "gpt_neox.final_layer_norm" },
                            { "output", "embed_out" },
                            { "blk.%d.attn_norm", "gpt_neox.layers.%d.input_layernorm" },
                            { "blk.%d.attn_qkv", "gpt_neox.layers.%d.attention.query_key_value" },
                            { "blk.%d.attn_output", "gpt_neox.layers.%d.attention.dense" },
                            { "blk.%d.ffn_norm", "gpt_neox.layers.%d.post_attention_layernorm" },
                            { "blk.%d.ffn_up", "gpt_neox.layers.%d.mlp.dense_h_to_4h" },
                            { "blk.%d.ffn_down", "gpt_neox.layers.%d.mlp.dense_4h_to_h" },
                            { 0 } };

static const row bert[] = { { "token_embd", "embeddings.word_embeddings" },
                            { "position_embd", "embeddings.position_embeddings" },
                            { "token_types", "embeddings.token_type_embeddings" },
                            { "token_embd_norm", "embeddings.LayerNorm" },
                            { "blk.%d.attn_q", "encoder.layer.%d.attention.self.query" },
                            { "blk.%d.attn_k", "encoder.layer.%d.attention.self.key" },
                            { "blk.%d.attn_v", "encoder.layer.%d.attention.self.value" },
                            { "blk.%d.attn_output", "encoder.layer.%d.attention.output.dense" },
                            { "blk.%d.attn_output_norm",
                              "encoder.layer.%d.attention.output.LayerNorm" },
                            { "blk.%d.ffn_up", "encoder.layer.%d.intermediate.dense" },
                            { "blk.%d.ffn_down", "encoder.layer.%d.output.dense" },
                            { "blk.%d.layer_output_norm", "encoder.layer.%d.output.LayerNorm" },
                            { 0 } };

static const struct {
    const char *family;
    const row *first, *then;
} tables[] = {
    { "llama", llama, NULL },   { "qwen2", llama, NULL }, { "qwen3", llama, NULL },
    { "phi3", phi3, llama },    { "gpt2", gpt2, NULL },   { "gptneox", neox, NULL },
    { "gptneo", neo, gpt2 },    { "bert", bert, NULL },   { "gemma2", gemma, llama },
    { "gemma3", gemma, llama },
};

const char *fac_lm_stem(int i) {
    static const char *const stems[] = {
        "token_embd",
        "position_embd",
        "output_norm",
        "output",
        "token_types",
        "token_embd_norm",
        "blk.%d.attn_norm",
        "blk.%d.attn_q",
        "blk.%d.attn_k",
        "blk.%d.attn_v",
        "blk.%d.attn_qkv",
        "blk.%d.attn_q_norm",
        "blk.%d.attn_k_norm",
        "blk.%d.attn_output",
        "blk.%d.attn_output_norm",
        "blk.%d.post_attention_norm",
        "blk.%d.ffn_norm",
        "blk.%d.ffn_gate",
        "blk.%d.ffn_up",
        "blk.%d.ffn_down",
        "blk.%d.post_ffw_norm",
        "blk.%d.layer_output_norm",
    };
    return i >= 0 && i < (int)(sizeof stems / sizeof *stems) ? stems[i] : NULL;
}

/* `name` with the layer for "%d". */
static const char *put(const char *name, size_t stem, const char *ending, int64_t layer,
                       char to[256]) {
    const char *at = memchr(name, '%', stem);
    if (!at)
        snprintf(to, 256, "%.*s%s", (int)stem, name, ending);
    else
        snprintf(to, 256, "%.*s%lld%.*s%s", (int)(at - name), name, (long long)layer,
                 (int)(name + stem - at - 2), at + 2, ending);
    return to;
}

const char *fac_lm_name_gguf(const fac_lm *m, const char *canonical, int64_t layer, char to[256]) {
    (void)m;
    return put(canonical, strlen(canonical), "", layer, to);
}

static const row *find(const row *r, const char *name, size_t stem) {
    for (; r && r->ours; r++)
        if (strlen(r->ours) == stem && !memcmp(r->ours, name, stem)) return r;
    return NULL;
}

const char *fac_lm_name_hf(const fac_lm *m, const char *canonical, int64_t layer, char to[256]) {
    const char *ending = strrchr(canonical, '.');
    const size_t stem = (size_t)(ending - canonical);
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        if (strcmp(tables[k].family, m->c.family)) continue;
        const row *r = find(tables[k].first, canonical, stem);
        if (!r) r = find(tables[k].then, canonical, stem);
        return r ? put(r->theirs, strlen(r->theirs), ending, layer, to) : NULL;
    }
    return NULL;
}
