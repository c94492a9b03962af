/* facula/content.h: what a file is by its contents, so that a message can say what was given
 * instead of what was wanted. */
#ifndef FACULA_CONTENT_H
#define FACULA_CONTENT_H

#include <stddef.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef enum fac_content_kind {
    FAC_CONTENT_UNKNOWN,
    FAC_CONTENT_PICTURE,       /* one that fac_image_load reads              */
    FAC_CONTENT_OTHER_PICTURE, /* GIF, WebP, TIFF...                         */
    FAC_CONTENT_ARRAYS,        /* .npy, .npz                                 */
    FAC_CONTENT_WEIGHTS,       /* .safetensors, .gguf, PyTorch's .pth        */
    FAC_CONTENT_MODEL,         /* ONNX                                       */
    FAC_CONTENT_OTHER_MODEL,   /* TorchScript, TensorFlow Lite, Keras...   */
    FAC_CONTENT_OTHER          /* an archive, a program, a document...       */
} fac_content_kind;

/* name: with its article, as "a GIF picture"; NULL when it is unknown. */
typedef struct fac_content {
    fac_content_kind kind;
    const char *name;
} fac_content;

/* By the first bytes of a file; 4096 are enough.  A guess for messages, not a check: the readers
 * judge for themselves. */
fac_content fac_content_of(const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
