// Devices compute after a run returned.  What a kernel finds wrong in data, an index out of range, they tell when they are asked, which
// waits for such kernels.  A segment that ends because something is read is asked before its results replace what was there.  One that
// ends earlier is not, so that recording goes on: what it wrote is noted here, and lost if one of those segments was refused its data.
#include "segment.h"
#include <algorithm>
#include <unordered_set>

namespace ocl {
static std::mutex mu;               // inside the recorder's
static std::unordered_set<State*> unasked_;

void not_asked(State* s) {
  std::lock_guard<std::mutex> g(mu);
  s->unasked = true;
  unasked_.insert(s);
}
void forget_unasked(State* s) {
  std::lock_guard<std::mutex> g(mu);
  unasked_.erase(s);
}
// What was noted of a device; was there anything?
static bool take(int device, bool lose) {
  std::lock_guard<std::mutex> g(mu);
  const size_t before = unasked_.size();
  for (auto it = unasked_.begin(); it != unasked_.end();) {
    State* s = *it;
    if (s->device != device) { ++it; continue; }
    s->unasked = false;
    if (lose) state_lose(s);
    it = unasked_.erase(it);
  }
  return unasked_.size() < before;
}
static bool any(int device) {
  std::lock_guard<std::mutex> g(mu);
  return std::any_of(unasked_.begin(), unasked_.end(), [=](State* s) { return s->device == device; });
}

bool ask(int device, bool* earlier, fac_error* err) {
  const bool bad = api().check(device_at(device), err);
  *earlier = take(device, bad);
  return !bad;
}
void check_earlier() {
  for (int d = 0; d < device_count(); d++) {
    fac_error err;
    bool earlier;
    if (any(d) && !ask(d, &earlier, &err)) tell(err, nullptr);
  }
}
}  // namespace ocl
