/* Weights in blocks: a few bits for each and a scale for all of a block, as GGUF files hold them.
 */
#ifndef FACULA_TENSOR_BLOCKS_H
#define FACULA_TENSOR_BLOCKS_H
#include <stdbool.h>
#include <stddef.h>
#include "facula/tensor.h"

enum { FAC_BLOCK_MOST = 256 }; /* elements of the largest block */

/* n elements, whole blocks of a type of kind 'q', as floats.  Products are rounded to f32 in the
 * order in which GGUF's reference takes them, so the same bits come out. */
void fac_blocks_decode(fac_dtype type, const void *from, float *to, size_t n);

/* Which of the types floats can be rounded to, and how. */
bool fac_blocks_encodes(fac_dtype type);
void fac_blocks_encode(fac_dtype type, const float *from, void *to, size_t n);
#endif
