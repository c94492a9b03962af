/* The text of `facula help VERB`, from the table of its options. */
#include <string.h>
#include "cli.h"
#include "help_text.h"

enum { LEFT = 26, NARROW = 60, WIDE = 100 };

static int width(void) {
    const int n = columns();
    if (n < NARROW) return NARROW;
    return n > WIDE ? WIDE : n;
}

/* So many bytes of our own text, filled: its words come after `at` columns of a line, and further
 * lines begin with `indent` blanks. */
static void put_words(const char *text, size_t bytes, int at, int indent, FILE *to) {
    const char *const end = text + bytes, *word = text;
    const int right = width();
    for (bool first = true; word += strspn(word, " \n"), word < end; first = false) {
        const int n = (int)strcspn(word, " \n");
        const bool fits = at + !first + n <= right;
        if (!first && fits) out_char(' ', to);
        if (!first && !fits) fprintf(to, "\n%*s", indent, "");
        for (int k = 0; k < n; k++) out_char(word[k], to);
        at = (fits ? at + !first : indent) + n;
        word += n;
    }
    out_char('\n', to);
}

static void put_row(const char *name, int room, const char *text, FILE *to) {
    fprintf(to, "  %-*s ", room, name);
    if ((int)strlen(name) > room) fprintf(to, "\n%*s", room + 3, "");
    put_words(text, strlen(text), room + 3, room + 3, to);
}

static void put_option(const option *o, FILE *to) {
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", o->name, text_if(o->value, " "), text_or(o->value, ""));
    put_row(left, LEFT, o->help, to);
}

static void put_paragraphs(const char *text, FILE *to) {
    for (text_piece p; text_paragraph(&text, &p);) {
        if (p.kept)
            fprintf(to, "%.*s\n", (int)p.n, p.at);
        else
            put_words(p.at, p.n, 0, 0, to);
    }
}

void help_row(const char *name, int room, const char *text) { put_row(name, room, text, stdout); }
void help_paragraphs(const char *text) { put_paragraphs(text, stdout); }

static void put_examples(const char *text, FILE *to) {
    fprintf(to, "\nexample%s\n", plural(strchr(text, '\n') ? 2 : 1));
    for (text_piece p; text_line(&text, &p);) fprintf(to, "  facula %.*s\n", (int)p.n, p.at);
}

void verb_help(const verb *v, FILE *to) {
    fprintf(to, "%s\n\nusage: ", v->summary);
    out_raw(v->usage, to);
    fprintf(to, "\n");
    if (v->options) fprintf(to, "\n");
    for (const option *o = v->options; o && o->name; o++) put_option(o, to);
    if (v->more) fprintf(to, "\n");
    if (v->more) put_paragraphs(v->more, to);
    put_examples(v->examples, to);
    if (v->list) v->list();
}
