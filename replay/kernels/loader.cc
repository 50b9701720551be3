#include "replay/kernels/loader.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "hook/error_aside.h"
#include "hook/interrupts.h"
#include "replay/kernels/compile.h"
#include "replay/kernels/unwind_tables.h"
#include "replay/native/object_image.h"
#include "replay/py_ref.h"

namespace dalsegno::replay {
namespace {

// ---- llvmlite's C functions (llvmlite/binding/orcjit.py declares them) -----------------------------------------------------------

struct LinkElement {
  uint8_t kind;
  const char* value;
  size_t length;
};
constexpr uint8_t kObjectImage = 2, kOtherLibrary = 3;  // a library without a name is the process itself

struct SymbolAddress {
  char* name;
  uint64_t address;
};

struct Llvm {
  int (*initialize_native_target)() = nullptr;
  int (*initialize_native_asm_printer)() = nullptr;
  void* (*create)(void* target_machine, bool suppress_errors, bool use_jit_link, const char** error) = nullptr;
  void* (*link)(void* jit, const char* name, LinkElement* elements, size_t n_elements, SymbolAddress* imports, size_t n_imports,
                SymbolAddress* exports, size_t n_exports, const char** error) = nullptr;
  bool (*dispose)(void* tracker, const char** error) = nullptr;
  void (*dispose_string)(const char* text) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

bool find_all(void* library, Llvm* f) {
  return find(library, "LLVMPY_InitializeNativeTarget", &f->initialize_native_target) &&
         find(library, "LLVMPY_InitializeNativeAsmPrinter", &f->initialize_native_asm_printer) &&
         find(library, "LLVMPY_CreateLLJITCompiler", &f->create) && find(library, "LLVMPY_LLJIT_Link", &f->link) &&
         find(library, "LLVMPY_LLJIT_Dylib_Tracker_Dispose", &f->dispose) && find(library, "LLVMPY_DisposeString", &f->dispose_string);
}

// ---- one ORC session for the process ---------------------------------------------------------------------------------------------

struct Session {
  Llvm llvm;
  void* library = nullptr;
  void* jit = nullptr;
  uint64_t next = 0;
};

std::string take(const Llvm& llvm, const char* text) {
  std::string out = text ? text : "unknown error";
  if (text) llvm.dispose_string(text);
  return out;
}

// The lock llvmlite's own Python code holds while it is inside the library, or null: nobody has imported it yet, and nobody can while the
// GIL is held. New reference.
PyObject* llvmlite_lock() {
  PyObject* modules = PyImport_GetModuleDict();  // borrowed
  PyObject* ffi = PyDict_GetItemString(modules, "llvmlite.binding.ffi");
  PyObject* library = ffi ? PyObject_GetAttrString(ffi, "lib") : nullptr;
  PyObject* lock = library ? PyObject_GetAttrString(library, "_lock") : nullptr;
  Py_XDECREF(library);
  PyErr_Clear();
  return lock;
}

// LLVM's table of targets is filled without a lock, so llvmlite must not be doing the same (in Numba's hands, say), nor another thread of
// ours. With the GIL, which only entering and leaving may let go of.
class LlvmliteLocked {
 public:
  LlvmliteLocked() : lock_(llvmlite_lock()), entered_(lock_ ? PyObject_CallMethod(lock_.get(), "__enter__", nullptr) : nullptr) {
    PyErr_Clear();
  }
  ~LlvmliteLocked() {
    const PyRef left(lock_ ? PyObject_CallMethod(lock_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None) : nullptr);
    PyErr_Clear();
  }
  LlvmliteLocked(const LlvmliteLocked&) = delete;

 private:
  const PyRef lock_, entered_;
};

// ---- work that needs the GIL, from a thread in the background ---------------------------------------------------------------------

// Who waits for the GIL asks for it when nobody has let go of it for 5 ms (Python/ceval_gil.h, take_gil). A caller who lets go for a moment
// at each call of NumPy's, and has it back before a thread that was put out of the way wakes up, is never asked: native code came 190 ms
// late, or after half a second. So the main thread does the work where it looks what waits (hook::add_pending_call).
class Errand {
 public:
  explicit Errand(std::function<void()> work) : work_(std::move(work)) {}

