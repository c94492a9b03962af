/* JSON for the pages: written piece by piece into a text, read from cJSON with clear errors. */
#ifndef FACULA_STUDIO_JSON_H
#define FACULA_STUDIO_JSON_H
#include <cjson/cJSON.h>
#include <stdint.h>
#include "base/text.h"

/* A quoted string; control characters are escaped, other bytes are unchanged. */
void fac_json_put_text(fac_text *to, const char *text);
/* Nine digits; NaN and infinities become strings, since JSON has none. */
void fac_json_put_number(fac_text *to, double x);
/* "key":, with a comma before it unless it is the first of its object. */
void fac_json_put_key(fac_text *to, const char *key);
void fac_json_put_pair(fac_text *to, const char *key, double x);
void fac_json_put_pair_text(fac_text *to, const char *key, const char *text);
void fac_json_put_pair_bool(fac_text *to, const char *key, bool yes);

/* A number of an object within low..high.  If it is absent, *out does not change; if it is wrong,
 * FAC_E_ARGUMENT names key and range. */
fac_status fac_json_real(const cJSON *o, const char *key, double low, double high, double *out,
                         fac_error *err);
fac_status fac_json_int(const cJSON *o, const char *key, int64_t low, int64_t high, int64_t *out,
                        fac_error *err);
fac_status fac_json_bool(const cJSON *o, const char *key, bool *out, fac_error *err);
/* NULL if it is absent or not a string. */
const char *fac_json_string_of(const cJSON *o, const char *key);
#endif
