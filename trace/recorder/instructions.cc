#include "trace/recorder/instructions.h"

#include <array>
#include <cstring>
#include <new>
#include <string>
#include <unordered_map>

namespace dalsegno::recorder {
namespace {

struct Opcodes {
  std::array<Ins, 256> ins{};
  std::array<uint8_t, 256> caches{};
  std::array<int8_t, 256> direction{};  // +1 jumps forward, -1 backward
} g_opcodes;

const std::unordered_map<std::string, Ins>& ins_by_name() {
  static const auto* names = new std::unordered_map<std::string, Ins>{
#define X(name) {#name, Ins::name},
      DALSEGNO_INSTRUCTIONS(X)
#undef X
      // 3.11's conditional jumps say their direction
      {"POP_JUMP_FORWARD_IF_TRUE", Ins::POP_JUMP_IF_TRUE},
      {"POP_JUMP_FORWARD_IF_FALSE", Ins::POP_JUMP_IF_FALSE},
      {"POP_JUMP_FORWARD_IF_NONE", Ins::POP_JUMP_IF_NONE},
      {"POP_JUMP_FORWARD_IF_NOT_NONE", Ins::POP_JUMP_IF_NOT_NONE},
      {"POP_JUMP_BACKWARD_IF_TRUE", Ins::POP_JUMP_IF_TRUE},
      {"POP_JUMP_BACKWARD_IF_FALSE", Ins::POP_JUMP_IF_FALSE},
      {"POP_JUMP_BACKWARD_IF_NONE", Ins::POP_JUMP_IF_NONE},
      {"POP_JUMP_BACKWARD_IF_NOT_NONE", Ins::POP_JUMP_IF_NOT_NONE},
  };
  return *names;
}

int direction_of(const std::string& name) {
  if (name.find("BACKWARD") != std::string::npos) return -1;
  if (name.find("JUMP") != std::string::npos || name == "FOR_ITER" || name == "SEND") return 1;
  return 0;
}

long cache_entries(PyObject* table, PyObject* name, long opcode) {
  PyObject* count = PyDict_Check(table) ? PyDict_GetItemWithError(table, name)
                                        : (opcode < PyList_GET_SIZE(table) ? PyList_GET_ITEM(table, opcode) : nullptr);
  return count ? PyLong_AsLong(count) : 0;
}

bool read_tables(PyObject* opmap, PyObject* caches) {
  if (!PyDict_Check(opmap)) return false;
  PyObject *name, *number;
  Py_ssize_t pos = 0;
  while (PyDict_Next(opmap, &pos, &name, &number)) {
    long opcode = PyLong_AsLong(number);
    if (opcode < 0 || opcode > 255) continue;  // pseudo instructions
    std::string text = PyUnicode_AsUTF8(name);
    auto found = ins_by_name().find(text);
    g_opcodes.ins[opcode] = found == ins_by_name().end() ? Ins::unknown : found->second;
    g_opcodes.caches[opcode] = static_cast<uint8_t>(cache_entries(caches, name, opcode));
    g_opcodes.direction[opcode] = static_cast<int8_t>(direction_of(text));
  }
  return !PyErr_Occurred();
}

}  // namespace

bool init_instructions() {
  PyObject* module = PyImport_ImportModule("opcode");
  if (!module) return false;
  PyObject* opmap = PyObject_GetAttrString(module, "opmap");
  PyObject* caches = opmap ? PyObject_GetAttrString(module, "_inline_cache_entries") : nullptr;
  bool ok = caches && read_tables(opmap, caches);
  Py_XDECREF(caches);
  Py_XDECREF(opmap);
  Py_DECREF(module);
  return ok;
}

const char* ins_name(Ins ins) {
  static const char* const names[] = {"?",
#define X(name) #name,
                                      DALSEGNO_INSTRUCTIONS(X)
#undef X
  };
  return names[static_cast<int>(ins)];
}

namespace {

// Where code objects keep what belongs to us; -1: not yet asked for, or there is no room.
Py_ssize_t extra_index() {
  auto release = [](void* info) { delete static_cast<CodeInfo*>(info); };
#if PY_VERSION_HEX >= 0x030c0000
  static const Py_ssize_t index = PyUnstable_Eval_RequestCodeExtraIndex(release);
#else
  static const Py_ssize_t index = _PyEval_RequestCodeExtraIndex(release);
#endif
  return index;
}

void* get_extra(PyCodeObject* code) {
  void* info = nullptr;
#if PY_VERSION_HEX >= 0x030c0000
  const int status = PyUnstable_Code_GetExtra(reinterpret_cast<PyObject*>(code), extra_index(), &info);
#else
  const int status = _PyCode_GetExtra(reinterpret_cast<PyObject*>(code), extra_index(), &info);
#endif
  if (status < 0) PyErr_Clear();
  return info;
}

bool set_extra(PyCodeObject* code, void* info) {
#if PY_VERSION_HEX >= 0x030c0000
  const int status = PyUnstable_Code_SetExtra(reinterpret_cast<PyObject*>(code), extra_index(), info);
#else
  const int status = _PyCode_SetExtra(reinterpret_cast<PyObject*>(code), extra_index(), info);
#endif
  if (status < 0) PyErr_Clear();
  return status == 0;
}

}  // namespace

std::shared_ptr<const CodeInfo> CodeInfo::of(PyCodeObject* code) {
  auto* info = extra_index() < 0 ? nullptr : static_cast<CodeInfo*>(get_extra(code));
  bool kept = info != nullptr;
  if (!kept) {
    info = new CodeInfo(code);
    kept = extra_index() >= 0 && set_extra(code, info);
  }
  Py_INCREF(code);
  return {info, [kept](const CodeInfo* it) {
            PyCodeObject* owner = it->code;
            if (!kept) delete it;
            Py_DECREF(owner);
          }};
}

// The line table is read once from front to back: PyCode_Addr2Line would read it from the front for every instruction.
// Nothing may be collected meanwhile: no finaliser is to run inside an event.
void CodeInfo::read_lines() {
  const bool collects = PyGC_Disable();
  PyObject* ranges = PyObject_CallMethod(reinterpret_cast<PyObject*>(code), "co_lines", nullptr);
  PyObject* range = nullptr;
  while (ranges && (range = PyIter_Next(ranges))) {
    PyObject* line = PyTuple_GET_ITEM(range, 2);
    const long from = PyLong_AsLong(PyTuple_GET_ITEM(range, 0)) / 2, to = PyLong_AsLong(PyTuple_GET_ITEM(range, 1)) / 2;
    const int number = line == Py_None ? -1 : static_cast<int>(PyLong_AsLong(line));
    for (long i = from; i < to && i < static_cast<long>(by_offset_.size()); ++i)
      if (Instr& instr = instrs_[by_offset_[i]]; instr.at == i) instr.line = number;
    Py_DECREF(range);
  }
  Py_XDECREF(ranges);
  PyErr_Clear();
  if (collects) PyGC_Enable();
}

CodeInfo::CodeInfo(PyCodeObject* c) : code(c) {
  PyObject* bytes = PyCode_GetCode(c);  // original instructions: not specialised, not instrumented
  if (!bytes) {
    PyErr_Clear();
    throw std::bad_alloc();
  }
  const auto* units = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes));
  const int n = static_cast<int>(PyBytes_GET_SIZE(bytes) / 2);
  by_offset_.assign(n, -1);
  bool before_resume = true;
  for (int i = 0; i < n;) {
    Instr instr;
    instr.start = i;
    unsigned arg = 0;
    for (;;) {  // prefixes, then the instruction
      Ins op = g_opcodes.ins[units[2 * i]];
      arg = (arg << 8) | units[2 * i + 1];
      int after = i + 1 + g_opcodes.caches[units[2 * i]];
      bool prefix = op == Ins::EXTENDED_ARG || op == Ins::KW_NAMES || op == Ins::PRECALL;
      for (int j = i; j < after && j < n; ++j) by_offset_[j] = static_cast<int>(instrs_.size());
      if (op == Ins::KW_NAMES) instr.kwnames = static_cast<int>(arg);
      if (prefix && after < n) {
        if (op != Ins::EXTENDED_ARG) arg = 0;
        i = after;
        continue;
      }
      instr.op = op;
      instr.raw = units[2 * i];
      instr.at = i;
      instr.next = after;
      break;
    }
    instr.arg = static_cast<int>(arg);
    if (int way = g_opcodes.direction[instr.raw]) instr.target = instr.next + way * instr.arg;
    if (before_resume && instr.op == Ins::RESUME) before_resume = false, first_ = instr.start;
    if (before_resume) prefix_.push_back(instr);
    i = instr.next;
    instrs_.push_back(instr);
  }
  Py_DECREF(bytes);
  read_lines();
}

