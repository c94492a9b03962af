/* Preprocessing as text: read from command lines and from the metadata of models, and written
 * there. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/point.h"
#include "base/text.h"
#include "facula/data/image.h"

enum { LONGEST_SIDE = 65536, VALUE = 256 };

/* as fac_interpolation */
static const char *const interpolations[] = { "nearest", "bilinear", "bicubic" };

/* What is known while a text is read: the range -1..1 is a scale and a mean, to which the text's
 * own mean is added. */
typedef struct reading {
    fac_preprocess how;
    bool minus_one;
} reading;

/* ---- values ---- */

/* "0.485", "1/255" */
static bool number(const char **text, double *to) {
    char *end;
    *to = strtod(*text, &end);
    if (end == *text) return false;
    if (*end == '/') {
        const char *below = end + 1;
        const double by = strtod(below, &end);
        if (end == below || by == 0) return false;
        *to /= by;
    }
    *text = end;
    return isfinite(*to);
}

/* One number for all three channels, or three. */
static bool three(const char *text, double to[3]) {
    double got[3];
    int n = 0;
    while (n < 3) {
        if (!number(&text, &got[n++])) return false;
        if (!*text) break;
        if (*text++ != ',') return false;
    }
    if (*text || n == 2) return false;
    for (int c = 0; c < 3; c++) to[c] = got[n == 1 ? 0 : c];
    return true;
}

static bool side(const char **text, int *to) {
    char *end;
    const long x = strtol(*text, &end, 10);
    if (end == *text || **text < '0' || **text > '9' || x > LONGEST_SIDE) return false;
    *text = end;
    *to = (int)x;
    return true;
}

/* "N" or "HxW", which says how many numbers there are; a side of a pair may be 0, as it is.  0:
 * neither. */
static int sides(const char *text, int *height, int *width) {
    if (!side(&text, height)) return 0;
    if (!*text && *height) return 1;
    if (*text++ != 'x' || !side(&text, width) || *text) return 0;
    return 2;
}

/* ---- items ---- */

static bool set_size(reading *r, const char *text) {
    int height = 0, width = 0;
    const int n = sides(text, &height, &width);
    if (!n && strcmp(text, "keep")) return false;
    r->how.resize = n == 1 ? height : 0;
    if (n == 1) return true;
    r->how.height = height;
    r->how.width = width;
    return true;
}

static bool set_crop(reading *r, const char *text) {
    int height, width;
    const int n = sides(text, &height, &width);
    if (!n) return false;
    r->how.height = height;
    r->how.width = n == 1 ? height : width;
    return true;
}

static bool set_interpolation(reading *r, const char *text) {
    for (int k = 0; k < 3; k++) {
        if (strcmp(text, interpolations[k])) continue;
        r->how.how = (fac_interpolation)k;
        return true;
    }
    return false;
}

static bool set_order(reading *r, const char *text) {
    const bool rgb = !strcmp(text, "rgb") || !strcmp(text, "RGB");
    const bool bgr = !strcmp(text, "bgr") || !strcmp(text, "BGR");
    r->how.bgr = bgr;
    r->how.grey = !strcmp(text, "grey") || !strcmp(text, "gray");
    return rgb || bgr || r->how.grey;
}

static bool set_range(reading *r, const char *text) {
    static const struct {
        const char *name;
        double scale;
    } ranges[] = { { "0..1", 1 / 255.0 }, { "0..255", 1 }, { "-1..1", 1 / 127.5 } };
    for (int k = 0; k < 3; k++) {
        if (strcmp(text, ranges[k].name)) continue;
        r->how.scale = ranges[k].scale;
        r->minus_one = k == 2;
        return true;
    }
    return false;
}

static bool set_scale(reading *r, const char *text) {
    r->minus_one = false;
    return number(&text, &r->how.scale) && !*text && r->how.scale != 0;
}

static bool set_mean(reading *r, const char *text) { return three(text, r->how.mean); }

static bool set_std(reading *r, const char *text) {
    return three(text, r->how.std) && r->how.std[0] != 0 && r->how.std[1] != 0 &&
           r->how.std[2] != 0;
}

static bool set_layout(reading *r, const char *text) {
    r->how.nhwc = !strcmp(text, "nhwc");
    return r->how.nhwc || !strcmp(text, "nchw");
}

