/* Statements of chat templates. */
#include <string.h>
#include "base/error.h"
#include "text/jinja/jinja.h"

typedef fac_jinja_reading reading;
typedef fac_jinja_node node;

enum { MOST_DEPTH = 100 };

static node *body(reading *r, const char *const ends[]);

static void close(reading *r) {
    if (!r->status && r->sign != FAC_JINJA_CLOSE) fac_jinja_wrong(r, "the tag should end here");
}

/* The word that ended a body is read over. */
static void close_after(reading *r) {
    if (r->status) return;
    fac_jinja_next(r);
    close(r);
}

static bool at(const reading *r, const char *word) { return fac_jinja_is(r, FAC_JINJA_WORD, word); }

/* {% for target in values if condition %} ... {% else %} ... {% endfor %} */
static node *loop(reading *r) {
    static const char *const ends[] = { "endfor", "else", NULL }, *const end[] = { "endfor", NULL };
    node n = { .what = FAC_JINJA_FOR, .line = r->line };
    n.a = fac_jinja_target(r);
    if (!at(r, "in")) fac_jinja_wrong(r, "expected in");
    fac_jinja_next(r);
    n.b = fac_jinja_expression(r, true, false);
    if (at(r, "if")) {
        fac_jinja_next(r);
        n.c = fac_jinja_expression(r, false, true);
    }
    if (at(r, "recursive")) fac_jinja_wrong(r, "loops that are recursive are not known here");
    close(r);
    n.body = body(r, ends);
    if (at(r, "else")) {
        close_after(r);
        n.other = body(r, end);
    }
    close_after(r);
    node *to = fac_jinja_node_new(r, FAC_JINJA_FOR);
    if (!r->status) *to = n;
    return to;
}

/* elif is an if that stands alone in the other part. */
static node *condition(reading *r) {
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    static const char *const end[] = { "endif", NULL };
    node *first = NULL, **to = &first;
    while (!r->status) {
        node *n = fac_jinja_node_new(r, FAC_JINJA_IF);
        if (r->status) break;
        *to = n;
        to = &n->other;
        n->a = fac_jinja_expression(r, true, true);
        close(r);
        n->body = body(r, ends);
        if (!at(r, "elif")) break;
        n->elif = true;
        fac_jinja_next(r);
    }
    if (at(r, "else")) {
        close_after(r);
        *to = body(r, end);
    }
    close_after(r);
    return first ? first : &r->spare;
}

/* {% set a = value %}, or {% set a %} ... {% endset %} */
static node *setting(reading *r) {
    static const char *const end[] = { "endset", NULL };
    node n = { .what = FAC_JINJA_SET, .line = r->line };
    n.a = fac_jinja_target(r);
    if (fac_jinja_take(r, "=")) {
        n.b = fac_jinja_expression(r, true, true);
        close(r);
    } else {
        n.what = FAC_JINJA_CAPTURE;
        n.b = fac_jinja_filters(r, NULL);
        close(r);
        n.body = body(r, end);
        close_after(r);
    }
    node *to = fac_jinja_node_new(r, n.what);
    if (!r->status) *to = n;
    return to;
}

/* {% filter trim %} ... {% endfilter %}: printed, so the target is none. */
static node *filtered(reading *r) {
    static const char *const end[] = { "endfilter", NULL };
    node *n = fac_jinja_node_new(r, FAC_JINJA_CAPTURE);
    node *all = fac_jinja_node_new(r, FAC_JINJA_FILTER);
    if (r->status) return n;
    all->name = fac_jinja_word(r);
    if (fac_jinja_is(r, FAC_JINJA_MARK, "("))
        fac_jinja_wrong(r, "a filter with arguments is not known here");
    n->b = fac_jinja_filters(r, all);
    close(r);
    n->body = body(r, end);
    close_after(r);
    return n;
}

