/* Names of classes, and where they come from. */
#ifndef FACULA_CLI_LABELS_H
#define FACULA_CLI_LABELS_H
#include "cli.h"

typedef struct labels {
    fac_labels *names; /* NULL: ImageNet's for 1000 or 1001 classes, else numbers */
    const char *from;  /* "option", "metadata", "sidecar"; NULL without names     */
    char file[4096];   /* of an option or a sidecar                               */
} labels;

/* Those of a file (--labels), else what the model's metadata or a file beside it says, else none;
 * an exit code. */
int labels_find(const model *m, const char *path, labels *out);
/* There must be as many as scores.  A file that was asked for is an error otherwise, an exit code;
 * of names that came with the model that is said, and they are left out. */
int labels_fit(labels *l, int64_t classes);
void labels_free(labels *l);
/* for people and machines: "metadata", "imagenet", "none" */
const char *labels_from(const labels *l, int64_t classes);
/* The name of a class, or "class 7". */
const char *label_of(const fac_class *c, char *to, size_t size);
/* Classes of a data set become the labels of a graph that is to be written; NULL: the graph has
 * none.  Too many are left out, which is said.  An exit code. */
int labels_note(fac_graph *g, int classes, const char *const *names);
#endif
