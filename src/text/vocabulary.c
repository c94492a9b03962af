/* The tokens of a tokenizer: by number, by spelling, and which pairs become one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "tensor/utf.h"
#include "text/tokenizer.h"

fac_tokenizer *fac_tokenizer_begin(int32_t n) {
    fac_tokenizer *t = fac_alloc(1, sizeof *t);
    if (!t) return NULL;
    t->n = n;
    t->tokens = fac_alloc((size_t)n + 1, sizeof *t->tokens);
    t->bos = t->eos = t->eot = t->unknown = t->cls = t->sep = -1;
    for (int k = 0; k < 256; k++) t->byte[k] = -1;
    if (t->tokens) return t;
    fac_release(t);
    return NULL;
}

void fac_tokenizer_free(fac_tokenizer *t) {
    if (!t) return;
    fac_release(t->tokens);
    fac_release(t->map.slots);
    fac_release(t->merges.slots);
    fac_release(t->specials);
    fac_arena_free(&t->arena);
    fac_release(t);
}

bool fac_tokenizer_set(fac_tokenizer *t, int32_t id, const char *spelling, size_t bytes,
                       float score, int type) {
    char *copy = fac_arena_alloc(&t->arena, bytes + 1, 1);
    if (!copy || bytes > UINT32_MAX) return false;
    memcpy(copy, spelling, bytes);
    t->tokens[id] = (fac_token){
        .spelling = copy, .spelled = (uint32_t)bytes, .score = score, .type = (uint8_t)type
    };
    return true;
}

/* ---- by spelling ---- */

uint64_t fac_spelling_hash(const char *s, size_t n) {
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3;
    return h ^ h >> 32;
}

static bool is_spelled(const fac_token *t, const char *s, size_t n) {
    return t->spelling && t->spelled == n && !memcmp(t->spelling, s, n);
}

/* The slot that has it, or the free one where it would be. */
static size_t slot_of(const fac_tokenizer *t, const char *s, size_t n) {
    size_t at = fac_spelling_hash(s, n) & (t->map.room - 1);
    while (t->map.slots[at] && !is_spelled(&t->tokens[t->map.slots[at] - 1], s, n))
        at = (at + 1) & (t->map.room - 1);
    return at;
}

int32_t fac_tokenizer_look(const fac_tokenizer *t, const char *spelling, size_t bytes) {
    return t->map.room ? t->map.slots[slot_of(t, spelling, bytes)] - 1 : -1;
}

static size_t power_above(size_t n) {
    size_t room = 16;
    while (room < n) room *= 2;
    return room;
}

/* Of two tokens that are spelled alike the first one counts. */
bool fac_tokenizer_index(fac_tokenizer *t) {
    t->map.room = power_above(2 * (size_t)t->n + 1);
    t->map.slots = fac_alloc(t->map.room, sizeof *t->map.slots);
    if (!t->map.slots) t->map.room = 0;
    if (!t->map.slots) return false;
    for (int32_t id = 0; id < t->n; id++) {
        const fac_token *k = &t->tokens[id];
        if (!k->spelling) continue;
        const size_t at = slot_of(t, k->spelling, k->spelled);
        if (!t->map.slots[at]) t->map.slots[at] = id + 1;
        if (k->spelled > t->longest) t->longest = k->spelled;
    }
    return true;
}

/* ---- merges ---- */

static size_t place_of(const fac_merges *m, int32_t left, int32_t right) {
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t at = (key * 0x9e3779b97f4a7c15 >> 20) & (m->room - 1);
    while (m->slots[at].rank && (m->slots[at].left != left || m->slots[at].right != right))
        at = (at + 1) & (m->room - 1);
    return at;
}

const fac_merge *fac_merges_find(const fac_merges *m, int32_t left, int32_t right) {
    const fac_merge *found = m->room ? &m->slots[place_of(m, left, right)] : NULL;
    return found && found->rank ? found : NULL;
}

static bool grow(fac_merges *m) {
    fac_merges wide = { .room = m->room ? 2 * m->room : 1 << 12, .n = m->n };
    wide.slots = fac_alloc(wide.room, sizeof *wide.slots);
    if (!wide.slots) return false;
    for (size_t k = 0; k < m->room; k++)
        if (m->slots[k].rank)
            wide.slots[place_of(&wide, m->slots[k].left, m->slots[k].right)] = m->slots[k];
    fac_release(m->slots);
    *m = wide;
    return true;
}

/* Ranks count from 1.  A pair whose parts or whole are no tokens can never be met. */
bool fac_tokenizer_merge(fac_tokenizer *t, const char *left, size_t nleft, const char *right,
                         size_t nright, uint32_t rank) {
    char few[512], *both = nleft + nright <= sizeof few ? few : fac_alloc(nleft + nright, 1);
    if (!both || (2 * t->merges.n >= t->merges.room && !grow(&t->merges))) return false;
    memcpy(both, left, nleft);
    memcpy(both + nleft, right, nright);
    const fac_merge m = { fac_tokenizer_look(t, left, nleft), fac_tokenizer_look(t, right, nright),
                          fac_tokenizer_look(t, both, nleft + nright), rank };
    if (both != few) fac_release(both);
    if (m.left < 0 || m.right < 0 || m.to < 0) return true;
    fac_merge *at = &t->merges.slots[place_of(&t->merges, m.left, m.right)];
    if (at->rank) return true;
    *at = m;
    t->merges.n++;
    return true;
}

/* ---- what tokens stand for ---- */

