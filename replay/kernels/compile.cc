#include "replay/kernels/compile.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "halide_gen/compiler_api.h"
#include "halide_gen/plan/llvm_text.h"
#include "replay/clock.h"
#include "replay/kernels/loader.h"
#include "replay/kernels/table.h"
#include "replay/settings.h"

namespace dalsegno::replay {
namespace {

using halide_gen::CompilerApi;

std::atomic<uint64_t> compiled_count{0}, loaded_count{0}, assembled_count{0};
std::atomic<int> asked_for{0};  // of the compile threads, and not finished
std::atomic<uint32_t> came{0};  // of those
std::atomic<LaunchFunction> launch_function{nullptr};
std::atomic<bool> halide_only{false};

KernelCache* cache = nullptr;  // guarded by work_mutex()

// The exception that is set, as text; clears it.
std::string take_error() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* text = value ? PyObject_Str(value) : nullptr;
  const char* utf8 = text ? PyUnicode_AsUTF8(text) : nullptr;
  std::string out = utf8 ? utf8 : "unknown error";
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  PyErr_Clear();
  return out;
}

// Maps the file of dalsegno._halide and the libraries under it, which takes longest, without the GIL.
void map_compiler() {
  const std::string file = sibling_file("_halide");
  if (!file.empty()) open_giving_way(file);
}

const CompilerApi* compiler(std::string* error) {
  static std::atomic<const CompilerApi*> api{nullptr};
  if (const CompilerApi* known = api.load()) return known;
  map_compiler();
  WithGil gil;
  PyObject* module = PyImport_ImportModule("dalsegno._halide");
  if (module) api = static_cast<const CompilerApi*>(PyCapsule_Import(halide_gen::kCompilerCapsule, 0));
  Py_XDECREF(module);
  if (PyErr_Occurred()) *error = take_error();
  return api.load();
}

bool open_launcher(std::string* error) {
  if (!launch_function.load()) launch_function = load_launcher(error);
  return launch_function.load() != nullptr;
}

bool by_halide(const std::string& text, std::string* object, std::string* error) {
  const CompilerApi* api = compiler(error);
  if (!api) return false;
  give_way();
  const std::lock_guard<std::mutex> lock(halide_mutex());
  return api->compile(text, object, error);
}

// Halide compiles what is not written as LLVM IR: nothing, as kernels are now, but in tests.
bool compile_text(const std::string& key, const Kernel& k, std::string* object, std::string* error) {
  if (!open_launcher(error)) return false;
  std::string ir;
  const bool written = !halide_only.load() && halide_gen::to_llvm(k.text, &ir, error);
  if (!(written ? compile_ir(ir, CompileKind::kKernel, native::Output::kObject, native::Effort::kFull, object, error)
                : by_halide(k.text, object, error)))
    return false;
  const std::lock_guard<std::mutex> lock(work_mutex());
  if (k.keep) keep_in_cache(key, *object);
  return true;
}

bool has_code(const Kernel& k) {
  for (const halide_gen::Stage& s : k.plan.stages) {
    if (s.loop_op < 0) return true;
  }
  return false;
}

struct Unused {
  std::mutex mutex;
  std::vector<Library*> libraries;
};
Unused& unused() {
  static auto* u = new Unused;
  return *u;
}

// Without the GIL.
bool load(Kernel* k, const std::string& object, std::string* error) {
  if (!open_launcher(error)) return false;
  std::vector<std::string> symbols;
  for (size_t i = 0; i < k->plan.stages.size(); ++i) {
    if (k->plan.stages[i].loop_op < 0) symbols.push_back(k->symbol + "_" + std::to_string(i) + "_argv");
  }
  if (symbols.empty()) return true;
  std::vector<void*> addresses;
  k->library = load_object(object, symbols, &addresses, error);
  if (!k->library) return false;
  for (size_t i = 0, next = 0; i < k->plan.stages.size(); ++i) {
    if (k->plan.stages[i].loop_op < 0) k->stages[i].code = reinterpret_cast<int (*)(void**)>(addresses[next++]);
  }
  return true;
}

void finish(Kernel* k, bool ok, const std::string& error) {
  if (!ok) k->failure = error;
  k->state.store(ok ? Kernel::kReady : Kernel::kFailed, std::memory_order_release);
}

}  // namespace

