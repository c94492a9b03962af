/* Where a node stands in the tree of modules.
 *
 * Graphs built here have scopes: "layer1.0.conv1".  PyTorch's exporter says the same in the names
 * of ONNX nodes, with the whole path inside each container once more and the op after it:
 * "/features/features.0/features.0.0/Conv" (in our graphs with dots for slashes).  Repetitions and
 * the op's own name are taken away, so both forms give the same tree. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "passes/common/select.h"
#include "base/optional.h"

enum { PARTS = 64 };

typedef struct part {
    const char *s;
    size_t n;
} part;

static bool same(part x, part y) { return x.n == y.n && !memcmp(x.s, y.s, x.n); }

/* Appends the parts at p but what repeats the end of out: features, features.0 -> features.0 */
static int without_repeats(const part *p, int n, part *out) {
    int m = 0;
    for (int i = 0; i < n;) {
        int skip = 0;
        for (int j = 1; j <= m && i + j < n;
             j++) { /* something must follow, or it is a child of the same name */
            bool repeats = true;
            for (int k = 0; k < j && repeats; k++) repeats = same(p[i + k], out[m - j + k]);
            if (repeats) skip = j;
        }
        if (skip) i += skip;
        out[m++] = p[i++];
    }
    return m;
}

/* "Conv", "Relu_1": an ONNX operator, not a module. */
static bool is_operator(part p) { return p.n && isupper((unsigned char)p.s[0]); }

/* "conv1.conv2d", "relu.relu_3", "fc.linear": our own exporter names a node by its module and the
 * operator that it was, which may be another one in the file.  Elsewhere only the node's own
 * operator is taken for that. */
static bool is_own(part p, const fac_node *n) {
    char op[64];
    const char *producer = fac_graph_note(n->graph, FAC_NOTE_PRODUCER);
    size_t length = p.n;
    while (length && isdigit((unsigned char)p.s[length - 1])) length--;
    const bool numbered = length && length < p.n && p.s[length - 1] == '_';
    if (snprintf(op, sizeof op, "%.*s", (int)(numbered ? length - 1 : p.n), p.s) >= (int)sizeof op)
        return false;
    return !strcmp(op, n->op->name) || (producer && !strcmp(producer, "facula") && fac_op_find(op));
}

static int split(const char *s, part *to) {
    int n = 0;
    while (*s && n < PARTS) {
        const size_t length = strcspn(s, "./");
        if (length) to[n++] = (part){ s, length };
        s += length + (s[length] != 0);
    }
    return n;
}

const char *fac_module_path(fac_arena *a, const fac_node *n) {
    part parts[PARTS], out[PARTS];
    const bool named = n->name && *n->name;
    int count = split(named ? n->name : fac_text_or(n->scope, ""), parts);
    if (count && is_operator(parts[count - 1]))
        count--;
    else if (named && count > 1 && is_own(parts[count - 1], n))
        count--;
    count = without_repeats(parts, count, out);
    size_t bytes = 1;
    for (int k = 0; k < count; k++) bytes += out[k].n + 1;
    char *path = fac_arena_alloc(a, bytes, 1), *to = path;
    for (int k = 0; path && k < count; k++) {
        if (k) *to++ = '.';
        memcpy(to, out[k].s, out[k].n);
        to += out[k].n;
    }
    return path;
}
