#include "trace/recorder/instructions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <unordered_map>

#include "trace/recorder/code_extra.h"

namespace dalsegno::recorder {
namespace {

struct Opcodes {
  std::array<Opcode, 256> ins{};
  std::array<uint8_t, 256> caches{};
  std::array<int8_t, 256> direction{};  // +1 jumps forward, -1 backward
  std::array<std::string, 256> names;
} g_opcodes;

const std::unordered_map<std::string, Opcode>& opcode_by_name() {
  static const auto* names = new std::unordered_map<std::string, Opcode>{
#define X(name) {#name, Opcode::name},
      DALSEGNO_INSTRUCTIONS(X)
#undef X
      // 3.11's conditional jumps say their direction
      {"POP_JUMP_FORWARD_IF_TRUE", Opcode::POP_JUMP_IF_TRUE},
      {"POP_JUMP_FORWARD_IF_FALSE", Opcode::POP_JUMP_IF_FALSE},
      {"POP_JUMP_FORWARD_IF_NONE", Opcode::POP_JUMP_IF_NONE},
      {"POP_JUMP_FORWARD_IF_NOT_NONE", Opcode::POP_JUMP_IF_NOT_NONE},
      {"POP_JUMP_BACKWARD_IF_TRUE", Opcode::POP_JUMP_IF_TRUE},
      {"POP_JUMP_BACKWARD_IF_FALSE", Opcode::POP_JUMP_IF_FALSE},
      {"POP_JUMP_BACKWARD_IF_NONE", Opcode::POP_JUMP_IF_NONE},
      {"POP_JUMP_BACKWARD_IF_NOT_NONE", Opcode::POP_JUMP_IF_NOT_NONE},
      // 3.14 borrows where a variable outlives what is on the stack, and says which way a branch has not gone
      {"LOAD_FAST_BORROW", Opcode::LOAD_FAST},
      {"LOAD_FAST_BORROW_LOAD_FAST_BORROW", Opcode::LOAD_FAST_LOAD_FAST},
      {"NOT_TAKEN", Opcode::NOP},
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
    auto found = opcode_by_name().find(text);
    g_opcodes.ins[opcode] = found == opcode_by_name().end() ? Opcode::unknown : found->second;
    g_opcodes.caches[opcode] = static_cast<uint8_t>(cache_entries(caches, name, opcode));
    g_opcodes.direction[opcode] = static_cast<int8_t>(direction_of(text));
    g_opcodes.names[opcode] = std::move(text);
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

const char* name_of(const Instr& instr) { return g_opcodes.names[instr.raw & 255].c_str(); }

std::shared_ptr<const CodeInfo> CodeInfo::of(PyCodeObject* code) {
  static const CodeExtra<CodeInfo> kept_infos;
  CodeInfo* info = kept_infos.get(code);
  bool kept = info != nullptr;
  if (!kept) {
    info = new CodeInfo(code);
    kept = kept_infos.keep(code, info);
  }
  Py_INCREF(code);
  return {info, [kept](const CodeInfo* it) {
            PyCodeObject* owner = it->code;
            if (!kept) delete it;
            Py_DECREF(owner);
          }};
}

namespace {

// A code object's table of locations, from front to back (CPython's Objects/locations.md). PyCode_Addr2Line would read it from the front
// for every instruction, and co_lines() makes a tuple a line.
class Locations {
 public:
  explicit Locations(PyCodeObject* code)
      : at_(reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(code->co_linetable))),
        end_(at_ + PyBytes_GET_SIZE(code->co_linetable)),
        line_(code->co_firstlineno) {}

  // The next code units that have a location, and their line; -1: none. False: the table has ended.
  bool next(int* units, int* line) {
    if (at_ == end_) return false;
    const unsigned first = *at_++;
    const unsigned form = (first >> 3) & 15;
    *units = static_cast<int>(first & 7) + 1;
    if (form == kLong || form == kNoColumns) line_ += signed_number();
    if (form >= kOneLine && form < kNoColumns) line_ += static_cast<int>(form - kOneLine);
    *line = form == kNone ? -1 : line_;
    while (at_ != end_ && !(*at_ & 0x80)) ++at_;  // the rest is columns
    return true;
  }

 private:
  static constexpr unsigned kOneLine = 10, kNoColumns = 13, kLong = 14, kNone = 15;

  int signed_number() {
    unsigned number = 0;
    for (int shift = 0; at_ != end_ && shift < 32; shift += 6) {
      const unsigned byte = *at_++;
      number |= (byte & 63) << shift;
      if (!(byte & 64)) break;
    }
    return number & 1 ? -static_cast<int>(number >> 1) : static_cast<int>(number >> 1);
  }

  const unsigned char* at_;
  const unsigned char* end_;
  int line_;
};

bool branches(Opcode op) {
  return op == Opcode::POP_JUMP_IF_TRUE || op == Opcode::POP_JUMP_IF_FALSE || op == Opcode::POP_JUMP_IF_NONE ||
         op == Opcode::POP_JUMP_IF_NOT_NONE;
}

// Does it belong to a statement of its own, or is there no way on from it?
bool ends_a_test(Opcode op) {
  return op == Opcode::STORE_FAST || op == Opcode::STORE_DEREF || op == Opcode::STORE_GLOBAL || op == Opcode::STORE_ATTR ||
         op == Opcode::STORE_SUBSCR || op == Opcode::STORE_SLICE || op == Opcode::POP_TOP || op == Opcode::RETURN_VALUE ||
         op == Opcode::RAISE_VARARGS || op == Opcode::SEND || op == Opcode::unknown;
}

}  // namespace

void CodeInfo::read_lines() {
  Locations locations(code);
  int units, line;
  for (size_t i = 0; i < by_offset_.size() && locations.next(&units, &line);) {
    for (; units > 0 && i < by_offset_.size(); --units, ++i)
      if (Instr& instr = instrs_[by_offset_[i]]; instr.at == static_cast<int>(i)) instr.line = line;
  }
}

static bool loads_first(const Instr& i) {
  if (i.op == Opcode::LOAD_FAST_LOAD_FAST) return (i.arg & 15) == 0;
  return (i.op == Opcode::LOAD_FAST || i.op == Opcode::LOAD_FAST_CHECK) && i.arg == 0;
}

bool CodeInfo::has(const std::set<int>& names, PyObject* name) const {
  return std::any_of(names.begin(), names.end(), [&](int k) { return PyTuple_GET_ITEM(code->co_names, k) == name; });
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
      Opcode op = g_opcodes.ins[units[2 * i]];
      arg = (arg << 8) | units[2 * i + 1];
      int after = i + 1 + g_opcodes.caches[units[2 * i]];
      bool prefix = op == Opcode::EXTENDED_ARG || op == Opcode::KW_NAMES || op == Opcode::PRECALL;
      for (int j = i; j < after && j < n; ++j) by_offset_[j] = static_cast<int>(instrs_.size());
      if (op == Opcode::KW_NAMES) instr.kwnames = static_cast<int>(arg);
      if (prefix && after < n) {
        if (op != Opcode::EXTENDED_ARG) arg = 0;
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
    if (instr.op == Opcode::BINARY_OP && instr.arg == kSubscripts) instr.op = Opcode::BINARY_SUBSCR;
    if (instr.op == Opcode::STORE_GLOBAL || instr.op == Opcode::DELETE_GLOBAL) stored_globals_.insert(instr.arg);
    if (instr.op == Opcode::LOAD_GLOBAL) loaded_globals_.insert(load_global_name(instr.arg));
    const bool asks = instr.op == Opcode::LOAD_ATTR || instr.op == Opcode::LOAD_METHOD;
    if (asks && !instrs_.empty() && loads_first(instrs_.back())) asked_.insert(load_attr_name(instr.op, instr.arg));
    if (int way = g_opcodes.direction[instr.raw]) instr.target = instr.next + way * instr.arg;
    if (instr.target >= 0 && instr.target < instr.next) last_jump_back_ = instr.at;
    delegates_ |= instr.op == Opcode::SEND;
    if (before_resume && instr.op == Opcode::RESUME) before_resume = false, first_ = instr.start;
    if (before_resume) prefix_.push_back(instr);
    i = instr.next;
    instrs_.push_back(instr);
  }
  Py_DECREF(bytes);
  read_lines();
  if (kTestsOnce) find_tests();
}

// Handlers stand behind everything else; loops that go on from one, or are in one, end before.
void CodeInfo::find_tests() {
  std::map<int, int> ends;  // of loops, by where they jump back to
  for (const Instr& i : instrs_) {
    if (i.op == Opcode::PUSH_EXC_INFO) break;
    if (i.target >= 0 && i.target < i.next) ends[i.target] = i.next;
  }
  for (const auto& [header, end] : ends)
    if (const LoopTest test = test_from(header, end); test.to > header) tests_.push_back(test);
}

// All that comes before the body, straight on or to where the body begins, with a branch out of the loop last.
LoopTest CodeInfo::test_from(int header, int end) const {
  int body = header, inside = header;  // the furthest that a branch within the loop has gone to
  for (const Instr* i = at(header); i && i->start < end;) {
    if (i->target < 0 ? ends_a_test(i->op) : !branches(i->op)) break;
    const bool leaves = i->target >= end, over = is_over_a_jump_back(*i, header);
    const int next = over ? i->target : i->next;
    if ((leaves || over) && inside <= next) body = next;
    if (i->target >= 0 && !leaves) inside = std::max(inside, i->target);
    i = at(next);
  }
  return {header, body};
}

// A branch to the head of a loop around this one is written so.
bool CodeInfo::is_over_a_jump_back(const Instr& branch, int header) const {
  if (branch.target < 0) return false;
  const Instr* i = at(branch.next);
  if (i && i->op == Opcode::NOP) i = at(i->next);
  return i && i->op == Opcode::JUMP_BACKWARD && i->target < header && i->next == branch.target;
}

const LoopTest* CodeInfo::test_at(int offset) const {
  const auto found = std::find_if(tests_.begin(), tests_.end(), [&](const LoopTest& t) { return t.from <= offset && offset < t.to; });
  return found == tests_.end() ? nullptr : &*found;
}

bool CodeInfo::is_head(int offset) const {
  const bool behind = std::any_of(tests_.begin(), tests_.end(), [&](const LoopTest& t) { return t.to == offset; });
  return behind || (is_header(offset) && !test_at(offset));
}

const Instr* CodeInfo::at(int offset) const {
  if (offset < 0 || offset >= static_cast<int>(by_offset_.size()) || by_offset_[offset] < 0) return nullptr;
  return &instrs_[by_offset_[offset]];
}

bool CodeInfo::in_loop(int offset) const {
  return std::any_of(instrs_.begin(), instrs_.end(),
                     [&](const Instr& i) { return i.target >= 0 && i.target <= offset && offset < i.next; });
}

bool CodeInfo::is_header(int offset) const {
  return std::any_of(instrs_.begin(), instrs_.end(), [&](const Instr& i) { return i.target == offset && offset < i.next; });
}

int for_iter_exhausted(const Instr& for_iter) {
  constexpr int skipped = PY_VERSION_HEX >= 0x030d0000 ? 2 : PY_VERSION_HEX >= 0x030c0000 ? 1 : 0;  // END_FOR; END_FOR, POP_TOP or POP_ITER
  return for_iter.target + skipped;
}
int for_iter_ends(const Instr& for_iter) { return for_iter_exhausted(for_iter) - (kPopsIterator ? 1 : 0); }

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
bool load_attr_is_method(Opcode op, int arg) { return op == Opcode::LOAD_METHOD || (PY_VERSION_HEX >= 0x030c0000 && (arg & 1)); }
int load_attr_name(Opcode op, int arg) { return op == Opcode::LOAD_ATTR && PY_VERSION_HEX >= 0x030c0000 ? arg >> 1 : arg; }

}  // namespace dalsegno::recorder
