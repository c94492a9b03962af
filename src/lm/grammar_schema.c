/* JSON Schema (https://json-schema.org/draft/2020-12) as the text of a grammar.  Each schema
 * becomes a rule; properties come in the order of the schema, those that are not required may be
 * left out. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "lm/grammar.h"

enum { MOST_DEPTH = 64, MOST_RULES = 4096 };

static const char common_rules[] =
    "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "char ::= [^\"\\\\\\x00-\\x1F\\x7F] | \"\\\\\" ([\"\\\\bfnrt/] | \"u\" [0-9a-fA-F]{4})\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15})\n"
    "number ::= integer (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?\n"
    "boolean ::= \"true\" | \"false\"\n"
    "null ::= \"null\"\n"
    "any ::= object | array | string | number | boolean | null\n"
    "object ::= \"{\" ws (string \":\" ws any (\",\" ws string \":\" ws any)*)? ws \"}\"\n"
    "array ::= \"[\" ws (any (\",\" ws any)*)? ws \"]\"\n";

typedef struct writing {
    fac_text rules; /* that are finished */
    const cJSON *root;
    const cJSON *refs[64]; /* schemas that $ref names, and their rules */
    int of_ref[64], nrefs;
    int count, depth;
    fac_error *err;
} writing;

static const cJSON *get(const cJSON *o, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

static fac_status refuse(const writing *w, const char *what) {
    return fac_raise(w->err, FAC_E_UNSUPPORTED, "JSON schema: %s", what);
}

/* A text of the grammar: the characters of s, quoted. */
static void add_literal(fac_text *t, const char *s) {
    fac_text_add(t, "\"");
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fac_text_print(t, "\\%c", c);
        else if (c < 0x20)
            fac_text_print(t, "\\x%02x", c);
        else
            fac_text_add_bytes(t, s, 1);
    }
    fac_text_add(t, "\"");
}

/* A value as JSON writes it. */
static fac_status add_value(writing *w, fac_text *t, const cJSON *x) {
    char *text = cJSON_PrintUnformatted(x);
    if (!text) return fac_raise_memory(w->err, "a schema");
    add_literal(t, text);
    cJSON_free(text);
    return FAC_OK;
}

static fac_status put_schema(writing *w, const cJSON *s, fac_text *t);

static fac_status count_of(const writing *w, const cJSON *s, const char *name, int missing,
                           int *to) {
    const cJSON *x = get(s, name);
    *to = missing;
    if (!x) return FAC_OK;
    if (!cJSON_IsNumber(x) || !(x->valuedouble >= 0 && x->valuedouble <= 2000))
        return refuse(w, "minItems, maxItems, minLength and "
                         "maxLength are from 0 to 2000");
    *to = x->valueint;
    return FAC_OK;
}

/* Both ends of how many; *high < 0: without end. */
static fac_status counts_of(writing *w, const cJSON *s, const char *least, const char *most,
                            int *low, int *high) {
    FAC_TRY(count_of(w, s, least, 0, low));
    FAC_TRY(count_of(w, s, most, -1, high));
    if (*high < 0 || *low <= *high) return FAC_OK;
    return refuse(w, "minItems or minLength is above maxItems or maxLength");
}

/* {low,high}; high < 0: without end */
static void add_times(fac_text *t, int low, int high) {
    fac_text_print(t, high < 0 ? "{%d,}" : "{%d,%d}", low, high);
}

static fac_status put_string(writing *w, const cJSON *s, fac_text *t) {
    int low, high;
    if (get(s, "pattern")) return refuse(w, "pattern is not known");
    FAC_TRY(counts_of(w, s, "minLength", "maxLength", &low, &high));
    fac_text_add(t, "\"\\\"\" char");
    add_times(t, low, high);
    fac_text_add(t, " \"\\\"\"");
    return FAC_OK;
}

static fac_status put_array(writing *w, const cJSON *s, fac_text *t) {
    int low, high;
    fac_text item = { 0 };
    if (get(s, "prefixItems")) return refuse(w, "prefixItems is not known");
    FAC_TRY(counts_of(w, s, "minItems", "maxItems", &low, &high));
    fac_status status = get(s, "items") ? put_schema(w, get(s, "items"), &item) : FAC_OK;
    const char *one = item.s ? item.s : "any";
    fac_text_add(t, "\"[\" ws ");
    if (high != 0) {
        fac_text_print(t, "(%s (\",\" ws %s)", one, one);
        const int more = low > 1 ? low - 1 : 0;
        add_times(t, more, high < 0 ? -1 : high - 1);
        fac_text_add(t, low ? ")" : ")?");
    }
    fac_text_add(t, " ws \"]\"");
    if (item.failed) t->failed = true;
    fac_text_free(&item);
    return status;
}

