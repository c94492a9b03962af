/* Questions that need no session: one request, one answer. */
#include "studio/studio.h"

const question fac_questions[] = { { NULL, NULL } };
