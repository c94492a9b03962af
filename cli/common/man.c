/* `facula help --man`: pages of the manual, from the same tables as --help.  man(7) of groff and
 * mandoc. */
#include "man.h"
#include <ctype.h>
#include <string.h>
#include "help_text.h"

/* Text in which nothing is a request or an escape.  bol: it begins a line. */
static void put_bytes(const char *text, size_t n, bool bol) {
    for (const char *c = text; c < text + n; c++) {
        if (bol && (*c == '.' || *c == '\'')) out_raw("\\&", stdout);
        bol = *c == '\n';
        if (*c == '\\')
            out_raw("\\e", stdout);
        else if (*c == '-')
            out_raw("\\-", stdout);
        else if (*c == '`' || *c == '\'')
            out_raw(*c == '`' ? "\\(ga" : "\\(aq", stdout);
        else if (*c == '"')
            out_raw("\\(dq", stdout);
        else
            out_char(*c, stdout);
    }
}

static void put(const char *text, bool bol) { put_bytes(text, strlen(text), bol); }

static void put_bold(const char *text) {
    out_raw("\\fB", stdout);
    put(text, false);
    out_raw("\\fR", stdout);
}

static void title(const char *name) {
    printf(".TH FACULA");
    if (name) printf("\\-");
    for (const char *c = name ? name : ""; *c; c++) out_char(toupper((unsigned char)*c), stdout);
    printf(" 1 \"\" \"facula %s\" \"facula\"\n", FACULA_VERSION);
}

static void section(const char *name) { printf(".SH %s\n", name); }

static void paragraphs(const char *text) {
    bool kept = false;
    for (text_piece p; text_paragraph(&text, &p);) {
        const bool keep = p.kept && p.n;
        if (keep != kept) out_lines(kept ? ".fi" : ".nf");
        kept = keep;
        if (p.n) put_bytes(p.at, p.n, true);
        out_lines(p.n ? "" : ".PP");
    }
    if (kept) out_lines(".fi");
}

static void option_rows(const option *o) {
    if (!o) return;
    section("OPTIONS");
    for (; o->name; o++) {
        out_lines(".TP");
        put_bold(o->name);
        if (o->value) {
            out_raw(" \\fI", stdout);
            put(o->value, false);
            out_raw("\\fR", stdout);
        }
        putchar('\n');
        if (*o->help)
            put(o->help, true);
        else
            out_raw("\\&", stdout);
        putchar('\n');
    }
}

static void examples(const char *text) {
    section("EXAMPLES");
    out_lines(".nf");
    for (text_piece p; text_line(&text, &p);) {
        out_raw("facula ", stdout);
        put_bytes(p.at, p.n, false);
        putchar('\n');
    }
    out_lines(".fi");
}

static void exits(void) {
    section("EXIT STATUS");
    out_lines("0 done, 1 failed, 2 wrong usage, 130 and 143 stopped by Ctrl\\-C or SIGTERM.");
}

void man_verb(const verb *v) {
    title(v->name);
    section("NAME");
    printf("facula\\-%s \\- ", v->name);
    put(v->summary, false);
    putchar('\n');
    section("SYNOPSIS");
    out_lines(".nf");
    put(v->usage, true);
    out_lines("\n.fi");
    if (v->more) {
        section("DESCRIPTION");
        paragraphs(v->more);
    }
    option_rows(v->options);
    examples(v->examples);
    exits();
    section("SEE ALSO");
    printf(".BR facula (1)");
    if (v->list) printf("; \\fBfacula help %s\\fR also lists names", v->name);
    out_lines(".");
}

void man_overview(void) {
    title(NULL);
    section("NAME");
    out_lines("facula \\- trains, runs, inspects and rewrites neural networks");
    section("SYNOPSIS");
    out_lines(".B facula\n.I verb\n[\\fIarguments\\fR] [\\fIoptions\\fR]");
    section("DESCRIPTION");
    out_lines(
        "A deep\\-learning engine: one small library and this command.  Models are ONNX files, "
        "networks of the zoo (\\fBzoo:\\fINAME\\fR)\n"
        "or texts of \\fBfacula show\\fR.  Every verb has a page of its own; \\fBfacula help "
        "\\fIverb\\fR says the same.");
    section("VERBS");
    for (const verb *const *v = verbs; *v; v++) {
        printf(".TP\n\\fB%s\\fR\n", (*v)->name);
        put((*v)->summary, true);
        printf(": see\n.BR facula\\-%s (1).\n", (*v)->name);
    }
    exits();
    section("ENVIRONMENT");
    out_lines(".TP\n\\fBFACULA_WISDOM\\fR\nthe file with measured choices of \\fBfacula tune\\fR; "
              "empty for none");
    out_lines(
        ".TP\n\\fBFACULA_WITHOUT\\fR\npaths of a device that are to be left alone, with commas "
        "between");
    out_lines(".TP\n\\fBNO_COLOR\\fR\nno colours");
    section("EXAMPLES");
    out_lines(
        ".nf\nfacula run model.onnx photo.jpg\nfacula train fashion\\-mnist \\-\\-out runs/1\n"
        "facula predict runs/1 shoe.png\nfacula summary model.onnx\n.fi");
    section("SEE ALSO");
    for (const verb *const *v = verbs; *v; v++)
        printf(".BR facula\\-%s (1)%s\n", (*v)->name, v[1] ? "," : "");
}
