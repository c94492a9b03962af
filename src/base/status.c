/* Names of the statuses. */
#include "facula/status.h"

const char *fac_status_name(fac_status status) {
    switch (status) {
    case FAC_OK:
        return "FAC_OK";
    case FAC_E_ARGUMENT:
        return "FAC_E_ARGUMENT";
    case FAC_E_SHAPE:
        return "FAC_E_SHAPE";
    case FAC_E_DTYPE:
        return "FAC_E_DTYPE";
    case FAC_E_FORMAT:
        return "FAC_E_FORMAT";
    case FAC_E_UNSUPPORTED:
        return "FAC_E_UNSUPPORTED";
    case FAC_E_NOMEM:
        return "FAC_E_NOMEM";
    case FAC_E_IO:
        return "FAC_E_IO";
    case FAC_E_DEVICE:
        return "FAC_E_DEVICE";
    case FAC_E_INTERNAL:
        return "FAC_E_INTERNAL";
    }
    return "FAC_E_UNKNOWN";
}
