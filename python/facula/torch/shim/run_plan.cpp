// Runs what a segment became: programs, and calls by torch's CPU kernels.
#include "segment.h"
#include <cstdio>
#include <cstring>

namespace ocl {
// ---- errors in data.  Rows (aten/indexing.py) move an index that torch refuses, though the library would
// take it, by kRefused; farther below are sentences of torch's.
static constexpr long long kRefused = -(1ll << 30), kSentence = kRefused - (1ll << 29);
static const char* const kSentences[] = {"Number of elements of source < number of ones in mask",
                                         "torch.histc: the range of the data is not finite",
                                         "shape mismatch: the values that are written have other sizes than what the mask picks"};
static constexpr long long kCount = sizeof kSentences / sizeof *kSentences;

void tell(const fac_error& err, bool* refused) {
  const char* at = strstr(err.text, ": index ");
  long long index = 0, low = 0;
  if (!at || sscanf(at, ": index %lld is out of range (%lld", &index, &low) != 2) TORCH_CHECK(false, "ocl: ", err.text);
  if (refused) *refused = true;
  if (index <= kSentence && kSentence - index < kCount) TORCH_CHECK(false, kSentences[kSentence - index]);
  std::string text(err.text, at - err.text);
  if (index < kRefused / 2) text += ": index " + std::to_string(index - kRefused) + " is out of range";
  else text = err.text;
  // as torch's: these are RuntimeErrors
  const bool elements = text.find("gather_elements") != text.npos || text.find("scatter_elements") != text.npos;
  TORCH_CHECK(!elements, "ocl: ", text);
  TORCH_CHECK_INDEX(false, "ocl: ", text);
}

// What torch's kernel says, with the error's own type.
template <class E>
[[noreturn]] static void again(const E& e, const Call& c) {
  throw E({__func__, __FILE__, (uint32_t)__LINE__}, c10::str(e.what_without_backtrace(), " (recorded ", c.op->name, ")"));
}

// ---- a program
struct Held {                                       // tensors of one run
  std::vector<fac_tensor*> all;
  ~Held() { for (auto* t : all) api().free(t); }
  fac_tensor* keep(fac_tensor* t) { all.push_back(t); return t; }
};
static fac_tensor* seen_as(fac_tensor* base, const Port& p, Held& held) {
  int64_t strides[FAC_DIMS], n = 1;
  for (int i = p.dims.n - 1; i >= 0; i--) {
    strides[i] = n;
    n *= p.dims.d[i];
  }
  fac_tensor* t;
  fac_error err;
  fac_status st = api().view(base, p.dims, strides, 0, &t, &err);
  TORCH_CHECK(!st, "ocl: ", err.text);
  return held.keep(t);
}
static fac_tensor* number_tensor(const Num& n, fac_dtype t, Held& held) {
  Block* b = block_new(8);                          // a device may read it later
  fac_dims none = {0, {0}};
  fac_tensor* made;
  fac_error err;
  double d = n.whole ? (double)n.i : n.d;
  if (t == FAC_I64) *(int64_t*)b->p = n.i;
  else if (t == FAC_F32) *(float*)b->p = (float)d;
  else *(double*)b->p = d;
  fac_status st = api().lend(t, none, nullptr, b->p, [](void* o) { block_drop((Block*)o); }, b, &made,
                             &err);
  if (st) block_drop(b);
  TORCH_CHECK(!st, "ocl: ", err.text);
  return held.keep(made);
}

// What a run that failed may have written over has no contents any more.
static void lose_bound(Run& run, const Part& p, const std::vector<uint64_t>* versions) {
  size_t k = 0;
  for (auto& [slot, writes] : p.bound) {
    State* s = run.states[slot];
    if (writes && (!versions || api().version(s->tensor) != (*versions)[k])) state_lose(s);
    k++;
  }
}

static void run_program(Run& run, const Part& p, bool last) {
  Held held;
  std::vector<fac_tensor*> in, out;
  std::vector<std::pair<Block*, fac_tensor*>> fresh;
  struct Undo {
    std::vector<std::pair<Block*, fac_tensor*>>& f;
    ~Undo() { for (auto& [b, t] : f) { if (t) api().discard(t); block_drop(b); } }
  } undo{fresh};
  for (size_t k = 0; k < p.in.size(); k++) {
    auto& port = p.in[k];
    if (port.kind) in.push_back(number_tensor(run.numbers[port.index], port.dtype, held));
    else in.push_back(seen_as(state_tensor(run.states[port.index], port.dtype), port, held));
  }
  for (auto& port : p.out) {
    Block* b = block_new(run.states[port.index]->bytes);
    fresh.push_back({b, nullptr});
    fresh.back().second = lent(b, port.dtype);
    out.push_back(seen_as(fresh.back().second, port, held));
  }
  fac_error err;
  std::vector<uint64_t> versions;                   // of what it keeps
  for (auto& [slot, writes] : p.bound) versions.push_back(api().version(run.states[slot]->tensor));
  if (api().run(p.program, in.data(), out.data(), &err)) {
    lose_bound(run, p, &versions);
    tell(err, &run.refused);
  }
  const bool asks = run.read || !last;              // a call of the host reads, too
  bool earlier;
  if (asks && !ask(run.device, &earlier, &err)) {
    lose_bound(run, p, nullptr);
    tell(err, earlier ? nullptr : &run.refused);
  }
  for (size_t k = 0; k < p.out.size(); k++) {
    State* s = run.states[p.out[k].index];
    state_set(s, fresh[k].second, p.out[k].dtype);
    if (s->block) block_drop(s->block);
    s->block = fresh[k].first;
    s->writes++;
    s->lost = false;
    if (!asks) not_asked(s);
  }
  fresh.clear();
  for (auto& [slot, writes] : p.bound) {
    if (writes) run.states[slot]->writes++;
    if (writes && !asks) not_asked(run.states[slot]);
  }
}
void run_plan(Run& run, const Plan& plan) {
  for (auto& p : plan.parts) {
    if (!p.host) { run_program(run, p, &p == &plan.parts.back()); continue; }
    auto& c = run.calls[p.call];
    Stack st;
    run.next = p.call;
    run.refused = true;
    try { replay(c, st); }
    catch (c10::IndexError& e) { again(e, c); }
    catch (c10::NotImplementedError& e) { again(e, c); }
    catch (c10::ValueError& e) { again(e, c); }
    catch (c10::TypeError& e) { again(e, c); }
    catch (c10::Error& e) { again(e, c); }
    catch (std::exception& e) { TORCH_CHECK(false, "ocl: recorded ", c.op->name, ": ", e.what()); }
    run.refused = false;
    store(c, st);
    run.next++;
    count_fallback(c.op->name, nullptr);
  }
}
}  // namespace ocl
