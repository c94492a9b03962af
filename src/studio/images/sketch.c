/* From strokes to the image of a digit. */
#include "studio/images/sketch.h"
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"

enum { FINE = 280, BOX = 20, STROKES = 100, POINTS = 2000 };
static const double pen = 11; /* half its width, in fine pixels */

typedef struct sketch {
    uint8_t *ink;
    int left, right, top, bottom;
} sketch;

/* ---- strokes, at ten times the size ---- */

static void dot(sketch *s, double x, double y) {
    const int reach = (int)pen;
    for (int j = -reach; j <= reach; j++) {
        for (int i = -reach; i <= reach; i++) {
            const int px = (int)x + i, py = (int)y + j;
            if (i * i + j * j > pen * pen || px < 0 || py < 0 || px >= FINE || py >= FINE) continue;
            s->ink[py * FINE + px] = 1;
        }
    }
}

static void line(sketch *s, const double *a, const double *b) {
    const double far = hypot(b[0] - a[0], b[1] - a[1]);
    const int n = (int)(far / 3) + 1;
    for (int k = 0; k <= n; k++) {
        const double t = (double)k / n;
        dot(s, a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]));
    }
}

static fac_status read_stroke(sketch *s, const cJSON *stroke, int *points, fac_error *err) {
    double last[2], at[2];
    const cJSON *x = stroke ? stroke->child : NULL;
    for (int k = 0; x && x->next; k++, x = x->next->next) {
        if (++*points > POINTS)
            return fac_raise(err, FAC_E_ARGUMENT, "a drawing must not have more than %d points",
                             POINTS);
        if (!cJSON_IsNumber(x) || !cJSON_IsNumber(x->next) || !(fabs(x->valuedouble) <= 2) ||
            !(fabs(x->next->valuedouble) <= 2))
            return fac_raise(err, FAC_E_ARGUMENT,
                             "a stroke must be a list of x, y, x, y ... from 0 to 1");
        at[0] = x->valuedouble * FINE;
        at[1] = x->next->valuedouble * FINE;
        line(s, k ? last : at, at);
        memcpy(last, at, sizeof last);
    }
    return FAC_OK;
}

/* ---- the image ---- */

static bool find_box(sketch *s) {
    s->left = FINE;
    s->top = FINE;
    s->right = -1;
    s->bottom = -1;
    for (int i = 0; i < FINE * FINE; i++) {
        if (!s->ink[i]) continue;
        const int x = i % FINE, y = i / FINE;
        if (x < s->left) s->left = x;
        if (x > s->right) s->right = x;
        if (y < s->top) s->top = y;
        if (y > s->bottom) s->bottom = y;
    }
    return s->right >= 0;
}

/* The share of ink in pixel (i, j) of the scaled box. */
static double share(const sketch *s, int i, int j, double scale) {
    const int x0 = s->left + (int)(i / scale), x1 = s->left + (int)((i + 1) / scale);
    const int y0 = s->top + (int)(j / scale), y1 = s->top + (int)((j + 1) / scale);
    int all = 0, ink = 0;
    for (int y = y0; y < (y1 > y0 ? y1 : y0 + 1); y++) {
        for (int x = x0; x < (x1 > x0 ? x1 : x0 + 1); x++, all++)
            ink += x <= s->right && y <= s->bottom && x < FINE && y < FINE && s->ink[y * FINE + x];
    }
    return all ? (double)ink / all : 0;
}

static void place(const sketch *s, uint8_t *to) {
    const int wide = s->right - s->left + 1, high = s->bottom - s->top + 1;
    const double scale = (double)BOX / (wide > high ? wide : high);
    double small[BOX * BOX], mass = 0, mx = 0, my = 0;
    for (int k = 0; k < BOX * BOX; k++) {
        small[k] = share(s, k % BOX, k / BOX, scale);
        mass += small[k];
        mx += small[k] * (k % BOX + 0.5);
        my += small[k] * (k / BOX + 0.5);
    }
    if (mass <= 0) return;
    const int dx = (int)lround(SKETCH_SIDE / 2.0 - mx / mass),
              dy = (int)lround(SKETCH_SIDE / 2.0 - my / mass);
    for (int k = 0; k < BOX * BOX; k++) {
        const int x = k % BOX + dx, y = k / BOX + dy;
        if (x < 0 || y < 0 || x >= SKETCH_SIDE || y >= SKETCH_SIDE) continue;
        to[y * SKETCH_SIDE + x] = (uint8_t)lround(255 * small[k]);
    }
}

fac_status fac_sketch_read(const cJSON *strokes, uint8_t *to, fac_error *err) {
    const cJSON *one;
    int points = 0;
    if (!cJSON_IsArray(strokes) || cJSON_GetArraySize(strokes) > STROKES)
        return fac_raise(err, FAC_E_ARGUMENT, "strokes must be a list of at most %d strokes",
                         STROKES);
    sketch s = { .ink = fac_alloc(FINE * FINE, 1) };
    if (!s.ink) return fac_raise_memory(err, "a drawing");
    fac_status status = FAC_OK;
    cJSON_ArrayForEach(one, strokes) {
        if (!status) status = read_stroke(&s, one, &points, err);
    }
    memset(to, 0, SKETCH_SIDE * SKETCH_SIDE);
    if (!status && find_box(&s)) place(&s, to);
    fac_release(s.ink);
    return status;
}
