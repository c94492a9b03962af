/* A text as ids and back: special tokens are cut out first, the rest is normalized, cut into pieces
 * and merged. */
#include <string.h>
#include "base/memory.h"
#include "base/text.h"
#include "data/text/text_internal.h"
#include "text/normal.h"
#include "text/tokenizer.h"

/* ---- special tokens ---- */

/* The longest special token that stands at s; control tokens only where they count.  -1: none. */
static int32_t special_at(const fac_tokenizer *t, const char *s, size_t n, bool control) {
    for (int32_t k = 0; k < t->nspecials; k++) {
        const fac_token *a = &t->tokens[t->specials[k]];
        if (a->type == FAC_TOKEN_CONTROL && !control) continue;
        if (a->spelled <= n && a->spelling[0] == s[0] && !memcmp(a->spelling, s, a->spelled))
            return t->specials[k];
    }
    return -1;
}

/* Whether any special token begins with a byte. */
static void firsts(const fac_tokenizer *t, bool is[256]) {
    memset(is, 0, 256 * sizeof *is);
    for (int32_t k = 0; k < t->nspecials; k++)
        is[(unsigned char)t->tokens[t->specials[k]].spelling[0]] = true;
}

/* ---- normal text ---- */

/* Spaces as U+2581, one in front where the tokenizer wants that. */
static void add_spaced(const fac_tokenizer *t, const char *s, size_t n, bool lead, fac_text *to) {
    bool space = false;
    if (lead) fac_text_add(to, "\xe2\x96\x81");
    space = lead && t->join_spaces;
    for (size_t k = 0; k < n; k++) {
        const bool is = s[k] == ' ';
        if (is && space && t->join_spaces) continue;
        if (is)
            fac_text_add(to, "\xe2\x96\x81");
        else
            fac_text_add_bytes(to, s + k, 1);
        space = is;
    }
}

static void encode_spaced(const fac_tokenizer *t, const char *s, size_t n, bool first,
                          fac_ids *out) {
    fac_text text = { 0 };
    const bool spaced = n && (*s == ' ' || (n >= 3 && !memcmp(s, "\xe2\x96\x81", 3)));
    const bool lead = t->lead && (first || t->every_lead) && !(t->spares_lead && spaced);
    add_spaced(t, s, n, lead, &text);
    if (text.failed)
        out->failed = true;
    else if (t->kind == FAC_TOKENS_UNIGRAM)
        fac_unigram(t, text.s, text.n, out);
    else
        fac_bpe(t, text.s, text.n, out);
    fac_text_free(&text);
}

/* The token of a byte string that is spelled in GPT-2's way. */
static int32_t whole_piece(const fac_tokenizer *t, const char *s, size_t n) {
    char spelled[512];
    size_t at = 0;
    if (2 * n > sizeof spelled) return -1;
    for (size_t k = 0; k < n; k++) {
        const int32_t id = t->byte[(unsigned char)s[k]];
        if (id < 0) return -1;
        memcpy(spelled + at, t->tokens[id].spelling, t->tokens[id].spelled);
        at += t->tokens[id].spelled;
    }
    return fac_tokenizer_look(t, spelled, at);
}

static void encode_bytes(const fac_tokenizer *t, const char *s, size_t n, fac_ids *out) {
    for (size_t at = 0, used; at < n && !out->failed; at += used) {
        used = fac_pretoken_next(t->cut, s + at, n - at);
        const int32_t id = t->whole ? whole_piece(t, s + at, used) : -1;
        if (id >= 0)
            fac_ids_add(out, id);
        else
            fac_bpe(t, s + at, used, out);
    }
}

static void encode_lead(const fac_tokenizer *t, const char *s, size_t n, fac_ids *out) {
    fac_text text = { 0 };
    fac_text_add(&text, " ");
    fac_text_add_bytes(&text, s, n);
    if (text.failed)
        out->failed = true;
    else
        encode_bytes(t, text.s, text.n, out);
    fac_text_free(&text);
}

