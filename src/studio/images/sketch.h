/* Lines that somebody drew become an image as those of MNIST were made: what was drawn, scaled into
 * 20 x 20, its centre of mass in the middle of 28 x 28 (LeCun et al. 1998). */
#ifndef FACULA_STUDIO_SKETCH_H
#define FACULA_STUDIO_SKETCH_H
#include <stdint.h>
#include "facula/status.h"
#include "studio/server/json.h"

enum { SKETCH_SIDE = 28 };

/* strokes: [[x, y, x, y, ...], ...] within 0..1, y downwards; at most 100 strokes of 2,000 points
 * in all.  to: 28 x 28, 0 to 255; all 0 where nothing was drawn. */
fac_status fac_sketch_read(const cJSON *strokes, uint8_t *to, fac_error *err);
#endif
