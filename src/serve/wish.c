/* Fields of requests.  Names are OpenAI's (https://platform.openai.com/docs/api-reference), and
 * those of samplers that others know: top_k, min_p, repeat_penalty, ignore_eos. */
#include "serve/wish_read.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

const cJSON *fac_wish_get(const cJSON *o, const char *name) {
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNull(x) ? NULL : x;
}

fac_status fac_wish_wrong(const char *name, const char *expected, fac_error *err) {
    return fac_raise(err, FAC_E_ARGUMENT, "%s: %s is expected", name, expected);
}

/* ---- numbers and flags: what is missing stays as it is ---- */

static fac_status real(const cJSON *o, const char *name, double from, double to, double *x,
                       fac_error *err) {
    const cJSON *v = fac_wish_get(o, name);
    if (!v) return FAC_OK;
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= from && v->valuedouble <= to))
        return fac_raise(err, FAC_E_ARGUMENT, "%s: a number from %g to %g is expected", name, from,
                         to);
    *x = v->valuedouble;
    return FAC_OK;
}

static fac_status whole(const cJSON *o, const char *name, double from, double to, int64_t *x,
                        fac_error *err) {
    double v = (double)*x;
    FAC_TRY(real(o, name, from, to, &v, err));
    if (v != floor(v)) return fac_wish_wrong(name, "a whole number", err);
    *x = (int64_t)v;
    return FAC_OK;
}

fac_status fac_wish_flag(const cJSON *o, const char *name, bool *x, fac_error *err) {
    const cJSON *v = fac_wish_get(o, name);
    if (!v) return FAC_OK;
    if (!cJSON_IsBool(v)) return fac_wish_wrong(name, "true or false", err);
    *x = cJSON_IsTrue(v);
    return FAC_OK;
}

/* ---- the sampler ---- */

static fac_status read_biases(const cJSON *o, fac_wish *w, fac_error *err) {
    const cJSON *all = fac_wish_get(o, "logit_bias");
    if (!all) return FAC_OK;
    if (!cJSON_IsObject(all)) return fac_wish_wrong("logit_bias", "{\"token\": bias}", err);
    fac_logit_bias *b = fac_arena_alloc(&w->arena, (size_t)cJSON_GetArraySize(all) + 1, sizeof *b);
    const cJSON *x;
    int n = 0;
    if (!b) return fac_raise_memory(err, "a request");
    cJSON_ArrayForEach(x, all) {
        char *end;
        const long id = strtol(x->string, &end, 10);
        const bool is_id = *x->string && !*end && id >= 0 && id <= INT32_MAX;
        if (!is_id || !cJSON_IsNumber(x))
            return fac_wish_wrong("logit_bias", "{\"token\": bias}", err);
        b[n++] = (fac_logit_bias){ (int32_t)id, (float)x->valuedouble };
    }
    w->how.sampler.bias = b;
    w->how.sampler.nbias = n;
    return FAC_OK;
}

static fac_status read_sampler(const cJSON *o, fac_wish *w, fac_error *err) {
    fac_sampler *s = &w->how.sampler;
    int64_t top_k = 0, last = 64, seed = -1;
    s->temperature = 1;
    s->top_p = 1;
    s->repeat = 1;
    FAC_TRY(real(o, "temperature", 0, 2, &s->temperature, err));
    FAC_TRY(real(o, "top_p", 0, 1, &s->top_p, err));
    FAC_TRY(real(o, "min_p", 0, 1, &s->min_p, err));
    FAC_TRY(real(o, "presence_penalty", -2, 2, &s->presence, err));
    FAC_TRY(real(o, "frequency_penalty", -2, 2, &s->frequency, err));
    FAC_TRY(real(o, "repetition_penalty", 0.01, 100, &s->repeat, err));
    FAC_TRY(real(o, "repeat_penalty", 0.01, 100, &s->repeat, err));
    FAC_TRY(whole(o, "top_k", 0, 1e9, &top_k, err));
    FAC_TRY(whole(o, "repeat_last_n", 1, 1e9, &last, err));
    FAC_TRY(whole(o, "seed", -9007199254740991, 9007199254740991, &seed, err));
    FAC_TRY(fac_wish_flag(o, "ignore_eos", &w->how.ignore_end, err));
    s->top_k = (int)top_k;
    s->last = (int)last;
    s->seed = (uint64_t)seed;
    w->seeded = fac_wish_get(o, "seed") != NULL;
    return read_biases(o, w, err);
}

