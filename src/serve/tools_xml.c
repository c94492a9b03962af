/* Calls of tools that Qwen 3 Coder writes:
 *     <function=NAME>
 *     <parameter=NAME>
 *     value
 *     </parameter>
 *     </function> */
#include <string.h>
#include "base/memory.h"
#include "serve/marks.h"
#include "serve/tools.h"

static const char parameter[] = "<parameter=", parameter_end[] = "</parameter>";
static const char function_end[] = "</function>";
enum { NAME_BYTES = 128 };

/* The name after a mark at *at, up to '>', after which *at stands; false: there is none. */
static bool read_name(const char *s, size_t n, const char *mark, size_t *at,
                      char to[NAME_BYTES + 1]) {
    const size_t from = *at + strlen(mark);
    const char *end = from < n ? memchr(s + from, '>', n - from) : NULL;
    const size_t bytes = end ? (size_t)(end - s) - from : 0;
    if (!bytes || bytes > NAME_BYTES) return false;
    memcpy(to, s + from, bytes);
    to[bytes] = 0;
    *at = from + bytes + 1;
    return true;
}

/* The types of a tool's parameters, by their names; NULL: not given. */
static const cJSON *properties_of(const cJSON *tools, const char *name) {
    const cJSON *x;
    cJSON_ArrayForEach(x, tools) {
        const cJSON *f = cJSON_GetObjectItemCaseSensitive(x, "function");
        const cJSON *own = cJSON_GetObjectItemCaseSensitive(f, "name");
        if (!cJSON_IsString(own) || strcmp(own->valuestring, name)) continue;
        f = cJSON_GetObjectItemCaseSensitive(f, "parameters");
        return cJSON_GetObjectItemCaseSensitive(f, "properties");
    }
    return NULL;
}

/* Whether it may be a text; what has no type is one. */
static bool is_text(const cJSON *of) {
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(of, "type"), *x;
    if (!of) return true;
    if (cJSON_IsString(type)) return !strcmp(type->valuestring, "string");
    cJSON_ArrayForEach(x, type) {
        if (cJSON_IsString(x) && !strcmp(x->valuestring, "string")) return true;
    }
    return false;
}

/* A value of JSON and nothing after it, with all its digits, in Python's words too; NULL: none. */
static cJSON *json_of(const char *text) {
    if (!strcmp(text, "True")) return cJSON_CreateTrue();
    if (!strcmp(text, "False")) return cJSON_CreateFalse();
    if (!strcmp(text, "None")) return cJSON_CreateNull();
    cJSON *parsed = cJSON_ParseWithOpts(text, NULL, true);
    cJSON *raw = parsed ? cJSON_CreateRaw(text) : NULL;
    cJSON_Delete(parsed);
    return raw;
}

/* The line breaks next to the tags belong to them. */
static void add_argument(cJSON *to, const char *name, const cJSON *of, const char *s, size_t n) {
    const size_t from = n && *s == '\n', end = n > from && s[n - 1] == '\n' ? n - 1 : n;
    char *text = fac_alloc(end - from + 1, 1);
    if (!text) return;
    memcpy(text, s + from, end - from);
    cJSON *value = is_text(of) ? NULL : json_of(text);
    if (!value) value = cJSON_CreateString(text);
    if (value) cJSON_AddItemToObject(to, name, value);
    fac_release(text);
}

/* All parameters from *at on, after which *at stands. */
static bool read_arguments(cJSON *to, const cJSON *types, const char *s, size_t n, size_t *at) {
    char name[NAME_BYTES + 1];
    *at = fac_mark_skip(s, n, *at);
    while (fac_mark_begins(s + *at, n - *at, parameter)) {
        if (!read_name(s, n, parameter, at, name)) return false;
        const size_t bytes = fac_mark_find(s + *at, n - *at, parameter_end, true);
        if (bytes == n - *at) return false;
        const cJSON *of = cJSON_GetObjectItemCaseSensitive(types, name);
        add_argument(to, name, of, s + *at, bytes);
        *at = fac_mark_skip(s, n, *at + bytes + strlen(parameter_end));
    }
    return fac_mark_begins(s + *at, n - *at, function_end);
}

bool fac_xml_call(cJSON *to, const fac_wish *w, const char *s, size_t n, size_t *at) {
    char name[NAME_BYTES + 1];
    if (!read_name(s, n, FAC_XML_FUNCTION, at, name)) return false;
    cJSON *tools = cJSON_Parse(w->tools), *arguments = cJSON_CreateObject();
    const bool good = read_arguments(arguments, properties_of(tools, name), s, n, at);
    char *text = good ? cJSON_PrintUnformatted(arguments) : NULL;
    if (text) {
        cJSON *call = cJSON_CreateObject();
        cJSON_AddStringToObject(call, "name", name);
        cJSON_AddStringToObject(call, "arguments", text);
        cJSON_AddItemToArray(to, call);
        *at += strlen(function_end);
    }
    cJSON_free(text);
    cJSON_Delete(arguments);
    cJSON_Delete(tools);
    return text != NULL;
}
