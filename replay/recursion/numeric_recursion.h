// Functions of numbers that call themselves: machine code of all traces of such a function, by an assembler (Xbyak).
//
// Such code changes nothing but numbers of its own. Where it comes to what the traces do not go on with, to an int that does not fit, or
// has made as many calls as it may, it gives up; as nothing has happened, the machine then does the call from its beginning. So it needs no
// frames, no exits, and never looks for what waits for the thread. Values lie on the stack: a call of Fibonacci's function takes some
// nanoseconds, and its code is written in microseconds. No Python.h here.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "replay/typed/rep.h"
#include "trace/trace.h"

namespace dalsegno::recursion {

using typed::Rep;

// What is known of an object that a trace refers to.
struct Known {
  bool itself = false;         // the jitted function
  bool code = false;           // its code
  Rep names = Rep::kNone;      // it is the type of numbers of this kind
  const void* type = nullptr;  // it is this type
  Rep rep = Rep::kNone;        // it is such a number,
  int64_t bits = 0;            // this one
};

struct NumericTrace {
  const Trace* trace = nullptr;      // outlives the call of make()
  std::vector<Known> objects;        // per object of the trace
  std::map<int32_t, int32_t> sides;  // op of a guard -> number of the trace that goes on where it fails
};

struct Signature {
  // A parameter: a number, or (kNone) an object of a type, that is only handed on.
  struct Param {
    Rep rep = Rep::kNone;
    const void* type = nullptr;  // of an object
    bool operator==(const Param&) const = default;
  };
  std::vector<Param> params;  // of numbers kInt, kFloat and kBool
  Rep result = Rep::kNone;    // no object
  // The first argument is the function, one of several with this code; these of the cells that it closes over hold it.
  std::vector<int32_t> own_cells = {};
  bool operator==(const Signature&) const = default;
};

class NumericRecursion {
 public:
  static constexpr size_t kMostParams = 6;
  // Of the traces of one function, the one at its entry first. Null: nothing that calls itself and returns such a result can be written.
  static std::unique_ptr<const NumericRecursion> make(const std::vector<NumericTrace>& traces, const Signature& signature);
  virtual ~NumericRecursion() = default;

  // Numbers as their bits, objects as their addresses. `frames`: of Python functions that may be entered, the one that is called included;
  // `calls`: that may be made. False: given up, nothing has happened. *calls: those that are left.
  virtual bool run(const int64_t* arguments, int64_t frames, int64_t* calls, int64_t* result) const = 0;
  virtual int64_t stack_bytes() const = 0;  // that a call takes
  // May such a result be one of the constants of the code, which are one object each?
  virtual bool may_be_constant(int64_t result) const = 0;
  virtual bool returns_arguments() const = 0;  // may what it returns be one of the arguments it was called with?
};

}  // namespace dalsegno::recursion
