// References that 3.14 borrows: LOAD_FAST_BORROW puts a variable's value on the stack without owning it, where the compiler has seen that
// the variable keeps it until the value has been used. Whoever looks at reference counts sees the difference, so a frame that is rebuilt
// borrows what eager's would have borrowed.
#include "hook/frame_access.h"

#if DALSEGNO_PY314
#include <opcode.h>

#include <algorithm>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "hook/stack_effects.h"

namespace dalsegno::hook {
namespace {

constexpr int16_t kOwned = -1;
using Origins = std::vector<int16_t>;  // of the topmost values: the variable each is borrowed from, or kOwned. Those below are all owned

// What is known of the stack as one instruction after the other is passed. Borrowed values are used up before any jump, so that there are
// no ways that meet.
class Simulated {
 public:
  void pass(int opcode, int argument) {
    const int popped = dalsegno_popped(opcode, argument), pushed = dalsegno_pushed(opcode, argument);
    switch (opcode) {
      case LOAD_FAST_BORROW:
        return push(static_cast<int16_t>(argument));
      case LOAD_FAST_BORROW_LOAD_FAST_BORROW:
        push(static_cast<int16_t>(argument >> 4));
        return push(static_cast<int16_t>(argument & 15));
      case COPY:
        return push(below(argument - 1));
      case SWAP:
        while (static_cast<int>(known_.size()) < argument) known_.insert(known_.begin(), kOwned);
        return std::swap(known_.back(), known_[known_.size() - static_cast<size_t>(argument)]);
      case LOAD_ATTR:
      case LOAD_SPECIAL:  // a method's instance stays as it was
        if (pushed == 2) {
          const int16_t owner = below(0);
          pop(1), push(kOwned);
          return push(owner);
        }
        break;
      case LIST_APPEND:
      case LIST_EXTEND:
      case SET_ADD:
      case SET_UPDATE:
      case MAP_ADD:
      case DICT_UPDATE:
      case DICT_MERGE:  // what lies below stays
        return pop(popped - pushed);
      case JUMP_FORWARD:
      case JUMP_BACKWARD:
      case JUMP_BACKWARD_NO_INTERRUPT:
      case RETURN_VALUE:
      case RAISE_VARARGS:
      case RERAISE:
        return known_.clear();
      default:
        break;
    }
    pop(popped);
    for (int k = 0; k < pushed; ++k) push(kOwned);
  }
  const Origins& known() const { return known_; }
  bool borrows() const {
    return std::any_of(known_.begin(), known_.end(), [](int16_t from) { return from != kOwned; });
  }

 private:
  int16_t below(int k) const {
    return static_cast<size_t>(k) < known_.size() ? known_[known_.size() - 1 - static_cast<size_t>(k)] : kOwned;
  }
  void push(int16_t from) { known_.push_back(from); }
  void pop(int count) { known_.resize(known_.size() - std::min(known_.size(), static_cast<size_t>(count))); }
  Origins known_;
};

struct Place {
  Origins origins;  // before the instruction
  int popped = 0;   // by it
};

// Where the stack of a code object has borrowed values, by the unit that the instruction begins with.
class Places {
 public:
  explicit Places(PyCodeObject* code) {
    PyObject* bytes = PyCode_GetCode(code);
    if (bytes == nullptr) {
      PyErr_Clear();
      throw std::bad_alloc();
    }
    try {
      read(reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(bytes)), static_cast<int>(PyBytes_GET_SIZE(bytes) / 2));
    } catch (...) {
      Py_DECREF(bytes);
      throw;
    }
    Py_DECREF(bytes);
  }
  const Place* at(int offset) const {
    const auto found = places_.find(offset);
    return found == places_.end() ? nullptr : &found->second;
  }

  // Kept with the code object; null without memory.
  static const Places* of(PyCodeObject* code) {
    static const Py_ssize_t kIndex = PyUnstable_Eval_RequestCodeExtraIndex([](void* kept) { delete static_cast<Places*>(kept); });
    auto* object = reinterpret_cast<PyObject*>(code);
    void* kept = nullptr;
    if (kIndex < 0 || PyUnstable_Code_GetExtra(object, kIndex, &kept) < 0) return PyErr_Clear(), nullptr;
    if (kept != nullptr) return static_cast<const Places*>(kept);
    try {
      auto made = std::make_unique<Places>(code);
      if (PyUnstable_Code_SetExtra(object, kIndex, made.get()) < 0) return PyErr_Clear(), nullptr;
      return made.release();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

 private:
  void read(const uint8_t* units, int count) {
    Simulated stack;
    for (int i = 0; i < count;) {
      const int start = i;
      int argument = units[2 * i + 1];
      while (units[2 * i] == EXTENDED_ARG && i + 1 < count) ++i, argument = argument << 8 | units[2 * i + 1];
      const int opcode = units[2 * i];
      if (stack.borrows()) places_[start] = {stack.known(), dalsegno_popped(opcode, argument)};
      stack.pass(opcode, argument);
      for (++i; i < count && units[2 * i] == CACHE; ++i) continue;
    }
  }
  std::unordered_map<int, Place> places_;
};

// The slot gives up its reference where the variable has one to the same object.
bool borrow(Frame* frame, int slot, const PyObject* held) {
  Reference& reference = frame->localsplus[slot];
  if (PyStackRef_IsNullOrInt(reference) || !PyStackRef_RefcountOnObject(reference)) return false;
  PyObject* object = PyStackRef_AsPyObjectBorrow(reference);
  if (object != held) return false;
  reference = PyStackRef_FromPyObjectBorrow(object);
  Py_DECREF(object);
  return true;
}

}  // namespace

void borrow_on_stack(Frame* frame, int offset, bool waits) {
  const int bottom = code_of(frame)->co_nlocalsplus, top = used_slots(frame);
  if (top == bottom) return;
  const Places* places = Places::of(code_of(frame));
  const Place* place = places != nullptr ? places->at(offset) : nullptr;
  if (place == nullptr) return;
  const int known = static_cast<int>(place->origins.size()) - (waits ? place->popped : 0);
  for (int k = 1; k <= known && top - k >= bottom; ++k) {
    const int16_t from = place->origins[static_cast<size_t>(known - k)];
    if (from != kOwned) borrow(frame, top - k, slots_of(frame)[from].get());
  }
}

void borrow_arguments(const Frame* caller, int offset, Frame* frame) {
  const Places* places = Places::of(code_of(caller));
  const Place* place = places != nullptr ? places->at(offset) : nullptr;
  if (place == nullptr) return;
  const PyCodeObject* code = code_of(frame);
  const int parameters = code->co_argcount + code->co_kwonlyargcount;
  const int known = static_cast<int>(place->origins.size());
  for (int k = 1; k <= place->popped && k <= known; ++k) {
    const int16_t from = place->origins[static_cast<size_t>(known - k)];
    if (from == kOwned) continue;
    const PyObject* held = slots_of(caller)[from].get();
    for (int i = 0; i < parameters && held != nullptr; ++i)
      if (borrow(frame, i, held)) break;
  }
}

}  // namespace dalsegno::hook
#endif
