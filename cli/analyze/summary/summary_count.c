/* Who counts what: the totals of other tools, and from which layers their differences come. */
#include <string.h>
#include "analyze/summary/summary.h"

static bool counts(const fac_kind_row *r) {
    for (int c = 0; c < FAC_CONVENTIONS; c++)
        if (r->count[c] > 0) return true;
    return false;
}

void conventions_print(const fac_analysis *a) {
    fac_kind_row rows[FAC_KINDS];
    char text[64], more[64];
    const int n = fac_analysis_kinds(a, rows, FAC_KINDS);
    const double core = fac_analysis_count(a, FAC_COUNT_CORE);
    printf("\nmultiply-adds as other tools count them (one is two floating-point operations):\n\n");
    table_row(stdout, (int[]){ -15, 17, 15, -1 }, 4, "convention", "total", "above core",
              "what it counts");
    for (int c = 0; c < FAC_CONVENTIONS; c++) {
        const double total = fac_analysis_count(a, (fac_convention)c);
        table_row(stdout, (int[]){ -15, 17, 15, -1 }, 4, fac_convention_name((fac_convention)c),
                  digits_text(total, text, sizeof text),
                  digits_text(total - core, more, sizeof more),
                  fac_convention_about((fac_convention)c));
    }
    printf("\nwhere the differences come from:\n\n%-18s %6s", "kind", "layers");
    for (int c = 0; c < FAC_CONVENTIONS; c++)
        printf("  %16s", fac_convention_name((fac_convention)c));
    putchar('\n');
    for (int k = 0; k < n; k++) {
        if (!counts(&rows[k])) continue;
        printf("%-18s %6d", rows[k].kind, rows[k].layers);
        for (int c = 0; c < FAC_CONVENTIONS; c++)
            printf("  %16s",
                   rows[k].count[c] > 0 ? digits_text(rows[k].count[c], text, sizeof text) : "--");
        putchar('\n');
    }
}
