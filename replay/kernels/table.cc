#include "replay/kernels/table.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "numpy/loops.h"
#include "replay/background.h"
#include "replay/kernels/compile.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr size_t kMaxKernels = 16000;  // each takes three memory mappings of the usual 65,530

struct Entry {
  std::shared_ptr<Kernel> kernel;
  uint64_t found;  // when it was asked for last
};

struct Table {
  std::unordered_map<std::string, Entry> kernels;
  uint64_t finds = 0;
  size_t max_idle = 256;
  size_t sweep_at = 0;  // so many kernels, and those that nobody uses are looked for
  bool enabled = true, background = true;
  int threads = 1;
};

// Never destroyed: programs may outlive static destructors.
Table& table() {
  static auto* t = new Table;
  return *t;
}

rt::LaunchRef launch_ref(const halide_gen::Ref& r) { return {static_cast<uint8_t>(r.kind), r.dtype, r.size, r.scalar, r.index}; }

// Fills in everything but the code. False if NumPy lacks a loop.
bool prepare(const halide_gen::KernelSpec& spec, const halide_gen::Plan& plan, Kernel* k) {
  k->plan = plan;
  for (const halide_gen::Stage& stage : k->plan.stages) {
    rt::LaunchStage s{};
    if (stage.loop_op >= 0) {
      const halide_gen::KernelOp& op = spec.ops[stage.loop_op];
      const numpy::InnerLoop loop = numpy::inner_loop(op.fn, op.loop, op.result);
      if (!loop.function) return k->failure = std::string("NumPy has no loop for ") + array_fn_name(op.fn), false;
      s.loop = loop.function, s.loop_data = loop.data;
    }
    std::vector<rt::LaunchRef>& refs = k->refs.emplace_back();
    for (const halide_gen::Ref& r : stage.reads) refs.push_back(launch_ref(r));
    for (const halide_gen::Ref& r : stage.writes) refs.push_back(launch_ref(r));
    if (refs.size() > rt::kMaxStageOperands) return k->failure = "too many operands", false;
    s.reads = static_cast<int32_t>(stage.reads.size()), s.writes = static_cast<int32_t>(stage.writes.size());
    k->stages.push_back(s);
  }
  for (size_t i = 0; i < k->stages.size(); ++i) k->stages[i].refs = k->refs[i].data();
  k->launch = {k->stages.data(), static_cast<int32_t>(k->stages.size()), k->plan.tile, k->plan.scratch_slots, k->plan.loops};
  return true;
}

// Kernels that are not kept on disk are others than those that are; so are those that are made by other means, and faulty ones.
std::string table_key(const std::string& text, bool keep) {
  return text + (keep ? "" : "\nprivate") + "\nby vectors " + std::to_string(static_cast<int>(vectors())) +
         (planted(Fault::short_rest) ? "\nfaulty" : "");
}

// Only the table holds it. The compile thread lets go of a kernel that it has finished, but takes none by itself.
bool is_idle(const Entry& e) { return e.kernel.use_count() == 1; }

// Drops the longer unused half of those that nobody uses, if there are too many.
void sweep(Table& t) {
  std::vector<uint64_t> idle;
  for (const auto& [key, entry] : t.kernels) {
    if (is_idle(entry)) idle.push_back(entry.found);
  }
  if (idle.size() > t.max_idle) {
    const auto middle = idle.end() - static_cast<ptrdiff_t>(t.max_idle / 2);
    std::nth_element(idle.begin(), middle, idle.end());
    const uint64_t oldest_kept = middle == idle.end() ? UINT64_MAX : *middle;
    std::erase_if(t.kernels, [&](const auto& item) { return is_idle(item.second) && item.second.found < oldest_kept; });
  }
  t.sweep_at = t.kernels.size() + t.max_idle / 2 + 1;
}

std::shared_ptr<Kernel> make_kernel(const halide_gen::KernelSpec& spec, const halide_gen::Plan& plan, std::string text, bool keep) {
  Table& t = table();
  if (t.kernels.size() >= std::min(t.sweep_at, kMaxKernels)) sweep(t);
  if (t.kernels.size() >= kMaxKernels) return nullptr;
  auto k = std::make_shared<Kernel>();
  k->text = text;
  k->keep = keep;
  k->symbol = halide_gen::kernel_symbol(text);
  if (!prepare(spec, plan, k.get())) k->state = Kernel::kFailed;
  t.kernels.emplace(table_key(text, keep), Entry{k, t.finds});
  return k;
}

}  // namespace

std::shared_ptr<Kernel> find_kernel(const halide_gen::KernelSpec& spec, const halide_gen::Plan& plan, bool keep) {
  Table& t = table();
  if (!t.enabled) return nullptr;
  t.finds++;
  std::string text = halide_gen::to_text(spec);
  const auto found = t.kernels.find(table_key(text, keep));
  std::shared_ptr<Kernel> k;
  if (found != t.kernels.end()) {
    k = found->second.kernel;
    found->second.found = t.finds;
  } else {
    k = make_kernel(spec, plan, std::move(text), keep);
  }
  if (k && k->state.load() == Kernel::kNew) {
    k->state = Kernel::kQueued;
    if (assemble_now(spec, k.get())) return k;
    if (t.background) {
      compile_later(k);
    } else {
      compile_now(k.get());
    }
  }
  return k;
}

size_t count_kernels() { return table().kernels.size(); }

size_t set_idle_kernels(size_t count) {
  table().sweep_at = 0;
  return std::exchange(table().max_idle, count);
}
bool use_kernel_cache = true;

namespace {

// Those that the process may use, which may be fewer than there are.
int processors() {
  const cpu_set_t own = own_processors();
  const int count = CPU_COUNT(&own);
  return count > 0 ? count : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace

void configure_kernels(bool kernels, bool background, int threads) {
  Table& t = table();
  t.enabled = kernels, t.background = background;
  static const int cores = processors();
  t.threads = threads > 0 ? threads : cores;
}

int launch_threads() { return table().threads; }
bool compiles_in_background() { return table().background; }
uint64_t g_launches = 0;

KernelCounters kernel_counters() {
  const CompileCounters c = compile_counters();
  return {g_launches, c.compiled, c.loaded, c.assembled};
}

}  // namespace dalsegno::replay
