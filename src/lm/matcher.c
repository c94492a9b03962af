/* Which tokens a grammar lets follow.  A state is a set of places, each an item of the grammar and
 * the rules that are open around it; a byte moves those whose range has it.  The vocabulary is
 * walked in the order of its bytes, so that tokens share the states of what they begin with. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "lm/grammar.h"

/* Bounds of what a grammar may cost: some 0.1 s, and a stack of some hundred KiB. */
enum { MOST_PLACES = 4096, MOST_WORK = 1 << 24, MOST_DEEP = 8000 };

/* The same rules are open, whatever frames say so. */
static bool same_frames(const fac_matcher *m, int32_t a, int32_t b) {
    while (a != b) {
        if (a < 0 || b < 0 || m->frames.of[a].at != m->frames.of[b].at) return false;
        a = m->frames.of[a].after;
        b = m->frames.of[b].after;
    }
    return true;
}

static void add(fac_matcher *m, fac_places *to, fac_place p) {
    m->work += to->n;
    for (size_t k = 0; k < to->n; k++)
        if (to->of[k].at == p.at && same_frames(m, to->of[k].after, p.after)) return;
    if (to->n >= MOST_PLACES || !fac_reserve(&to->of, &to->room, to->n + 1, sizeof p))
        m->failed = true;
    else
        to->of[to->n++] = p;
}

static void settle(fac_matcher *m, fac_places *to, fac_place p);

/* Each row of the rule at p, with what comes after it. */
static void open_rule(fac_matcher *m, fac_places *to, fac_place p) {
    const fac_grammar *g = m->g;
    int32_t after = p.after;
    if (g->items[p.at + 1].kind < FAC_GRAMMAR_OR) { /* the last rule of a row needs no frame */
        after = (int32_t)m->frames.n;
        if (!fac_reserve(&m->frames.of, &m->frames.room, m->frames.n + 1, sizeof p)) {
            m->failed = true;
            return;
        }
        m->frames.of[m->frames.n++] = (fac_place){ p.at + 1, p.after };
    }
    for (int32_t at = g->rules[g->items[p.at].rule]; !m->failed; at++) {
        settle(m, to, (fac_place){ at, after });
        while (g->items[at].kind < FAC_GRAMMAR_OR) at++;
        if (g->items[at].kind == FAC_GRAMMAR_END) break;
    }
}

/* Opens and closes rules until bytes come next.  Rules are not left-recursive, so that ends; those
 * that can be nothing in many ways are given up. */
static void settle(fac_matcher *m, fac_places *to, fac_place p) {
    const fac_grammar *g = m->g;
    while (p.at >= 0 && g->items[p.at].kind >= FAC_GRAMMAR_OR) { /* a rule is over */
        if (p.after < 0)
            p.at = -1;
        else
            p = m->frames.of[p.after];
    }
    if (++m->work > MOST_WORK || m->deep >= MOST_DEEP) {
        m->failed = true;
        return;
    }
    m->deep++;
    if (p.at < 0 || g->items[p.at].kind == FAC_GRAMMAR_BYTES)
        add(m, to, p);
    else
        open_rule(m, to, p);
    m->deep--;
}

static void step_byte(fac_matcher *m, const fac_places *from, uint8_t byte, fac_places *to) {
    to->n = 0;
    for (size_t k = 0; k < from->n && !m->failed; k++) {
        const fac_place p = from->of[k];
        if (p.at < 0) continue;
        const fac_grammar_item *i = &m->g->items[p.at];
        if (byte >= i->low && byte <= i->high) settle(m, to, (fac_place){ p.at + 1, p.after });
    }
}

fac_status fac_matcher_begin(fac_matcher *m, const fac_grammar *g, fac_error *err) {
    *m = (fac_matcher){ .g = g };
    m->allowed = fac_alloc((size_t)g->count, sizeof *m->allowed);
    for (int32_t at = g->rules[g->root]; m->allowed && !m->failed; at++) {
        settle(m, &m->now, (fac_place){ at, -1 });
        while (g->items[at].kind < FAC_GRAMMAR_OR) at++;
        if (g->items[at].kind == FAC_GRAMMAR_END) break;
    }
    if (m->allowed && !m->failed) return FAC_OK;
    fac_matcher_end(m);
    return fac_raise_memory(err, "a grammar, or it is too ambiguous");
}

