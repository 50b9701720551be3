// Calls of functions of numbers that call themselves, as machine code (replay/recursion).
#pragma once
#include <Python.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "replay/recursion/numeric_recursion.h"

namespace dalsegno::replay {

class ProgramImpl;
struct CallSite;
struct Machine;

// What is known of such calls of one function; its entry's program owns it.
class Recursion {
 public:
  // As calls_done() (run.h).
  uint64_t run(Machine& m, const CallSite& site, ProgramImpl& entry, int32_t frames);
  bool has_code() const { return code_ != nullptr; }

 private:
  bool is_due(const CallSite& site);
  bool suits(ProgramImpl& entry, const recursion::Signature& now, PyObject* itself);
  void make(ProgramImpl& entry, PyObject* itself);
  bool worlds_hold() const;
  bool may_be_given(const Machine& m, const CallSite& site, const int64_t* arguments, int64_t result) const;
  bool done(bool finished, uint64_t key);

  int32_t calls_ = 0;    // until it is worth its code
  size_t programs_ = 0;  // of the tree when the code was made
  int32_t times_ = 0;    // it was
  int64_t skipped_ = 0, skips_ = 0;
  bool given_up_ = false;           // since then
  recursion::Signature signature_;  // of the code
  recursion::Signature now_;        // of the call: its memory serves the next one
  std::unique_ptr<const recursion::NumericRecursion> code_;
  std::vector<ProgramImpl*> worlds_;     // those of the code, if they have folded names
  std::array<uint64_t, 64> too_long_{};  // arguments that were given up, by their hashes
};

}  // namespace dalsegno::replay
