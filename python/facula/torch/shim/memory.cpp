// Addresses and memory of states.  Freed memory is kept by size for the next state of that size.
#include "memory.h"
#include <sys/mman.h>
#include <cstdlib>

namespace ocl {
static const Api* api_ = nullptr;
const Api& api() {
  TORCH_CHECK(api_, "ocl: facula.torch was not imported");
  return *api_;
}
void set_api(const void* functions) { api_ = (const Api*)functions; }

static std::mutex mu;               // a leaf lock: nothing is called while it is held
static char *base_ = nullptr, *top_ = nullptr;
static constexpr size_t kRange = 1ull << 45;
static std::vector<void*> tickets_[64];
static std::unordered_map<size_t, std::vector<void*>> kept_;
static MemoryStat stat_;
static std::atomic<uint64_t> uids_{1};
uint64_t next_uid() { return uids_; }

static int size_class(size_t n) {
  int c = 9;
  while ((1ull << c) < n) c++;
  return c;
}
static void* ticket_new(size_t n) {
  std::lock_guard<std::mutex> g(mu);
  if (!base_) {
    base_ = top_ = (char*)mmap(nullptr, kRange, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(base_ != MAP_FAILED, "ocl: cannot reserve addresses");
  }
  int c = size_class(n);
  if (!tickets_[c].empty()) {
    void* p = tickets_[c].back();
    tickets_[c].pop_back();
    return p;
  }
  void* p = top_;
  top_ += 1ull << c;
  return p;
}

static size_t rounded(size_t n) { return (n + 64 + 511) / 512 * 512; }
static void* host_allocate(size_t n) {
  size_t size = rounded(n);
  {
    std::lock_guard<std::mutex> g(mu);
    stat_.now += size;
    stat_.peak = std::max(stat_.peak, stat_.now);
    auto& free = kept_[size];
    if (!free.empty()) {
      void* p = free.back();
      free.pop_back();
      stat_.kept -= size;
      return p;
    }
  }
  void* p = aligned_alloc(512, size);
  if (!p) memory_trim();
  if (!p) p = aligned_alloc(512, size);
  if (!p) {
    std::lock_guard<std::mutex> g(mu);
    stat_.now -= size;
    TORCH_CHECK_WITH(OutOfMemoryError, false, "ocl: out of memory: ", n, " bytes were asked for, ",
                     stat_.now, " are in use");
  }
  return p;
}
static void host_free(void* p, size_t n) {
  if (!p) return;
  std::lock_guard<std::mutex> g(mu);
  size_t size = rounded(n);
  stat_.now -= size;
  stat_.kept += size;
  kept_[size].push_back(p);
}
void memory_trim() {
  std::lock_guard<std::mutex> g(mu);
  for (auto& [size, list] : kept_)
    for (void* p : list) free(p);
  kept_.clear();
  stat_.kept = 0;
}
MemoryStat memory_stat() {
  std::lock_guard<std::mutex> g(mu);
  return stat_;
}
void memory_reset_peak() {
  std::lock_guard<std::mutex> g(mu);
  stat_.peak = stat_.now;
}

State* state_new(size_t n, int device) {
  auto* s = new State;
  s->bytes = n;
  s->device = device;
  s->ticket = ticket_new(n);
  s->uid = uids_++;
  std::lock_guard<std::mutex> g(mu);
  stat_.states++;
  return s;
}
void state_drop(State* s) {
  if (--s->refs) return;
  if (s->unasked) forget_unasked(s);
  if (s->tensor) api().discard(s->tensor);          // the block is of this state alone
  if (s->block) block_drop(s->block);
  {
    std::lock_guard<std::mutex> g(mu);
    tickets_[size_class(s->bytes)].push_back(s->ticket);
    stat_.states--;
  }
  delete s;
}
Block* block_new(size_t bytes) { return new Block{host_allocate(bytes), bytes}; }
void block_drop(Block* b) {
  if (--b->refs) return;
  host_free(b->p, b->bytes);
  delete b;
}
void* state_memory(State* s) {
  TORCH_CHECK(!s->grown, "ocl: a cat that was not recorded is read");
  if (!s->block) {
    TORCH_CHECK(!s->lost, "ocl: these contents were lost: the calls that should have made them failed earlier");
    s->block = block_new(s->bytes);
    memset(s->block->p, 0, s->bytes);
  }
  if (s->tensor && !api().data(s->tensor)) {
    check_earlier();
    fac_error err;
    const bool told = api().check(device_at(s->device), &err);
    TORCH_CHECK(false, "ocl: the device failed to give its contents", told ? ": " : "", told ? err.text : "");
  }
  return s->block->p;
}
void state_wrote(State* s) {
  s->writes++;
  s->known = true;
  s->lost = false;
  if (s->tensor) api().touch(s->tensor);
}
static size_t width(fac_dtype t) {
  switch (t) {
    case FAC_F64: case FAC_I64: case FAC_U64: return 8;
    case FAC_F32: case FAC_I32: case FAC_U32: return 4;
    case FAC_F16: case FAC_BF16: case FAC_I16: case FAC_U16: return 2;
    default: return 1;
  }
}
fac_tensor* lent(Block* b, fac_dtype dtype) {
  fac_dims flat = {1, {(int64_t)(b->bytes / width(dtype))}};
  fac_tensor* t;
  fac_error err;
  b->refs++;
  fac_status st = api().lend(dtype, flat, nullptr, b->p, [](void* o) { block_drop((Block*)o); }, b,
                             &t, &err);
  if (st) block_drop(b);
  TORCH_CHECK(!st, "ocl: ", err.text);
  return t;
}
void state_set(State* s, fac_tensor* t, fac_dtype dtype) {
  if (s->tensor) api().discard(s->tensor);          // over a block that is dropped, or read before
  s->tensor = t;
  s->tensor_uid = uids_++;
  s->dtype = dtype;
}
void state_lose(State* s) {
  if (s->tensor) api().discard(s->tensor);
  if (s->block) block_drop(s->block);
  s->tensor = nullptr;
  s->tensor_uid = 0;
  s->block = nullptr;
  s->lost = true;
}
fac_tensor* state_tensor(State* s, fac_dtype dtype) {
  if (s->tensor && s->dtype == dtype) return s->tensor;
  state_memory(s);
  state_set(s, lent(s->block, dtype), dtype);
  return s->tensor;
}
}  // namespace ocl
