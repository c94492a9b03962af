/* tokenizer.json of Hugging Face's tokenizers: added_tokens, normalizer, pre_tokenizer, model,
 * post_processor, decoder.  Parts that are not known here are refused by name, since a text would
 * be cut otherwise than the model learned it. */
#include <math.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "base/error.h"
#include "text/tokenizer.h"

static const cJSON *get(const cJSON *o, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(o, key);
}
static const char *text_of(const cJSON *o, const char *key) {
    return cJSON_GetStringValue(get(o, key));
}
static bool is_true(const cJSON *o, const char *key) { return cJSON_IsTrue(get(o, key)); }

static fac_status unknown_part(const char *what, const char *type, fac_error *err) {
    return fac_raise(err, FAC_E_UNSUPPORTED,
                     "tokenizer.json: a %s of the type \"%.60s\" is not known", what,
                     type ? type : "?");
}

/* A number of a list or an object that may be an id. */
static bool id_of(const cJSON *j, int64_t most, int64_t *id) {
    if (!cJSON_IsNumber(j) || !(j->valuedouble >= 0 && j->valuedouble < (double)most)) return false;
    *id = (int64_t)j->valuedouble;
    return *id == j->valuedouble;
}

/* ---- parts in a Sequence, or one alone ---- */

typedef fac_status part(fac_tokenizer *t, const cJSON *j, const char *type, fac_error *err);

static fac_status each_part(fac_tokenizer *t, const cJSON *j, const char *list, int depth,
                            part *take, fac_error *err) {
    const char *type = text_of(j, "type");
    if (!j || cJSON_IsNull(j)) return FAC_OK;
    if (!type || depth > 8)
        return fac_raise(err, FAC_E_FORMAT, "tokenizer.json: a part without a type");
    if (strcmp(type, "Sequence")) return take(t, j, type, err);
    const cJSON *k;
    cJSON_ArrayForEach(k, get(j, list)) FAC_TRY(each_part(t, k, list, depth + 1, take, err));
    return FAC_OK;
}

static bool says(const cJSON *j, const char *key, const char *want) {
    const char *have = text_of(j, key);
    if (!have) have = text_of(get(j, key), "String");
    return have && !strcmp(have, want);
}

static fac_status normalizer(fac_tokenizer *t, const cJSON *j, const char *type, fac_error *err) {
    if (!strcmp(type, "Prepend") && says(j, "prepend", "\xe2\x96\x81"))
        t->lead = t->every_lead = true;
    else if (!strcmp(type, "Replace") && says(j, "pattern", " ") &&
             says(j, "content", "\xe2\x96\x81"))
        return FAC_OK;
    else if (!strcmp(type, "NFC"))
        t->nfc = true;
    else if (!strcmp(type, "BertNormalizer")) {
        t->lower = is_true(j, "lowercase");
        t->clean = is_true(j, "clean_text");
        t->chinese = is_true(j, "handle_chinese_chars");
        t->strip = cJSON_IsBool(get(j, "strip_accents")) ? is_true(j, "strip_accents") : t->lower;
    } else
        return unknown_part("normalizer", type, err);
    return FAC_OK;
}

static const struct {
    const char *regex;
    fac_pretoken cut;
} patterns[] = {
    { "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
      "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
      "\\s+(?!\\S)|\\s+",
      FAC_CUT_LLAMA3 },
    { "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
      "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
      "\\s+(?!\\S)|\\s+",
      FAC_CUT_QWEN2 },
    { "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
      FAC_CUT_GPT2 },
};

static fac_status split(fac_tokenizer *t, const cJSON *j, fac_error *err) {
    const char *regex = text_of(get(j, "pattern"), "Regex");
    if (says(j, "pattern", " "))
        return FAC_OK; /* of tokenizers whose spaces are U+2581: nothing is left to be cut */
    for (size_t k = 0; regex && k < sizeof patterns / sizeof *patterns; k++) {
        if (strcmp(regex, patterns[k].regex)) continue;
        t->cut = patterns[k].cut;
        return FAC_OK;
    }
    return fac_raise(err, FAC_E_UNSUPPORTED, "tokenizer.json: texts are split by \"%.300s\": %s",
                     regex ? regex : "?", fac_pretoken_names);
}

static fac_status byte_level(fac_tokenizer *t, const cJSON *j) {
    t->kind = FAC_TOKENS_BYTES;
    t->lead = is_true(j, "add_prefix_space");
    if (cJSON_IsFalse(get(j, "use_regex"))) return FAC_OK;
    if (t->cut != FAC_CUT_DIGITS) t->cut = FAC_CUT_GPT2;
    return FAC_OK;
}

