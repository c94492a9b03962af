/* Shared by the files of the studio's server. */
#ifndef FACULA_STUDIO_STUDIO_H
#define FACULA_STUDIO_STUDIO_H
#include "facula/http.h"
#include "facula/studio.h"
#include "studio/server/table.h"

struct fac_studio {
    studio_means with;
    fac_http *http;
    table sessions;
    char key[33], address[128];
};

/* routes.c */
extern const fac_http_route fac_studio_routes[];
extern const int fac_studio_nroutes;

/* assets.c: a compiled-in file; NULL: unknown path. */
typedef struct asset {
    const char *path, *type, *text;
} asset;
const asset *fac_asset_find(const char *path);
const asset *fac_asset_at(int k); /* NULL after the last one */

/* sandbox.c: one question, one answer. */
typedef struct question {
    const char *name;
    fac_status (*answer)(const cJSON *what, fac_text *to, fac_error *err);
} question;
extern const question fac_questions[]; /* ends with a NULL name */

/* sandbox_export.c: the file what.file of the question `name`; *type: its media type.
 * FAC_E_ARGUMENT: unknown name. */
fac_status fac_sandbox_file(const char *name, const cJSON *what, fac_text *to, const char **type,
                            fac_error *err);
#endif
