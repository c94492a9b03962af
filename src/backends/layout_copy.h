/* Moves between layouts in host memory. */
#ifndef FACULA_BACKENDS_LAYOUT_COPY_H
#define FACULA_BACKENDS_LAYOUT_COPY_H
#include "facula/backend.h"

/* Any layout to any other, for every dtype. */
void fac_copy_layout(const fac_type *type, const void *from, const fac_layout *from_layout,
                     void *to, const fac_layout *to_layout);
/* Writes the zeros around the planes of a layout with a halo. */
void fac_zero_halo(const fac_type *type, void *memory, const fac_layout *layout);
#endif
