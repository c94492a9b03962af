/* Preprocessing as JSON files say it: {"preset": "caffe,crop=227"}, Hugging Face's image
 * processors, timm's pretrained_cfg. */
#include "sidecar_preset.h"
#include <math.h>
#include <string.h>

/* Keys are read one after the other; the first that cannot be understood is kept. */
typedef struct reader {
    const char *path, *bad;
    fac_preprocess *how;
} reader;

static const cJSON *get(const cJSON *from, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    return cJSON_IsNull(item) ? NULL : item;
}

static void refuse(reader *r, const char *key) {
    if (!r->bad) r->bad = key;
}

static bool flag(reader *r, const cJSON *from, const char *key, bool usual) {
    const cJSON *item = get(from, key);
    if (item && !cJSON_IsBool(item)) refuse(r, key);
    return item ? cJSON_IsTrue(item) : usual;
}

static double number(reader *r, const cJSON *from, const char *key, double usual) {
    const cJSON *item = get(from, key);
    if (item && (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))) refuse(r, key);
    return cJSON_IsNumber(item) ? item->valuedouble : usual;
}

/* One number, or a list of one or three. */
static void three(reader *r, const cJSON *from, const char *key, double to[3]) {
    const cJSON *item = get(from, key);
    const int n = cJSON_IsArray(item) ? cJSON_GetArraySize(item) : 1;
    if (!item) return;
    if (n != 1 && n != 3) refuse(r, key);
    for (int c = 0; c < 3 && !r->bad; c++) {
        const cJSON *x = item;
        if (cJSON_IsArray(item)) x = cJSON_GetArrayItem(item, n == 1 ? 0 : c);
        if (!cJSON_IsNumber(x) || !isfinite(x->valuedouble))
            refuse(r, key);
        else
            to[c] = x->valuedouble;
    }
}

static void divisors(reader *r, const cJSON *from, const char *key, double to[3]) {
    three(r, from, key, to);
    if (get(from, key) && (to[0] == 0 || to[1] == 0 || to[2] == 0)) refuse(r, key);
}

static int side(reader *r, const char *key, double x) {
    if (!(x >= 1 && x <= 65536)) refuse(r, key);
    return r->bad ? 0 : (int)x;
}

/* A number or {"height", "width"}: that large; {"shortest_edge"}: the shorter side, in *shorter. */
static void sides(reader *r, const cJSON *from, const char *key, int *shorter, int *height,
                  int *width) {
    const cJSON *item = get(from, key);
    *shorter = *height = *width = 0;
    if (cJSON_IsNumber(item)) {
        *height = *width = side(r, key, item->valuedouble);
    } else if (cJSON_IsObject(item) && get(item, "shortest_edge") && !get(item, "longest_edge")) {
        *shorter = side(r, key, number(r, item, "shortest_edge", 0));
    } else if (cJSON_IsObject(item) && get(item, "height") && get(item, "width")) {
        *height = side(r, key, number(r, item, "height", 0));
        *width = side(r, key, number(r, item, "width", 0));
    } else if (item) {
        refuse(r, key);
    }
}

/* ---- Hugging Face ---- */

static void resampling(reader *r, const cJSON *root) {
    const double pillow = number(r, root, "resample", 2); /* the numbers of PIL.Image */
    if (pillow == 0)
        r->how->how = FAC_NEAREST;
    else if (pillow == 2)
        r->how->how = FAC_BILINEAR;
    else if (pillow == 3)
        r->how->how = FAC_BICUBIC;
    else
        refuse(r, "resample");
}

/* ConvNeXt's: below 384 the shorter side has a margin around the crop, else the whole photo is
 * scaled. */
static void cropped_part(reader *r, const cJSON *root, int edge) {
    const double part = number(r, root, "crop_pct", 1);
    if (!(part > 0 && part <= 1)) refuse(r, "crop_pct");
    r->how->height = r->how->width = edge;
    if (edge < 384 && !r->bad) r->how->resize = side(r, "crop_pct", floor(edge / part));
}

