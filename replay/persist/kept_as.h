// What the store knows a program's trace by (store::identity_of). Side traces are tied to it.
#pragma once
#include <atomic>
#include <string>

namespace dalsegno::replay {

// Set by the writer, whose thread is gone in the child of a fork, wherever it was: what is not known there never will be.
class KeptAs {
 public:
  void set(std::string identity) {
    if (is_known_) return;
    identity_ = std::move(identity);
    is_known_ = true;
  }
  // "": not known yet, or not kept.
  std::string get() const { return is_known_ ? identity_ : ""; }

 private:
  std::string identity_;
  std::atomic<bool> is_known_ = false;
};

}  // namespace dalsegno::replay
