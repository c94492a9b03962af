/* convert_loops.h for an integer of fewer than 8 bits in a byte: FEW(x) cuts off what is above. */
#define AS_FLOAT CAST_FLOAT
#define AS_DOUBLE CAST_DOUBLE
#define AS_INT CAST_INT
#define OF_FLOAT(x) FEW(wrap((double)(x)))
#define OF_DOUBLE(x) FEW(wrap(x))
#define OF_INT FEW
#include "tensor/convert_loops.h"
#undef FEW
