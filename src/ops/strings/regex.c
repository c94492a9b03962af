/* See regex.h.  The tree becomes a program of a machine that is in many states at once (Thompson,
 * "Regular expression search algorithm", CACM 11, 1968): each character of a text is looked at
 * once. */
#include "ops/strings/regex.h"
#include "base/error.h"
#include "base/unicode/unicode.h"
#include "ops/strings/regex_internal.h"
#include "tensor/utf.h"

enum { LONGEST = 1 << 17 };
typedef enum code { TAKE, FORK, GO, ASSERT, MATCH } code;
typedef struct step {
    code c;
    int32_t x, y;
    fac_set *set;
} step;

struct fac_regex {
    step *steps;
    int32_t n;
};

/* ---- the program ---- */

typedef struct writer {
    step *to;
    int32_t n;
    bool full;
} writer;

static int32_t put(writer *w, step s) {
    w->full |= w->n >= LONGEST;
    if (w->full) return 0;
    if (w->to) w->to[w->n] = s;
    return w->n++;
}

static void aim(writer *w, int32_t at, int32_t x, int32_t y) {
    if (!w->to || w->full) return;
    w->to[at].x = x;
    w->to[at].y = y;
}

static void write(writer *w, const fac_re *r);

static void write_repeat(writer *w, const fac_re *r) {
    for (int k = 0; k < r->least && !w->full; k++) write(w, r->a);
    if (r->most < 0) {
        const int32_t fork = put(w, (step){ .c = FORK });
        write(w, r->a);
        put(w, (step){ .c = GO, .x = fork });
        aim(w, fork, fork + 1, w->n);
    }
    for (int k = r->least; k < r->most && !w->full; k++) {
        const int32_t fork = put(w, (step){ .c = FORK });
        write(w, r->a);
        aim(w, fork, fork + 1, w->n);
    }
}

static void write_either(writer *w, const fac_re *r) {
    const int32_t fork = put(w, (step){ .c = FORK });
    write(w, r->a);
    const int32_t past = put(w, (step){ .c = GO });
    aim(w, fork, fork + 1, w->n);
    write(w, r->b);
    aim(w, past, w->n, 0);
}

static void write(writer *w, const fac_re *r) {
    switch (r->kind) {
    case FAC_RE_EMPTY:
        return;
    case FAC_RE_SET:
        put(w, (step){ .c = TAKE, .set = r->set });
        return;
    case FAC_RE_ASSERT:
        put(w, (step){ .c = ASSERT, .x = (int32_t)r->at });
        return;
    case FAC_RE_REPEAT:
        write_repeat(w, r);
        return;
    case FAC_RE_ALT:
        write_either(w, r);
        return;
    case FAC_RE_CAT:
        write(w, r->a);
        write(w, r->b);
    }
}

/* Twice: the first time only the steps are counted. */
fac_status fac_regex_new(fac_arena *arena, const char *pattern, fac_regex **out, fac_error *err) {
    fac_re *tree;
    writer w = { 0 };
    FAC_TRY(fac_re_parse(arena, pattern, &tree, err));
    write(&w, tree);
    if (w.full) return fac_raise(err, FAC_E_UNSUPPORTED, "pattern \"%s\" is too long", pattern);
    fac_regex *r = fac_arena_alloc(arena, 1, sizeof *r);
    if (r) r->steps = fac_arena_alloc(arena, (size_t)w.n + 1, sizeof *r->steps);
    if (!r || !r->steps) return fac_raise_memory(err, "a pattern");
    w = (writer){ .to = r->steps };
    write(&w, tree);
    r->steps[w.n] = (step){ .c = MATCH };
    r->n = w.n + 1;
    *out = r;
    return FAC_OK;
}

/* ---- a run ---- */

struct fac_regex_run {
    const fac_regex *r;
    int32_t *now, *next, *seen, *stack; /* seen[s] == tick: state s is in the list at hand */
    int32_t n, tick;
};

fac_regex_run *fac_regex_begin(fac_arena *arena, const fac_regex *r) {
    fac_regex_run *run = fac_arena_alloc(arena, 1, sizeof *run);
    int32_t *all = fac_arena_alloc(arena, 5 * (size_t)r->n + 5, sizeof *all);
    if (!run || !all) return NULL;
    *run = (fac_regex_run){ r, all, all + r->n, all + 2 * r->n, all + 3 * r->n, 0, 0 };
    return run;
}

static bool is_word(uint32_t c) {
    return c == '_' || (c < 0x80 && (fac_unicode_is_letter(c) || fac_unicode_is_number(c)));
}

/* Between two characters, which are 0 at either end. */
static bool holds(fac_assertion at, uint32_t before, uint32_t after) {
    switch (at) {
    case FAC_AT_BEGIN:
        return !before;
    case FAC_AT_END:
        return !after;
    case FAC_AT_LINE:
        return !before || before == '\n';
    case FAC_AT_LINE_END:
        return !after || after == '\n';
    case FAC_AT_WORD:
        return is_word(before) != is_word(after);
    default:
        return is_word(before) == is_word(after);
    }
}

/* Adds a state and all that it leads to without a character; the matching one is among them? */
static bool enter(fac_regex_run *run, int32_t *list, int32_t state, uint32_t before,
                  uint32_t after) {
    int32_t depth = 0;
    bool matches = false;
    run->stack[depth++] = state;
    while (depth) {
        const int32_t at = run->stack[--depth];
        const step *s = &run->r->steps[at];
        if (run->seen[at] == run->tick) continue;
        run->seen[at] = run->tick;
        if (s->c == TAKE)
            list[run->n++] = at;
        else if (s->c == GO)
            run->stack[depth++] = s->x;
        else if (s->c == MATCH)
            matches = true;
        else if (s->c == ASSERT && holds((fac_assertion)s->x, before, after))
            run->stack[depth++] = at + 1;
        else if (s->c == FORK) {
            run->stack[depth++] = s->y;
            run->stack[depth++] = s->x;
        }
    }
    return matches;
}

static uint32_t peek(const unsigned char *p) { return *p ? fac_utf8_next(&p) : 0; }

bool fac_regex_full(fac_regex_run *run, const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    run->n = 0;
    run->tick++;
    bool matches = enter(run, run->now, 0, 0, peek(p));
    while (*p && run->n) {
        const uint32_t c = fac_utf8_next(&p), after = peek(p);
        const int32_t states = run->n;
        int32_t *list = run->now;
        matches = false;
        run->n = 0;
        run->tick++;
        for (int32_t k = 0; k < states; k++)
            if (fac_set_has(run->r->steps[list[k]].set, c))
                matches |= enter(run, run->next, list[k] + 1, c, after);
        run->now = run->next;
        run->next = list;
    }
    return matches && !*p;
}