/* GPT-2's printable names of bytes: themselves where they are printable, the others from U+0100 on,
 * in order. */
static bool is_itself(int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; }

uint32_t fac_byte_name(int b) {
    uint32_t name = 256;
    for (int k = 0; k < b; k++) name += !is_itself(k);
    return is_itself(b) ? (uint32_t)b : name;
}

static int byte_named(uint32_t c) {
    if (c < 256) return is_itself((int)c) ? (int)c : -1;
    int k = (int)c - 256;
    for (int b = 0; b < 256; b++)
        if (!is_itself(b) && k-- == 0) return b;
    return -1;
}

/* The bytes that a spelling names; false: it has other characters. */
static bool bytes_named(const int16_t names[512], const char *s, size_t n, char *to,
                        uint32_t *bytes) {
    *bytes = 0;
    for (size_t at = 0, used; at < n; at += used) {
        const uint32_t c = fac_code_point(s + at, n - at, &used);
        if (c >= 512 || names[c] < 0) return false;
        to[(*bytes)++] = (char)names[c];
    }
    return true;
}

/* "<0x0A>" */
static int byte_written(const fac_token *k) {
    if (k->spelled != 6 || memcmp(k->spelling, "<0x", 3) || k->spelling[5] != '>') return -1;
    char *end;
    const char digits[3] = { k->spelling[3], k->spelling[4], 0 };
    const long b = strtol(digits, &end, 16);
    return *end ? -1 : (int)b;
}

/* U+2581 is a space. */
static void spaces(const fac_token *k, char *to, uint32_t *bytes) {
    *bytes = 0;
    for (uint32_t at = 0; at < k->spelled;) {
        const bool space = at + 3 <= k->spelled && !memcmp(k->spelling + at, "\xe2\x96\x81", 3);
        to[(*bytes)++] = space ? ' ' : k->spelling[at];
        at += space ? 3 : 1;
    }
}

static bool set_text(fac_tokenizer *t, fac_token *k, int32_t id, const int16_t names[512]) {
    char *to = fac_arena_alloc(&t->arena, (size_t)k->spelled + 1, 1);
    if (!to) return false;
    k->text = k->spelling;
    k->bytes = k->spelled;
    const bool plain = k->type == FAC_TOKEN_NORMAL || k->type == FAC_TOKEN_UNUSED;
    if (t->kind == FAC_TOKENS_WORDS) return true;
    if (t->kind == FAC_TOKENS_BYTES) {
        uint32_t bytes;
        if (!plain || !fac_is_utf8(k->spelling, k->spelled) ||
            !bytes_named(names, k->spelling, k->spelled, to, &bytes))
            return true;
        k->text = to;
        k->bytes = bytes;
        if (bytes == 1 && t->byte[(unsigned char)*to] < 0) t->byte[(unsigned char)*to] = id;
        return true;
    }
    const int b = k->type == FAC_TOKEN_BYTE || plain ? byte_written(k) : -1;
    if (b >= 0) {
        k->type = FAC_TOKEN_BYTE;
        *to = (char)b;
        k->text = to;
        k->bytes = 1;
        if (t->byte[b] < 0) t->byte[b] = id;
    } else if (plain) {
        spaces(k, to, &k->bytes);
        k->text = to;
    }
    return true;
}

/* qsort has no argument for the tokens: lengths travel along. */
typedef struct special {
    int32_t id;
    uint32_t bytes;
} special;

static int by_length(const void *a, const void *b) {
    const special *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool is_special(const fac_token *k) {
    return (k->type == FAC_TOKEN_CONTROL || k->type == FAC_TOKEN_USER) && k->spelled;
}

static bool list_specials(fac_tokenizer *t) {
    special *all = fac_alloc((size_t)t->n + 1, sizeof *all);
    if (!all) return false;
    for (int32_t id = 0; id < t->n; id++)
        if (is_special(&t->tokens[id]))
            all[t->nspecials++] = (special){ id, t->tokens[id].spelled };
    qsort(all, (size_t)t->nspecials, sizeof *all, by_length);
    t->specials = fac_alloc((size_t)t->nspecials + 1, sizeof *t->specials);
    for (int32_t k = 0; t->specials && k < t->nspecials; k++) t->specials[k] = all[k].id;
    fac_release(all);
    return t->specials;
}

/* Scores are compared and added: one that is no number would decide by chance. */
static fac_status check_scores(const fac_tokenizer *t, fac_error *err) {
    for (int32_t id = 0; id < t->n; id++)
        if (!isfinite(t->tokens[id].score))
            return fac_raise(err, FAC_E_FORMAT, "a tokenizer: the score of token %d is %g", (int)id,
                             (double)t->tokens[id].score);
    return FAC_OK;
}

fac_status fac_tokenizer_finish(fac_tokenizer *t, fac_error *err) {
    int16_t names[512];
    FAC_TRY(check_scores(t, err));
    bool good = t->map.room || fac_tokenizer_index(t);
    for (int c = 0; c < 512; c++) names[c] = (int16_t)byte_named((uint32_t)c);
    for (int32_t id = 0; good && id < t->n; id++) {
        fac_token *k = &t->tokens[id];
        if (!k->spelling)
            *k = (fac_token){ .spelling = "", .text = "", .type = FAC_TOKEN_UNUSED };
        else
            good = set_text(t, k, id, names);
        if (!id || k->score < t->least) t->least = k->score;
    }
    if (!good || !list_specials(t)) return fac_raise_memory(err, "%d tokens", (int)t->n);
    return FAC_OK;
}
