/* Values of chat templates as text: as Python prints them, and as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "text/jinja/jinja.h"

typedef fac_jinja_run run;
typedef fac_jinja_value value;
typedef fac_jinja_out out;

void fac_jinja_write(run *r, out *to, const char *s, const char *from, size_t n) {
    if (r->status || !n) return;
    if (to->n + n > to->room) {
        const size_t room = 2 * (to->n + n) + 64;
        char *wide = fac_jinja_alloc(r, 2 * room, 1);
        if (!wide) return;
        if (to->n) {
            memcpy(wide, to->s, to->n);
            memcpy(wide + room, to->from, to->n);
        }
        *to = (out){ wide, wide + room, to->n, room };
    }
    memcpy(to->s + to->n, s, n);
    if (from)
        memcpy(to->from + to->n, from, n);
    else
        memset(to->from + to->n, FAC_JINJA_TEMPLATE, n);
    to->n += n;
}

static void put(run *r, out *to, const char *s) { fac_jinja_write(r, to, s, NULL, strlen(s)); }

fac_jinja_value fac_jinja_written(const out *o) {
    return (value){ .kind = FAC_JINJA_TEXT, .text = { o->s ? o->s : "", o->from, o->n } };
}

/* ---- numbers ---- */

/* The shortest that is read back as the same, always with a point. */
static void put_real(run *r, out *to, double x, bool json) {
    char text[512];
    int digits = 1;
    if (!isfinite(x)) {
        const char *name = isnan(x) ? "nan" : "inf";
        if (json) name = isnan(x) ? "NaN" : "Infinity";
        if (x < 0) put(r, to, "-");
        put(r, to, name);
        return;
    }
    for (; digits < 18; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, x);
        if (strtod(text, NULL) == x) break;
    }
    const int power = atoi(strchr(text, 'e') + 1);
    if (power >= -4 && power < 16)
        snprintf(text, sizeof text, "%.*f", digits - 1 - power < 1 ? 1 : digits - 1 - power, x);
    put(r, to, text);
}

/* ---- as Python prints ---- */

static void repr(run *r, out *to, value v);

/* In quotes; the text's own bytes stay where they are from. */
static void quote(run *r, out *to, fac_jinja_text t) {
    const bool single = t.n && memchr(t.s, '\'', t.n), twice = t.n && memchr(t.s, '"', t.n);
    const char mark = single && !twice ? '"' : '\'';
    fac_jinja_write(r, to, &mark, NULL, 1);
    for (size_t k = 0; k < t.n; k++) {
        const char c = t.s[k], *at = strchr("\n\r\t\\", c);
        char code[8];
        if (c && at)
            snprintf(code, sizeof code, "\\%c", "nrt\\"[at - "\n\r\t\\"]);
        else if (c == mark)
            snprintf(code, sizeof code, "\\%c", c);
        else if ((unsigned char)c < 32 || c == 127)
            snprintf(code, sizeof code, "\\x%02x", (unsigned char)c);
        else
            *code = 0;
        if (*code)
            put(r, to, code);
        else
            fac_jinja_write(r, to, &c, t.from ? t.from + k : NULL, 1);
    }
    fac_jinja_write(r, to, &mark, NULL, 1);
}

static void repr_list(run *r, out *to, const fac_jinja_list *l, bool tuple) {
    put(r, to, tuple ? "(" : "[");
    for (size_t k = 0; k < l->n && !r->status; k++) {
        if (k) put(r, to, ", ");
        repr(r, to, l->at[k]);
    }
    put(r, to, tuple && l->n == 1 ? "," : "");
    put(r, to, tuple ? ")" : "]");
}

static void repr_dict(run *r, out *to, const fac_jinja_dict *d) {
    put(r, to, "{");
    for (size_t k = 0; k < d->values.n && !r->status; k++) {
        if (k) put(r, to, ", ");
        repr(r, to, d->keys.at[k]);
        put(r, to, ": ");
        repr(r, to, d->values.at[k]);
    }
    put(r, to, "}");
}

static void repr(run *r, out *to, value v) {
    if (!fac_jinja_deeper(r)) return;
    if (v.kind == FAC_JINJA_TEXT)
        quote(r, to, v.text);
    else if (v.kind == FAC_JINJA_LIST || v.kind == FAC_JINJA_TUPLE)
        repr_list(r, to, v.list, v.kind == FAC_JINJA_TUPLE);
    else if (v.kind == FAC_JINJA_DICT)
        repr_dict(r, to, v.dict);
    else if (v.kind == FAC_JINJA_UNDEFINED)
        put(r, to, "Undefined");
    else
        fac_jinja_print(r, to, v);
    r->depth--;
}

