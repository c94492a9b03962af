/* Names that try to be more, and whether any of it got through.
 *
 *   hostile model KIND OUT.onnx    a small model that runs, with names of a kind everywhere
 *   hostile name KIND              such a name, for folders, labels and arguments
 *   hostile beside FILE OUT.onnx   a model with plain names whose weight lies in a file beside it
 *   hostile check                  reads standard input: 1 and the places where a terminal would be
 *                                  steered, a line begins that a name made, or bytes are no UTF-8
 *   hostile refused KIND OUT.onnx  the model with a domain that is not ours: it is refused */
#include <stdbool.h>
#include "../support/onnx_writer.h"

/* What every name ends in, and what no line may begin with. */
#define FORGED "FORGED"
static const struct {
    const char *kind, *text;
} kinds[] = {
    /* a title, a bell, red; to the line's begin; a line of its own */
    { "c0", "\033]0;PWN\007\033[31m\b\r\n" FORGED },
    /* the same as single characters of Unicode, and as bytes that are no UTF-8 */
    { "c1", "\xc2\x9b"
            "31m\xc2\x9d"
            "0;PWN\xc2\x9c\xc2\x85" FORGED },
    { "bytes", "\x9b"
               "31m\x9d"
               "0;PWN\x9c\x85\xff\xc2\xe2\x80" FORGED },
    /* turned around; a separator of lines */
    { "bidi", "\xe2\x80\xae"
              "abc\xe2\x81\xa6"
              "def\xe2\x80\xa8" FORGED },
    { "del", "\x7f\t\v\f\033c" FORGED }
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *text_of(const char *kind) {
    for (int k = 0; k < KINDS; k++)
        if (!strcmp(kinds[k].kind, kind)) return kinds[k].text;
    return NULL;
}

/* ---- the model ---- */

static const char *evil = "";

/* Text of the last calls: a few are in use at once. */
static const char *named(const char *name) {
    static char room[8][128];
    static int at;
    char *to = room[at = (at + 1) % 8];
    snprintf(to, sizeof *room, "%s%s", name, evil);
    return to;
}

static void add_node(bytes *graph, const char *type, const char *a, const char *b, const char *to,
                     const char *domain) {
    bytes node = { 0 };
    w_text(&node, 1, named(a));
    if (b) w_text(&node, 1, named(b));
    w_text(&node, 2, named(to));
    w_text(&node, 3, named(type));
    w_text(&node, 4, type);
    w_text(&node, 6, named("doc of a node"));
    if (domain) w_text(&node, 7, domain);
    w_sub(graph, 1, node);
}

static void add_dim(bytes *shape, const char *name, int64_t size) {
    bytes dim = { 0 };
    if (name)
        w_text(&dim, 2, named(name));
    else
        w_int(&dim, 1, size);
    w_sub(shape, 1, dim);
}

static void add_port(bytes *graph, int field, const char *name) {
    bytes port = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 };
    add_dim(&shape, "N", 0);
    add_dim(&shape, NULL, 3);
    w_int(&tensor, 1, 1);
    w_sub(&tensor, 2, shape);
    w_sub(&type, 1, tensor);
    w_text(&port, 1, named(name));
    w_sub(&port, 2, type);
    w_text(&port, 3, named("doc of a port"));
    w_sub(graph, field, port);
}

static void add_weight(bytes *graph, const char *beside) {
    const float x[9] = { 1, 0, 0, 0, 2, 0, 0, 0, 3 };
    bytes tensor = { 0 };
    w_int(&tensor, 1, 3);
    w_int(&tensor, 1, 3);
    w_int(&tensor, 2, 1);
    w_text(&tensor, 8, named("w"));
    if (beside) {
        w_external(&tensor, "location", beside);
        w_int(&tensor, 14, 1);
    } else
        w_bytes(&tensor, 9, x, sizeof x);
    w_sub(graph, 5, tensor);
}

static void add_pair(bytes *to, int field, const char *key, const char *value) {
    bytes pair = { 0 };
    w_text(&pair, 1, key);
    w_text(&pair, 2, value);
    w_sub(to, field, pair);
}

