#include "photo.h"
#include <stdlib.h>
#include <string.h>

static const fac_preset *preset_find(const char *name) {
    for (const fac_preset *p = fac_presets; p->name; p++)
        if (!strcmp(p->name, name)) return p;
    return NULL;
}

void photo_presets(void) {
    printf("\npresets\n");
    for (const fac_preset *p = fac_presets; p->name; p++) printf("  %-20s %s\n", p->name, p->help);
}

/* "0.485,0.456,0.406", or one number for all three; fractions such as 1/255 too. */
static bool numbers(const char *text, double *to, int n) {
    int k = 0;
    for (const char *p = text; k < n; p++) {
        char *end;
        to[k] = strtod(p, &end);
        if (end == p) return false;
        if (*end == '/') {
            const char *q = end + 1;
            double by = strtod(q, &end);
            if (end == q || by == 0) return false;
            to[k] /= by;
        }
        k++;
        p = end;
        if (!*p) break;
        if (*p != ',') return false;
    }
    if (k == 1) for (int i = 1; i < n; i++) to[i] = to[0];
    return k == 1 || k == n;
}

static bool size_pair(const char *text, int *height, int *width) {
    char *end;
    long a = strtol(text, &end, 10), b = a;
    if (end == text || a < 1 || a > 65536) return false;
    if (*end == 'x') {
        const char *p = end + 1;
        b = strtol(p, &end, 10);
        if (end == p || b < 1 || b > 65536) return false;
    }
    *height = (int)a;
    *width = (int)b;
    return !*end;
}

static int bad(const char *flag, const char *text, const char *wanted) {
    return usage_text("%s needs %s, not \"%s\" (see `facula help run`)", flag, wanted, text);
}

int photo_how(const photo_options *o, const fac_zoo *zoo, fac_type input, fac_preprocess *out) {
    const char *name = o->preset ? o->preset : zoo ? zoo->preset : "imagenet";
    const fac_preset *p = preset_find(name);
    if (!p) return bad("--preset", name, "one of the names that `facula help run` lists");
    fac_preprocess h = p->how;
    const fac_dims *d = &input.dims;
    bool image = d->n == 4 && (d->d[1] == 1 || d->d[1] == 3 || d->d[3] == 1 || d->d[3] == 3 || d->d[1] < 0);
    if (!image) return fail_text("the model's input is no image: give its tensor with --input");
    h.nhwc = d->d[1] != 1 && d->d[1] != 3 && (d->d[3] == 1 || d->d[3] == 3);
    if (o->layout && !strcmp(o->layout, "nhwc")) h.nhwc = true;
    else if (o->layout && !strcmp(o->layout, "nchw")) h.nhwc = false;
    else if (o->layout) return bad("--layout", o->layout, "nchw or nhwc");
    int64_t height = d->d[h.nhwc ? 1 : 2], width = d->d[h.nhwc ? 2 : 3];
    if (d->d[h.nhwc ? 3 : 1] == 1) h.grey = true;

    if (o->size && strchr(o->size, 'x')) {
        if (!size_pair(o->size, &h.height, &h.width)) return bad("--size", o->size, "N or HxW");
        h.resize = 0;
    } else if (o->size) {
        int unused;
        if (!size_pair(o->size, &h.resize, &unused)) return bad("--size", o->size, "N or HxW");
    }
    if (o->crop && !size_pair(o->crop, &h.height, &h.width)) return bad("--crop", o->crop, "N or HxW");
    if (!o->crop && !(o->size && strchr(o->size, 'x')) && height > 0 && width > 0 && height <= 65536 && width <= 65536) {
        /* the input's own size; the shorter side keeps the preset's margin around the crop */
        if (h.resize && h.height && !o->size) h.resize = (int)((int64_t)h.resize * (height < width ? height : width) / (h.height < h.width ? h.height : h.width));
        h.height = (int)height;
        h.width = (int)width;
    }
    if (o->scale && !numbers(o->scale, &h.scale, 1)) return bad("--scale", o->scale, "a number such as 1/255");
    if (o->mean && !numbers(o->mean, h.mean, 3)) return bad("--mean", o->mean, "one or three numbers");
    if (o->std && !numbers(o->std, h.std, 3)) return bad("--std", o->std, "one or three numbers");
    if (o->bgr) h.bgr = true;
    if (o->interpolation) {
        static const char *const names[] = { "nearest", "bilinear", "bicubic" };
        int k = 0;
        while (k < 3 && strcmp(o->interpolation, names[k])) k++;
        if (k == 3) return bad("--interpolation", o->interpolation, "nearest, bilinear or bicubic");
        h.how = k == 0 ? FAC_NEAREST : k == 1 ? FAC_BILINEAR : FAC_BICUBIC;
    }
    *out = h;
    return EXIT_OK;
}

fac_status photo_tensor(const char *path, const fac_preprocess *how, fac_type input, fac_tensor **out, fac_error *err) {
    fac_image image = { 0 };
    fac_tensor *t = NULL;
    fac_status status = fac_image_load(path, &image, err);
    if (!status) status = fac_image_tensor(&image, how, &t, err);
    if (!status && input.dtype != FAC_F32) {
        fac_tensor *as = NULL;
        status = fac_tensor_convert(t, input.dtype, &as, err);
        fac_tensor_free(t);
        t = as;
    }
    fac_image_free(&image);
    if (!status) *out = t;
    return status;
}
