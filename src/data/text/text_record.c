/* Records of a text table: a record a line, columns apart by a tab or a comma.  Comma-separated
 * ones are read as RFC 4180 says: a field may stand in quotes, a quote inside is doubled, line ends
 * inside belong to the text. */
#include <string.h>
#include "base/error.h"
#include "data/text/text_record.h"

static fac_status quoted_field(fac_records *t, fac_field *f, fac_error *err) {
    const char *p = t->at + 1;
    const int64_t first = t->line;
    for (; p < t->end; p++) {
        if (*p == '"' && (p + 1 == t->end || p[1] != '"')) break;
        if (*p == '"')
            p++;
        else if (*p == '\n')
            t->line++;
    }
    if (p == t->end)
        return fac_raise(err, FAC_E_FORMAT, "%s:%lld: a quote is opened and never closed", t->name,
                         (long long)first);
    *f = (fac_field){ t->at + 1, (size_t)(p - t->at - 1), true };
    t->at = p + 1;
    if (t->end - t->at > 1 && t->at[0] == '\r' && t->at[1] == '\n') t->at++;
    if (t->at < t->end && *t->at != t->separator && *t->at != '\n')
        return fac_raise(err, FAC_E_FORMAT, "%s:%lld: text after a closing quote", t->name,
                         (long long)t->line);
    return FAC_OK;
}

static void plain_field(fac_records *t, fac_field *f) {
    const char *p = t->at;
    while (p < t->end && *p != t->separator && *p != '\n') p++;
    const bool cr = p > t->at && p[-1] == '\r' && (p == t->end || *p == '\n');
    *f = (fac_field){ t->at, (size_t)(p - t->at) - cr, false };
    t->at = p;
}

fac_status fac_record_next(fac_records *t, int64_t *line, fac_error *err) {
    do {
        bool more = t->at < t->end;
        *line = t->line;
        for (t->nfields = 0; more;) {
            if (t->nfields == FAC_COLUMNS)
                return fac_raise(err, FAC_E_FORMAT, "%s:%lld: more than %d columns", t->name,
                                 (long long)*line, FAC_COLUMNS);
            fac_field *f = &t->fields[t->nfields++];
            if (t->separator == ',' && t->at < t->end && *t->at == '"')
                FAC_TRY(quoted_field(t, f, err));
            else
                plain_field(t, f);
            more = t->at < t->end && *t->at == t->separator;
            if (t->at == t->end) break;
            if (*t->at++ == '\n') t->line++;
        }
    } while (t->nfields == 1 && !t->fields[0].n && !t->fields[0].quoted);
    return FAC_OK;
}
