/* For targets that compile files of the command: errors are formatted, so that a sanitizer sees what they read, and not said. */
#include <stdarg.h>
#include <stdio.h>
#include "../../cli/cli.h"

static void format_only(const char *format, va_list args) {
    char text[4096];
    vsnprintf(text, sizeof text, format, args);
}

int fail(const fac_error *err) { return fail_text("%s", err->text); }

int fail_text(const char *format, ...) {
    va_list args;
    va_start(args, format);
    format_only(format, args);
    va_end(args);
    return EXIT_FAILED;
}

int usage_text(const char *format, ...) {
    va_list args;
    va_start(args, format);
    format_only(format, args);
    va_end(args);
    return EXIT_USAGE;
}
