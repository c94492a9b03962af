/* Calls of tools in the text of an answer, see tools.h. */
#include "serve/tools.h"
#include <string.h>

static const char tag[] = "<tool_call>", listed[] = "[TOOL_CALLS]", python[] = "<|python_tag|>";

fac_call_form fac_call_form_of(const char *jinja, const fac_wish *w) {
    if (!w->tools) return FAC_CALL_NONE;
    if (w->must_call) return FAC_CALL_MUST;
    if (jinja && strstr(jinja, listed)) return FAC_CALL_LIST;
    return jinja && strstr(jinja, tag) ? FAC_CALL_TAGS : FAC_CALL_JSON;
}

static bool is_blank(char c) { return c == ' ' || (c >= 9 && c <= 13); }

static size_t skip(const char *s, size_t n, size_t at) {
    while (at < n && is_blank(s[at])) at++;
    return at;
}

/* Without the blanks at its end. */
static size_t trimmed(const char *s, size_t n) {
    while (n && is_blank(s[n - 1])) n--;
    return n;
}

static bool begins(const char *s, size_t n, const char *with) {
    return n >= strlen(with) && !memcmp(s, with, strlen(with));
}

/* Where a mark stands, or what may become one at the end; n: nowhere. */
static size_t find(const char *s, size_t n, const char *mark, bool whole) {
    const size_t m = strlen(mark);
    for (size_t at = 0; at < n; at++) {
        const size_t left = n - at < m ? n - at : m;
        if ((left == m || !whole) && !memcmp(s + at, mark, left)) return at;
    }
    return n;
}

size_t fac_call_text(fac_call_form form, const char *s, size_t n) {
    if (form == FAC_CALL_NONE) return n;
    if (form == FAC_CALL_MUST) return 0;
    if (form != FAC_CALL_JSON)
        return trimmed(s, find(s, n, form == FAC_CALL_TAGS ? tag : listed, false));
    const size_t at = skip(s, n, 0);
    return at == n || s[at] == '{' || !find(s + at, n - at, python, false) ? 0 : n;
}

/* ---- calls ---- */

/* {"name": ..., "arguments" or "parameters": {...}} as a call; false: it is none. */
static bool add_call(cJSON *to, const cJSON *x) {
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(x, "name");
    const cJSON *of = cJSON_GetObjectItemCaseSensitive(x, "arguments");
    if (!of) of = cJSON_GetObjectItemCaseSensitive(x, "parameters");
    if (!cJSON_IsString(name) || (of && !cJSON_IsObject(of) && !cJSON_IsString(of))) return false;
    char *text = cJSON_IsObject(of) ? cJSON_PrintUnformatted(of) : NULL;
    const char *arguments = cJSON_IsString(of) ? of->valuestring : text;
    cJSON *call = cJSON_CreateObject();
    cJSON_AddStringToObject(call, "name", name->valuestring);
    cJSON_AddStringToObject(call, "arguments", arguments ? arguments : "{}");
    cJSON_AddItemToArray(to, call);
    cJSON_free(text);
    return true;
}

/* A value of JSON that begins at *at, after which *at stands; NULL: there is none. */
static cJSON *value_at(const char *s, size_t n, size_t *at) {
    const char *end = NULL;
    cJSON *x = cJSON_ParseWithLengthOpts(s + *at, n - *at, &end, false);
    if (x) *at = (size_t)(end - s);
    return x;
}

static bool add_value(cJSON *to, const char *s, size_t n, size_t *at) {
    cJSON *x = value_at(s, n, at);
    const cJSON *each;
    bool good = x != NULL;
    if (cJSON_IsArray(x))
        cJSON_ArrayForEach(each, x) good = good && add_call(to, each);
    else
        good = good && add_call(to, x);
    cJSON_Delete(x);
    return good;
}

static bool read_tags(cJSON *to, const char *s, size_t n, size_t at) {
    bool good = true;
    while (good && at < n) {
        at = skip(s, n, at + strlen(tag));
        good = add_value(to, s, n, &at);
        if (good) at += find(s + at, n - at, tag, true);
    }
    return good;
}

/* name{...} or name[ARGS]{...}, maybe with an id between them. */
static bool add_named(cJSON *to, const char *s, size_t n, size_t *at) {
    const char *brace = memchr(s + *at, '{', n - *at);
    size_t end = *at;
    if (!brace) return false;
    const size_t value = (size_t)(brace - s);
    while (end < value && s[end] != '[' && !is_blank(s[end])) end++;
    char name[129] = { 0 };
    if (end == *at || end - *at >= sizeof name) return false;
    memcpy(name, s + *at, end - *at);
    *at = value;
    cJSON *x = value_at(s, n, at), *call = cJSON_CreateObject();
    cJSON_AddStringToObject(call, "name", name);
    if (x) cJSON_AddItemToObject(call, "arguments", x);
    const bool good = cJSON_IsObject(x) && add_call(to, call);
    cJSON_Delete(call);
    return good;
}

static bool read_listed(cJSON *to, const char *s, size_t n, size_t at) {
    bool good = true;
    while (good && at < n) {
        at = skip(s, n, at + strlen(listed));
        const bool json = at < n && (s[at] == '[' || s[at] == '{');
        good = json ? add_value(to, s, n, &at) : add_named(to, s, n, &at);
        if (good) at += find(s + at, n - at, listed, true);
    }
    return good;
}

static bool is_known(const fac_wish *w, const char *name) {
    for (int k = 0; k < w->nnames; k++)
        if (!strcmp(name, w->names[k])) return true;
    return false;
}

/* Objects with ; or blanks between them, all of tools that there are: other JSON is an answer. */
static bool read_json(cJSON *to, const fac_wish *w, const char *s, size_t n, size_t at) {
    const cJSON *x;
    bool good = true;
    if (begins(s + at, n - at, python)) at = skip(s, n, at + strlen(python));
    while (good && at < n) {
        good = s[at] == '{' && add_value(to, s, n, &at);
        at = skip(s, n, at);
        if (good && at < n && s[at] == ';') at = skip(s, n, at + 1);
    }
    cJSON_ArrayForEach(x, to) good =
        good && is_known(w, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(x, "name")));
    return good;
}

cJSON *fac_calls_read(fac_call_form form, const fac_wish *w, const char *s, size_t n,
                      size_t *text) {
    size_t at = 0;
    bool good = false;
    *text = n;
    if (form == FAC_CALL_NONE) return NULL;
    cJSON *to = cJSON_CreateArray();
    if (form == FAC_CALL_TAGS || form == FAC_CALL_LIST) {
        at = find(s, n, form == FAC_CALL_TAGS ? tag : listed, true);
        good = form == FAC_CALL_TAGS ? read_tags(to, s, n, at) : read_listed(to, s, n, at);
    } else
        good = read_json(to, w, s, n, skip(s, n, 0));
    while (w->one_call && cJSON_GetArraySize(to) > 1) cJSON_DeleteItemFromArray(to, 1);
    if (good && cJSON_GetArraySize(to)) {
        *text = trimmed(s, at);
        return to;
    }
    cJSON_Delete(to);
    return NULL;
}