void fac_jinja_print(run *r, out *to, value v) {
    char text[32];
    if (v.kind == FAC_JINJA_TEXT) {
        fac_jinja_write(r, to, v.text.s, v.text.from, v.text.n);
    } else if (v.kind == FAC_JINJA_NONE || v.kind == FAC_JINJA_BOOL) {
        const char *truth = v.i ? "True" : "False";
        put(r, to, v.kind == FAC_JINJA_NONE ? "None" : truth);
    } else if (v.kind == FAC_JINJA_INT) {
        snprintf(text, sizeof text, "%lld", (long long)v.i);
        put(r, to, text);
    } else if (v.kind == FAC_JINJA_FLOAT) {
        put_real(r, to, v.f, false);
    } else if (v.kind == FAC_JINJA_LIST || v.kind == FAC_JINJA_TUPLE || v.kind == FAC_JINJA_DICT) {
        repr(r, to, v);
    } else if (v.kind != FAC_JINJA_UNDEFINED) {
        fac_jinja_fail(r, FAC_E_ARGUMENT, "a %s is printed", fac_jinja_kind_name(v));
    }
}

fac_jinja_text fac_jinja_as_text(run *r, value v) {
    out o = { 0 };
    if (v.kind == FAC_JINJA_TEXT) return v.text;
    fac_jinja_print(r, &o, v);
    return fac_jinja_written(&o).text;
}

/* ---- as JSON ---- */

static void json_text(run *r, out *to, fac_jinja_text t) {
    static const char from[] = "\n\r\t\b\f\"\\", is[] = "nrtbf\"\\";
    put(r, to, "\"");
    for (size_t k = 0; k < t.n; k++) {
        const char c = t.s[k], *at = c ? strchr(from, c) : NULL;
        char code[8] = { 0 };
        if (at)
            snprintf(code, sizeof code, "\\%c", is[at - from]);
        else if ((unsigned char)c < 32)
            snprintf(code, sizeof code, "\\u%04x", (unsigned char)c);
        if (*code)
            put(r, to, code);
        else
            fac_jinja_write(r, to, &c, t.from ? t.from + k : NULL, 1);
    }
    put(r, to, "\"");
}

static void line(run *r, out *to, int indent, int level) {
    if (indent < 0) return;
    put(r, to, "\n");
    for (int k = 0; k < indent * level && !r->status; k++) put(r, to, " ");
}

static void json(run *r, out *to, value v, int indent, int level);

static void json_items(run *r, out *to, const fac_jinja_list *keys, const fac_jinja_list *values,
                       int indent, int level) {
    put(r, to, keys ? "{" : "[");
    for (size_t k = 0; k < values->n && !r->status; k++) {
        if (k) put(r, to, indent < 0 ? ", " : ",");
        line(r, to, indent, level + 1);
        if (keys) json_text(r, to, fac_jinja_as_text(r, keys->at[k]));
        if (keys) put(r, to, ": ");
        json(r, to, values->at[k], indent, level + 1);
    }
    if (values->n) line(r, to, indent, level);
    put(r, to, keys ? "}" : "]");
}

static void json(run *r, out *to, value v, int indent, int level) {
    const char *truth = v.i ? "true" : "false";
    if (!fac_jinja_deeper(r)) return;
    if (v.kind == FAC_JINJA_TEXT)
        json_text(r, to, v.text);
    else if (v.kind == FAC_JINJA_NONE || v.kind == FAC_JINJA_BOOL)
        put(r, to, v.kind == FAC_JINJA_NONE ? "null" : truth);
    else if (v.kind == FAC_JINJA_INT)
        fac_jinja_print(r, to, v);
    else if (v.kind == FAC_JINJA_FLOAT)
        put_real(r, to, v.f, true);
    else if (v.kind == FAC_JINJA_LIST || v.kind == FAC_JINJA_TUPLE)
        json_items(r, to, NULL, v.list, indent, level);
    else if (v.kind == FAC_JINJA_DICT)
        json_items(r, to, &v.dict->keys, &v.dict->values, indent, level);
    else
        fac_jinja_fail(r, FAC_E_ARGUMENT, "tojson of %s", fac_jinja_kind_name(v));
    r->depth--;
}

void fac_jinja_json(run *r, out *to, value v, int indent) { json(r, to, v, indent, 0); }