static fac_status pre_tokenizer(fac_tokenizer *t, const cJSON *j, const char *type,
                                fac_error *err) {
    if (!strcmp(type, "ByteLevel")) return byte_level(t, j);
    if (!strcmp(type, "Split")) return split(t, j, err);
    if (!strcmp(type, "Digits") && is_true(j, "individual_digits"))
        t->cut = FAC_CUT_DIGITS;
    else if (!strcmp(type, "Metaspace")) {
        const char *scheme = text_of(j, "prepend_scheme");
        t->lead =
            scheme ? strcmp(scheme, "never") != 0 : !cJSON_IsFalse(get(j, "add_prefix_space"));
        t->every_lead = scheme && !strcmp(scheme, "always");
        t->spares_lead = true;
    } else if (strcmp(type, "BertPreTokenizer"))
        return unknown_part("pre_tokenizer", type, err);
    return FAC_OK;
}

static fac_status decoder(fac_tokenizer *t, const cJSON *j, const char *type, fac_error *err) {
    (void)err;
    if (!strcmp(type, "Strip") && says(j, "content", " ")) t->decode_drops = true;
    if (!strcmp(type, "Metaspace")) t->decode_drops = true;
    return FAC_OK;
}

/* ---- what is put around a text ---- */

static int32_t look(const fac_tokenizer *t, const char *s) {
    return s ? fac_tokenizer_look(t, s, strlen(s)) : -1;
}

/* given: its number, where the file says it; else that of the vocabulary. */
static fac_status special_id(const fac_tokenizer *t, const char *name, const cJSON *given,
                             int32_t *to, fac_error *err) {
    int64_t id = look(t, name);
    const bool good = given ? id_of(given, t->n, &id) : id >= 0;
    *to = (int32_t)id;
    if (good) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT,
                     "tokenizer.json: post_processor: \"%.40s\" is no token of the vocabulary",
                     name ? name : "?");
}

static fac_status template_(fac_tokenizer *t, const cJSON *j, fac_error *err) {
    bool before = true;
    const cJSON *k;
    cJSON_ArrayForEach(k, get(j, "single")) {
        if (get(k, "Sequence")) before = false;
        if (get(k, "Sequence")) continue;
        const char *name = text_of(get(k, "SpecialToken"), "id");
        const cJSON *entry = name ? get(get(j, "special_tokens"), name) : NULL;
        const cJSON *given = cJSON_GetArrayItem(get(entry, "ids"), 0);
        FAC_TRY(special_id(t, name, given, before ? &t->bos : &t->eos, err));
        if (before)
            t->add_bos = true;
        else
            t->add_eos = true;
    }
    return FAC_OK;
}

/* ["[CLS]", 101] */
static fac_status around(fac_tokenizer *t, const cJSON *pair, int32_t *to, fac_error *err) {
    const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(pair, 0));
    return special_id(t, name, cJSON_GetArrayItem(pair, 1), to, err);
}

static fac_status post_processor(fac_tokenizer *t, const cJSON *j, const char *type,
                                 fac_error *err) {
    if (!strcmp(type, "TemplateProcessing")) return template_(t, j, err);
    if (!strcmp(type, "BertProcessing") || !strcmp(type, "RobertaProcessing")) {
        FAC_TRY(around(t, get(j, "cls"), &t->cls, err));
        FAC_TRY(around(t, get(j, "sep"), &t->sep, err));
    } else if (strcmp(type, "ByteLevel"))
        return unknown_part("post_processor", type, err);
    return FAC_OK;
}

/* ---- the vocabulary ---- */

enum { MOST = 1 << 24 };

/* One more than the largest id; 0: some number is none. */
static int64_t count_of(const cJSON *vocab, const cJSON *added, bool pairs) {
    int64_t n = 0, id;
    const cJSON *k;
    if (pairs ? !cJSON_IsArray(vocab) : !cJSON_IsObject(vocab)) return 0;
    if (pairs)
        n = cJSON_GetArraySize(vocab);
    else
        cJSON_ArrayForEach(k, vocab) {
            if (!id_of(k, MOST, &id)) return 0;
            if (id >= n) n = id + 1;
        }
    cJSON_ArrayForEach(k, added) {
        if (!id_of(get(k, "id"), MOST, &id) || !text_of(k, "content")) return 0;
        if (id >= n) n = id + 1;
    }
    return n;
}

