/* Loops of one type, where the sign matters: a template.  NAME ends the names, T is the type. */
MAP(JOIN(max, NAME), T, 2, x > y ? x : y)
MAP(JOIN(min, NAME), T, 2, x < y ? x : y)
#define RAISED (x < y ? y : x)
MAP(JOIN(clip, NAME), T, 3, RAISED > z ? z : RAISED)
#undef RAISED
MAP(JOIN(less, NAME), uint8_t, 2, x < y)
MAP(JOIN(less_equal, NAME), uint8_t, 2, x <= y)
#undef NAME
#undef T
