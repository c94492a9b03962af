/* Turns a drawing into an image as MNIST's were made: scaled into 20 x 20, with its centre of mass
 * in the middle of 28 x 28 (LeCun et al. 1998). */
#ifndef FACULA_STUDIO_SKETCH_H
#define FACULA_STUDIO_SKETCH_H
#include <stdint.h>
#include "facula/status.h"
#include "studio/server/json.h"

enum { SKETCH_SIDE = 28 };

/* strokes: [[x, y, x, y, ...], ...] within 0..1, y downwards; at most 100 strokes and 2,000 points.
 * to: 28 x 28, 0 to 255; all 0 for an empty drawing. */
fac_status fac_sketch_read(const cJSON *strokes, uint8_t *to, fac_error *err);
#endif
