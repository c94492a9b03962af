/* strtod and printf follow the caller's locale, where the point may be a comma.  Between begin and
 * end they follow C's, in this thread alone. */
#ifndef FACULA_BASE_POINT_H
#define FACULA_BASE_POINT_H
#include <locale.h>
#include <stdbool.h>

typedef struct fac_point {
    locale_t ours, callers;
} fac_point;

/* false: no memory, and nothing to end */
static inline bool fac_point_begin(fac_point *p) {
    p->ours = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (p->ours) p->callers = uselocale(p->ours);
    return p->ours;
}
static inline void fac_point_end(fac_point *p) {
    uselocale(p->callers);
    freelocale(p->ours);
}
#endif
