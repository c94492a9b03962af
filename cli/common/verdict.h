/* Exit codes of what compares two models: the same for `verify` and `edit --verify`. */
#ifndef FACULA_CLI_VERDICT_H
#define FACULA_CLI_VERDICT_H
#include "cli.h"

/* EXIT_USAGE is 2. */
enum { EXIT_DIFFERENT = 1, EXIT_CANNOT_TELL = 3, EXIT_NO_DIFFERENCE = 4, EXIT_ERROR = 5 };

static inline int verdict_exit(fac_sameness same) {
    static const int codes[] = { [FAC_SAME] = EXIT_OK,
                                 [FAC_DIFFERENT] = EXIT_DIFFERENT,
                                 [FAC_CANNOT_TELL] = EXIT_CANNOT_TELL,
                                 [FAC_NO_DIFFERENCE] = EXIT_NO_DIFFERENCE };
    return codes[same];
}

/* An error is not to be taken for a difference. */
static inline int verdict_error(int code) { return code == EXIT_FAILED ? EXIT_ERROR : code; }

#define VERDICT_CODES                                                                              \
    "0 the same, 1 different, 2 wrong usage, 3 cannot tell, 4 no difference found (but nothing\n"  \
    "proves it), 5 error"
#endif