static fac_status add_stop(fac_wish *w, const char **stops, const cJSON *x, fac_error *err) {
    const char *text = cJSON_GetStringValue(x);
    if (!text || !*text || w->how.nstop == FAC_WISH_STOPS)
        return fac_wish_wrong("stop", "a text or up to 16 of them, none empty", err);
    stops[w->how.nstop] = fac_arena_text(&w->arena, text);
    return stops[w->how.nstop++] ? FAC_OK : fac_raise_memory(err, "a request");
}

static fac_status read_stops(const cJSON *o, fac_wish *w, fac_error *err) {
    const cJSON *all = fac_wish_get(o, "stop"), *x;
    const char **stops = fac_arena_alloc(&w->arena, FAC_WISH_STOPS, sizeof *stops);
    if (!stops) return fac_raise_memory(err, "a request");
    w->how.stop = stops;
    if (!all) return FAC_OK;
    if (!cJSON_IsArray(all)) return add_stop(w, stops, all, err);
    cJSON_ArrayForEach(x, all) FAC_TRY(add_stop(w, stops, x, err));
    return FAC_OK;
}

/* ---- what is not there is said, so that nobody takes an answer for what it is not ---- */

static fac_status refuse(const cJSON *o, fac_error *err) {
    static const char *const names[] = { "functions", "echo",       "suffix",
                                         "audio",     "modalities", "prediction" };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const cJSON *x = fac_wish_get(o, names[k]);
        if (!x || cJSON_IsFalse(x) || (cJSON_IsArray(x) && !cJSON_GetArraySize(x))) continue;
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s: not supported", names[k]);
    }
    return FAC_OK;
}

/* {"type": "json_schema", "json_schema": {"schema": {...}}}, {"type": "json_object"}, {"type":
 * "text"} */
static fac_status read_format(const cJSON *o, fac_wish *w, fac_error *err) {
    const cJSON *x = fac_wish_get(o, "response_format"), *grammar = fac_wish_get(o, "grammar");
    const char *type = cJSON_GetStringValue(fac_wish_get(x, "type"));
    if (grammar && !cJSON_IsString(grammar)) return fac_wish_wrong("grammar", "a text", err);
    if (grammar) w->grammar = fac_arena_text(&w->arena, grammar->valuestring);
    if (grammar && !w->grammar) return fac_raise_memory(err, "a request");
    if (!x || (type && !strcmp(type, "text"))) return FAC_OK;
    if (grammar) return fac_wish_wrong("response_format", "no grammar beside it: text", err);
    const cJSON *schema = fac_wish_get(fac_wish_get(x, "json_schema"), "schema");
    if (!type || (strcmp(type, "json_object") && strcmp(type, "json_schema")))
        return fac_wish_wrong("response_format", "the type text, json_object or json_schema", err);
    if (*(type + 5) == 's' && !schema)
        return fac_wish_wrong("response_format", "json_schema.schema", err);
    char *text = schema ? cJSON_PrintUnformatted(schema) : NULL;
    w->schema = fac_arena_text(&w->arena, schema ? text : "{\"type\":\"object\"}");
    const bool lost = !w->schema;
    cJSON_free(text);
    return lost ? fac_raise_memory(err, "a request") : FAC_OK;
}

static fac_status read_logprobs(const cJSON *o, fac_wish_kind kind, fac_wish *w, fac_error *err) {
    int64_t most = 0;
    bool asked = false;
    w->logprobs = -1;
    if (kind == FAC_WISH_COMPLETE) {
        if (!fac_wish_get(o, "logprobs")) return FAC_OK;
        FAC_TRY(whole(o, "logprobs", 0, FAC_WISH_TOP, &most, err));
        w->logprobs = (int)most;
        return FAC_OK;
    }
    FAC_TRY(fac_wish_flag(o, "logprobs", &asked, err));
    FAC_TRY(whole(o, "top_logprobs", 0, FAC_WISH_TOP, &most, err));
    if (asked)
        w->logprobs = (int)most;
    else if (most)
        return fac_wish_wrong("logprobs", "true, where top_logprobs is given,", err);
    return FAC_OK;
}

