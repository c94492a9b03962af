/* An input that asks for much memory is refused, not served: the fuzzer would take it for a
 * failure. */
#include "base/memory.h"

bool fac_test_allows(size_t bytes) { return bytes <= (size_t)256 << 20; }