  // Any thread without the GIL. A main thread that runs no Python is not waited for.
  static void run(std::function<void()> work) {
    if (PyGILState_GetThisThreadState() != nullptr) return with_gil(work);  // no thread of ours, which have none for long
    const auto errand = std::make_shared<Errand>(std::move(work));
    auto handed = std::make_unique<std::shared_ptr<Errand>>(errand);
    if (hook::add_pending_call(on_main_thread, handed.get())) {
      handed.release();
      for (int k = 0; k < kPatience && errand->state_.load() == kWaits; ++k) std::this_thread::sleep_for(kPause);
    }
    if (errand->claim()) return with_gil(errand->work_);
    while (errand->state_.load() != kDone) std::this_thread::sleep_for(kPause);
  }

 private:
  enum State : uint8_t { kWaits, kTaken, kDone };
  static constexpr int kPatience = 50;
  static constexpr std::chrono::microseconds kPause{200};

  static void with_gil(const std::function<void()>& work) {
    const WithGil gil;
    work();
  }
  // Locks nothing: a child that was forked meanwhile finds the call waiting, too, and nobody who waits for it.
  static int on_main_thread(void* handed) {
    const std::unique_ptr<std::shared_ptr<Errand>> errand(static_cast<std::shared_ptr<Errand>*>(handed));
    if (!(*errand)->claim()) return 0;
    try {
      const hook::ErrorAside keep;
      (*errand)->work_();
    } catch (const std::exception&) {  // no memory: it has not been done
    }
    (*errand)->state_ = kDone;
    return 0;
  }
  bool claim() {
    State waits = kWaits;
    return state_.compare_exchange_strong(waits, kTaken);
  }

  const std::function<void()> work_;
  std::atomic<State> state_{kWaits};
};

// sys.path as it was when something was first asked for. An import would let go of the GIL, and wait for it again, at each of its looks
// into a folder: a tenth of a second beside a thread that computes.
std::atomic<const std::vector<std::filesystem::path>*> search_path{nullptr};  // set once, with the GIL

std::string library_file() {
  const std::filesystem::path within = std::filesystem::path("llvmlite") / "binding" / "libllvmlite.so";
  if (const auto* folders = search_path.load()) {
    std::error_code ignored;
    for (const std::filesystem::path& folder : *folders)
      if (std::filesystem::exists(folder / within, ignored)) return (folder / within).string();
  }
  const WithGil gil;
  const std::string package = package_file("llvmlite");
  return package.empty() ? "" : (std::filesystem::path(package).parent_path() / "binding" / "libllvmlite.so").string();
}

std::atomic<Session*> g_session{nullptr};  // set with work_mutex(); never closed: kernels run until the process ends

// With the GIL.
void add_target(const Llvm& llvm) {
  const LlvmliteLocked locked;
  llvm.initialize_native_target();
  llvm.initialize_native_asm_printer();
}

// Without the GIL: a millisecond.
bool open_session(void* library, const Llvm& llvm, std::string* error) {
  const std::lock_guard<std::mutex> lock(work_mutex());
  if (g_session.load()) return true;
  auto fresh = std::make_unique<Session>();
  fresh->library = library;
  fresh->llvm = llvm;
  const char* message = nullptr;
  fresh->jit = llvm.create(nullptr, true, false, &message);
  if (!fresh->jit) return *error = take(llvm, message), false;
  g_session = fresh.release();
  return true;
}

// Takes long, so it is done without the GIL. Nothing is remembered until all is well: a fork may come at any time.
void* open_library(std::string* error) {
  const std::string file = library_file();
  if (file.empty()) return *error = "llvmlite is not installed", nullptr;
  // The dynamic linker opens one file at a time, so who asked for the launcher meanwhile would wait for LLVM.
  std::string ignored;  // who needs it is told then
  load_launcher(&ignored);
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) *error = "libllvmlite.so cannot be opened";
  return library;
}

}  // namespace

void note_search_path() {
  if (search_path.load()) return;
  PyObject* given = PySys_GetObject("path");  // borrowed
  if (!given || !PyList_Check(given)) return;
  auto folders = std::make_unique<std::vector<std::filesystem::path>>();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given); ++i) {
    PyObject* folder = PyList_GET_ITEM(given, i);
    const char* utf8 = PyUnicode_Check(folder) ? PyUnicode_AsUTF8(folder) : nullptr;
    if (!utf8) PyErr_Clear();
    if (utf8 && *utf8) folders->emplace_back(utf8);
  }
  search_path = folders.release();
}

bool open_loader(std::string* error) {
  if (g_session.load()) return true;
  void* library = open_library(error);
  if (!library) return false;
  Llvm llvm;
  if (!find_all(library, &llvm)) return *error = "this llvmlite lacks functions of version 0.50", false;
  Errand::run([llvm] { add_target(llvm); });  // (a copy: a child that was forked has no thread that waits)
  return open_session(library, llvm, error);
}