static fac_status read_how(const cJSON *o, fac_wish_kind kind, fac_wish *w, fac_error *err) {
    int64_t choices = 1, best = 1;
    w->how.tokens = kind == FAC_WISH_COMPLETE ? 16 : 0;
    FAC_TRY(refuse(o, err));
    FAC_TRY(read_format(o, w, err));
    FAC_TRY(read_sampler(o, w, err));
    FAC_TRY(read_stops(o, w, err));
    FAC_TRY(whole(o, "max_tokens", 1, 1e9, &w->how.tokens, err));
    FAC_TRY(whole(o, "max_completion_tokens", 1, 1e9, &w->how.tokens, err));
    FAC_TRY(whole(o, "n", 1, 16, &choices, err));
    FAC_TRY(whole(o, "best_of", 1, 16, &best, err));
    if (best > choices) return fac_raise(err, FAC_E_UNSUPPORTED, "best_of: not supported");
    FAC_TRY(fac_wish_flag(o, "stream", &w->stream, err));
    FAC_TRY(fac_wish_flag(fac_wish_get(o, "stream_options"), "include_usage", &w->usage, err));
    w->choices = (int)choices;
    return read_logprobs(o, kind, w, err);
}

/* ---- messages ---- */

/* A text, or parts that are texts. */
static fac_status read_content(const cJSON *x, fac_wish *w, const char **to, fac_error *err) {
    static const char what[] = "a text, or parts of the type text,";
    const cJSON *part;
    size_t bytes = 1;
    if (cJSON_IsString(x))
        return (*to = fac_arena_text(&w->arena, x->valuestring))
                   ? FAC_OK
                   : fac_raise_memory(err, "a request");
    if (!cJSON_IsArray(x)) return fac_wish_wrong("content", what, err);
    cJSON_ArrayForEach(part, x) {
        const char *text = cJSON_GetStringValue(fac_wish_get(part, "text"));
        if (!text) return fac_wish_wrong("content", what, err);
        bytes += strlen(text);
    }
    char *all = fac_arena_alloc(&w->arena, bytes, 1);
    if (!all) return fac_raise_memory(err, "a request");
    *to = all;
    cJSON_ArrayForEach(part, x) all = stpcpy(all, cJSON_GetStringValue(fac_wish_get(part, "text")));
    return FAC_OK;
}

static const char *role_of(const cJSON *x) {
    static const char *const roles[] = { "system", "user", "assistant", "tool" };
    const char *role = cJSON_GetStringValue(fac_wish_get(x, "role"));
    for (int k = 0; role && k < 4; k++)
        if (!strcmp(role, roles[k])) return roles[k];
    return role && !strcmp(role, "developer") ? roles[0] : NULL;
}

static fac_status read_messages(const cJSON *o, fac_wish *w, fac_error *err) {
    const cJSON *all = fac_wish_get(o, "messages"), *x;
    const int n = cJSON_IsArray(all) ? cJSON_GetArraySize(all) : 0;
    if (!n) return fac_wish_wrong("messages", "a list of them", err);
    w->messages = fac_arena_alloc(&w->arena, (size_t)n, sizeof *w->messages);
    w->more = fac_arena_alloc(&w->arena, (size_t)n, sizeof *w->more);
    if (!w->messages || !w->more) return fac_raise_memory(err, "a request");
    cJSON_ArrayForEach(x, all) {
        const char **more = &w->more[w->nmessages];
        fac_message *m = &w->messages[w->nmessages++];
        m->role = role_of(x);
        if (!m->role)
            return fac_wish_wrong("role", "system, developer, user, assistant or tool", err);
        FAC_TRY(fac_wish_more(x, w, more, err));
        if (fac_wish_get(x, "tool_calls") && !fac_wish_get(x, "content")) continue;
        FAC_TRY(read_content(fac_wish_get(x, "content"), w, &m->text, err));
    }
    return FAC_OK;
}

/* ---- prompts ---- */

static fac_status read_ids(const char *name, const cJSON *all, fac_wish *w, fac_prompt *p,
                           fac_error *err) {
    const cJSON *x;
    p->ids = fac_arena_alloc(&w->arena, (size_t)cJSON_GetArraySize(all) + 1, sizeof *p->ids);
    if (!p->ids) return fac_raise_memory(err, "a request");
    cJSON_ArrayForEach(x, all) {
        const double id = cJSON_IsNumber(x) ? x->valuedouble : -1;
        if (!(id >= 0 && id <= INT32_MAX) || id != floor(id))
            return fac_wish_wrong(name, "a text, or tokens", err);
        p->ids[p->n++] = (int32_t)id;
    }
    return FAC_OK;
}

