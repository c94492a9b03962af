/* Names of classes, and the best of a row of scores. */
#ifndef FACULA_CLI_LABELS_H
#define FACULA_CLI_LABELS_H
#include "cli.h"

typedef struct labels { char *text; char **names; int n; } labels;
int  labels_load(const char *path, labels *out);        /* one a line, of a file or a pipe; an exit code */
/* The same of the bytes of fac_read_text, which the labels own from now on. */
int  labels_parse(char *text, size_t bytes, const char *path, labels *out);
void labels_free(labels *l);
/* The name of a class of `classes`; ImageNet's for 1000 and (with a background class in front) 1001; else "class 7". */
const char *label_of(const labels *l, int index, int64_t classes, char *to, size_t size);

typedef struct best { int index; double p; } best;
/* Probabilities: the scores themselves when they are some already, else their softmax. */
int best_of(const float *scores, int64_t n, best *to, int most);
#endif
