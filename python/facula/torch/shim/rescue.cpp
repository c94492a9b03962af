// A call that refuses its data, say an index out of range, fails alone.  It and the calls after the last
// part that was computed are computed one by one, by torch's CPU kernels; what depends on it is lost.
#include "segment.h"
#include <unordered_set>

namespace ocl {
static std::vector<bool> wanted(const Run& run) {
  std::unordered_set<const State*> live;
  for (State* s : run.states)
    if (s->alive) live.insert(s);
  std::vector<bool> out(run.calls.size());
  for (size_t k = run.calls.size(); k-- > run.next;) {
    auto& c = run.calls[k];
    bool is = false;
    for (auto& o : c.out) is |= o.s && live.count(o.s);
    each_ref(c, [&](size_t i, size_t q) { is |= c.op->writes[i] && c.in[q].s && live.count(c.in[q].s); });
    out[k] = is;
    for (auto& r : c.in)
      if (is && r.s) live.insert(r.s);
  }
  return out;
}

static bool reads_lost(const Call& c) {
  for (auto& r : c.in)
    if (r.s && r.s->lost) return true;
  return false;
}
void lose(const Call& c) {
  auto mark = [](State* s) { if (s && !s->block) s->lost = true; };
  for (auto& o : c.out) mark(o.s);
  each_ref(c, [&](size_t i, size_t k) { if (c.op->writes[i]) mark(c.in[k].s); });
}

// What was there before the segment stays as it was; what the segment made would be half made.
struct Spoiler {
  std::unordered_set<const State*> old;
  explicit Spoiler(const Run& run) {
    for (State* s : run.states)
      if (s->block) old.insert(s);
    for (auto& c : run.calls)
      for (auto& o : c.out) old.erase(o.s);
  }
  void operator()(State* s) const {
    if (!s || old.count(s)) return;
    if (s->tensor) api().discard(s->tensor);
    if (s->block) block_drop(s->block);
    s->tensor = nullptr;
    s->block = nullptr;
    s->lost = true;
  }
  void operator()(const Call& c) const {
    for (auto& o : c.out) (*this)(o.s);
    each_ref(c, [&](size_t i, size_t k) { if (c.op->writes[i]) (*this)(c.in[k].s); });
  }
};

void rescue(Run& run) {
  const auto which = wanted(run);
  const Spoiler spoil(run);
  for (size_t k = run.next; k < run.calls.size(); k++) {
    auto& c = run.calls[k];
    if (!which[k]) continue;
    if (reads_lost(c)) { spoil(c); continue; }
    Stack st;
    try {
      replay(c, st);
      store(c, st);
    }
    catch (const std::exception&) { spoil(c); }      // the first such error is being thrown already
  }
}
}  // namespace ocl
