/* Tokenizers from a text: byte-level BPE, or one token for each character.  Both are written as a
 * tokenizer.json, so that one reader makes all tokenizers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/quote.h"
#include "base/text.h"
#include "facula/file.h"
#include "text/normal.h"
#include "text/tokenizer.h"

enum { BYTES = 256, SPECIALS = 1, MOST = 1 << 20 };

/* A token as it is spelled: bytes in GPT-2's printable characters. */
typedef struct spelled {
    uint32_t at, n; /* in `letters` */
} spelled;

typedef struct work {
    const char *text;
    size_t bytes;
    fac_text letters; /* spellings, one after the other */
    spelled *tokens;
    size_t n, room;
    int32_t *slots; /* by spelling: id + 1 */
    size_t nslots;
    fac_text json;
    fac_error *err;
} work;

/* ---- tokens by spelling ---- */

static bool is_spelled(const work *w, int32_t id, const char *s, size_t n) {
    const spelled *t = &w->tokens[id];
    return t->n == n && !memcmp(w->letters.s + t->at, s, n);
}

static size_t slot_of(const work *w, const char *s, size_t n) {
    size_t at = fac_spelling_hash(s, n) & (w->nslots - 1);
    while (w->slots[at] && !is_spelled(w, w->slots[at] - 1, s, n)) at = (at + 1) & (w->nslots - 1);
    return at;
}

static bool widen(work *w) {
    const size_t room = w->nslots ? 2 * w->nslots : 1 << 10;
    int32_t *wide = fac_alloc(room, sizeof *wide);
    if (!wide) return false;
    fac_release(w->slots);
    w->slots = wide;
    w->nslots = room;
    for (size_t k = 0; k < w->n; k++)
        wide[slot_of(w, w->letters.s + w->tokens[k].at, w->tokens[k].n)] = (int32_t)k + 1;
    return true;
}

/* Its id, a new one where there is none of that spelling; -1: no memory. */
static int32_t token(work *w, const char *s, size_t n) {
    if (2 * (w->n + 1) > w->nslots && !widen(w)) return -1;
    const size_t at = slot_of(w, s, n);
    if (w->slots[at]) return w->slots[at] - 1;
    if (!fac_reserve(&w->tokens, &w->room, w->n + 1, sizeof *w->tokens)) return -1;
    w->tokens[w->n] = (spelled){ (uint32_t)w->letters.n, (uint32_t)n };
    fac_text_add_bytes(&w->letters, s, n);
    if (w->letters.failed) return -1;
    w->slots[at] = (int32_t)++w->n;
    return w->slots[at] - 1;
}

static int32_t byte_token(work *w, int byte) {
    char to[4];
    return token(w, to, fac_utf8_write(to, fac_byte_name(byte)));
}

/* What two tokens spell together. */
static int32_t spell(void *self, int32_t left, int32_t right) {
    work *w = self;
    const spelled a = w->tokens[left], b = w->tokens[right];
    char few[256], *both = a.n + b.n <= sizeof few ? few : fac_alloc(a.n + b.n, 1);
    if (!both) return -1;
    memcpy(both, w->letters.s + a.at, a.n);
    memcpy(both + a.n, w->letters.s + b.at, b.n);
    const int32_t id = token(w, both, a.n + b.n);
    if (both != few) fac_release(both);
    return id;
}

/* ---- the pieces of a text ---- */

typedef struct piece {
    const char *s;
    uint32_t n;
    int64_t count;
} piece;

