/* Sizes as text.  See facula/report/analyze.h. */
#include <stdio.h>
#include "base/optional.h"
#include "facula/report/analyze.h"

const char *fac_dims_text(const fac_graph *g, const fac_dims *dims, char *to, size_t size) {
    size_t n = 0;
    to[0] = 0;
    for (int k = 0; k < dims->n && n < size; k++) {
        const char *between = k ? "x" : "", *name = NULL;
        if (dims->d[k] < 0) name = fac_symbol_name(g, dims->d[k]);
        const int more = dims->d[k] < 0
                             ? snprintf(to + n, size - n, "%s%s", between, fac_text_or(name, "?"))
                             : snprintf(to + n, size - n, "%s%lld", between, (long long)dims->d[k]);
        n += (size_t)more;
    }
    if (!dims->n) snprintf(to, size, "scalar");
    return to;
}
