/* The pages and their modules, compiled in: no request reaches the file system. */
#include <string.h>
#include "studio/server/studio.h"
#include "studio_app.h"
#include "studio_css.h"
#include "studio_draw.h"
#include "studio_form.h"
#include "studio_graph.h"
#include "studio_html.h"
#include "studio_icon.h"
#include "studio_images.h"
#include "studio_link.h"
#include "studio_mic.h"
#include "studio_net.h"
#include "studio_notebook.h"
#include "studio_points.h"
#include "studio_runs.h"
#include "studio_sandbox.h"
#include "studio_sound.h"
#include "studio_text.h"

static const asset assets[] = {
    { "/", "text/html; charset=utf-8", studio_html },
    { "/page/studio.css", "text/css; charset=utf-8", studio_css },
    { "/page/icon.svg", "image/svg+xml", studio_icon },
    { "/page/app.js", "text/javascript; charset=utf-8", studio_app },
    { "/page/draw.js", "text/javascript; charset=utf-8", studio_draw },
    { "/page/link.js", "text/javascript; charset=utf-8", studio_link },
    { "/page/form.js", "text/javascript; charset=utf-8", studio_form },
    { "/page/net.js", "text/javascript; charset=utf-8", studio_net },
    { "/page/points.js", "text/javascript; charset=utf-8", studio_points },
    { "/page/runs.js", "text/javascript; charset=utf-8", studio_runs },
    { "/page/sandbox.js", "text/javascript; charset=utf-8", studio_sandbox },
    { "/page/images.js", "text/javascript; charset=utf-8", studio_images },
    { "/page/graph.js", "text/javascript; charset=utf-8", studio_graph },
    { "/page/text.js", "text/javascript; charset=utf-8", studio_text },
    { "/page/sound.js", "text/javascript; charset=utf-8", studio_sound },
    { "/page/mic.js", "text/javascript; charset=utf-8", studio_mic },
    { "/page/notebook.js", "text/javascript; charset=utf-8", studio_notebook },
};
enum { ASSETS = sizeof assets / sizeof *assets };

const asset *fac_asset_at(int k) { return k < ASSETS ? &assets[k] : NULL; }

const asset *fac_asset_find(const char *path) {
    for (int k = 0; k < ASSETS; k++)
        if (!strcmp(assets[k].path, path)) return &assets[k];
    return NULL;
}
