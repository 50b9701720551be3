#include "replay/native/llvm.h"

#include <dlfcn.h>

namespace dalsegno::native {
namespace {

struct Functions {
  void* (*create_context)();
  void (*dispose_context)(void*);
  void* (*parse)(void* context, const char* text, const char** error);
  bool (*verify)(void* module, const char** error);
  void (*dispose_module)(void* module);
  void (*default_triple)(const char** out);
  void* (*target)(const char* triple, const char** error);
  void (*cpu_name)(const char** out);
  int (*cpu_features)(const char** out);
  void* (*create_machine)(void* target, const char* triple, const char* cpu, const char* features, int level, const char* relocation,
                          const char* code_model, int print, int jit, const char* abi);
  void* (*create_tuning)();
  void (*dispose_tuning)(void*);
  void* (*create_builder)(void* machine, void* tuning);
  void* (*create_passes)();
  void (*variables_to_values)(void* passes);
  void (*combine)(void* passes);
  void (*simplify_control)(void* passes);
  void (*run)(void* passes, void* module, void* builder);
  void (*dispose_passes)(void*);
  void* (*emit)(void* machine, void* module, int object, const char** error);
  const char* (*buffer_start)(void* buffer);
  size_t (*buffer_size)(void* buffer);
  void (*dispose_buffer)(void*);
  void (*dispose_string)(const char*);
};

template <class F>
bool find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  return *function != nullptr;
}

bool find_all(void* library, Functions* f) {
  return find(library, "LLVMPY_ContextCreate", &f->create_context) && find(library, "LLVMPY_ContextDispose", &f->dispose_context) &&
         find(library, "LLVMPY_ParseAssembly", &f->parse) && find(library, "LLVMPY_VerifyModule", &f->verify) &&
         find(library, "LLVMPY_DisposeModule", &f->dispose_module) && find(library, "LLVMPY_GetDefaultTargetTriple", &f->default_triple) &&
         find(library, "LLVMPY_GetTargetFromTriple", &f->target) && find(library, "LLVMPY_GetHostCPUName", &f->cpu_name) &&
         find(library, "LLVMPY_GetHostCPUFeatures", &f->cpu_features) && find(library, "LLVMPY_CreateTargetMachine", &f->create_machine) &&
         find(library, "LLVMPY_CreatePipelineTuningOptions", &f->create_tuning) &&
         find(library, "LLVMPY_DisposePipelineTuningOptions", &f->dispose_tuning) &&
         find(library, "LLVMPY_CreatePassBuilder", &f->create_builder) &&
         find(library, "LLVMPY_CreateNewModulePassManager", &f->create_passes) &&
         find(library, "LLVMPY_module_AddSROAPass", &f->variables_to_values) &&
         find(library, "LLVMPY_module_AddInstCombinePass", &f->combine) &&
         find(library, "LLVMPY_module_AddSimplifyCFGPass", &f->simplify_control) &&
         find(library, "LLVMPY_RunNewModulePassManager", &f->run) &&
         find(library, "LLVMPY_DisposeNewModulePassManger", &f->dispose_passes) &&
         find(library, "LLVMPY_TargetMachineEmitToMemory", &f->emit) && find(library, "LLVMPY_GetBufferStart", &f->buffer_start) &&
         find(library, "LLVMPY_GetBufferSize", &f->buffer_size) && find(library, "LLVMPY_DisposeMemoryBuffer", &f->dispose_buffer) &&
         find(library, "LLVMPY_DisposeString", &f->dispose_string);
}

// Calls what hands out a string.
template <class Give>
std::string taken(const Functions& f, Give give) {
  const char* text = nullptr;
  give(&text);
  std::string out = text ? text : "";
  if (text) f.dispose_string(text);
  return out;
}

struct Host {
  void* machine = nullptr;
  void* builder = nullptr;  // of passes
};

// The builder has its options once: its own memory is not all given back (LLVMPY_DisposePassBuilder).
void* builder_for(const Functions& f, void* machine) {
  void* tuning = f.create_tuning();
  void* builder = f.create_builder(machine, tuning);
  f.dispose_tuning(tuning);
  return builder;
}

// The machine the process runs on; made once for each user and effort. LLVM's fusing of floating-point operations stays as it is by
// default: only what the text asks for (llvm.fmuladd, the flag `contract`).
const Host* host_of(const Functions& f, Effort effort, int user, const std::string& more, std::string* error) {
  static Host hosts[kUsers][2];
  Host& host = hosts[user][static_cast<int>(effort)];
  if (host.machine) return &host;
  const std::string triple = taken(f, f.default_triple);
  void* target = nullptr;
  *error = taken(f, [&](const char** message) { target = f.target(triple.c_str(), message); });
  if (!target) return nullptr;
  const std::string cpu = taken(f, f.cpu_name), features = taken(f, f.cpu_features) + more;
  const int level = static_cast<int>(effort);  // (2 takes a tenth longer than 1, for the same speed)
  void* machine = f.create_machine(target, triple.c_str(), cpu.c_str(), features.c_str(), level, "default", "jitdefault", 0, 1, "");
  if (!machine) return *error = "LLVM has no machine for this CPU", nullptr;
  host = {machine, builder_for(f, machine)};
  return &host;
}

// The text computes nothing twice and keeps what it looks up in variables, so little is left to do: LLVM's own list of passes (O2) takes
// eight times as long, and the code is no faster. What is to be there quickly does without all but the first: code of nearly the same
// speed (0.98, at worst 0.7) in three quarters of the time.
void optimize(const Functions& f, const Host& host, Effort effort, void* module) {
  void* passes = f.create_passes();
  f.variables_to_values(passes);
  if (effort == Effort::kFull) {
    f.combine(passes);
    f.simplify_control(passes);
  }
  f.run(passes, module, host.builder);
  f.dispose_passes(passes);
}

bool emit(const Functions& f, void* machine, void* module, Output kind, std::string* out, std::string* error) {
  void* buffer = nullptr;
  *error = taken(f, [&](const char** message) { buffer = f.emit(machine, module, static_cast<int>(kind), message); });
  if (!buffer) return false;
  out->assign(f.buffer_start(buffer), f.buffer_size(buffer));
  f.dispose_buffer(buffer);
  return true;
}

}  // namespace

bool compile(void* library, const std::string& ir, Output kind, Effort effort, int user, const std::string& features, std::string* out,
             std::string* error) {
  static Functions f;
  static const bool found = find_all(library, &f);
  if (!found) return *error = "this llvmlite lacks functions of version 0.50", false;
  const Host* known = host_of(f, effort, user, features, error);
  if (!known) return false;
  void* context = f.create_context();
  void* module = nullptr;
  bool ok = false;
  *error = taken(f, [&](const char** message) { module = f.parse(context, ir.c_str(), message); });
  if (module && error->empty()) {
    bool broken = false;
    *error = taken(f, [&](const char** message) { broken = f.verify(module, message); });
    if (!broken) {
      optimize(f, *known, effort, module);
      ok = emit(f, known->machine, module, kind, out, error);
    }
  }
  if (module) f.dispose_module(module);
  f.dispose_context(context);
  return ok;
}

}  // namespace dalsegno::native
