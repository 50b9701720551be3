#include "replay/kernels/table.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <unordered_map>

#include "numpy/loops.h"
#include "replay/kernels/compile.h"

namespace dalsegno::replay {
namespace {

constexpr size_t kMaxKernels = 16000;  // each takes three memory mappings of the usual 65,530

struct Table {
  std::unordered_map<std::string, std::unique_ptr<Kernel>> kernels;
  bool enabled = true, background = true;
  int threads = 1;
  uint64_t launches = 0;
};

// Never destroyed: programs may outlive static destructors.
Table& table() {
  static auto* t = new Table;
  return *t;
}

rt::LaunchRef launch_ref(const halide_gen::Ref& r) { return {static_cast<uint8_t>(r.kind), r.dtype, r.size, r.scalar, r.index}; }

// Fills in everything but the code. False if NumPy lacks a loop.
bool prepare(const halide_gen::KernelSpec& spec, Kernel* k) {
  k->plan = halide_gen::make_plan(spec);
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

// Kernels that are not kept on disk are others than those that are.
std::string table_key(const std::string& text, bool keep) { return keep ? text : text + "\nprivate"; }

Kernel* make_kernel(const halide_gen::KernelSpec& spec, std::string text, bool keep) {
  auto made = std::make_unique<Kernel>();
  Kernel* k = made.get();
  k->text = text;
  k->keep = keep;
  k->symbol = halide_gen::kernel_symbol(text);
  if (!prepare(spec, k)) k->state = Kernel::kFailed;
  table().kernels.emplace(table_key(text, keep), std::move(made));
  return k;
}

}  // namespace

Kernel* find_kernel(const halide_gen::KernelSpec& spec, bool keep) {
  Table& t = table();
  if (!t.enabled) return nullptr;
  std::string text = halide_gen::to_text(spec);
  const auto found = t.kernels.find(table_key(text, keep));
  Kernel* k = nullptr;
  if (found != t.kernels.end()) {
    k = found->second.get();
  } else if (t.kernels.size() < kMaxKernels) {
    k = make_kernel(spec, std::move(text), keep);
  }
  if (k && k->state.load() == Kernel::kNew) {
    k->state = Kernel::kQueued;
    if (t.background) {
      compile_later(k);
    } else {
      compile_now(k);
    }
  }
  return k;
}

bool use_kernel_cache = true;

void configure_kernels(bool kernels, bool background, int threads) {
  Table& t = table();
  t.enabled = kernels, t.background = background;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  t.threads = threads > 0 ? threads : cores;
}

int launch_threads() { return table().threads; }
void count_launch() { ++table().launches; }

KernelCounters kernel_counters() {
  const CompileCounters c = compile_counters();
  return {table().launches, c.compiled, c.loaded};
}

}  // namespace dalsegno::replay
