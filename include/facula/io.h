/* facula/io.h: tensors in files.
 *
 * .npy / .npz (NumPy; stored and deflated entries), .safetensors, .gguf (llama.cpp's; weights stay
 * in their blocks), PyTorch .pth/.pt in both containers (legacy pickle and zip), read by an
 * interpreter that executes nothing and refuses any other opcode or global by name. Contents are
 * borrowed from the mapped file where the format allows it.  Writing is atomic: a new file, then a
 * rename. */
#ifndef FACULA_IO_H
#define FACULA_IO_H

#include "facula/tensor.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* Named tensors, in the order of the file. */
typedef struct fac_weights fac_weights;

/* By the file's contents, not by its name.  FAC_E_FORMAT for a file that is broken,
 * FAC_E_UNSUPPORTED for one without a single tensor that can be read, FAC_E_IO, FAC_E_NOMEM. */
fac_status fac_weights_load(const char *path, fac_weights **out, fac_error *err);
/* Frees the list; tensors that were retained stay.  NULL is fine. */
void fac_weights_free(fac_weights *w);
/* How many tensors were read. */
int fac_weights_count(const fac_weights *w);
/* The name of tensor i, 0 <= i < fac_weights_count; it lives as long as w. */
const char *fac_weights_name(const fac_weights *w, int i);
fac_tensor *fac_weights_tensor(const fac_weights *w, int i); /* borrowed from w */
fac_tensor *fac_weights_find(const fac_weights *w,
                             const char *name); /* borrowed from w; NULL if there is none */

/* Entries of a file that is in order which cannot be tensors here: complex numbers, float8, sparse
 * tensors, Python objects. They are skipped, so that others can be had; who wants one of them finds
 * out why it is missing.  All texts belong to w. */
typedef struct fac_skipped {
    const char *name, *why; /* "freqs", "elements of type complex64" */
    int before;             /* so many tensors stand before it in the file */
} fac_skipped;
int fac_weights_skipped(const fac_weights *w); /* how many */
/* Entry i of those that were skipped; texts live as long as w. */
fac_skipped fac_weights_skipped_at(const fac_weights *w, int i);
const char *fac_weights_why(const fac_weights *w,
                            const char *name); /* NULL: no such entry was skipped */

/* A tensor of NumPy's file; *out is the caller's.  FAC_E_IO, FAC_E_FORMAT, FAC_E_UNSUPPORTED (a
 * dtype), FAC_E_NOMEM. */
fac_status fac_npy_load(const char *path, fac_tensor **out, fac_error *err);
/* The file appears whole or not at all. */
fac_status fac_npy_save(const fac_tensor *t, const char *path, fac_error *err);
/* n tensors under their names, uncompressed; the file appears whole or not at all. */
fac_status fac_npz_save(const char *path, int n, const char *const names[], fac_tensor *const t[],
                        fac_error *err);
/* The same, tensor by tensor, so that they need not be in memory together.  The file appears when
 * it is closed. */
typedef struct fac_npz fac_npz;
fac_status fac_npz_open(const char *path, fac_npz **out, fac_error *err);
/* Writes one tensor; names are unique.  After an error only fac_npz_cancel remains. */
fac_status fac_npz_add(fac_npz *z, const char *name, const fac_tensor *t, fac_error *err);
fac_status fac_npz_close(fac_npz *z, fac_error *err); /* frees z in any case */
void fac_npz_cancel(fac_npz *z);                      /* NULL is fine */
/* n tensors under their names; the file appears whole or not at all.  FAC_E_UNSUPPORTED: a dtype
 * that the format has not. */
fac_status fac_safetensors_save(const char *path, int n, const char *const names[],
                                fac_tensor *const t[], fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