/* {% macro name(a, b=value) %} ... {% endmacro %} */
static node *macro(reading *r) {
    static const char *const end[] = { "endmacro", NULL };
    node *n = fac_jinja_node_new(r, FAC_JINJA_DEFINE), **last = &n->items;
    if (r->status) return n;
    n->name = fac_jinja_word(r);
    fac_jinja_want(r, "(");
    while (!r->status && !fac_jinja_take(r, ")")) {
        node *one = fac_jinja_node_new(r, FAC_JINJA_ARGUMENT);
        if (r->status) return n;
        one->name = fac_jinja_word(r);
        if (fac_jinja_take(r, "=")) one->a = fac_jinja_expression(r, false, true);
        *last = one;
        last = &one->next;
        if (fac_jinja_take(r, ")")) break;
        fac_jinja_want(r, ",");
    }
    close(r);
    n->body = body(r, end);
    close_after(r);
    return n;
}

/* transformers marks what the assistant said by {% generation %}. */
static node *generation(reading *r) {
    static const char *const end[] = { "endgeneration", NULL };
    node *n = fac_jinja_node_new(r, FAC_JINJA_GROUP);
    if (r->status) return n;
    close(r);
    n->body = body(r, end);
    close_after(r);
    return n;
}

static node *raw(reading *r) {
    node *n = fac_jinja_node_new(r, FAC_JINJA_PLAIN);
    close(r);
    if (r->status) return n;
    n->value = (fac_jinja_value){ .kind = FAC_JINJA_TEXT, .text = fac_jinja_raw(r) };
    return n;
}

static node *leave(reading *r, fac_jinja_what what) {
    node *n = fac_jinja_node_new(r, what);
    close(r);
    return n;
}

static node *statement(reading *r) {
    char what[128] = "a tag that is not known here: ";
    const char *word = fac_jinja_word(r);
    if (r->status) return NULL;
    if (!strcmp(word, "for")) return loop(r);
    if (!strcmp(word, "if")) return condition(r);
    if (!strcmp(word, "set")) return setting(r);
    if (!strcmp(word, "macro")) return macro(r);
    if (!strcmp(word, "filter")) return filtered(r);
    if (!strcmp(word, "generation")) return generation(r);
    if (!strcmp(word, "raw")) return raw(r);
    if (!strcmp(word, "break")) return leave(r, FAC_JINJA_BREAK);
    if (!strcmp(word, "continue")) return leave(r, FAC_JINJA_CONTINUE);
    strncat(what, word, 60);
    fac_jinja_wrong(r, what);
    return NULL;
}

static node *printed(reading *r) {
    node *n = fac_jinja_node_new(r, FAC_JINJA_PRINT);
    if (r->status) return n;
    n->a = fac_jinja_expression(r, true, true);
    close(r);
    return n;
}

static bool ends_here(const reading *r, const char *const ends[]) {
    for (int k = 0; ends && ends[k]; k++)
        if (at(r, ends[k])) return true;
    return false;
}

/* Up to a tag that begins with one of these words, which is the sign at hand then. */
static node *body(reading *r, const char *const ends[]) {
    node *first = NULL, **last = &first;
    if (++r->depth > MOST_DEPTH) fac_jinja_wrong(r, "tags that are nested too deeply");
    while (!r->status) {
        fac_jinja_text text;
        node *n;
        const enum fac_jinja_piece piece = fac_jinja_next_piece(r, &text);
        if (piece == FAC_JINJA_PIECE_TEXT) {
            if (!text.n) break;
            n = fac_jinja_node_new(r, FAC_JINJA_PLAIN);
            if (!r->status) n->value = (fac_jinja_value){ .kind = FAC_JINJA_TEXT, .text = text };
        } else if (piece == FAC_JINJA_PIECE_BLOCK) {
            if (ends_here(r, ends)) break;
            n = statement(r);
        } else {
            n = printed(r);
        }
        if (r->status) break;
        *last = n;
        last = &n->next;
    }
    if (ends && !r->status && r->sign == FAC_JINJA_OVER) {
        char what[64] = "there is no ";
        fac_jinja_wrong(r, strcat(what, ends[0]));
    }
    r->depth--;
    return first;
}

node *fac_jinja_parse(reading *r) { return body(r, NULL); }
