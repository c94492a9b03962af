// What torch wants of any device: guard, allocator, hooks, generator.  Nothing here knows an operator.
// Subclasses of torch's classes are in this file only: they are what changes between versions.
#include "lazy.h"
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <cstdlib>
#include <set>
#include "memory.h"

namespace ocl {
using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

static std::atomic<int> devices_{1};
static fac_device* opened_[16];
static thread_local int current_ = 0;
int device_count() { return devices_; }
int current_device() { return current_; }
fac_device* device_at(int n) { return opened_[n]; }
void set_devices(const std::vector<int64_t>& at) {
  TORCH_CHECK(at.size() <= std::size(opened_), "ocl: ", at.size(), " devices, at most ", std::size(opened_), " are possible");
  for (size_t i = 0; i < at.size(); i++) opened_[i] = (fac_device*)at[i];
  devices_ = (int)at.size();
}
void set_current_device(int n) { current_ = n; }
static Device here(int i) { return Device(DeviceType::PrivateUse1, (DeviceIndex)i); }

// ---- allocator: hands out states, never memory; must not take the GIL
static void storage_gone(void* p) {
  auto* s = (State*)p;
  s->alive = false;
  state_drop(s);
}
struct Alloc final : c10::Allocator {
  c10::DataPtr allocate(size_t n) override {
    State* s = state_new(n, current_);
    return {s->ticket, s, &storage_gone, here(current_)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK(false, "ocl: raw copy of a storage");
  }
};
static Alloc alloc_;
c10::Allocator* allocator() { return &alloc_; }
c10::DataPtr data_of(State* s) { return {s->ticket, s, &storage_gone, here(s->device)}; }
State* state_in(const c10::StorageImpl& st) {
  auto& p = st.data_ptr();
  TORCH_CHECK_NOT_IMPLEMENTED(p.get_deleter() == &storage_gone, "ocl: a part of a storage has no memory of its own on this device; "
                              "take storage.cpu() first");
  return (State*)p.get_context();
}
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &alloc_);

// ---- pinned memory: plain host memory that is remembered
static std::mutex pin_mu;
static std::set<std::pair<char*, size_t>> pins_;
static void unpin(void* p) {
  {
    std::lock_guard<std::mutex> g(pin_mu);
    auto i = pins_.lower_bound({(char*)p, 0});
    if (i != pins_.end() && i->first == p) pins_.erase(i);
  }
  free(p);
}
struct PinAlloc final : c10::Allocator {
  c10::DataPtr allocate(size_t n) override {
    void* p = aligned_alloc(64, (n + 64) / 64 * 64);
    TORCH_CHECK(p, "ocl: no memory for ", n, " pinned bytes");
    std::lock_guard<std::mutex> g(pin_mu);
    pins_.insert({(char*)p, n});
    return {p, p, &unpin, Device(DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* d, const void* s, std::size_t n) const override { memcpy(d, s, n); }
};
static PinAlloc pin_alloc_;

// ---- generator: a seed and a counter; a random call takes the pair when it is recorded
struct Gen final : c10::GeneratorImpl {
  uint64_t seed_ = c10::default_rng_seed_val, offset_ = 0;
  explicit Gen(DeviceIndex i)
      : GeneratorImpl(Device(DeviceType::PrivateUse1, i),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}
  void set_current_seed(uint64_t s) override { seed_ = s; offset_ = 0; }
  void set_offset(uint64_t o) override { offset_ = o; }
  uint64_t get_offset() const override { return offset_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
  void set_state(const c10::TensorImpl& t) override {
    auto* p = (const uint64_t*)t.data();
    seed_ = p[0];
    offset_ = p[1];
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  static DeviceType device_type() { return DeviceType::PrivateUse1; }
  Gen* clone_impl() const override {
    auto* g = new Gen(device().index());
    g->seed_ = seed_;
    g->offset_ = offset_;
    return g;
  }
};
c10::intrusive_ptr<c10::TensorImpl> Gen::get_state() const {
  auto* cpu = c10::GetAllocator(c10::DeviceType::CPU);
  c10::Storage st(c10::Storage::use_byte_size_t(), 16, cpu, true);
  auto t = c10::make_intrusive<c10::TensorImpl>(std::move(st),
                                                c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                caffe2::TypeMeta::Make<uint8_t>());
  t->set_sizes_contiguous({16});
  auto* p = (uint64_t*)t->mutable_data();
  p[0] = seed_;
  p[1] = offset_;
  return t;
}
const at::Generator& default_generator(DeviceIndex i) {
  static std::mutex mu;
  static at::Generator g[std::size(opened_)];
  std::lock_guard<std::mutex> l(mu);
  size_t k = i < 0 ? (size_t)current_ : (size_t)i;
  TORCH_CHECK(k < std::size(g), "ocl: no device ", k);
  if (!g[k].defined()) g[k] = at::make_generator<Gen>((DeviceIndex)k);
  return g[k];
}
std::pair<uint64_t, uint64_t> generator_next(const std::optional<at::Generator>& g, int device) {
  auto gen = g && g->defined() ? *g : default_generator((DeviceIndex)device);
  std::lock_guard<std::mutex> l(gen.mutex());
  auto* p = dynamic_cast<Gen*>(gen.unsafeGetGeneratorImpl());
  TORCH_CHECK(p, "ocl: expected a generator of device ocl, got one of ", gen.device());
  return {p->seed_, p->offset_++};
}

// ---- hooks
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return (DeviceIndex)devices_.load(); }
  DeviceIndex getCurrentDevice() const override { return (DeviceIndex)current_; }
  void setCurrentDevice(DeviceIndex i) const override { current_ = i; }
  DeviceIndex exchangeDevice(DeviceIndex i) const override {
    int old = current_;
    if (i >= 0) current_ = i;
    return (DeviceIndex)old;
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex i) const override { return exchangeDevice(i); }
  const at::Generator& getDefaultGenerator(DeviceIndex i) const override {
    return default_generator(i);
  }
  at::Generator getNewGenerator(DeviceIndex i) const override {
    return at::make_generator<Gen>(i < 0 ? (DeviceIndex)current_ : i);
  }
  Device getDeviceFromPtr(void*) const override { return here(current_); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pin_alloc_; }
  bool isPinnedPtr(const void* p) const override {
    std::lock_guard<std::mutex> g(pin_mu);
    auto i = pins_.upper_bound({(char*)p, SIZE_MAX});
    return i != pins_.begin() && (--i, (char*)p < i->first + std::max<size_t>(i->second, 1));
  }
  void resizePrivateUse1Bytes(const c10::Storage& st, size_t n) const override {
    auto* old = state_in(*st.unsafeGetStorageImpl());
    State* s = state_new(n, old ? old->device : current_);
    if (old) settle(old);
    if (old && old->bytes && (old->block || old->segment == rec().segment)) {
      flush(true);
      memcpy(state_memory(s), state_memory(old), std::min(n, old->bytes));
      state_wrote(s);
    }
    st.unsafeGetStorageImpl()->set_data_ptr(data_of(s));
    st.unsafeGetStorageImpl()->set_nbytes(n);
  }
};
static int hooks_ = (at::RegisterPrivateUse1HooksInterface(new Hooks), 0);

// ---- guard: an in-order stream for each device.  Events exist because autograd records them.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr DeviceType static_type = DeviceType::PrivateUse1;
  Guard() = default;
  explicit Guard(DeviceType) {}
  DeviceType type() const override { return static_type; }
  Device exchangeDevice(Device d) const override {
    int old = current_;
    if (d.index() >= 0) current_ = d.index();
    return here(old);
  }
  Device getDevice() const override { return here(current_); }
  void setDevice(Device d) const override {
    TORCH_CHECK(d.index() < devices_, "ocl: there is no device ocl:", (int)d.index(), ", but ",
                devices_.load());
    if (d.index() >= 0) current_ = d.index();
  }
  void uncheckedSetDevice(Device d) const noexcept override {
    if (d.index() >= 0) current_ = d.index();
  }
  Stream of(Device d) const {
    return Stream(Stream::DEFAULT, here(d.index() < 0 ? current_ : d.index()));
  }
  Stream getStream(Device d) const override { return of(d); }
  Stream getDefaultStream(Device d) const override { return of(d); }
  Stream getStreamFromGlobalPool(Device d, bool) const override { return of(d); }
  Stream getNewStream(Device d, int) const override { return of(d); }
  Stream exchangeStream(Stream s) const override { return of(s.device()); }
  DeviceIndex deviceCount() const noexcept override { return (DeviceIndex)devices_.load(); }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
  void record(void** e, const Stream&, const DeviceIndex, const c10::EventFlag) const override {
    *e = (void*)1;
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override { flush(true); }
  void synchronizeEvent(void*) const override { flush(true); }
  void synchronizeDevice(const DeviceIndex) const override { flush(true); }
  void recordDataPtrOnStream(const c10::DataPtr&, const Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);
}  // namespace ocl
