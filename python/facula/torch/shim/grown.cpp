// What grows by cat, a few rows in each step: keys and values, ids.  From the second cat on, contents
// lie in a tensor with room to the next multiple of 64 rows, so that steps differ in an index that is
// data and not in sizes, and one program serves them all.  The cat's own tensor gets its contents when
// somebody reads more of it than what came last; attention reads the room, and masks what is not there
// (attention.cpp).  A room is written once and never given out, so nothing can change it later.  With a
// mask that the device computes, causal, or in a gradient attention reads the cat itself.
#include "lazy.h"
#include <ATen/Functions.h>

namespace ocl {
static constexpr int64_t kRows = 64;

static bool is_whole(const at::Tensor& t) {
  return t.is_contiguous() && !t.storage_offset() && t.nbytes() == t.storage().nbytes();
}
static bool fits(const at::Tensor& a, const at::Tensor& b, int64_t axis) {
  if (!a.defined() || !b.defined() || !a.is_privateuseone() || !b.is_privateuseone()) return false;
  if (a.scalar_type() != b.scalar_type() || a.is_complex() || a.dim() != b.dim()) return false;
  if (a.dim() < 2 || axis < 0 || axis >= a.dim() || !a.numel() || !b.numel()) return false;
  if (state_of(a)->device != state_of(b)->device || !is_whole(a)) return false;
  for (int64_t k = 0; k < a.dim(); k++)
    if (k != axis && a.size(k) != b.size(k)) return false;
  return b.size(axis) <= a.size(axis);
}
static at::Tensor places(int64_t first, int64_t end, const at::TensorOptions& like) {
  at::Tensor t = at::empty({end - first}, like.dtype(at::kLong));
  t.copy_(at::arange(first, end, at::TensorOptions().dtype(at::kLong)));
  return t;
}

static std::shared_ptr<Grown> grown_by(const std::shared_ptr<Grown>& old, const at::Tensor& a,
                                       const at::Tensor& b, int64_t axis) {
  auto g = std::make_shared<Grown>();
  const int64_t had = a.size(axis);
  g->added = b.size(axis);
  g->len = had + g->added;
  g->outer = c10::multiply_integers(a.sizes().slice(0, axis));
  g->inner = c10::multiply_integers(a.sizes().slice(axis + 1));
  if (old && (old->outer != g->outer || old->inner != g->inner || old->len != had)) return nullptr;
  if (old && old->room.scalar_type() != a.scalar_type()) return nullptr;   // a view of the same bytes
  g->part = at::empty({g->outer, g->added, g->inner}, b.options());
  g->part.copy_(b.reshape({g->outer, g->added, g->inner}));
  if (old && old->room.size(1) >= g->len) {
    g->room = at::index_copy(old->room, 1, places(had, g->len, b.options()), g->part);
    return g;
  }
  auto front = old ? old->room.narrow(1, 0, had) : a.view({g->outer, had, g->inner});
  auto rest = at::zeros({g->outer, kRows - g->len % kRows, g->inner}, b.options());
  g->room = at::cat({front, g->part, rest}, 1);
  return g;
}

bool grow(const OpInfo& I, Stack* stack) {
  if (I.kind.size() != 2 || I.kind[0] != OpInfo::LIST || I.name != "aten::cat") return false;
  auto list = (*stack)[stack->size() - 2].toTensorVector();
  if (list.size() != 2 || !list[0].defined()) return false;
  int64_t axis = (*stack)[stack->size() - 1].toInt();
  if (axis < 0) axis += list[0].dim();
  if (!fits(list[0], list[1], axis)) return false;
  State* s = state_of(list[0]);
  std::shared_ptr<Grown> old;
  {
    std::lock_guard<std::recursive_mutex> g(rec().mu);
    old = s->grown;
    if (rec().each || (!old && s->chained != 1)) return false;
  }
  auto g = grown_by(old, list[0], list[1], axis);
  if (!g) return false;
  Dims sizes(list[0].sizes().begin(), list[0].sizes().end()), strides;
  sizes[axis] = g->len;
  plain_strides(sizes, strides);
  at::Tensor y = make(list[0].scalar_type(), sizes, strides, s->device);
  state_of(y)->chained = 1;
  state_of(y)->grown = std::move(g);
  stack->erase(stack->end() - 2, stack->end());
  stack->emplace_back(std::move(y));
  return true;
}

void settle(State* s) {
  std::lock_guard<std::recursive_mutex> lock(rec().mu);
  std::shared_ptr<Grown> g;
  g.swap(s->grown);
  if (!g) return;
  s->chained = -1;
  Ref from = ref_of(g->room.narrow(1, 0, g->len)), to = from;
  to.s = s;
  plain_strides(to.sizes, to.strides);
  if (!is_known(from.s)) {
    try { append_copy(to, from); }
    catch (...) { s->lost |= !s->block; throw; }    // calls before it failed
    return;
  }
  Below b;
  host_of(to).copy_(host_of(from));
  state_wrote(s);
}

bool in_part(Ref& r) {
  const Grown& g = *r.s->grown;
  const int64_t row = g.len * g.inner, mine = g.added * g.inner;
  int64_t at = r.offset % row - (row - mine), last = at;
  if (at < 0 || r.dtype != g.part.scalar_type()) return false;
  Dims strides;
  for (size_t i = 0; i < r.sizes.size(); i++) {
    const int64_t step = r.strides[i];
    if (r.sizes[i] == 0) return false;
    if (step % row == 0) strides.push_back(step / row * mine);
    else {
      if (step > row && r.sizes[i] > 1) return false;
      last += (r.sizes[i] - 1) * step;
      strides.push_back(step);
    }
  }
  if (last >= mine) return false;
  r.offset = r.offset / row * mine + at;
  r.s = state_of(g.part);
  r.strides = strides;
  r.type = 0;
  return true;
}
}  // namespace ocl