typedef bool setter(reading *r, const char *text);
static const struct {
    const char *key, *wanted;
    setter *set;
} items[] = { { "size", "N, HxW (at most 65536) or keep", set_size },
              { "crop", "N or HxW (at most 65536)", set_crop },
              { "interpolation", "nearest, bilinear or bicubic", set_interpolation },
              { "order", "rgb, bgr or grey", set_order },
              { "range", "0..1, 0..255 or -1..1", set_range },
              { "scale", "a number other than 0, such as 1/255", set_scale },
              { "mean", "one or three numbers", set_mean },
              { "std", "one or three numbers other than 0", set_std },
              { "layout", "nchw or nhwc", set_layout } };
enum { ITEMS = sizeof items / sizeof *items };

static fac_status unknown(const char *key, fac_error *err) {
    fac_text known = { 0 };
    for (int k = 0; k < ITEMS; k++) fac_text_print(&known, "%s%s", k ? ", " : "", items[k].key);
    const char *all = known.failed ? "others" : known.s;
    (fac_raise)(err, FAC_E_ARGUMENT, "preprocessing has no \"%.60s\"; it has %s", key, all);
    fac_text_free(&known);
    return FAC_E_ARGUMENT;
}

static fac_status set(reading *r, const char *key, const char *value, fac_error *err) {
    int k = 0;
    while (k < ITEMS && strcmp(key, items[k].key)) k++;
    if (k == ITEMS) return unknown(key, err);
    if (items[k].set(r, value)) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "%s is %s, not \"%.60s\"", key, items[k].wanted, value);
}

/* ---- reading ---- */

static bool between(char c) { return c == ',' || c == ' ' || c == '\t' || c == '\n'; }

/* The next piece of *text; false at the end.  One that is longer than any value becomes "...",
 * which is none. */
static bool next_piece(const char **text, char *to, size_t size) {
    const char *p = *text;
    while (between(*p)) p++;
    if (!*p) return false;
    size_t n = 0;
    while (p[n] && !between(p[n])) n++;
    if (n < size)
        snprintf(to, size, "%.*s", (int)n, p);
    else
        snprintf(to, size, "...");
    *text = p + n;
    return true;
}

static bool starts_number(const char *piece) {
    return *piece == '-' || *piece == '.' || (*piece >= '0' && *piece <= '9');
}

/* The value of an item goes on while pieces are numbers: mean=104,117,123. */
static void take_numbers(const char **text, char *value, size_t size) {
    char piece[VALUE];
    const char *after = *text;
    while (next_piece(&after, piece, sizeof piece) && starts_number(piece) && !strchr(piece, '=')) {
        const size_t n = strlen(value);
        if ((size_t)snprintf(value + n, size - n, ",%s", piece) >= size - n)
            snprintf(value, size, "...");
        *text = after;
    }
}

static fac_status read_items(reading *r, const char *text, fac_error *err) {
    char piece[VALUE];
    while (next_piece(&text, piece, sizeof piece)) {
        char *equals = strchr(piece, '=');
        if (!equals)
            return fac_raise(err, FAC_E_ARGUMENT, "preprocessing: \"%.60s\" is no KEY=VALUE",
                             piece);
        *equals = 0;
        take_numbers(&text, equals + 1, sizeof piece - (size_t)(equals + 1 - piece));
        FAC_TRY(set(r, piece, equals + 1, err));
    }
    return FAC_OK;
}

static fac_status read_all(const char *spec, fac_preprocess *out, fac_error *err) {
    char first[VALUE];
    const char *rest = spec;
    reading r = { .how = { .how = FAC_BILINEAR } };
    if (!next_piece(&rest, first, sizeof first))
        return fac_raise(err, FAC_E_ARGUMENT, "preprocessing: the text is empty");
    if (strchr(first, '=')) {
        rest = spec;
    } else {
        const fac_preset *p = fac_preset_find(first);
        if (!p) return fac_raise(err, FAC_E_ARGUMENT, "there is no preset \"%.60s\"", first);
        r.how = p->how;
    }
    FAC_TRY(read_items(&r, rest, err));
    for (int c = 0; c < 3 && r.minus_one; c++) r.how.mean[c] += 1;
    *out = r.how;
    return FAC_OK;
}