static fac_status read_prompt(const char *name, const cJSON *x, fac_wish *w, fac_error *err) {
    if (w->nprompts == FAC_WISH_PROMPTS) return fac_wish_wrong(name, "at most 64 of them", err);
    fac_prompt *p = &w->prompts[w->nprompts++];
    if (cJSON_IsArray(x)) return read_ids(name, x, w, p, err);
    if (!cJSON_IsString(x)) return fac_wish_wrong(name, "a text, or tokens", err);
    p->text = fac_arena_text(&w->arena, x->valuestring);
    return p->text ? FAC_OK : fac_raise_memory(err, "a request");
}

static fac_status read_prompts(const cJSON *o, const char *name, fac_wish *w, fac_error *err) {
    const cJSON *all = fac_wish_get(o, name), *x;
    w->prompts = fac_arena_alloc(&w->arena, FAC_WISH_PROMPTS, sizeof *w->prompts);
    if (!w->prompts) return fac_raise_memory(err, "a request");
    if (!all || (cJSON_IsArray(all) && !cJSON_GetArraySize(all)))
        return fac_wish_wrong(name, "a text, or tokens", err);
    if (!cJSON_IsArray(all) || cJSON_IsNumber(all->child)) return read_prompt(name, all, w, err);
    cJSON_ArrayForEach(x, all) FAC_TRY(read_prompt(name, x, w, err));
    return FAC_OK;
}

static fac_status read_tokens(const cJSON *o, fac_wish *w, fac_error *err) {
    const cJSON *all = fac_wish_get(o, "tokens");
    w->prompts = fac_arena_alloc(&w->arena, 1, sizeof *w->prompts);
    if (!w->prompts) return fac_raise_memory(err, "a request");
    if (!cJSON_IsArray(all)) return fac_wish_wrong("tokens", "a list of numbers", err);
    w->nprompts = 1;
    return read_ids("tokens", all, w, w->prompts, err);
}

static fac_status read_encoding(const cJSON *o, fac_wish *w, fac_error *err) {
    const cJSON *x = fac_wish_get(o, "encoding_format");
    const char *name = cJSON_GetStringValue(x);
    if (fac_wish_get(o, "dimensions"))
        return fac_raise(err, FAC_E_UNSUPPORTED, "dimensions: not supported");
    w->base64 = name && !strcmp(name, "base64");
    if (x && !w->base64 && !(name && !strcmp(name, "float")))
        return fac_wish_wrong("encoding_format", "float or base64", err);
    return FAC_OK;
}

/* ---- all of it ---- */

static fac_status read_fields(fac_wish_kind kind, const cJSON *o, fac_wish *w, fac_error *err) {
    if (!cJSON_IsObject(o)) return fac_raise(err, FAC_E_FORMAT, "the body is no JSON object");
    if (kind == FAC_WISH_WORDS) return read_tokens(o, w, err);
    if (kind == FAC_WISH_TOKENIZE) {
        FAC_TRY(fac_wish_flag(o, "add_special", &w->special, err));
        return read_prompts(o, "content", w, err);
    }
    if (kind == FAC_WISH_EMBED) {
        FAC_TRY(read_encoding(o, w, err));
        return read_prompts(o, "input", w, err);
    }
    FAC_TRY(read_how(o, kind, w, err));
    if (kind == FAC_WISH_CHAT) {
        FAC_TRY(fac_wish_tools(o, w, err));
        return read_messages(o, w, err);
    }
    return read_prompts(o, "prompt", w, err);
}

/* A zero byte, or what becomes one: texts would end there. */
static bool has_zero(const char *json, size_t bytes) {
    static const char zero[] = "\\u0000";
    if (memchr(json, 0, bytes)) return true;
    for (const char *s = json; (s = memmem(s, bytes - (size_t)(s - json), zero, 6)); s++) {
        size_t before = 0;
        while (s - json > (ptrdiff_t)before && s[-1 - (ptrdiff_t)before] == '\\') before++;
        if (before % 2 == 0) return true;
    }
    return false;
}

fac_status fac_wish_read(fac_wish_kind kind, const char *json, size_t bytes, fac_wish *w,
                         fac_error *err) {
    *w = (fac_wish){ .choices = 1, .logprobs = -1 };
    if (has_zero(json, bytes)) return fac_raise(err, FAC_E_FORMAT, "the body has a zero byte");
    cJSON *o = cJSON_ParseWithLength(json, bytes);
    if (!o) return fac_raise(err, FAC_E_FORMAT, "the body is no JSON");
    const fac_status status = read_fields(kind, o, w, err);
    cJSON_Delete(o);
    return status;
}

void fac_wish_free(fac_wish *w) { fac_arena_free(&w->arena); }