// ---- what is loaded --------------------------------------------------------------------------------------------------------------

// One of the two.
struct Library {
  std::unique_ptr<native::ObjectImage> image;
  void* tracker = nullptr;  // ORC's
};

namespace {

// With work_mutex(), after open_loader().
void* link_by_llvm(const std::string& object, const std::vector<std::string>& symbols, std::vector<void*>* addresses, std::string* error) {
  Session* s = g_session.load();
  const std::string loaded = without_unwind_tables(object);
  LinkElement elements[] = {{kOtherLibrary, "", 0}, {kObjectImage, loaded.data(), loaded.size()}};
  std::vector<SymbolAddress> exports;
  for (const std::string& symbol : symbols) exports.push_back({const_cast<char*>(symbol.c_str()), 0});
  const std::string name = "kernel" + std::to_string(s->next++);
  const char* message = nullptr;
  void* tracker = s->llvm.link(s->jit, name.c_str(), elements, std::size(elements), nullptr, 0, exports.data(), exports.size(), &message);
  if (!tracker) return *error = take(s->llvm, message), nullptr;
  addresses->clear();
  for (const SymbolAddress& e : exports) addresses->push_back(reinterpret_cast<void*>(e.address));
  return tracker;
}

}  // namespace

Library* load_object(const std::string& object, const std::vector<std::string>& symbols, std::vector<void*>* addresses,
                     std::string* error) {
  auto library = std::make_unique<Library>();
  library->image = native::link_object(object, symbols, addresses);
  if (!library->image && !open_loader(error)) return nullptr;
  const std::lock_guard<std::mutex> lock(work_mutex());
  unload_unused();
  if (!library->image && !(library->tracker = link_by_llvm(object, symbols, addresses, error))) return nullptr;
  return library.release();
}

bool compile_ir(const std::string& text, CompileKind kind, native::Output output, native::Effort effort, std::string* out,
                std::string* error) {
  static_assert(native::kUsers == static_cast<int>(CompileKind::kCount));
  if (!open_loader(error)) return false;
  const std::lock_guard<std::mutex> lock(llvm_mutex(kind));
  const char* features = kind == CompileKind::kKernel ? "" : native::kSixteenRegisters;
  return native::compile(g_session.load()->library, text, output, effort, static_cast<int>(kind), features, out, error);
}

void unload_object(Library* library) {
  const std::unique_ptr<Library> gone(library);
  const char* message = nullptr;
  if (!gone || !gone->tracker) return;
  const Llvm& llvm = g_session.load()->llvm;
  if (llvm.dispose(gone->tracker, &message)) take(llvm, message);
}

static std::filesystem::path own_file() {
  Dl_info self;
  return dladdr(reinterpret_cast<void*>(&load_object), &self) ? self.dli_fname : "";
}

std::string sibling_file(const char* module) {
  const std::filesystem::path own = own_file();
  const std::string name = own.filename().string();  // _core.cpython-311-x86_64-linux-gnu.so
  return own.empty() ? "" : (own.parent_path() / (module + name.substr(std::min(name.find('.'), name.size())))).string();
}

LaunchFunction load_launcher(std::string* error) {
  static std::atomic<LaunchFunction> loaded{nullptr};
  if (LaunchFunction known = loaded.load()) return known;
  if (own_file().empty()) return *error = "the extension module's own file is unknown", nullptr;
  constexpr int kVisible = RTLD_NOW | RTLD_GLOBAL;
  const std::string own = sibling_file("lib/libdalsegno_rt"), shared = own_file().parent_path() / "lib" / "libdalsegno_rt.so";
  void* library = dlopen(own.c_str(), kVisible);
  if (!library) library = dlopen(shared.c_str(), kVisible);
  LaunchFunction found = nullptr;
  if (!library || !find(library, "dalsegno_launch", &found)) return *error = dlerror(), nullptr;
  loaded = found;
  return found;
}

std::string package_file(const char* package) {
  const hook::ErrorAside keep;
  const PyRef util(PyImport_ImportModule("importlib.util"));
  const PyRef spec(util ? PyObject_CallMethod(util.get(), "find_spec", "s", package) : nullptr);
  const PyRef origin(spec && spec.get() != Py_None ? PyObject_GetAttrString(spec.get(), "origin") : nullptr);
  PyObject* bytes = nullptr;
  std::string file;
  if (origin && origin.get() != Py_None && PyUnicode_FSConverter(origin.get(), &bytes)) file = PyBytes_AS_STRING(bytes);
  Py_XDECREF(bytes);
  PyErr_Clear();
  return file;
}

}  // namespace dalsegno::replay
