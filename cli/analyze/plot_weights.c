/* facula plot --weights: how the numbers of each parameter of a trained model are spread. */
#include <string.h>
#include "facula/view.h"
#include "plot.h"

enum { MOST = 24, COLUMNS = 4 };

typedef struct spread {
    char title[96];
    fac_histogram h;
    double x[FAC_BUCKETS], y[FAC_BUCKETS];
    fac_series bars;
} spread;

static fac_status measure(const char *name, const fac_tensor *t, spread *s, fac_error *err) {
    fac_status status = fac_histogram_of(t, &s->h, err);
    if (status) return status;
    char shape[64];
    fac_dims dims = fac_tensor_type(t).dims;
    snprintf(s->title, sizeof s->title, "%.40s  %s", name,
             dims_text(NULL, &dims, shape, sizeof shape));
    for (int k = 0; k < s->h.buckets; k++) {
        s->x[k] = ((k ? s->h.limit[k - 1] : s->h.min) + s->h.limit[k]) / 2;
        s->y[k] = (double)s->h.in[k];
    }
    s->bars = (fac_series){ NULL, s->h.buckets, s->x, s->y, dims.n > 1 ? 0 : 1, FAC_STROKE_BARS };
    return FAC_OK;
}

/* The first MOST parameters: a picture has no room for more. */
static int draw(const fac_weights *w, const char *path, const plot_look *look) {
    static spread spreads[MOST];
    fac_panel panels[MOST];
    fac_error err = { 0 };
    char subtitle[96];
    int all = fac_weights_count(w), n = all < MOST ? all : MOST;
    for (int i = 0; i < n; i++) {
        if (measure(fac_weights_name(w, i), fac_weights_tensor(w, i), &spreads[i], &err))
            return fail(&err);
        panels[i] = (fac_panel){ .title = spreads[i].title, .n = 1, .series = &spreads[i].bars };
    }
    snprintf(subtitle, sizeof subtitle,
             n < all  ? "the first %d of %d parameters"
             : n == 1 ? "%d parameter"
                      : "%d parameters",
             n, all);
    const int rows = n ? (n + COLUMNS - 1) / COLUMNS : 1;
    const fac_chart chart = { .title = look->title,
                              .subtitle = subtitle,
                              .n = n,
                              .panels = panels,
                              .columns = COLUMNS,
                              .width = look->width ? look->width : 1400,
                              .height = look->height ? look->height : 110 + 250 * rows };
    if (fac_chart_save(&chart, path, &err)) return fail(&err);
    printf("%s\n", path);
    return EXIT_OK;
}

int plot_weights(const char *dir, const char *to, const plot_look *look) {
    char from[4096], path[4096];
    fac_weights *w;
    fac_error err = { 0 };
    snprintf(from, sizeof from, "%s/model.safetensors", dir);
    snprintf(path, sizeof path, "%s/weights.%s", dir, fac_chart_draws_png() ? "png" : "svg");
    if (fac_weights_load(from, &w, &err)) return fail(&err);
    int code = draw(w, to ? to : path, look);
    fac_weights_free(w);
    return code;
}
