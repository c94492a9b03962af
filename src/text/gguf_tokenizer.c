/* A tokenizer as the keys of a GGUF file. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "text/gguf_write.h"

static const struct {
    fac_pretoken cut;
    bool whole;
    const char *name;
} cuts[] = {
    { FAC_CUT_GPT2, false, "gpt-2" },      { FAC_CUT_DIGITS, false, "smollm" },
    { FAC_CUT_LLAMA3, true, "llama-bpe" }, { FAC_CUT_LLAMA3, false, "smaug-bpe" },
    { FAC_CUT_QWEN2, false, "qwen2" },
};

static const char *cut_name(const fac_tokenizer *t) {
    for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++)
        if (cuts[k].cut == t->cut && cuts[k].whole == t->whole) return cuts[k].name;
    return NULL;
}

static int by_rank(const void *a, const void *b) {
    const fac_merge *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The merges that are there, in order; NULL: no memory. */
static fac_merge *in_order(const fac_tokenizer *t) {
    fac_merge *all = fac_alloc(t->merges.n + 1, sizeof *all);
    size_t n = 0;
    for (size_t k = 0; all && k < t->merges.room; k++)
        if (t->merges.slots[k].rank) all[n++] = t->merges.slots[k];
    if (all) qsort(all, n, sizeof *all, by_rank);
    return all;
}

static void put_merges(fac_gguf_head *h, const fac_tokenizer *t, const fac_merge *all) {
    fac_gguf_begin_list(h, "tokenizer.ggml.merges", FAC_GGUF_TEXT, t->merges.n);
    for (size_t k = 0; k < t->merges.n; k++) {
        const fac_token *a = &t->tokens[all[k].left], *b = &t->tokens[all[k].right];
        fac_gguf_put_number(h, a->spelled + 1 + b->spelled, 8);
        fac_text_add_bytes(&h->text, a->spelling, a->spelled);
        fac_text_add(&h->text, " ");
        fac_text_add_bytes(&h->text, b->spelling, b->spelled);
    }
}

/* Where ranks decide, what is joined first scores highest; a token counts by its first rank. */
static void put_scores(fac_gguf_head *h, const fac_tokenizer *t, const fac_merge *all,
                       float *scores) {
    for (int32_t id = 0; id < t->n; id++)
        scores[id] = t->kind == FAC_TOKENS_RANKS ? -1e6f : t->tokens[id].score;
    for (size_t k = t->merges.n; k-- > 0;)
        if (t->kind == FAC_TOKENS_RANKS) scores[all[k].to] = -(float)all[k].rank;
    fac_gguf_begin_list(h, "tokenizer.ggml.scores", FAC_GGUF_F32, (uint64_t)t->n);
    fac_text_add_bytes(&h->text, (const char *)scores, (size_t)t->n * sizeof *scores);
}

static void put_tokens(fac_gguf_head *h, const fac_tokenizer *t) {
    fac_gguf_begin_list(h, "tokenizer.ggml.tokens", FAC_GGUF_TEXT, (uint64_t)t->n);
    for (int32_t id = 0; id < t->n; id++) {
        fac_gguf_put_number(h, t->tokens[id].spelled, 8);
        fac_text_add_bytes(&h->text, t->tokens[id].spelling, t->tokens[id].spelled);
    }
    fac_gguf_begin_list(h, "tokenizer.ggml.token_type", FAC_GGUF_I32, (uint64_t)t->n);
    for (int32_t id = 0; id < t->n; id++) fac_gguf_put_number(h, t->tokens[id].type, 4);
}

static void put_id(fac_gguf_head *h, const char *name, int32_t id) {
    if (id >= 0) fac_gguf_put_int(h, name, id);
}

fac_status fac_tokenizer_put_gguf(const fac_tokenizer *t, fac_gguf_head *h, fac_error *err) {
    const bool bytes = t->kind == FAC_TOKENS_BYTES;
    if (t->kind == FAC_TOKENS_WORDS || t->kind == FAC_TOKENS_UNIGRAM || (bytes && !cut_name(t)))
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "a tokenizer of the kind %s is not written into GGUF files",
                         fac_tokenizer_kind(t));
    fac_merge *all = in_order(t);
    float *scores = fac_alloc((size_t)t->n + 1, sizeof *scores);
    if (all && scores) {
        fac_gguf_put_text(h, "tokenizer.ggml.model", bytes ? "gpt2" : "llama");
        fac_gguf_put_text(h, "tokenizer.ggml.pre", bytes ? cut_name(t) : "default");
        put_tokens(h, t);
        if (bytes)
            put_merges(h, t, all);
        else
            put_scores(h, t, all, scores);
        put_id(h, "tokenizer.ggml.bos_token_id", t->bos);
        put_id(h, "tokenizer.ggml.eos_token_id", t->eos);
        put_id(h, "tokenizer.ggml.unknown_token_id", t->unknown);
        fac_gguf_put_flag(h, "tokenizer.ggml.add_bos_token", t->add_bos);
        fac_gguf_put_flag(h, "tokenizer.ggml.add_space_prefix", t->lead);
        if (t->chat) fac_gguf_put_text(h, "tokenizer.chat_template", t->chat);
    }
    const bool good = all && scores;
    fac_release(all);
    fac_release(scores);
    return good ? FAC_OK : fac_raise_memory(err, "a tokenizer's keys");
}
