// A flush: the open segment is found again by its hash, or given to Python (segment.py), which writes
// its calls into graphs by the aten table.  What comes back is a list of parts: programs, and calls
// that torch's CPU kernels compute.
#include "flush.h"
#include "places.h"
#include <algorithm>
#include <chrono>

namespace ocl {
struct Entry {
  std::vector<uint8_t> fixed;                       // numbers that a row needs as constants
  std::vector<Variant> variants;
};
static std::unordered_map<uint64_t, Entry> entries;
static Builder builder_ = nullptr;
static std::vector<int64_t> answer_;
static std::string why_;
void set_builder(Builder b) { builder_ = b; }
void set_answer(std::vector<int64_t> code) { answer_ = std::move(code); }
void set_failure(std::string why) { why_ = std::move(why); }
size_t entry_count() { return entries.size(); }
static std::vector<int64_t> retired_;               // plans whose programs Python may free
std::vector<int64_t> retired() {
  std::lock_guard<std::recursive_mutex> g(rec().mu);
  std::vector<int64_t> out;
  out.swap(retired_);
  return out;
}
void retire(const Plan& p) {
  if (p.id) retired_.push_back(p.id);
}
static void retire(const Variant& v) {
  retire(v.plain);
  for (auto& p : v.places) retire(p.bound);
}
void forget_plans() {
  std::lock_guard<std::recursive_mutex> g(rec().mu);
  for (auto& [key, e] : entries)
    for (auto& v : e.variants) retire(v);
  entries.clear();
}

// ---- a plan, made by Python
void drop(Call& c) {
  for (auto& r : c.in) if (r.s) state_drop(r.s);
  for (auto& r : c.out) if (r.s) state_drop(r.s);
}

// ---- what Python answers: see segment.py
static fac_dims dims_at(const std::vector<int64_t>& a, size_t& at) {
  fac_dims d = {(int)a[at++], {0}};
  for (int i = 0; i < d.n; i++) d.d[i] = a[at++];
  return d;
}
static Port port_at(const std::vector<int64_t>& a, size_t& at) {
  Port p;
  p.kind = (int)a[at++];
  p.index = (uint32_t)a[at++];
  p.dtype = (fac_dtype)a[at++];
  p.dims = dims_at(a, at);
  return p;
}
static Plan plan_at(const std::vector<int64_t>& a, size_t& at) {
  Plan plan;
  plan.id = a[at++];
  plan.parts.resize(a[at++]);
  for (auto& p : plan.parts) {
    p.host = a[at++];
    if (p.host) { p.call = (uint32_t)a[at++]; continue; }
    p.program = (fac_program*)a[at++];
    for (int64_t n = a[at++]; n > 0; n--) p.in.push_back(port_at(a, at));
    for (int64_t n = a[at++]; n > 0; n--) p.out.push_back(port_at(a, at));
    for (int64_t n = a[at++]; n > 0; n--) {
      uint32_t slot = (uint32_t)a[at++];
      bool writes = a[at++];
      p.bound.push_back({slot, writes});
    }
  }
  return plan;
}
static Plan build(const Run& run, const std::vector<uint8_t>& varying, std::vector<uint8_t>& fixed,
                  const Plan* bind_to, const std::vector<uint32_t>& bind) {
  auto& R = rec();
  auto t = std::chrono::steady_clock::now();
  TORCH_CHECK(builder_, "ocl: facula.torch was not imported");
  std::string text = json(run, varying, fixed, bind_to, bind);
  why_ = "";
  answer_.clear();
  int bad = builder_(text.c_str());
  TORCH_CHECK(!bad && !answer_.empty(), "ocl: ", why_.empty() ? "a segment could not be planned" : why_);
  size_t at = 0;
  Plan plan = plan_at(answer_, at);
  for (int64_t n = answer_[at++]; n > 0; n--) fixed[answer_[at++]] = 1;
  R.builds++;
  R.build_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
  return plan;
}

// ---- which program runs
static Variant& variant_of(Run& run, Entry& e) {
  if (e.fixed.empty()) e.fixed.resize(run.numbers.size());
  std::vector<uint8_t> varying(run.numbers.size());
  for (auto& v : e.variants) {
    bool fits = v.values.size() == run.numbers.size();
    for (size_t i = 0; fits && i < run.numbers.size(); i++) fits = v.varying[i] || v.values[i] == run.numbers[i];
    if (fits) return v;
  }
  if (!e.variants.empty()) {
    auto& last = e.variants.back();
    for (size_t i = 0; i < varying.size(); i++)
      varying[i] = !e.fixed[i] && (last.varying[i] || !(last.values[i] == run.numbers[i]));
  }
  size_t number = 0;
  for (auto& c : run.calls) {                       // seeds change in each run
    std::vector<Num> of;
    numbers_of(c, of);
    number += of.size();
    if (c.op->random) varying[number - 1] = 1;
  }
  if (e.variants.size() >= 16) {
    retire(e.variants.front());
    e.variants.erase(e.variants.begin());
  }
  Variant v;
  v.values = run.numbers;
  v.plain = build(run, varying, e.fixed, nullptr, {});
  for (size_t i = 0; i < varying.size(); i++) varying[i] &= !e.fixed[i];
  v.varying = varying;
  v.leaves = leaves_of(run, v.plain);
  v.born = next_uid();
  e.variants.push_back(std::move(v));
  return e.variants.back();
}

// Whether a call writes what is kept, or writes nothing and is there for its errors.
static bool matters(const Call& c) {
  bool writes = !c.out.empty(), kept = false;
  for (auto& o : c.out) kept |= o.s && o.s->alive;
  each_ref(c, [&](size_t i, size_t k) {
    if (!c.op->writes[i]) return;
    writes = true;
    kept |= c.in[k].s && c.in[k].s->alive;
  });
  return kept || !writes;
}

static void compute(Run& run, uint64_t key) {
  auto& R = rec();
  R.kept = 0;
  uint64_t before = R.builds;
  Variant& v = variant_of(run, entries[key]);
  if (R.builds == before) R.replays++;
  Place& place = place_of(run, v);
  if (still_held(run, place)) {
    R.kept = place.held.size();
    run_plan(run, place.bound);
    return;
  }
  auto bind = stable(run, v, place);
  if (!bind.empty()) {
    place.binds++;
    retire(place.bound);
    place.bound = {};                               // building may fail, and frees what was retired
    place.bound = build(run, v.varying, entries[key].fixed, &v.plain, bind);
    hold(run, place);
    R.kept = place.held.size();
    run_plan(run, place.bound);
    return;
  }
  run_plan(run, v.plain);
  for (uint32_t k : v.leaves) place.seen[k].writes = run.states[k]->writes;
}

static void flush_calls(bool read) {
  auto& R = rec();
  Run run;
  run.read = read;
  run.calls.swap(R.calls);
  run.states.swap(R.states);
  for (State* s : run.states) s->refs++;
  run.device = R.device;
  run.precision = precision_name(R.precision);
  uint64_t h = mix(mix(R.hash, run.device), R.precision + 1);
  R.segment++;
  R.next_value = 0;
  R.hash = 0;
  R.precision = PRECISION_OPEN;
  R.flushes++;
  if (std::none_of(run.calls.begin(), run.calls.end(), matters)) return;
  for (State* s : run.states) h = mix(h, s->alive);
  for (auto& c : run.calls) numbers_of(c, run.numbers);
  if (entries.size() > 1024) forget_plans();
  try { compute(run, h); }
  catch (...) {                                     // what was there is left as it was
    if (run.refused) rescue(run);
    else
      for (auto& c : run.calls) lose(c);
    throw;
  }
}
void flush(bool read) {
  std::lock_guard<std::recursive_mutex> g(rec().mu);
  if (!rec().calls.empty()) flush_calls(read);
  if (read) check_earlier();
}
}  // namespace ocl
