/* The files of a folder as inputs for a model, one run after the other. */
#ifndef FACULA_CLI_SAMPLE_FILES_H
#define FACULA_CLI_SAMPLE_FILES_H
#include "inputs.h"

typedef struct sample_files {
    char **at;
    int n, folders;
} sample_files;

/* Photos and tensors (.npy, .npz, .pb) in a folder, sorted; an error where there are none. */
int sample_files_list(const char *folder, sample_files *out);
void sample_files_free(sample_files *s); /* and clears; an empty one is fine */

typedef fac_status sample_take(void *self, fac_tensor *const in[], fac_error *err);
typedef struct sample_walk {
    const model *m;
    const input_options *input;
    const verb *v;
    long most; /* samples; files are chosen evenly */
    sample_take *take;
    void *self;
    long taken;
    const char *path; /* of the file at hand */
    photo_plan plan;  /* of the last photo */
} sample_walk;

/* A file is a sample; of several inputs a .npz has one entry each, by name.  A tensor with more
 * samples than the model takes at once is several.  An exit code. */
int sample_files_walk(sample_walk *w, const sample_files *s);
#endif
