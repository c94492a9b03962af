/* JSON for the pages. */
#include "studio/server/json.h"
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "facula/text.h"

void fac_json_put_text(fac_text *to, const char *text) {
    fac_text_add(to, "\"");
    for (const char *p = text; *p; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            fac_text_print(to, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fac_text_print(to, "\\u%04x", c);
        else
            fac_text_add_bytes(to, p, 1);
    }
    fac_text_add(to, "\"");
}

void fac_json_put_number(fac_text *to, double x) {
    if (isfinite(x))
        fac_text_print(to, "%.9g", x);
    else if (isnan(x))
        fac_text_add(to, "\"NaN\"");
    else
        fac_text_add(to, x > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

void fac_json_put_key(fac_text *to, const char *key) {
    if (to->n && to->s[to->n - 1] != '{') fac_text_add(to, ",");
    fac_json_put_text(to, key);
    fac_text_add(to, ":");
}

void fac_json_put_pair(fac_text *to, const char *key, double x) {
    fac_json_put_key(to, key);
    fac_json_put_number(to, x);
}

void fac_json_put_pair_text(fac_text *to, const char *key, const char *text) {
    fac_json_put_key(to, key);
    fac_json_put_text(to, text);
}

void fac_json_put_pair_bool(fac_text *to, const char *key, bool yes) {
    fac_json_put_key(to, key);
    fac_text_add(to, yes ? "true" : "false");
}

static const cJSON *get(const cJSON *o, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

fac_status fac_json_real(const cJSON *o, const char *key, double low, double high, double *out,
                         fac_error *err) {
    const cJSON *j = get(o, key);
    if (!j) return FAC_OK;
    if (!cJSON_IsNumber(j) || !(j->valuedouble >= low && j->valuedouble <= high))
        return fac_raise(err, FAC_E_ARGUMENT, "%s must be a number from %g to %g", key, low, high);
    *out = j->valuedouble;
    return FAC_OK;
}

fac_status fac_json_int(const cJSON *o, const char *key, int64_t low, int64_t high, int64_t *out,
                        fac_error *err) {
    double x = 0;
    if (!get(o, key)) return FAC_OK;
    FAC_TRY(fac_json_real(o, key, (double)low, (double)high, &x, err));
    if (x != floor(x))
        return fac_raise(err, FAC_E_ARGUMENT, "%s must be an integer, not %g", key, x);
    *out = (int64_t)x;
    return FAC_OK;
}

fac_status fac_json_bool(const cJSON *o, const char *key, bool *out, fac_error *err) {
    const cJSON *j = get(o, key);
    if (j && !cJSON_IsBool(j))
        return fac_raise(err, FAC_E_ARGUMENT, "%s must be true or false", key);
    if (j) *out = cJSON_IsTrue(j);
    return FAC_OK;
}

const char *fac_json_string_of(const cJSON *o, const char *key) {
    return cJSON_GetStringValue(get(o, key));
}
