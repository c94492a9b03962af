/* Tokenizers of GGUF files: the keys tokenizer.ggml.*. */
#include <string.h>
#include "base/error.h"
#include "text/tokenizer.h"

#define KEY(name) "tokenizer.ggml." name

static fac_status no_memory(int64_t n, fac_error *err) {
    return fac_raise_memory(err, "%lld tokens", (long long)n);
}

/* An array of n elements of a kind; n 0: any number. */
static fac_status array_of(const fac_gguf *g, const char *name, bool texts, uint64_t n,
                           const fac_gguf_key **out, fac_error *err) {
    const fac_gguf_key *k = fac_gguf_find(g, name);
    if (!k) return fac_raise(err, FAC_E_FORMAT, "a GGUF file without %s", name);
    if (!n) n = k->n;
    if (!k->array || (k->type == FAC_GGUF_TEXT) != texts || k->type == FAC_GGUF_ARRAY ||
        k->n != n || k->n > INT32_MAX)
        return fac_raise(err, FAC_E_FORMAT, "%s is no list of %llu %s", name, (unsigned long long)n,
                         texts ? "texts" : "numbers");
    *out = k;
    return FAC_OK;
}

static fac_status set_tokens(const fac_gguf *g, fac_tokenizer **out, fac_error *err) {
    const fac_gguf_key *spellings, *scores = NULL, *types = NULL;
    FAC_TRY(array_of(g, KEY("tokens"), true, 0, &spellings, err));
    if (fac_gguf_find(g, KEY("scores")))
        FAC_TRY(array_of(g, KEY("scores"), false, spellings->n, &scores, err));
    if (fac_gguf_find(g, KEY("token_type")))
        FAC_TRY(array_of(g, KEY("token_type"), false, spellings->n, &types, err));
    fac_tokenizer *t = fac_tokenizer_begin((int32_t)spellings->n);
    if (!t) return no_memory((int64_t)spellings->n, err);
    const unsigned char *p = spellings->at;
    for (uint64_t id = 0; id < spellings->n; id++) {
        size_t bytes;
        const char *s = fac_gguf_next_text(&p, &bytes);
        const float score = scores ? (float)fac_gguf_number(scores, id) : 0;
        const double type = types ? fac_gguf_number(types, id) : FAC_TOKEN_NORMAL;
        const bool known = type >= FAC_TOKEN_NORMAL && type <= FAC_TOKEN_BYTE;
        if (fac_tokenizer_set(t, (int32_t)id, s, bytes, score,
                              known ? (int)type : FAC_TOKEN_NORMAL))
            continue;
        fac_tokenizer_free(t);
        return no_memory((int64_t)spellings->n, err);
    }
    *out = t;
    return FAC_OK;
}

/* "left right": a space within a token has another spelling. */
static fac_status add_merges(const fac_gguf *g, fac_tokenizer *t, fac_error *err) {
    const fac_gguf_key *merges;
    FAC_TRY(array_of(g, KEY("merges"), true, 0, &merges, err));
    if (!fac_tokenizer_index(t)) return no_memory(t->n, err);
    const unsigned char *p = merges->at;
    for (uint64_t k = 0; k < merges->n; k++) {
        size_t bytes;
        const char *s = fac_gguf_next_text(&p, &bytes);
        const char *gap = bytes > 1 ? memchr(s + 1, ' ', bytes - 1) : NULL;
        if (!gap)
            return fac_raise(err, FAC_E_FORMAT, KEY("merges") ": number %llu is no pair",
                             (unsigned long long)k);
        const size_t left = (size_t)(gap - s);
        if (!fac_tokenizer_merge(t, s, left, gap + 1, bytes - left - 1, (uint32_t)k + 1))
            return no_memory(t->n, err);
    }
    return FAC_OK;
}

/* -1, as a signed or an unsigned number, says as well that there is none. */
static fac_status id_of(fac_gguf *g, const fac_tokenizer *t, const char *name, int32_t *to,
                        fac_error *err) {
    const int64_t id = fac_gguf_int(g, name, -1);
    const bool none = id == -1 || id == UINT32_MAX;
    *to = none ? -1 : (int32_t)id;
    if (none || (id >= 0 && id < t->n)) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT, "%s: %lld is no token: there are %lld", name, (long long)id,
                     (long long)t->n);
}

