/* Boxes that overlap, for non_max_suppression and its solver. */
#ifndef FACULA_OPS_BOXES_H
#define FACULA_OPS_BOXES_H
#include <stdbool.h>
#include <stdint.h>

typedef struct fac_box {
    double y1, x1, y2, x2, area;
} fac_box;
typedef struct fac_box_candidate {
    double score;
    int64_t at;
} fac_box_candidate;

/* fmax and fmin, which compilers do not write out for fear of NaN: the other one wins. */
static inline double fac_box_larger(double a, double b) { return a > b || b != b ? a : b; }
static inline double fac_box_smaller(double a, double b) { return a < b || b != b ? a : b; }

static inline fac_box fac_box_of(double y1, double x1, double y2, double x2) {
    return (fac_box){ y1, x1, y2, x2, (y2 - y1) * (x2 - x1) };
}
/* Of y1, x1, y2, x2 of two corners; centers: of center x, center y, width, height. */
static inline fac_box fac_box_at(const double p[4], bool centers) {
    if (centers)
        return fac_box_of(p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2);
    return fac_box_of(fac_box_smaller(p[0], p[2]), fac_box_smaller(p[1], p[3]),
                      fac_box_larger(p[0], p[2]), fac_box_larger(p[1], p[3]));
}

static inline bool fac_boxes_overlap(const fac_box *a, const fac_box *b, double iou) {
    const double y1 = fac_box_larger(a->y1, b->y1), x1 = fac_box_larger(a->x1, b->x1),
                 y2 = fac_box_smaller(a->y2, b->y2), x2 = fac_box_smaller(a->x2, b->x2);
    if (y2 <= y1 || x2 <= x1) return false;
    const double shared = (y2 - y1) * (x2 - x1), all = a->area + b->area - shared;
    return a->area > 0 && b->area > 0 && all > 0 && shared / all > iou;
}

static inline bool fac_box_before(const fac_box_candidate *a, const fac_box_candidate *b) {
    return a->score != b->score ? a->score > b->score : a->at < b->at;
}

/* A heap, of which few are taken: sorting all would take longer than the rest. */
static inline void fac_box_sift(fac_box_candidate *all, int64_t n, int64_t at) {
    const fac_box_candidate c = all[at];
    for (int64_t k = 2 * at + 1; k < n; at = k, k = 2 * at + 1) {
        k += k + 1 < n && fac_box_before(&all[k + 1], &all[k]);
        if (!fac_box_before(&all[k], &c)) break;
        all[at] = all[k];
    }
    all[at] = c;
}
static inline fac_box_candidate fac_box_take(fac_box_candidate *all, int64_t *n) {
    const fac_box_candidate first = all[0];
    all[0] = all[--*n];
    fac_box_sift(all, *n, 0);
    return first;
}

/* Of `count` candidates of one class of one image, which are used up; kept: room for all of them;
 * to: the numbers of those that are left.  How many these are. */
static inline int64_t fac_boxes_choose(const fac_box *boxes, int64_t most, double iou,
                                       fac_box_candidate *all, int64_t count, fac_box *kept,
                                       int64_t *to) {
    int64_t found = 0;
    for (int64_t k = count / 2; k-- > 0;) fac_box_sift(all, count, k);
    while (count > 0 && found < most) {
        const int64_t at = fac_box_take(all, &count).at;
        bool free = true;
        for (int64_t j = 0; j < found && free; j++)
            free = !fac_boxes_overlap(&boxes[at], &kept[j], iou);
        if (!free) continue;
        kept[found] = boxes[at];
        to[found++] = at;
    }
    return found;
}
#endif
