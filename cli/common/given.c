/* What was given and would do nothing is refused: whoever writes it expects something of it. */
#include <string.h>
#include "cli.h"

const char *const device_names[] = { "--device", "--threads",      "--isa",
                                     "--wisdom", "--cache-packed", NULL };

static const option *row_of(const verb *v, const char *name) {
    for (const option *row = v->options; row && row->name; row++)
        if (!strcmp(row->name, name)) return row;
    return NULL;
}

int options_idle(const verb *v, const char *const *names, const char *why) {
    for (; *names; names++) {
        const option *row = row_of(v, *names);
        if (row && option_given(row->to)) return usage_error(v, "%s %s", *names, why);
    }
    return EXIT_OK;
}

int options_only(const verb *v, const char *const *names, const char *why) {
    for (const option *row = v->options; row && row->name; row++) {
        bool known = false;
        for (int k = 0; names[k]; k++) known |= !strcmp(names[k], row->name);
        if (!known && option_given(row->to)) return usage_error(v, "%s %s", row->name, why);
    }
    return EXIT_OK;
}

int arguments_fit(const verb *v, list args, int least, int most, const char *question) {
    bool named = args.n >= least;
    for (int k = 0; k < least && named; k++) named = *args.at[k];
    if (!named) return usage_error(v, "%s", question);
    if (args.n > most) return usage_error(v, "\"%s\" is one argument too many", args.at[most]);
    return EXIT_OK;
}
