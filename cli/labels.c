#include "labels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 64 << 20 };

/* One a line; empty lines are none. */
static int count_lines(const char *text) {
    int n = 0;
    for (const char *p = text + strspn(text, "\r\n"); *p; p += strspn(p, "\r\n")) {
        p += strcspn(p, "\r\n");
        n++;
    }
    return n;
}

int labels_parse(char *text, size_t bytes, const char *path, labels *out) {
    labels l = { .text = text };
    const bool zero = memchr(text, 0, bytes) != NULL;
    const int n = count_lines(text);
    if (!zero && n) l.names = malloc((size_t)n * sizeof *l.names);
    if (!l.names) {
        labels_free(&l);
        if (zero) return fail_text("%s: holds no names: there is a zero byte in it", path);
        return n ? fail_text("out of memory") : fail_text("%s: is empty", path);
    }
    char *rest = NULL;
    for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) l.names[l.n++] = line;
    *out = l;
    return EXIT_OK;
}

int labels_load(const char *path, labels *out) {
    fac_error err = { 0 };
    char *text;
    size_t bytes;
    if (fac_read_text(path, LONGEST, FAC_READ_FILE_OR_PIPE, &text, &bytes, &err)) return fail(&err);
    return labels_parse(text, bytes, path, out);
}

void labels_free(labels *l) {
    fac_read_free(l->text);
    free(l->names);
    *l = (labels){ 0 };
}

const char *label_of(const labels *l, int index, int64_t classes, char *to, size_t size) {
    const char *name = NULL;
    if (l->n) name = index < l->n ? l->names[index] : NULL;
    else if (classes == 1000) name = fac_imagenet_name(index);
    else if (classes == 1001) name = index ? fac_imagenet_name(index - 1) : "background";
    if (name) return name;
    snprintf(to, size, "class %d", index);
    return to;
}

int best_of(const float *scores, int64_t n, best *to, int most) {
    double sum = 0, top = -INFINITY, total = 0;
    bool probabilities = true;
    for (int64_t i = 0; i < n; i++) {
        sum += scores[i];
        top = fmax(top, scores[i]);
        probabilities &= scores[i] >= 0 && scores[i] <= 1.001f;
    }
    probabilities &= fabs(sum - 1) < 1e-2;
    for (int64_t i = 0; i < n && !probabilities; i++) total += exp(scores[i] - top);
    int found = 0;
    for (int64_t i = 0; i < n; i++) {
        double p = probabilities ? scores[i] : exp(scores[i] - top) / total;
        int k = found < most ? found : most;
        while (k > 0 && (to[k - 1].p < p || isnan(to[k - 1].p))) k--;
        if (k >= most) continue;
        if (found < most) found++;
        for (int j = found - 1; j > k; j--) to[j] = to[j - 1];
        to[k] = (best){ (int)i, p };
    }
    return found;
}