/* ---- objects ---- */

static bool is_required(const cJSON *s, const char *name) {
    const cJSON *x;
    cJSON_ArrayForEach(x, get(s, "required")) {
        const char *text = cJSON_GetStringValue(x);
        if (text && !strcmp(text, name)) return true;
    }
    return false;
}

static fac_status put_pair(writing *w, const cJSON *property, fac_text *t) {
    cJSON *name = cJSON_CreateStringReference(property->string);
    fac_status status = name ? add_value(w, t, name) : fac_raise_memory(w->err, "a schema");
    cJSON_Delete(name);
    fac_text_add(t, " \":\" ws ");
    return status ? status : put_schema(w, property, t);
}

/* Pairs first, as rules of their own, then the chain of what may be left out. */
static fac_status put_chain(writing *w, const cJSON *s, const cJSON *all, int stem) {
    const cJSON *p;
    int at = 0;
    cJSON_ArrayForEach(p, all) {
        fac_text pair = { 0 };
        const fac_status status = put_pair(w, p, &pair);
        if (!status) fac_text_print(&w->rules, "o%d-p%d ::= %s\n", stem, at, pair.s ? pair.s : "");
        if (pair.failed) w->rules.failed = true;
        fac_text_free(&pair);
        if (status) return status;
        at++;
    }
    const int n = at;
    at = 0;
    cJSON_ArrayForEach(p, all) {
        const bool must = is_required(s, p->string);
        fac_text_print(&w->rules, "o%d-f%d ::= o%d-p%d o%d-n%d%s", stem, at, stem, at, stem, at + 1,
                       must ? "\n" : " | ");
        if (!must) fac_text_print(&w->rules, "o%d-f%d\n", stem, at + 1);
        fac_text_print(&w->rules, "o%d-n%d ::= \",\" ws o%d-p%d o%d-n%d%s", stem, at, stem, at,
                       stem, at + 1, must ? "\n" : " | ");
        if (!must) fac_text_print(&w->rules, "o%d-n%d\n", stem, at + 1);
        at++;
    }
    fac_text_print(&w->rules, "o%d-f%d ::= \"\"\no%d-n%d ::= \"\"\n", stem, n, stem, n);
    return FAC_OK;
}

static fac_status put_object(writing *w, const cJSON *s, fac_text *t) {
    const cJSON *all = get(s, "properties"), *x;
    if (get(s, "patternProperties")) return refuse(w, "patternProperties is not known");
    if (!all || !cJSON_GetArraySize(all)) {
        if (cJSON_GetArraySize(get(s, "required")))
            return refuse(w, "required names what properties do not have");
        fac_text_add(t, "object");
        return FAC_OK;
    }
    cJSON_ArrayForEach(x, get(s, "required")) {
        const char *name = cJSON_GetStringValue(x);
        if (!name || !get(all, name))
            return refuse(w, "required names what properties do not have");
    }
    const int stem = w->count++;
    FAC_TRY(put_chain(w, s, all, stem));
    fac_text_print(t, "\"{\" ws o%d-f0 ws \"}\"", stem);
    return FAC_OK;
}

/* ---- all kinds ---- */

static fac_status put_choices(writing *w, const cJSON *all, fac_text *t, bool schemas) {
    const cJSON *x;
    int n = 0;
    fac_text_add(t, "(");
    cJSON_ArrayForEach(x, all) {
        if (n++) fac_text_add(t, " | ");
        FAC_TRY(schemas ? put_schema(w, x, t) : add_value(w, t, x));
    }
    fac_text_add(t, ")");
    return n ? FAC_OK : refuse(w, "a list of no choices");
}