static void encode_normal(const fac_tokenizer *t, const char *s, size_t n, bool first,
                          fac_ids *out) {
    if (t->kind == FAC_TOKENS_WORDS)
        fac_wordpiece(t, s, n, out);
    else if (t->kind != FAC_TOKENS_BYTES)
        encode_spaced(t, s, n, first, out);
    else if (t->lead && first && *s != ' ')
        encode_lead(t, s, n, out);
    else
        encode_bytes(t, s, n, out);
}

static bool is_ascii(const char *s, size_t n) {
    for (size_t k = 0; k < n; k++)
        if ((unsigned char)s[k] >= 0x80) return false;
    return true;
}

static void encode_plain(const fac_tokenizer *t, const char *s, size_t n, bool first,
                         fac_ids *out) {
    fac_text normal = { 0 };
    if (!n) return;
    if (!t->nfc || is_ascii(s, n)) {
        encode_normal(t, s, n, first, out);
        return;
    }
    fac_nfc(s, n, &normal);
    if (normal.failed)
        out->failed = true;
    else
        encode_normal(t, normal.s, normal.n, first, out);
    fac_text_free(&normal);
}

static size_t spaces_before(const char *s, size_t at, size_t end) {
    while (end > at && (s[end - 1] == ' ' || (s[end - 1] >= 9 && s[end - 1] <= 13))) end--;
    return end;
}

static size_t spaces_after(const char *s, size_t at, size_t n) {
    while (at < n && (s[at] == ' ' || (s[at] >= 9 && s[at] <= 13))) at++;
    return at;
}

void fac_encode(const fac_tokenizer *t, const char *s, size_t n, unsigned flags, bool first,
                fac_ids *out) {
    bool begins[256];
    size_t from = 0;
    firsts(t, begins);
    for (size_t at = 0; at < n;) {
        const int32_t id = begins[(unsigned char)s[at]]
                               ? special_at(t, s + at, n - at, flags & FAC_TEXT_SPECIAL)
                               : -1;
        if (id < 0) {
            at++;
            continue;
        }
        const fac_token *k = &t->tokens[id];
        const size_t end = k->left ? spaces_before(s, from, at) : at;
        encode_plain(t, s + from, end - from, first && !from, out);
        fac_ids_add(out, id);
        at += k->spelled;
        if (k->right) at = spaces_after(s, at, n);
        from = at;
    }
    encode_plain(t, s + from, n - from, first && !from, out);
}

int64_t fac_tokenizer_encode(const fac_tokenizer *t, const char *text, size_t bytes, unsigned flags,
                             int32_t *ids, int64_t room) {
    fac_ids out = { 0 };
    if (!fac_is_utf8(text, bytes)) return -1;
    const bool around = flags & FAC_TEXT_BOS;
    if (around && t->cls >= 0)
        fac_ids_add(&out, t->cls);
    else if (around && t->add_bos && t->bos >= 0)
        fac_ids_add(&out, t->bos);
    fac_encode(t, text, bytes, flags, true, &out);
    if (around && t->cls >= 0 && t->sep >= 0)
        fac_ids_add(&out, t->sep);
    else if (around && t->add_eos && t->eos >= 0)
        fac_ids_add(&out, t->eos);
    const int64_t n = out.failed ? -2 : (int64_t)out.n;
    if (n > 0 && room > 0) memcpy(ids, out.at, (size_t)(n < room ? n : room) * sizeof *ids);
    fac_release(out.at);
    return n;
}

/* ---- back ---- */

static bool is_punctuation(char c) { return c && strchr(".,?!", c); }

/* WordPiece: words stand apart, their parts begin with "##". */
static size_t word_piece(const fac_tokenizer *t, const fac_token *k, char *to, size_t room) {
    const size_t join = t->join ? strlen(t->join) : 0;
    const bool part = join && k->bytes > join && !memcmp(k->text, t->join, join);
    const bool close = k->bytes == 1 && is_punctuation(k->text[0]);
    const size_t from = part ? join : 0, space = !part && !close;
    if (space && room) *to = ' ';
    for (size_t i = from; i < k->bytes && i - from + space < room; i++)
        to[i - from + space] = k->text[i];
    return k->bytes - from + space;
}

