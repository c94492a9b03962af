/* The panels of a chart. */
#ifndef FACULA_VIEW_PANEL_H
#define FACULA_VIEW_PANEL_H
#include "facula/view.h"
#include "view/axis.h"
#include "view/canvas.h"

enum { FAC_PALETTE = 8 };
extern const uint32_t fac_palette[FAC_PALETTE];
static const uint32_t fac_text_rgb = 0x24292F, fac_quiet_rgb = 0x6B7280, fac_grid_rgb = 0xE5E7EB;

typedef struct fac_box {
    double x, y, w, h;
} fac_box;

void fac_panel_curves(fac_canvas *c, const fac_panel *p, fac_box box);
void fac_panel_confusion(fac_canvas *c, const fac_panel *p, fac_box box);

/* Of all finite points of the lines that decide; false: there is none.  log: of those above 0. */
typedef struct fac_range {
    double x0, x1, y0, y1;
} fac_range;
bool fac_panel_range(const fac_panel *p, fac_range *out);
/* Where the y axis goes, with room above and below. */
fac_chart_axis fac_panel_axis(const fac_panel *p, const fac_range *r, int want);
#endif
