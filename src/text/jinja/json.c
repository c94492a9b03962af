/* Values of templates from JSON: tools, calls of them, what else a conversation brings.  All its
 * texts count as said by somebody, so none becomes a control token. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>
#include "text/jinja/jinja.h"

typedef fac_jinja_run run;
typedef fac_jinja_value value;

/* cJSON's texts go with the document; this one has a zero at its end, too. */
static value text_of(run *r, const char *s) {
    const size_t n = strlen(s);
    char *copy = fac_jinja_alloc(r, 2 * n + 1, 1);
    if (!copy) return fac_jinja_string("");
    memcpy(copy, s, n + 1);
    memset(copy + n + 1, FAC_JINJA_MESSAGE, n);
    return (value){ .kind = FAC_JINJA_TEXT, .text = { copy, copy + n + 1, n } };
}

static value number_of(double x) {
    if (x == floor(x) && fabs(x) < 1e15) return fac_jinja_int((int64_t)x);
    return (value){ .kind = FAC_JINJA_FLOAT, .f = x };
}

static value value_of(run *r, const cJSON *j);

static value items_of(run *r, const cJSON *j) {
    const bool pairs = cJSON_IsObject(j);
    const value all =
        pairs ? fac_jinja_new_dict(r, FAC_JINJA_DICT) : fac_jinja_new_list(r, FAC_JINJA_LIST);
    const cJSON *x;
    if (!fac_jinja_deeper(r)) return all;
    cJSON_ArrayForEach(x, j) {
        const value v = value_of(r, x);
        const value key = pairs ? text_of(r, x->string) : v;
        if (r->status) break;
        if (pairs)
            fac_jinja_put(r, all.dict, key, v);
        else
            fac_jinja_add(r, all.list, v);
    }
    r->depth--;
    return all;
}

static value value_of(run *r, const cJSON *j) {
    if (!fac_jinja_step(r)) return fac_jinja_int(0);
    if (cJSON_IsBool(j)) return fac_jinja_bool(cJSON_IsTrue(j));
    if (cJSON_IsNumber(j)) return number_of(j->valuedouble);
    if (cJSON_IsString(j)) return text_of(r, j->valuestring);
    if (cJSON_IsNull(j)) return (value){ .kind = FAC_JINJA_NONE };
    return items_of(r, j);
}

static cJSON *read(run *r, const char *text, const char *what, bool object) {
    cJSON *j = cJSON_Parse(text);
    if (j && (object ? cJSON_IsObject(j) : cJSON_IsArray(j))) return j;
    fac_jinja_fail(r, FAC_E_ARGUMENT, "%s: no JSON %s", what, object ? "object" : "list");
    cJSON_Delete(j);
    return NULL;
}

value fac_jinja_from_json(run *r, const char *text, const char *what) {
    cJSON *j = read(r, text, what, false);
    const value v = j ? value_of(r, j) : (value){ .kind = FAC_JINJA_NONE };
    cJSON_Delete(j);
    return v;
}

void fac_jinja_fields(run *r, fac_jinja_dict *to, const char *text, const char *what) {
    cJSON *j = read(r, text, what, true);
    const cJSON *x;
    cJSON_ArrayForEach(x, j) {
        const value key = text_of(r, x->string), v = value_of(r, x);
        if (r->status) break;
        if (to)
            fac_jinja_put(r, to, key, v);
        else
            fac_jinja_define(r, key.text.s, v);
    }
    cJSON_Delete(j);
}
