/* Records of a text table: tab- or comma-separated fields of a line. */
#ifndef FACULA_DATA_TEXT_RECORD_H
#define FACULA_DATA_TEXT_RECORD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "facula/status.h"

enum { FAC_COLUMNS = 256 };

typedef struct fac_field {
    const char *s;
    size_t n;
    bool quoted;
} fac_field; /* quoted: a quote inside stands doubled */

typedef struct fac_records {
    const char *at, *end, *name;
    int64_t line;   /* of `at`, from 1 */
    char separator; /* with a comma, quotes have their meaning */
    fac_field fields[FAC_COLUMNS];
    int nfields;
} fac_records;

/* The fields of the next record that is not empty; *line is where it begins.  nfields 0: there is
 * none. */
fac_status fac_record_next(fac_records *t, int64_t *line, fac_error *err);
#endif
