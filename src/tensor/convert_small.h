/* convert_loops.h for a float of 8 or 4 bits, whose format is FORMAT. */
#define T uint8_t
#define AS_FLOAT(x) ((float)fac_small_to_f64(FORMAT, x))
#define AS_DOUBLE(x) fac_small_to_f64(FORMAT, x)
#define AS_INT SMALL_INT
#define OF_FLOAT(x) fac_f64_to_small_float(FORMAT, (double)(x))
#define OF_DOUBLE(x) fac_f64_to_small_float(FORMAT, x)
#define OF_INT(x) fac_f64_to_small_float(FORMAT, (double)(x))
#include "tensor/convert_loops.h"
#undef FORMAT