static int write_model(const char *path, bool refused, const char *beside) {
    bytes model = { 0 }, graph = { 0 }, opset = { 0 };
    add_node(&graph, "MatMul", "x", "w", "m", NULL);
    add_node(&graph, "Relu", "m", NULL, "r", refused ? named("domain") : NULL);
    add_node(&graph, "Softmax", "r", NULL, "y", NULL);
    w_text(&graph, 2, named("graph"));
    w_text(&graph, 10, named("doc of the graph"));
    add_weight(&graph, beside);
    add_port(&graph, 11, "x");
    add_port(&graph, 12, "y");
    w_int(&model, 1, 9);
    w_text(&model, 2, named("producer"));
    w_text(&model, 3, named("1.0"));
    w_text(&model, 4, named("model domain"));
    w_text(&model, 6, named("doc of the model"));
    w_sub(&model, 7, graph);
    w_int(&opset, 2, 18);
    w_sub(&model, 8, opset);
    if (refused) {
        opset = (bytes){ 0 };
        w_text(&opset, 1, named("domain"));
        w_int(&opset, 2, 1);
        w_sub(&model, 8, opset);
    }
    add_pair(&model, 14, named("key"), named("value"));
    FILE *f = fopen(path, "wb");
    const bool good = f && fwrite(model.p, 1, model.n, f) == model.n && !fclose(f);
    free(model.p);
    return good ? 0 : 2;
}

/* ---- the check ---- */

/* Written apart from the library, and otherwise: by ranges of whole sequences (Unicode 15, table
 * 3-7). */
static size_t length_of(const unsigned char *s, size_t n) {
    /* length; first byte from, to; second byte from, to */
    static const unsigned char rows[][6] = {
        { 2, 0xc2, 0xdf, 0x80, 0xbf }, { 3, 0xe0, 0xe0, 0xa0, 0xbf }, { 3, 0xe1, 0xec, 0x80, 0xbf },
        { 3, 0xed, 0xed, 0x80, 0x9f }, { 3, 0xee, 0xef, 0x80, 0xbf }, { 4, 0xf0, 0xf0, 0x90, 0xbf },
        { 4, 0xf1, 0xf3, 0x80, 0xbf }, { 4, 0xf4, 0xf4, 0x80, 0x8f }
    };
    if (*s < 0x80) return 1;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const unsigned char *r = rows[k];
        if (*s < r[1] || *s > r[2] || n < r[0] || s[1] < r[3] || s[1] > r[4]) continue;
        for (size_t i = 2; i < r[0]; i++)
            if (s[i] < 0x80 || s[i] > 0xbf) return 0;
        return r[0];
    }
    return 0;
}

static const char *wrong_at(const unsigned char *s, size_t n, size_t length) {
    if (!length) return "no UTF-8";
    if (*s < ' ' && *s != '\n') return *s == 033 ? "an escape" : "a control character";
    if (*s == 0x7f) return "a delete";
    if (*s == 0xc2 && s[1] < 0xa0) return "a C1 control character";
    if (*s == 0xe2 && s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) return "a turn, or a separator";
    if (*s == 0xe2 && s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9) return "text turned around";
    const bool forged = *s == '\n' && n > strlen(FORGED) && !memcmp(s + 1, FORGED, strlen(FORGED));
    return forged ? "a line made by a name" : NULL;
}

static int check(void) {
    bytes all = { 0 };
    unsigned char part[4096];
    int bad = 0;
    for (size_t n; (n = fread(part, 1, sizeof part, stdin)) > 0;) w_raw(&all, part, n);
    for (size_t at = 0; at < all.n;) {
        const size_t n = length_of(all.p + at, all.n - at);
        const char *wrong = wrong_at(all.p + at, all.n - at, n);
        if (wrong && bad++ < 5) printf("%s at byte %zu\n", wrong, at);
        at += n ? n : 1;
    }
    free(all.p);
    return bad != 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "check")) return check();
    if (argc < 3) return 2;
    if (!strcmp(argv[1], "beside")) return argc == 4 ? write_model(argv[3], false, argv[2]) : 2;
    evil = text_of(argv[2]);
    if (!evil) return 2;
    if (!strcmp(argv[1], "name")) {
        fputs(evil, stdout);
        return 0;
    }
    return argc == 4 ? write_model(argv[3], !strcmp(argv[1], "refused"), NULL) : 2;
}