static fac_status set_ids(fac_gguf *g, fac_tokenizer *t, fac_error *err) {
    FAC_TRY(id_of(g, t, KEY("bos_token_id"), &t->bos, err));
    FAC_TRY(id_of(g, t, KEY("eos_token_id"), &t->eos, err));
    FAC_TRY(id_of(g, t, KEY("eot_token_id"), &t->eot, err));
    FAC_TRY(id_of(g, t, KEY("unknown_token_id"), &t->unknown, err));
    t->add_bos = fac_gguf_int(g, KEY("add_bos_token"), t->kind == FAC_TOKENS_SCORES);
    t->add_eos = fac_gguf_int(g, KEY("add_eos_token"), t->kind == FAC_TOKENS_UNIGRAM);
    t->lead = fac_gguf_int(g, KEY("add_space_prefix"), t->kind != FAC_TOKENS_BYTES);
    t->join_spaces = fac_gguf_int(g, KEY("remove_extra_whitespaces"), 0);
    t->decode_drops = t->lead;
    if (t->kind != FAC_TOKENS_WORDS) return FAC_OK;
    FAC_TRY(id_of(g, t, KEY("cls_token_id"), &t->cls, err));
    FAC_TRY(id_of(g, t, KEY("seperator_token_id"), &t->sep, err)); /* spelled so in the files */
    if (t->cls < 0) t->cls = t->bos;
    if (t->sep < 0) t->sep = t->eos;
    t->lower = t->strip = t->chinese = t->clean = true;
    return FAC_OK;
}

static fac_status set_cut(fac_gguf *g, fac_tokenizer *t, fac_error *err) {
    const char *pre = fac_gguf_text(g, KEY("pre"), NULL);
    t->cut = FAC_CUT_GPT2;
    if (pre && !fac_pretoken_named(pre, &t->cut, &t->whole))
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "a tokenizer that cuts texts as \"%.40s\" does: %s", pre,
                         fac_pretoken_names);
    return FAC_OK;
}

static const struct {
    const char *name;
    fac_tokens kind;
} kinds[] = {
    { "gpt2", FAC_TOKENS_BYTES },
    { "llama", FAC_TOKENS_SCORES },
    { "t5", FAC_TOKENS_UNIGRAM },
    { "bert", FAC_TOKENS_WORDS },
};

static fac_status kind_of(fac_gguf *g, fac_tokens *kind, fac_error *err) {
    const char *model = fac_gguf_text(g, KEY("model"), NULL);
    if (!model)
        return fac_raise(err, FAC_E_FORMAT,
                         "a GGUF file without " KEY("model") ": it has no tokenizer");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(kinds[k].name, model)) continue;
        *kind = kinds[k].kind;
        return FAC_OK;
    }
    return fac_raise(err, FAC_E_UNSUPPORTED,
                     "a tokenizer of the kind \"%.40s\": gpt2, llama, t5 and bert are known",
                     model);
}

/* WordPiece is spelled with U+2581 at the beginnings of words there, and without "##". */
static bool respell_words(fac_tokenizer *t) {
    for (int32_t id = 0; id < t->n; id++) {
        fac_token *k = &t->tokens[id];
        if (k->type != FAC_TOKEN_NORMAL || !k->spelled) continue;
        const bool begins = k->spelled >= 3 && !memcmp(k->spelling, "\xe2\x96\x81", 3);
        const char *s = begins ? k->spelling + 3 : fac_arena_print(&t->arena, "##%s", k->spelling);
        if (!s) return false;
        k->spelling = s;
        k->spelled = (uint32_t)strlen(s);
    }
    return true;
}

static fac_status settle(fac_gguf *g, fac_tokenizer *t, fac_error *err) {
    size_t bytes;
    FAC_TRY(set_ids(g, t, err));
    if (t->kind == FAC_TOKENS_BYTES) {
        FAC_TRY(set_cut(g, t, err));
        FAC_TRY(add_merges(g, t, err));
    }
    t->join = "##";
    if (t->kind == FAC_TOKENS_WORDS && !respell_words(t)) return no_memory(t->n, err);
    const char *chat = fac_gguf_text(g, "tokenizer.chat_template", &bytes);
    if (chat) t->chat = fac_arena_text(&t->arena, chat);
    if (chat && !t->chat) return no_memory(t->n, err);
    FAC_TRY(fac_gguf_right(g, err));
    return fac_tokenizer_finish(t, err);
}

fac_status fac_tokenizer_gguf(fac_gguf *g, fac_tokenizer **out, fac_error *err) {
    fac_tokens kind;
    fac_tokenizer *t;
    FAC_TRY(kind_of(g, &kind, err));
    FAC_TRY(set_tokens(g, &t, err));
    t->kind = kind;
    const fac_status status = settle(g, t, err);
    if (status)
        fac_tokenizer_free(t);
    else
        *out = t;
    return status;
}
