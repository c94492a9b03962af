/* What a conversation brings beside texts: tools that the model may call, calls that it made,
 * variables of its template, what becomes of thoughts. */
#include <string.h>
#include "base/error.h"
#include "serve/wish_read.h"

static fac_status keep(fac_wish *w, const cJSON *x, const char **to, fac_error *err) {
    char *text = x ? cJSON_PrintUnformatted(x) : NULL;
    *to = text ? fac_arena_text(&w->arena, text) : NULL;
    cJSON_free(text);
    return *to ? FAC_OK : fac_raise_memory(err, "a request");
}

/* ---- tools ---- */

static const char *name_of(const cJSON *tool) {
    const char *type = cJSON_GetStringValue(fac_wish_get(tool, "type"));
    const char *name = cJSON_GetStringValue(fac_wish_get(fac_wish_get(tool, "function"), "name"));
    const bool fits = name && *name && strlen(name) <= 128;
    return type && !strcmp(type, "function") && fits ? name : NULL;
}

static fac_status check_tools(const cJSON *all, fac_wish *w, fac_error *err) {
    static const char what[] = "a list of {\"type\": \"function\", \"function\": {\"name\": ..., "
                               "\"parameters\": {...}}}";
    const cJSON *x;
    if (!cJSON_IsArray(all)) return fac_wish_wrong("tools", what, err);
    w->names = fac_arena_alloc(&w->arena, (size_t)cJSON_GetArraySize(all) + 1, sizeof *w->names);
    if (!w->names) return fac_raise_memory(err, "a request");
    cJSON_ArrayForEach(x, all) {
        const char *name = name_of(x);
        const cJSON *parameters = fac_wish_get(fac_wish_get(x, "function"), "parameters");
        if (!name || (parameters && !cJSON_IsObject(parameters)))
            return fac_wish_wrong("tools", what, err);
        w->names[w->nnames] = fac_arena_text(&w->arena, name);
        if (!w->names[w->nnames++]) return fac_raise_memory(err, "a request");
    }
    return FAC_OK;
}

/* ---- which of them ---- */

/* JSON of a call of one tool; strict: with what its parameters say. */
static cJSON *call_of(const cJSON *tool, bool strict) {
    const cJSON *function = fac_wish_get(tool, "function");
    const cJSON *parameters = fac_wish_get(function, "parameters");
    cJSON *call = cJSON_CreateObject(), *fields = cJSON_AddObjectToObject(call, "properties");
    cJSON *name = cJSON_AddObjectToObject(fields, "name"), *arguments = NULL;
    cJSON_AddStringToObject(call, "type", "object");
    cJSON_AddStringToObject(name, "const", name_of(tool));
    if (strict && parameters) arguments = cJSON_Duplicate(parameters, true);
    if (!arguments) {
        arguments = cJSON_CreateObject();
        cJSON_AddStringToObject(arguments, "type", "object");
    }
    cJSON_AddItemToObject(fields, "arguments", arguments);
    cJSON *required = cJSON_AddArrayToObject(call, "required");
    cJSON_AddItemToArray(required, cJSON_CreateString("name"));
    cJSON_AddItemToArray(required, cJSON_CreateString("arguments"));
    return call;
}

/* Of those tools that a call may be of; only: its name, NULL: any. */
static fac_status schema_of(const cJSON *tools, const char *only, bool strict, fac_wish *w,
                            const char **to, fac_error *err) {
    cJSON *schema = cJSON_CreateObject(), *any = cJSON_AddArrayToObject(schema, "anyOf");
    const cJSON *x;
    cJSON_ArrayForEach(x, tools) {
        if (!only || !strcmp(only, name_of(x))) cJSON_AddItemToArray(any, call_of(x, strict));
    }
    const fac_status status = keep(w, schema, to, err);
    cJSON_Delete(schema);
    return status;
}

static fac_status must_call(const cJSON *tools, const char *only, fac_wish *w, fac_error *err) {
    bool known = !only;
    for (int k = 0; k < w->nnames && only; k++) known |= !strcmp(only, w->names[k]);
    if (!known || !w->nnames) return fac_wish_wrong("tool_choice", "one of the tools", err);
    if (w->schema || w->grammar)
        return fac_wish_wrong("tool_choice", "auto or none beside response_format or grammar", err);
    w->must_call = true;
    FAC_TRY(schema_of(tools, only, true, w, &w->schema, err));
    return schema_of(tools, only, false, w, &w->loose, err);
}