size_t fac_tokenizer_piece(const fac_tokenizer *t, int32_t id, unsigned flags, char *to,
                           size_t room) {
    if (id < 0 || id >= t->n) return 0;
    const fac_token *k = &t->tokens[id];
    const bool hidden = k->type == FAC_TOKEN_CONTROL ||
                        (k->type == FAC_TOKEN_UNKNOWN && t->kind != FAC_TOKENS_BYTES);
    if (hidden && !(flags & FAC_TEXT_SPECIAL)) return 0;
    if (t->kind == FAC_TOKENS_WORDS) return word_piece(t, k, to, room);
    if (k->bytes && room) memcpy(to, k->text, k->bytes < room ? k->bytes : room);
    return k->bytes;
}

/* The space that was put before a text goes again. */
static bool drops(const fac_tokenizer *t) { return t->kind == FAC_TOKENS_WORDS || t->decode_drops; }

size_t fac_tokenizer_decode(const fac_tokenizer *t, const int32_t *ids, int64_t n, unsigned flags,
                            char *to, size_t room) {
    size_t all = 0;
    bool first = drops(t);
    for (int64_t i = 0; i < n; i++) {
        char few[256];
        const size_t have = fac_tokenizer_piece(t, ids[i], flags, few, sizeof few);
        if (!have) continue;
        const size_t skip = first && few[0] == ' ';
        first = false;
        for (size_t k = skip; k < have && k < sizeof few; k++, all++)
            if (all < room) to[all] = few[k];
        if (have <= sizeof few) continue;
        const fac_token *k = &t->tokens[ids[i]]; /* tokens that long have no "##" */
        for (size_t j = sizeof few; j < k->bytes; j++, all++)
            if (all < room) to[all] = k->text[j];
    }
    return all;
}

/* ---- facts ---- */

int32_t fac_tokenizer_count(const fac_tokenizer *t) { return t->n; }
int32_t fac_tokenizer_bos(const fac_tokenizer *t) { return t->bos; }
int32_t fac_tokenizer_eos(const fac_tokenizer *t) { return t->eos; }
const char *fac_tokenizer_template(const fac_tokenizer *t) { return t->chat; }
int32_t fac_tokenizer_find(const fac_tokenizer *t, const char *token) {
    return fac_tokenizer_look(t, token, strlen(token));
}
const char *fac_tokenizer_token(const fac_tokenizer *t, int32_t id) {
    return id >= 0 && id < t->n ? t->tokens[id].spelling : NULL;
}

bool fac_tokenizer_control(const fac_tokenizer *t, int32_t id) {
    return id >= 0 && id < t->n && t->tokens[id].type == FAC_TOKEN_CONTROL;
}

const char *fac_tokenizer_kind(const fac_tokenizer *t) {
    static const char *const names[] = { "byte-level BPE", "BPE with byte fallback",
                                         "SentencePiece BPE", "Unigram", "WordPiece" };
    return names[t->kind];
}

/* Families end turns with tokens that no key names. */
bool fac_tokenizer_ends(const fac_tokenizer *t, int32_t id) {
    static const char *const ends[] = { "<|eot_id|>",    "<|im_end|>",    "<|end|>",
                                        "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
                                        "<|eom_id|>",    "<EOT>",         "<|END_OF_TURN_TOKEN|>" };
    if (id < 0 || id >= t->n) return false;
    if (id == t->eos || id == t->eot) return true;
    for (size_t k = 0; t->tokens[id].type == FAC_TOKEN_CONTROL && k < sizeof ends / sizeof *ends;
         k++)
        if (!strcmp(t->tokens[id].spelling, ends[k])) return true;
    return false;
}