fac_status fac_preprocess_parse(const char *spec, fac_preprocess *out, fac_error *err) {
    fac_point point;
    if (!fac_point_begin(&point))
        return fac_raise(err, FAC_E_NOMEM, "preprocessing: no memory for a locale");
    const fac_status status = read_all(spec, out, err);
    fac_point_end(&point);
    return status;
}

/* ---- writing ---- */

/* In as few digits as bring the number back. */
static void put_number(fac_text *t, double x) {
    char text[32];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    fac_text_add(t, text);
}

static void put_three(fac_text *t, const char *key, const double x[3]) {
    const bool equal = x[0] == x[1] && x[0] == x[2];
    fac_text_print(t, ",%s=", key);
    put_number(t, x[0]);
    for (int c = 1; c < 3 && !equal; c++) {
        fac_text_add(t, ",");
        put_number(t, x[c]);
    }
}

static void put_sides(fac_text *t, const char *key, int height, int width, bool square) {
    if (square && height == width)
        fac_text_print(t, "%s=%d", key, height);
    else
        fac_text_print(t, "%s=%dx%d", key, height, width);
}

static void put_geometry(fac_text *t, const fac_preprocess *h) {
    const bool sized = h->height || h->width;
    if (h->resize)
        fac_text_print(t, "size=%d", h->resize);
    else if (sized)
        put_sides(t, "size", h->height, h->width, false);
    else
        fac_text_add(t, "size=keep");
    if (h->resize && sized) put_sides(t, ",crop", h->height, h->width, h->height > 0);
    const char *colours = h->bgr ? "bgr" : "rgb";
    const char *order = h->grey ? "grey" : colours;
    fac_text_print(t, ",interpolation=%s,order=%s", interpolations[h->how], order);
}

static bool all(const double x[3], double is) { return x[0] == is && x[1] == is && x[2] == is; }

static void put_values(fac_text *t, const fac_preprocess *h) {
    const double scale = h->scale != 0 ? h->scale : 1 / 255.0;
    double std[3];
    for (int c = 0; c < 3; c++) std[c] = h->std[c] != 0 ? h->std[c] : 1;
    const bool signed_range = scale == 1 / 127.5 && all(h->mean, 1);
    if (signed_range)
        fac_text_add(t, ",range=-1..1");
    else if (scale == 1 / 255.0)
        fac_text_add(t, ",range=0..1");
    else if (scale == 1)
        fac_text_add(t, ",range=0..255");
    else {
        fac_text_add(t, ",scale=");
        put_number(t, scale);
    }
    if (!signed_range && !all(h->mean, 0)) put_three(t, "mean", h->mean);
    if (!all(std, 1)) put_three(t, "std", std);
    if (h->nhwc) fac_text_add(t, ",layout=nhwc");
}

int fac_preprocess_print(const fac_preprocess *how, char *to, size_t size) {
    fac_text t = { 0 };
    fac_point point;
    if (!fac_point_begin(&point)) return -1;
    put_geometry(&t, how);
    put_values(&t, how);
    fac_point_end(&point);
    const int n = t.failed ? -1 : (int)t.n;
    if (size) snprintf(to, size, "%s", t.failed ? "" : t.s);
    fac_text_free(&t);
    return n;
}

/* ---- names ---- */

const fac_preset *fac_preset_find(const char *name) {
    for (const fac_preset *p = fac_presets; name && p->name; p++)
        if (!strcmp(p->name, name)) return p;
    return NULL;
}

static double or_else(double x, double usual) { return x != 0 ? x : usual; }

static bool alike(const fac_preprocess *a, const fac_preprocess *b) {
    bool same = a->resize == b->resize && a->height == b->height && a->width == b->width;
    same &= a->how == b->how && a->bgr == b->bgr && a->grey == b->grey;
    same &= or_else(a->scale, 1 / 255.0) == or_else(b->scale, 1 / 255.0);
    for (int c = 0; c < 3; c++)
        same &= a->mean[c] == b->mean[c] && or_else(a->std[c], 1) == or_else(b->std[c], 1);
    return same;
}

const fac_preset *fac_preprocess_preset(const fac_preprocess *how) {
    for (const fac_preset *p = fac_presets; p->name; p++)
        if (alike(how, &p->how)) return p;
    return NULL;
}