halide_gen::Vectors vectors() {
  if (!settings().assemble) return halide_gen::Vectors::kNone;
  const halide_gen::Vectors all = halide_gen::processor_vectors();
  return settings().vector_bits < 512 ? std::min(all, halide_gen::Vectors::kAvx2) : all;
}

bool assemble_now(const halide_gen::KernelSpec& spec, Kernel* k) {
  std::string error;
  const halide_gen::Vectors by = vectors();
  if (by == halide_gen::Vectors::kNone || !open_launcher(&error)) return false;
  k->assembled = halide_gen::assemble(spec, k->plan, by);
  if (!k->assembled) return false;
  for (size_t i = 0; i < k->stages.size(); ++i) k->stages[i].code = k->assembled->stage(i);
  ++assembled_count;
  finish(k, true, "");
  return true;
}

bool cached(const std::string& key, std::string* object) {
  std::lock_guard<std::mutex> lock(work_mutex());
  return cache && cache->get(key, object);
}

void keep_in_cache(const std::string& key, const std::string& object) {
  if (cache) cache->put(key, object);
}

void keep_region_in_cache(const std::string& function, const store::KeptRegion& region) {
  if (cache) cache->put_region(function, region);
}

void unload_later(Library* library) {
  if (!library) return;
  std::lock_guard<std::mutex> lock(unused().mutex);
  unused().libraries.push_back(library);
}

void unload_unused() {
  std::vector<Library*> libraries;
  {
    std::lock_guard<std::mutex> lock(unused().mutex);
    libraries.swap(unused().libraries);
  }
  for (Library* library : libraries) unload_object(library);
}

Kernel::~Kernel() { unload_later(library); }

namespace {

void try_to_compile(Kernel* k) {
  const std::string key = k->text + kernel_environment();
  std::string object, error;
  bool ok = !has_code(*k) || (k->from_cache = k->keep && cached(key, &object));
  if (ok && k->from_cache) ++loaded_count;
  if (!ok && (ok = compile_text(key, *k, &object, &error))) ++compiled_count;
  if (ok) ok = load(k, object, &error);
  finish(k, ok, error);
}

}  // namespace

void compile_kernel(Kernel* k) {
  try {
    try_to_compile(k);
  } catch (const std::exception&) {  // no memory: its ops stay NumPy's own calls
    finish(k, false, "");
  }
}

std::mutex& work_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::mutex& halide_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::mutex& llvm_mutex(CompileKind kind) {
  static auto* mutexes = new std::array<std::mutex, static_cast<size_t>(CompileKind::kCount)>;
  return (*mutexes)[static_cast<size_t>(kind)];
}

LaunchFunction launcher() { return launch_function.load(std::memory_order_relaxed); }

void compile_now(Kernel* kernel) {
  kernel_environment();  // asks NumPy, with the GIL, once
  const Uncounted clock;
  without_gil([kernel] { compile_kernel(kernel); });
}

void set_kernel_cache(KernelCache* new_cache) {
  without_gil([new_cache] {
    std::lock_guard<std::mutex> lock(work_mutex());
    cache = new_cache;
  });
}

void compile_by_halide(bool only) { halide_only = only; }

void count_asked_for(int change) {
  asked_for += change;
  if (change < 0) ++came;
}
uint32_t kernels_that_came() { return came.load(std::memory_order_relaxed); }
bool kernels_under_way() { return asked_for.load(std::memory_order_relaxed) > 0; }

CompileCounters compile_counters() { return {compiled_count.load(), loaded_count.load(), assembled_count.load()}; }

}  // namespace dalsegno::replay