static fac_status read_choice(const cJSON *o, const cJSON *tools, fac_wish *w, fac_error *err) {
    const cJSON *x = fac_wish_get(o, "tool_choice");
    const char *word = cJSON_GetStringValue(x);
    const char *name = cJSON_GetStringValue(fac_wish_get(fac_wish_get(x, "function"), "name"));
    if (!x || (word && !strcmp(word, "auto"))) return FAC_OK;
    if (word && !strcmp(word, "none")) {
        w->tools = NULL;
        return FAC_OK;
    }
    if (name || (word && !strcmp(word, "required"))) return must_call(tools, name, w, err);
    return fac_wish_wrong(
        "tool_choice",
        "none, auto, required or {\"type\": \"function\", \"function\": {\"name\": ...}}", err);
}

/* As llama.cpp's server has it. */
static fac_status read_reasoning(const cJSON *o, fac_wish *w, fac_error *err) {
    const cJSON *x = fac_wish_get(o, "reasoning_format");
    const char *word = cJSON_GetStringValue(x);
    if (!x) return FAC_OK;
    w->raw_thoughts = word && !strcmp(word, "none");
    if (w->raw_thoughts || (word && (!strcmp(word, "auto") || !strcmp(word, "deepseek"))))
        return FAC_OK;
    return fac_wish_wrong("reasoning_format", "none, auto or deepseek", err);
}

fac_status fac_wish_tools(const cJSON *o, fac_wish *w, fac_error *err) {
    const cJSON *tools = fac_wish_get(o, "tools"),
                *variables = fac_wish_get(o, "chat_template_kwargs");
    bool many = true;
    if (variables && !cJSON_IsObject(variables))
        return fac_wish_wrong("chat_template_kwargs", "an object", err);
    if (variables) FAC_TRY(keep(w, variables, &w->variables, err));
    FAC_TRY(fac_wish_flag(o, "parallel_tool_calls", &many, err));
    w->one_call = !many;
    FAC_TRY(read_reasoning(o, w, err));
    if (tools) FAC_TRY(check_tools(tools, w, err));
    if (w->nnames) FAC_TRY(keep(w, tools, &w->tools, err));
    return read_choice(o, tools, w, err);
}

/* ---- messages ---- */

/* Clients send the arguments of a call as a text, templates want what it says. */
static fac_status read_calls(const cJSON *calls, cJSON *more, fac_error *err) {
    cJSON *copy = cJSON_Duplicate(calls, true), *x;
    if (!cJSON_IsArray(copy)) {
        cJSON_Delete(copy);
        return fac_wish_wrong("tool_calls", "a list", err);
    }
    cJSON_AddItemToObject(more, "tool_calls", copy);
    cJSON_ArrayForEach(x, copy) {
        cJSON *function = cJSON_GetObjectItemCaseSensitive(x, "function");
        const cJSON *text = fac_wish_get(function, "arguments");
        if (!cJSON_GetStringValue(fac_wish_get(function, "name")))
            return fac_wish_wrong("tool_calls", "{\"function\": {\"name\": ...}}", err);
        cJSON *parsed = cJSON_IsString(text) ? cJSON_Parse(text->valuestring) : NULL;
        if (cJSON_IsObject(parsed))
            cJSON_ReplaceItemInObjectCaseSensitive(function, "arguments", parsed);
        else
            cJSON_Delete(parsed);
    }
    return FAC_OK;
}

static fac_status copy_text(const cJSON *x, const char *name, cJSON *more, fac_error *err) {
    const cJSON *v = fac_wish_get(x, name);
    if (v && !cJSON_IsString(v)) return fac_wish_wrong(name, "a text", err);
    if (v) cJSON_AddStringToObject(more, name, v->valuestring);
    return FAC_OK;
}

static fac_status read_more(const cJSON *x, cJSON *more, fac_error *err) {
    static const char *const texts[] = { "tool_call_id", "name", "reasoning_content" };
    const cJSON *calls = fac_wish_get(x, "tool_calls");
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        FAC_TRY(copy_text(x, texts[k], more, err));
    return calls ? read_calls(calls, more, err) : FAC_OK;
}

fac_status fac_wish_more(const cJSON *x, fac_wish *w, const char **to, fac_error *err) {
    cJSON *more = cJSON_CreateObject();
    *to = NULL;
    fac_status status = more ? read_more(x, more, err) : fac_raise_memory(err, "a request");
    if (!status && more->child) status = keep(w, more, to, err);
    cJSON_Delete(more);
    return status;
}
