/* Calls of tools in the text of an answer, see tools.h. */
#include "serve/tools.h"
#include <string.h>
#include "serve/marks.h"

static const char tag[] = "<tool_call>", listed[] = "[TOOL_CALLS]", python[] = "<|python_tag|>";

fac_call_form fac_call_form_of(const char *jinja, const fac_wish *w) {
    if (!w->tools) return FAC_CALL_NONE;
    if (w->must_call) return FAC_CALL_MUST;
    if (jinja && strstr(jinja, listed)) return FAC_CALL_LIST;
    if (jinja && strstr(jinja, FAC_XML_FUNCTION)) return FAC_CALL_XML;
    return jinja && strstr(jinja, tag) ? FAC_CALL_TAGS : FAC_CALL_JSON;
}

/* Where calls begin, or may begin at the end; n: nowhere. */
static size_t mark_at(fac_call_form form, const char *s, size_t n, bool whole) {
    if (form == FAC_CALL_LIST) return fac_mark_find(s, n, listed, whole);
    const size_t at = fac_mark_find(s, n, tag, whole);
    if (form == FAC_CALL_TAGS) return at;
    const size_t bare = fac_mark_find(s, n, FAC_XML_FUNCTION, whole);
    return at < bare ? at : bare;
}

size_t fac_call_text(fac_call_form form, const char *s, size_t n) {
    if (form == FAC_CALL_NONE) return n;
    if (form == FAC_CALL_MUST) return 0;
    if (form != FAC_CALL_JSON) return fac_mark_trim(s, mark_at(form, s, n, false));
    const size_t at = fac_mark_skip(s, n, 0);
    if (at == n || s[at] == '{') return 0;
    return fac_mark_find(s + at, n - at, python, false) ? n : 0;
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

static bool read_tags(fac_call_form form, const fac_wish *w, cJSON *to, const char *s, size_t n,
                      size_t at) {
    bool good = true;
    while (good && at < n) {
        if (fac_mark_begins(s + at, n - at, tag)) at = fac_mark_skip(s, n, at + strlen(tag));
        if (form == FAC_CALL_XML && fac_mark_begins(s + at, n - at, FAC_XML_FUNCTION))
            good = fac_xml_call(to, w, s, n, &at);
        else
            good = add_value(to, s, n, &at);
        if (good) at += mark_at(form, s + at, n - at, true);
    }
    return good;
}

/* name{...} or name[ARGS]{...}, maybe with an id between them. */
static bool add_named(cJSON *to, const char *s, size_t n, size_t *at) {
    const char *brace = memchr(s + *at, '{', n - *at);
    size_t end = *at;
    if (!brace) return false;
    const size_t value = (size_t)(brace - s);
    while (end < value && s[end] != '[' && !fac_mark_blank(s[end])) end++;
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
        at = fac_mark_skip(s, n, at + strlen(listed));
        const bool json = at < n && (s[at] == '[' || s[at] == '{');
        good = json ? add_value(to, s, n, &at) : add_named(to, s, n, &at);
        if (good) at += fac_mark_find(s + at, n - at, listed, true);
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
    if (fac_mark_begins(s + at, n - at, python)) at = fac_mark_skip(s, n, at + strlen(python));
    while (good && at < n) {
        good = s[at] == '{' && add_value(to, s, n, &at);
        at = fac_mark_skip(s, n, at);
        if (good && at < n && s[at] == ';') at = fac_mark_skip(s, n, at + 1);
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
    if (form == FAC_CALL_MUST || form == FAC_CALL_JSON)
        good = read_json(to, w, s, n, fac_mark_skip(s, n, 0));
    else {
        at = mark_at(form, s, n, true);
        if (form == FAC_CALL_LIST)
            good = read_listed(to, s, n, at);
        else
            good = read_tags(form, w, to, s, n, at);
    }
    while (w->one_call && cJSON_GetArraySize(to) > 1) cJSON_DeleteItemFromArray(to, 1);
    if (good && cJSON_GetArraySize(to)) {
        *text = fac_mark_trim(s, at);
        return to;
    }
    cJSON_Delete(to);
    return NULL;
}