const Instr* CodeInfo::at(int offset) const {
  if (offset < 0 || offset >= static_cast<int>(by_offset_.size()) || by_offset_[offset] < 0) return nullptr;
  return &instrs_[by_offset_[offset]];
}

int for_iter_exhausted(const Instr& for_iter) {
  constexpr int skipped = PY_VERSION_HEX >= 0x030d0000 ? 2 : PY_VERSION_HEX >= 0x030c0000 ? 1 : 0;  // END_FOR; END_FOR, POP_TOP
  return for_iter.target + skipped;
}

int compare_op(int arg) {
#if PY_VERSION_HEX >= 0x030d0000
  return arg >> 5;
#elif PY_VERSION_HEX >= 0x030c0000
  return arg >> 4;
#else
  return arg;
#endif
}

bool compare_to_bool(int arg) { return PY_VERSION_HEX >= 0x030d0000 && (arg & 16); }
bool load_global_pushes_null(int arg) { return arg & 1; }
int load_global_name(int arg) { return arg >> 1; }
bool load_attr_is_method(Ins op, int arg) { return op == Ins::LOAD_METHOD || (PY_VERSION_HEX >= 0x030c0000 && (arg & 1)); }
int load_attr_name(Ins op, int arg) { return op == Ins::LOAD_ATTR && PY_VERSION_HEX >= 0x030c0000 ? arg >> 1 : arg; }

}  // namespace dalsegno::recorder
