// What the store knows a program's trace by (store::identity_of), to which side traces are tied; and what it holds of the loop that begins
// with it.
#pragma once
#include <atomic>
#include <string>
#include <utility>

#include "store/experience.h"

namespace dalsegno::replay {

// Set by the writer, whose thread is gone in the child of a fork, wherever it was: what is not known there never will be.
class KeptAs {
 public:
  KeptAs(std::string function, int32_t trace) : function(std::move(function)), region{trace} {}
  void set(std::string identity) {
    if (is_known_) return;
    identity_ = std::move(identity);
    is_known_ = true;
  }
  // "": not known yet, or not kept.
  std::string get() const { return is_known_ ? identity_ : ""; }

  const std::string function;  // its key
  store::KeptRegion region;    // as an earlier process has left it; below 0: there is none. With the GIL

 private:
  std::string identity_;
  std::atomic<bool> is_known_ = false;
};

}  // namespace dalsegno::replay
