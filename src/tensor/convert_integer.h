/* convert_loops.h for an integer type T. */
#define AS_FLOAT CAST_FLOAT
#define AS_DOUBLE CAST_DOUBLE
#define AS_INT CAST_INT
#define OF_FLOAT WRAP_T
#define OF_DOUBLE WRAP_T
#define OF_INT CAST_T
#include "tensor/convert_loops.h"