static fac_status set_pairs(fac_tokenizer *t, const cJSON *vocab, fac_error *err) {
    int32_t id = 0;
    const cJSON *k;
    cJSON_ArrayForEach(k, vocab) {
        const char *s = cJSON_GetStringValue(cJSON_GetArrayItem(k, 0));
        const cJSON *score = cJSON_GetArrayItem(k, 1);
        if (!s || !cJSON_IsNumber(score))
            return fac_raise(err, FAC_E_FORMAT,
                             "tokenizer.json: token %d is no pair of a text and a score", (int)id);
        if (!fac_tokenizer_set(t, id++, s, strlen(s), (float)score->valuedouble, FAC_TOKEN_NORMAL))
            return fac_raise_memory(err, "a tokenizer");
    }
    return FAC_OK;
}

/* A token may be named twice, in the vocabulary and among those that were added; an id is one
 * token's. */
static fac_status set_one(fac_tokenizer *t, int32_t id, const char *s, int type, fac_error *err) {
    const fac_token *k = &t->tokens[id];
    if (k->spelling && strcmp(k->spelling, s))
        return fac_raise(err, FAC_E_FORMAT,
                         "tokenizer.json: two tokens with the id %d, \"%.40s\" and \"%.40s\"",
                         (int)id, k->spelling, s);
    if (fac_tokenizer_set(t, id, s, strlen(s), 0, type)) return FAC_OK;
    return fac_raise_memory(err, "a tokenizer");
}

static fac_status set_ids(fac_tokenizer *t, const cJSON *vocab, fac_error *err) {
    const cJSON *k;
    cJSON_ArrayForEach(k, vocab)
        FAC_TRY(set_one(t, (int32_t)k->valuedouble, k->string, FAC_TOKEN_NORMAL, err));
    return FAC_OK;
}

static fac_status set_added(fac_tokenizer *t, const cJSON *added, fac_error *err) {
    const cJSON *k;
    cJSON_ArrayForEach(k, added) {
        const int32_t id = (int32_t)get(k, "id")->valuedouble;
        const int type = is_true(k, "special") ? FAC_TOKEN_CONTROL : FAC_TOKEN_USER;
        FAC_TRY(set_one(t, id, text_of(k, "content"), type, err));
        t->tokens[id].left = is_true(k, "lstrip");
        t->tokens[id].right = is_true(k, "rstrip");
    }
    return FAC_OK;
}

static fac_status check_id(const fac_tokenizer *t, const char *s, int32_t id, fac_error *err) {
    const int32_t found = fac_tokenizer_look(t, s, strlen(s));
    if (found == id) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT,
                     "tokenizer.json: the token \"%.40s\" has two ids, %d and %d", s, (int)found,
                     (int)id);
}

/* A text becomes one id: a token has no second one.  Lists of pairs may repeat a spelling. */
static fac_status check_ids(const fac_tokenizer *t, const cJSON *vocab, const cJSON *added,
                            fac_error *err) {
    const cJSON *k;
    if (cJSON_IsObject(vocab))
        cJSON_ArrayForEach(k, vocab) FAC_TRY(check_id(t, k->string, (int32_t)k->valuedouble, err));
    cJSON_ArrayForEach(k, added)
        FAC_TRY(check_id(t, text_of(k, "content"), (int32_t)get(k, "id")->valuedouble, err));
    return FAC_OK;
}

static fac_status set_tokens(fac_tokenizer *t, const cJSON *vocab, const cJSON *added,
                             fac_error *err) {
    const bool pairs = t->kind == FAC_TOKENS_UNIGRAM;
    FAC_TRY(pairs ? set_pairs(t, vocab, err) : set_ids(t, vocab, err));
    FAC_TRY(set_added(t, added, err));
    if (!fac_tokenizer_index(t)) return fac_raise_memory(err, "a tokenizer");
    return check_ids(t, vocab, added, err);
}

static fac_status add_merges(fac_tokenizer *t, const cJSON *merges, fac_error *err) {
    uint32_t rank = 1;
    const cJSON *k;
    if (merges && !cJSON_IsArray(merges))
        return fac_raise(err, FAC_E_FORMAT, "tokenizer.json: merges that are no list");
    cJSON_ArrayForEach(k, merges) {
        const char *left = cJSON_IsArray(k) ? cJSON_GetStringValue(cJSON_GetArrayItem(k, 0))
                                            : cJSON_GetStringValue(k);
        const char *right = cJSON_IsArray(k) ? cJSON_GetStringValue(cJSON_GetArrayItem(k, 1))
                            : left           ? strchr(left, ' ')
                                             : NULL;
        if (!left || !right)
            return fac_raise(err, FAC_E_FORMAT, "tokenizer.json: merge %u is no pair", rank);
        const size_t nleft = cJSON_IsArray(k) ? strlen(left) : (size_t)(right - left);
        if (!cJSON_IsArray(k)) right++;
        if (!fac_tokenizer_merge(t, left, nleft, right, strlen(right), rank++))
            return fac_raise_memory(err, "a tokenizer");
    }
    return FAC_OK;
}