void fac_matcher_end(fac_matcher *m) {
    for (size_t k = 0; k < m->depths; k++) fac_release(m->depth[k].of);
    fac_release(m->depth);
    fac_release(m->now.of);
    fac_release(m->next.of);
    fac_release(m->frames.of);
    fac_release(m->allowed);
    *m = (fac_matcher){ 0 };
}

bool fac_matcher_may_end(const fac_matcher *m) {
    for (size_t k = 0; k < m->now.n; k++)
        if (m->now.of[k].at < 0) return true;
    return false;
}

bool fac_matcher_must_end(const fac_matcher *m) {
    for (size_t k = 0; k < m->now.n; k++)
        if (m->now.of[k].at >= 0) return false;
    return true;
}

static size_t length_of(const fac_grammar *g, int32_t id) { return g->at[id + 1] - g->at[id]; }

/* ---- one token ---- */

static fac_places *depth_at(fac_matcher *m, size_t k) {
    if (k >= m->depths) {
        size_t room = m->depths;
        if (!fac_reserve(&m->depth, &room, k + 1, sizeof *m->depth)) {
            m->failed = true;
            return NULL;
        }
        memset(m->depth + m->depths, 0, (room - m->depths) * sizeof *m->depth);
        m->depths = room;
    }
    return &m->depth[k];
}

/* States after bytes from .. of a token, which depth `from` holds the one before; how many bytes
 * fit. */
static size_t walk_token(fac_matcher *m, int32_t id, size_t from) {
    const fac_grammar *g = m->g;
    const size_t n = length_of(g, id);
    for (size_t k = from; k < n; k++) {
        if (!depth_at(m, k + 1)) return 0;
        const fac_places *before = k ? &m->depth[k] : &m->now;
        step_byte(m, before, (uint8_t)g->bytes[g->at[id] + k], &m->depth[k + 1]);
        if (m->failed || !m->depth[k + 1].n) return k;
    }
    return n;
}

bool fac_matcher_takes(fac_matcher *m, int32_t id) {
    m->work = 0;
    const fac_grammar *g = m->g;
    if (fac_tokenizer_ends(g->tokens, id)) return fac_matcher_may_end(m);
    if (!length_of(g, id)) return false;
    const size_t frames = m->frames.n;
    const bool fits = walk_token(m, id, 0) == length_of(g, id);
    m->frames.n = frames;
    return fits && !m->failed;
}

void fac_matcher_step(fac_matcher *m, int32_t id) {
    m->work = 0;
    const fac_grammar *g = m->g;
    for (size_t k = 0; k < length_of(g, id) && !m->failed; k++) {
        step_byte(m, &m->now, (uint8_t)g->bytes[g->at[id] + k], &m->next);
        const fac_places now = m->now;
        m->now = m->next;
        m->next = now;
    }
}

/* ---- all tokens ---- */

static size_t common(const fac_grammar *g, int32_t a, int32_t b) {
    const size_t n = length_of(g, a), m = length_of(g, b);
    size_t k = 0;
    while (k < n && k < m && g->bytes[g->at[a] + k] == g->bytes[g->at[b] + k]) k++;
    return k;
}

const bool *fac_matcher_walk(fac_matcher *m) {
    m->work = 0;
    const fac_grammar *g = m->g;
    const size_t frames = m->frames.n;
    const bool may_end = fac_matcher_may_end(m);
    size_t fits = 0;
    for (int32_t id = 0; id < g->count; id++)
        m->allowed[id] = may_end && fac_tokenizer_ends(g->tokens, id);
    for (int32_t k = 0; k < g->ordered && !m->failed; k++) {
        const int32_t id = g->order[k];
        const size_t same = k ? common(g, g->order[k - 1], id) : 0;
        if (!same) m->frames.n = frames;
        if (same <= fits) fits = walk_token(m, id, same);
        m->allowed[id] = fits >= length_of(g, id) && !fac_tokenizer_ends(g->tokens, id);
    }
    m->frames.n = frames;
    return m->failed ? NULL : m->allowed;
}