/* "#/$defs/name" and the like: a rule of its own, which may name itself. */
static fac_status put_ref(writing *w, const char *path, fac_text *t) {
    const cJSON *to = w->root;
    char part[256];
    if (*path != '#') return refuse(w, "a $ref that leaves the schema");
    for (path++; *path == '/' && to;) {
        const size_t n = strcspn(++path, "/");
        if (n >= sizeof part) return refuse(w, "a $ref that is too long");
        memcpy(part, path, n);
        part[n] = 0;
        to = get(to, part);
        path += n;
    }
    if (!to) return refuse(w, "a $ref that leads nowhere");
    for (int k = 0; k < w->nrefs; k++)
        if (w->refs[k] == to) {
            fac_text_print(t, "r%d", w->of_ref[k]);
            return FAC_OK;
        }
    if (w->nrefs == 64) return refuse(w, "more than 64 schemas with $ref");
    const int rule = w->count++;
    w->refs[w->nrefs] = to;
    w->of_ref[w->nrefs++] = rule;
    fac_text body = { 0 };
    const fac_status status = put_schema(w, to, &body);
    fac_text_print(&w->rules, "r%d ::= %s\n", rule, body.s ? body.s : "");
    if (body.failed) w->rules.failed = true;
    fac_text_free(&body);
    fac_text_print(t, "r%d", rule);
    return status;
}

static fac_status put_type(writing *w, const cJSON *s, const char *type, fac_text *t) {
    static const char *const plain[] = { "integer", "number", "boolean", "null" };
    static const char *const bounds[] = { "minimum", "maximum", "exclusiveMinimum",
                                          "exclusiveMaximum", "multipleOf" };
    if (!strcmp(type, "object")) return put_object(w, s, t);
    if (!strcmp(type, "array")) return put_array(w, s, t);
    if (!strcmp(type, "string")) return put_string(w, s, t);
    for (int k = 0; k < 5; k++)
        if (get(s, bounds[k])) return refuse(w, "minimum, maximum and multipleOf are not known");
    for (int k = 0; k < 4; k++)
        if (!strcmp(type, plain[k])) {
            fac_text_add(t, type);
            return FAC_OK;
        }
    return refuse(w, "type is none of object, array, string, integer, number, boolean, null");
}

static fac_status put_types(writing *w, const cJSON *s, const cJSON *types, fac_text *t) {
    const cJSON *x;
    int n = 0;
    if (cJSON_IsString(types)) return put_type(w, s, types->valuestring, t);
    fac_text_add(t, "(");
    cJSON_ArrayForEach(x, types) {
        if (!cJSON_IsString(x)) return refuse(w, "type is a text or a list of texts");
        if (n++) fac_text_add(t, " | ");
        FAC_TRY(put_type(w, s, x->valuestring, t));
    }
    fac_text_add(t, ")");
    return n ? FAC_OK : refuse(w, "type is a text or a list of texts");
}

static fac_status put_inside(writing *w, const cJSON *s, fac_text *t) {
    const cJSON *one = get(s, "anyOf") ? get(s, "anyOf") : get(s, "oneOf");
    const char *ref = cJSON_GetStringValue(get(s, "$ref"));
    if (cJSON_IsTrue(s)) {
        fac_text_add(t, "any");
        return FAC_OK;
    }
    if (!cJSON_IsObject(s)) return refuse(w, "a schema is an object or true");
    if (get(s, "allOf") || get(s, "not") || get(s, "if"))
        return refuse(w, "allOf, not and if are not known");
    if (ref) return put_ref(w, ref, t);
    if (get(s, "const")) return add_value(w, t, get(s, "const"));
    if (get(s, "enum")) return put_choices(w, get(s, "enum"), t, false);
    if (one) return put_choices(w, one, t, true);
    if (get(s, "type")) return put_types(w, s, get(s, "type"), t);
    if (get(s, "properties")) return put_object(w, s, t);
    fac_text_add(t, "any");
    return FAC_OK;
}

static fac_status put_schema(writing *w, const cJSON *s, fac_text *t) {
    if (w->depth >= MOST_DEPTH || w->count >= MOST_RULES)
        return refuse(w, "deeper than 64, or more than 4096 rules");
    w->depth++;
    const fac_status status = put_inside(w, s, t);
    w->depth--;
    return status;
}

fac_status fac_grammar_of_schema(const char *schema, size_t bytes, char **text, fac_error *err) {
    cJSON *root = cJSON_ParseWithLength(schema, bytes);
    fac_text body = { 0 };
    if (!root) return fac_raise(err, FAC_E_FORMAT, "JSON schema: it is no JSON");
    writing w = { .root = root, .err = err };
    fac_status status = put_schema(&w, root, &body);
    fac_text_print(&w.rules, "root ::= %s\n%s", body.s ? body.s : "", common_rules);
    if (!status && (w.rules.failed || body.failed)) status = fac_raise_memory(err, "a schema");
    if (status)
        fac_text_free(&w.rules);
    else
        *text = w.rules.s;
    fac_text_free(&body);
    cJSON_Delete(root);
    return status;
}