static int by_bytes(const void *a, const void *b) {
    const piece *x = a, *y = b;
    const int order = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* Different ones with their counts, sorted. */
static fac_status cut(work *w, piece **out, size_t *count) {
    piece *all = NULL;
    size_t n = 0, room = 0, kept = 0;
    for (size_t at = 0, used; at < w->bytes; at += used) {
        used = fac_pretoken_next(FAC_CUT_GPT2, w->text + at, w->bytes - at);
        if (!fac_reserve(&all, &room, n + 1, sizeof *all)) {
            fac_release(all);
            return fac_raise_memory(w->err, "a tokenizer");
        }
        all[n++] = (piece){ w->text + at, (uint32_t)used, 1 };
    }
    qsort(all, n, sizeof *all, by_bytes);
    for (size_t k = 0; k < n; k++) {
        if (kept && !by_bytes(&all[kept - 1], &all[k]))
            all[kept - 1].count++;
        else
            all[kept++] = all[k];
    }
    *out = all;
    *count = kept;
    return FAC_OK;
}

static fac_status learn_pieces(work *w, const piece *p, size_t n, int32_t most, fac_learning *out) {
    size_t all = 0, at = 0;
    for (size_t k = 0; k < n; k++) all += p[k].n + 1;
    int32_t *words = fac_alloc(all + 1, sizeof *words);
    int64_t *counts = fac_alloc(n + 1, sizeof *counts);
    fac_status status = words && counts ? FAC_OK : fac_raise_memory(w->err, "a tokenizer");
    int32_t ids[BYTES];
    for (int b = 0; b < BYTES; b++) ids[b] = byte_token(w, b);
    for (size_t k = 0; k < n && !status; k++) {
        counts[k] = p[k].count;
        for (uint32_t b = 0; b < p[k].n; b++) words[at++] = ids[(unsigned char)p[k].s[b]];
        words[at++] = -1;
    }
    if (!status) status = fac_learn_pairs(words, at, counts, n, most, spell, w, out, w->err);
    fac_release(words);
    fac_release(counts);
    return status;
}

/* <|endoftext|> and the bytes, in the order of their printable characters, as `tokenizers` has
 * them. */
static bool begin_bytes(work *w) {
    static const char end[] = "<|endoftext|>";
    bool good = token(w, end, sizeof end - 1) == 0;
    for (uint32_t c = 0; c < 512 && good; c++)
        for (int b = 0; b < BYTES && good; b++)
            if (fac_byte_name(b) == c) good = byte_token(w, b) >= 0;
    return good;
}

static fac_status learn_bytes(work *w, int32_t most, fac_learning *out) {
    piece *pieces;
    size_t n;
    if (!begin_bytes(w)) return fac_raise_memory(w->err, "a tokenizer");
    out->tokens = (int32_t)w->n;
    FAC_TRY(cut(w, &pieces, &n));
    const fac_status status = learn_pieces(w, pieces, n, most, out);
    fac_release(pieces);
    return status;
}

/* ---- characters ---- */

static int by_code(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The different characters, sorted; *out is the caller's. */
static fac_status characters(work *w, uint32_t **out, size_t *count) {
    uint32_t *all = NULL;
    unsigned char *seen = fac_alloc(0x110000, 1);
    size_t n = 0, room = 0;
    fac_status status = seen ? FAC_OK : fac_raise_memory(w->err, "a tokenizer");
    for (size_t at = 0, used; at < w->bytes && !status; at += used) {
        const uint32_t c = fac_code_point(w->text + at, w->bytes - at, &used);
        if (seen[c]) continue;
        seen[c] = 1;
        if (!fac_reserve(&all, &room, n + 1, sizeof *all))
            status = fac_raise_memory(w->err, "a tokenizer");
        else
            all[n++] = c;
    }
    fac_release(seen);
    qsort(all, n, sizeof *all, by_code);
    *out = all;
    *count = n;
    return status;
}

/* One character: its bytes become tokens, and are joined from the left. */
static bool add_character(work *w, uint32_t c, fac_learning *out) {
    char bytes[4];
    const size_t n = fac_utf8_write(bytes, c);
    int32_t id = byte_token(w, (unsigned char)bytes[0]);
    for (size_t k = 1; k < n && id >= 0; k++) {
        const int32_t next = byte_token(w, (unsigned char)bytes[k]);
        const size_t before = w->n;
        const int32_t both = next < 0 ? -1 : spell(w, id, next);
        const bool fresh = w->n > before;
        if (both < 0 || !fac_reserve(&out->at, &out->room, out->n + 1, sizeof *out->at))
            return false;
        if (fresh) out->at[out->n++] = (fac_learned){ id, next, both };
        id = both;
    }
    return id >= 0;
}

static fac_status learn_characters(work *w, fac_learning *out) {
    uint32_t *all;
    size_t n;
    fac_status status = characters(w, &all, &n);
    for (size_t k = 0; k < n && !status; k++)
        if (!add_character(w, all[k], out)) status = fac_raise_memory(w->err, "a tokenizer");
    fac_release(all);
    return status;
}

/* ---- tokenizer.json ---- */

static void quote(work *w, int32_t id) {
    fac_text_quote(&w->json, w->letters.s + w->tokens[id].at, w->tokens[id].n);
}

static void write(work *w, const fac_learning *l, bool specials) {
    fac_text *t = &w->json;
    fac_text_print(t,
                   "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n");
    fac_text_print(t, "  \"added_tokens\": [");
    if (specials)
        fac_text_print(t, "{ \"id\": 0, \"content\": \"<|endoftext|>\", \"single_word\": false, "
                          "\"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
                          "\"special\": true }");
    fac_text_print(t,
                   "],\n  \"normalizer\": null,\n  \"pre_tokenizer\": { \"type\": \"ByteLevel\", "
                   "\"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true },\n"
                   "  \"post_processor\": null,\n  \"decoder\": { \"type\": \"ByteLevel\", "
                   "\"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true },\n");
    fac_text_print(t, "  \"model\": { \"type\": \"BPE\", \"dropout\": null, \"unk_token\": null,\n"
                      "    \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null,\n"
                      "    \"fuse_unk\": false, \"byte_fallback\": false,\n    \"vocab\": {");
    for (size_t k = 0; k < w->n; k++) {
        fac_text_add(t, k ? ",\n      " : "\n      ");
        quote(w, (int32_t)k);
        fac_text_print(t, ": %zu", k);
    }
    fac_text_print(t, "\n    },\n    \"merges\": [");
    for (size_t k = 0; k < l->n; k++) {
        fac_text_add(t, k ? ",\n      [" : "\n      [");
        quote(w, l->at[k].left);
        fac_text_add(t, ", ");
        quote(w, l->at[k].right);
        fac_text_add(t, "]");
    }
    fac_text_print(t, "\n    ]\n  }\n}\n");
}

static fac_status make(work *w, int32_t tokens, fac_tokenizer **out) {
    fac_learning l = { 0 };
    fac_tokenizer *t = NULL;
    fac_status status = tokens ? learn_bytes(w, tokens, &l) : learn_characters(w, &l);
    if (!status) write(w, &l, tokens);
    fac_release(l.at);
    if (!status && w->json.failed) status = fac_raise_memory(w->err, "a tokenizer");
    if (!status) status = fac_tokenizer_json(w->json.s, w->json.n, &t, w->err);
    if (status) return status;
    t->json = fac_arena_text(&t->arena, w->json.s);
    if (tokens) t->eos = 0;
    *out = t;
    if (t->json) return FAC_OK;
    fac_tokenizer_free(t);
    return fac_raise_memory(w->err, "a tokenizer");
}

fac_status fac_tokenizer_learn(const char *text, size_t bytes, int32_t tokens, fac_tokenizer **out,
                               fac_error *err) {
    work w = { .text = text, .bytes = bytes, .err = err };
    if (!bytes) return fac_raise(err, FAC_E_ARGUMENT, "an empty text: there is nothing to learn");
    if (bytes > UINT32_MAX / 2 || !fac_is_utf8(text, bytes))
        return fac_raise(err, FAC_E_ARGUMENT, "a text that is no UTF-8, or larger than 2 GiB");
    if (tokens < 0 || tokens > MOST || (tokens && tokens < BYTES + SPECIALS))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "a vocabulary of %d tokens: %d to %d, the bytes are there", (int)tokens,
                         BYTES + SPECIALS, MOST);
    const fac_status status = make(&w, tokens, out);
    fac_text_free(&w.letters);
    fac_text_free(&w.json);
    fac_release(w.tokens);
    fac_release(w.slots);
    return status;
}

fac_status fac_tokenizer_save(const fac_tokenizer *t, const char *path, fac_error *err) {
    if (!t->json)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "only a tokenizer that was learned here is written");
    return fac_file_write(path, t->json, strlen(t->json), err);
}
