/* Named tensors in files, inside the library: one reader for each format, all fed with sections of
 * files. */
#ifndef FACULA_TENSOR_WEIGHTS_H
#define FACULA_TENSOR_WEIGHTS_H
#include "base/arena.h"
#include "base/file/file.h"
#include "base/text.h"
#include "facula/io.h"
#include "tensor/zip.h"

/* What fac_weights_load does with a file; `name` leads its errors.  The tensors retain the file. */
fac_status fac_weights_parse(fac_file *file, const char *name, fac_weights **out, fac_error *err);

/* Without tensors yet; NULL: no memory. */
fac_weights *fac_weights_new(void);

/* Adds a tensor and takes the caller's reference to it, also when it fails: FAC_E_FORMAT for a name
 * that is there already or is longer than FAC_NAME.  The bound keeps a small file from asking for
 * much memory by nesting long names. */
enum { FAC_NAME = 1023 };
fac_status fac_weights_add(fac_weights *w, const char *name, size_t length, fac_tensor *t,
                           fac_error *err);

/* An entry that cannot be a tensor here, and why: FAC_E_FORMAT for a name that is there already. */
fac_status fac_weights_skip(fac_weights *w, const char *name, size_t length, const char *why,
                            fac_error *err);

/* One .npy, all of the section. */
fac_status fac_npy_parse(const fac_section *s, fac_tensor **out, fac_error *err);
/* The same as an entry of w; one that is sound but cannot be a tensor here is skipped. */
fac_status fac_npy_add(const fac_section *s, const char *name, size_t length, fac_weights *w,
                       fac_error *err);

fac_status fac_npz_read(const fac_zip *zip, fac_weights *w, fac_error *err);
fac_status fac_safetensors_read(fac_file *file, fac_weights *w, fac_error *err);

/* PyTorch: the zip container of version 1.6 on, and what was before. */
const fac_zip_entry *fac_pth_find(const fac_zip *zip); /* its data.pkl; NULL if there is none */
fac_status fac_pth_read_zip(const fac_zip *zip, fac_weights *w, fac_error *err);
fac_status fac_pth_read_legacy(fac_file *file, fac_weights *w, fac_error *err);

/* Contents alone, row-major without gaps, from wherever the tensor is. */
fac_status fac_tensor_put(const fac_tensor *t, fac_writer *to, fac_error *err);

/* The bytes of a contiguous tensor as .npy has them: a header, then data that holder keeps alive.
 */
typedef struct fac_npy {
    fac_text header;
    const void *data;
    size_t bytes;
    fac_tensor *holder;
} fac_npy;
fac_status fac_npy_encode(const fac_tensor *t, fac_npy *out, fac_error *err);
void fac_npy_free(fac_npy *npy);
#endif
