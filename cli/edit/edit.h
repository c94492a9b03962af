/* Between the files of `facula edit`. */
#ifndef FACULA_CLI_EDIT_H
#define FACULA_CLI_EDIT_H
#include "json.h"

/* What all steps may want to know. */
typedef struct edit_context {
    list keep; /* --keep: nodes whose floats stay */
    bool keep_ports;
    const ordered *rest;   /* the step at hand and those after it: nrest */
    int nrest, set_before; /* steps --set that an earlier one has done already */
    int set_counts[64];    /* how many nodes each of these changed, from the first of them */
    int nset;
    cJSON *json;    /* of the step at hand; NULL without --json */
    char what[400]; /* in words, what the step did */
} edit_context;

/* One step of the command line: *g becomes what it makes.  An exit code. */
int edit_step(edit_context *c, const ordered *s, fac_graph **g);

/* ---- edit_weights.c: steps that read tensors and models ---- */
fac_status edit_tensor(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                       fac_error *err);
fac_status edit_restore(edit_context *c, const char *path, const fac_graph *g, fac_graph **out,
                        fac_error *err);
fac_status edit_append(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                       fac_error *err);
fac_status edit_rules(edit_context *c, const char *path, const fac_graph *g, fac_graph **out,
                      fac_error *err);
fac_status edit_part(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                     fac_error *err);
fac_status edit_other_part(edit_context *c, const char *text, const fac_graph *g, fac_graph **out,
                           fac_error *err);

/* Puts a number into the report of the step. */
static inline void edit_count(edit_context *c, const char *key, double n) {
    if (c->json) cJSON_AddNumberToObject(c->json, key, n);
}
#define EDIT_SAID "%s", "" /* an error that is on stderr already */
/* An error of the command line's own. */
fac_status edit_fail(fac_error *err, const char *format, ...) FAC_PRINTF(2, 3);

/* A text cut at one character into pieces; NULL: no memory.  free() it.  *n: how many. */
char **edit_split(const char *text, char at, int *n);
#endif
