#include "labels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int labels_load(const char *path, labels *out) {
    FILE *f = fopen(path, "rb");
    labels l = { 0 };
    size_t used = 0, room = 0;
    if (!f) return fail_text("%s: cannot be opened", path);
    for (;;) {
        if (used + 4096 > room) {
            char *more = realloc(l.text, room = 2 * room + 8192);
            if (!more) break;
            l.text = more;
        }
        size_t n = fread(l.text + used, 1, 4096, f);
        if (!n) break;
        used += n;
    }
    bool bad = ferror(f);
    fclose(f);
    if (bad || !l.text || !used) {
        free(l.text);
        return fail_text("%s: %s", path, bad || !l.text ? "cannot be read" : "is empty");
    }
    l.text[used] = 0;
    for (char *line = strtok(l.text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        char **more = realloc(l.names, (size_t)(l.n + 1) * sizeof *more);
        if (!more) {
            labels_free(&l);
            return fail_text("out of memory");
        }
        l.names = more;
        l.names[l.n++] = line;
    }
    *out = l;
    return EXIT_OK;
}

void labels_free(labels *l) {
    free(l->text);
    free(l->names);
    *l = (labels){ 0 };
}

int labels_fit(const labels *l, const char *path, int64_t classes) {
    if (l->n == classes) return EXIT_OK;
    return fail_text("%s: %d name%s, the model gives %lld score%s", path, l->n, plural(l->n),
                     (long long)classes, plural((double)classes));
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