static fac_status model_kind(const cJSON *model, fac_tokens *kind, fac_error *err) {
    const char *type = text_of(model, "type");
    if (!type && get(model, "merges")) type = "BPE";
    if (type && !strcmp(type, "BPE"))
        *kind = FAC_TOKENS_RANKS;
    else if (type && !strcmp(type, "Unigram"))
        *kind = FAC_TOKENS_UNIGRAM;
    else if (type && !strcmp(type, "WordPiece"))
        *kind = FAC_TOKENS_WORDS;
    else
        return unknown_part("model", type, err);
    return FAC_OK;
}

static fac_status fill(fac_tokenizer *t, const cJSON *root, fac_error *err) {
    const cJSON *model = get(root, "model"), *vocab = get(model, "vocab"),
                *added = get(root, "added_tokens");
    FAC_TRY(set_tokens(t, vocab, added, err));
    t->unknown = look(t, text_of(model, "unk_token"));
    if (t->kind == FAC_TOKENS_UNIGRAM) {
        const cJSON *unknown = get(model, "unk_id");
        int64_t id = -1;
        if (unknown && !cJSON_IsNull(unknown) && !id_of(unknown, t->n, &id))
            return fac_raise(err, FAC_E_FORMAT, "tokenizer.json: unk_id is no token: there are %d",
                             (int)t->n);
        t->unknown = (int32_t)id;
    }
    if (t->unknown >= 0 && t->kind == FAC_TOKENS_UNIGRAM)
        t->tokens[t->unknown].type = FAC_TOKEN_UNKNOWN;
    t->whole = is_true(model, "ignore_merges");
    const char *join = text_of(model, "continuing_subword_prefix");
    t->join = fac_arena_text(&t->arena, join ? join : "##");
    if (!t->join) return fac_raise_memory(err, "a tokenizer");
    FAC_TRY(each_part(t, get(root, "normalizer"), "normalizers", 0, normalizer, err));
    FAC_TRY(each_part(t, get(root, "pre_tokenizer"), "pretokenizers", 0, pre_tokenizer, err));
    FAC_TRY(each_part(t, get(root, "decoder"), "decoders", 0, decoder, err));
    FAC_TRY(each_part(t, get(root, "post_processor"), "processors", 0, post_processor, err));
    if (t->kind == FAC_TOKENS_WORDS && t->cls < 0 && t->add_bos) {
        t->cls = t->bos;
        t->sep = t->eos;
    }
    if (t->kind == FAC_TOKENS_BYTES || t->kind == FAC_TOKENS_RANKS)
        FAC_TRY(add_merges(t, get(model, "merges"), err));
    return fac_tokenizer_finish(t, err);
}

static fac_status build(const cJSON *root, fac_tokenizer **out, fac_error *err) {
    const cJSON *model = get(root, "model");
    fac_tokens kind;
    if (!cJSON_IsObject(model))
        return fac_raise(err, FAC_E_FORMAT, "no tokenizer: there is no \"model\"");
    FAC_TRY(model_kind(model, &kind, err));
    const int64_t n =
        count_of(get(model, "vocab"), get(root, "added_tokens"), kind == FAC_TOKENS_UNIGRAM);
    if (n <= 0 || n > MOST)
        return fac_raise(err, FAC_E_FORMAT,
                         "tokenizer.json: a vocabulary whose ids are no numbers");
    fac_tokenizer *t = fac_tokenizer_begin((int32_t)n);
    if (!t) return fac_raise_memory(err, "a tokenizer");
    t->kind = kind;
    const fac_status status = fill(t, root, err);
    if (status)
        fac_tokenizer_free(t);
    else
        *out = t;
    return status;
}

fac_status fac_tokenizer_json(const char *text, size_t bytes, fac_tokenizer **out, fac_error *err) {
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    if (!root)
        return fac_raise(err, FAC_E_FORMAT,
                         "a tokenizer.json that is no JSON, or too large for the memory");
    const fac_status status = build(root, out, err);
    cJSON_Delete(root);
    return status;
}