static void geometry(reader *r, const cJSON *root) {
    int shorter, height, width, unused, crop_height, crop_width;
    const bool crop = flag(r, root, "do_center_crop", false);
    sides(r, root, "size", &shorter, &height, &width);
    sides(r, root, "crop_size", &unused, &crop_height, &crop_width);
    if (unused || (crop && !crop_height)) refuse(r, "crop_size");
    if (!flag(r, root, "do_resize", true)) shorter = height = width = 0;
    /* a plain number is the shorter side where a crop follows, else both */
    if (crop && height && cJSON_IsNumber(get(root, "size"))) shorter = height;
    if (shorter && get(root, "crop_pct")) {
        cropped_part(r, root, shorter);
        return;
    }
    if (crop && !shorter && (height != crop_height || width != crop_width))
        refuse(r, "do_center_crop");
    r->how->resize = shorter;
    if (shorter) height = width = 0;
    r->how->height = crop ? crop_height : height;
    r->how->width = crop ? crop_width : width;
}

static void processor(reader *r, const cJSON *root) {
    const bool rescale = flag(r, root, "do_rescale", true);
    r->how->scale = rescale ? number(r, root, "rescale_factor", 1 / 255.0) : 1;
    if (r->how->scale == 0) refuse(r, "rescale_factor");
    if (flag(r, root, "do_normalize", get(root, "image_mean") != NULL)) {
        three(r, root, "image_mean", r->how->mean);
        divisors(r, root, "image_std", r->how->std);
    }
    r->how->bgr = flag(r, root, "do_flip_channel_order", false);
    resampling(r, root);
    geometry(r, root);
}

/* ---- timm ---- */

static void timm(reader *r, const cJSON *cfg) {
    static const char *const names[] = { "nearest", "bilinear", "bicubic" };
    const cJSON *size = get(cfg, "input_size");
    const cJSON *how = get(cfg, "interpolation");
    const cJSON *mode = get(cfg, "crop_mode");
    const double part = number(r, cfg, "crop_pct", 0.875);
    int k = how ? 0 : 2;
    if (cJSON_GetArraySize(size) != 3 || !cJSON_IsNumber(cJSON_GetArrayItem(size, 1)) ||
        !cJSON_IsNumber(cJSON_GetArrayItem(size, 2)))
        refuse(r, "input_size");
    if (!(part > 0 && part <= 1)) refuse(r, "crop_pct");
    while (k < 3 && !(cJSON_IsString(how) && !strcmp(how->valuestring, names[k])) && how) k++;
    if (k == 3) refuse(r, "interpolation");
    if (mode && !(cJSON_IsString(mode) &&
                  (!strcmp(mode->valuestring, "center") || !strcmp(mode->valuestring, "squash"))))
        refuse(r, "crop_mode");
    if (r->bad) return;
    r->how->how = (fac_interpolation)k;
    r->how->height = side(r, "input_size", cJSON_GetArrayItem(size, 1)->valuedouble);
    r->how->width = side(r, "input_size", cJSON_GetArrayItem(size, 2)->valuedouble);
    const int shorter = r->how->height < r->how->width ? r->how->height : r->how->width;
    if (!mode || !strcmp(mode->valuestring, "center"))
        r->how->resize = side(r, "crop_pct", floor(shorter / part));
    three(r, cfg, "mean", r->how->mean);
    divisors(r, cfg, "std", r->how->std);
}

/* ---- all ---- */

static int spec(const cJSON *text, const char *path, fac_preprocess *how) {
    fac_error err = { 0 };
    if (!cJSON_IsString(text)) return fail_text("%s: preset is not a text", path);
    if (!fac_preprocess_parse(text->valuestring, how, &err)) return EXIT_OK;
    return fail_text("%s: preset: %s", path, err.text);
}

int sidecar_preset(const cJSON *root, const char *path, bool *found, fac_preprocess *how) {
    fac_preprocess made = { .how = FAC_BILINEAR };
    reader r = { .path = path, .how = &made };
    const cJSON *cfg = get(root, "pretrained_cfg");
    const bool images =
        get(root, "image_mean") || get(root, "do_rescale") || get(root, "do_normalize");
    *found = get(root, "preset") || images || (cfg && get(cfg, "input_size"));
    if (!*found) return EXIT_OK;
    if (get(root, "preset")) return spec(get(root, "preset"), path, how);
    if (images)
        processor(&r, root);
    else
        timm(&r, cfg);
    if (r.bad)
        return fail_text("%s: %s asks for what facula cannot do with photos (--preset leaves it "
                         "alone)",
                         path, r.bad);
    *how = made;
    return EXIT_OK;
}
