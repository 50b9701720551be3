// Hashes of code objects, and the store's key of a function.
#include <elf.h>
#include <link.h>

#include <cstring>
#include <memory>

#include "hook/error_aside.h"
#include "replay/kernels/config.h"
#include "replay/persist/errors.h"
#include "replay/persist/persist.h"
#include "replay/py_ref.h"
#include "store/codec.h"
#include "store/schema.h"
#include "store/sha256.h"
#include "trace/recorder/code_extra.h"

namespace dalsegno::replay {
namespace {

// Parts with their lengths, so that no two lists of parts give the same bytes.
class Parts {
 public:
  void add(std::string_view part) { bytes_ += std::to_string(part.size()) + ":" + std::string(part); }
  void add(int number) { add(std::to_string(number)); }
  std::string hash() const { return store::hex(store::sha256(bytes_)); }

 private:
  std::string bytes_;
};

// A constant of a code object: a literal, or code.
bool add_const(PyObject* object, Parts* parts) {
  std::string text;
  if (PyCode_Check(object)) {
    text = code_hash(reinterpret_cast<PyCodeObject*>(object));
    parts->add("code");
  } else if (!encode_literal(object, &text)) {
    return false;
  }
  parts->add(text);
  return !text.empty();
}

bool add_attribute(PyCodeObject* code, const char* name, Parts* parts) {
  PyRef value(PyObject_GetAttrString(reinterpret_cast<PyObject*>(code), name));
  std::string text;
  if (!value || !encode_literal(value.get(), &text)) return false;
  parts->add(name);
  parts->add(text);
  return true;
}

bool add_code(PyCodeObject* code, Parts* parts) {
  // co_code is the code as compiled: what the interpreter specialised or instrumented is undone in it.
  for (const char* name : {"co_code", "co_exceptiontable", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_name",
                           "co_qualname", "co_flags", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_stacksize"}) {
    if (!add_attribute(code, name, parts)) return false;
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(code->co_consts);
  parts->add(static_cast<int>(n));
  for (Py_ssize_t i = 0; i < n; i++) {
    if (!add_const(PyTuple_GET_ITEM(code->co_consts, i), parts)) return false;
  }
  return true;
}

// The linker's hash of this extension module's content: another build may record other things.
struct BuildId {
  const void* address;
  std::string id;
};

void read_notes(const dl_phdr_info* info, const ElfW(Phdr) & segment, std::string* id) {
  const auto* p = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
  const char* end = p + segment.p_memsz;
  while (p + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) note;
    std::memcpy(&note, p, sizeof note);
    const char* name = p + sizeof note;
    const char* value = name + (note.n_namesz + 3) / 4 * 4;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) id->assign(value, note.n_descsz);
    p = value + (note.n_descsz + 3) / 4 * 4;
  }
}

int find_build_id(dl_phdr_info* info, size_t, void* context) {
  auto* build = static_cast<BuildId*>(context);
  bool ours = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& segment = info->dlpi_phdr[i];
    const auto* start = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    if (segment.p_type == PT_LOAD && build->address >= start && build->address < start + segment.p_memsz) ours = true;
  }
  for (int i = 0; ours && i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type == PT_NOTE) read_notes(info, info->dlpi_phdr[i], &build->id);
  }
  return ours;
}

std::string module_version(const char* name) {
  PyRef module(PyImport_ImportModule(name));
  PyRef version(module ? PyObject_GetAttrString(module.get(), "__version__") : nullptr);
  std::string text;
  return version && encode_literal(version.get(), &text) ? text : "";
}

// Everything but the function. Halide's version stands in the kernels' environment, with NumPy's.
const std::string& environment() {
  static const std::string text = [] {
    static const int here = 0;
    BuildId build{&here, ""};
    dl_iterate_phdr(find_build_id, &build);
    Parts parts;
    parts.add(build.id.empty() ? __DATE__ " " __TIME__ : build.id);
    parts.add(store::format_id());
    parts.add(store::kSchemaVersion);
    parts.add(Py_GetVersion());
    parts.add(module_version("numpy"));
    parts.add(kernel_environment());
    return parts.hash();
  }();
  return text;
}

}  // namespace

std::string code_hash(PyCodeObject* code) {
  static const recorder::CodeExtra<std::string> hashes;
  if (const std::string* known = hashes.get(code)) return *known;
  const hook::ErrorAside keep;
  Parts parts;
  const bool ok = add_code(code, &parts);
  drop_error();
  if (!ok) return "";
  auto hash = std::make_unique<std::string>(parts.hash());
  if (hashes.keep(code, hash.get())) return *hash.release();
  return *hash;
}

std::string function_key(PyObject* object, bool any) {
  if (!PyFunction_Check(object)) return "";
  const hook::ErrorAside keep;
  auto* function = reinterpret_cast<PyFunctionObject*>(object);
  const std::string code = code_hash(reinterpret_cast<PyCodeObject*>(function->func_code));
  std::string module, qualname;
  const bool ok = !code.empty() && encode_literal(function->func_module ? function->func_module : Py_None, &module) &&
                  encode_literal(function->func_qualname, &qualname);
  Parts parts;
  for (const std::string& part : {environment(), code, module, qualname, std::string(any ? "any" : "")}) parts.add(part);
  drop_error();
  return ok ? parts.hash() : "";
}

}  // namespace dalsegno::replay
