// How what ends a group of array ops is written where its kernel makes it.
//
// Operators in place that end a group are done piece by piece, while a piece stays in the first cache (rt::Over). Where a flag came up in
// one, its operand is left as it was, and it is done by NumPy's inner loops behind the launch, to know which op the flags are of; then the
// ops' warnings are given, which eager gives before anything is written. So this is the way only where nobody can tell
// (numpy::warns_unseen()).
#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

#include "halide_gen/runtime/launch.h"
#include "replay/machine/span.h"

namespace dalsegno::replay {

enum class Writes : uint8_t {
  kAside,    // it is made in memory of its own, and copied if no flag came up
  kInPlace,  // the kernel writes it as it makes it; where flags come up NumPy does all of it once more, which nobody can tell from once, as
             // nothing of it is read, and the warnings, which eager gives before it writes, run no code that looks
  kInPieces  // what is read of it is the same elements: WrittenPieces
};
// `target`: where it is written; `item`: bytes of an element; `inputs`, `operands`: of the kernel.
Writes writes_of(const LoopPlan& plan, const std::vector<LoopInput>& inputs, const SegmentOperand* operands, const Span& target,
                 npy_intp item);

// Can the write that ends a group of so many ops be done in pieces, wherever its operands lie?
bool may_write_pieces(const LoopPlan& plan, size_t ops);

class WrittenPieces {
  struct Run {
    int64_t first, end;  // elements, in C order
  };
  static constexpr npy_intp kMostRun = 4096;      // elements
  static constexpr int64_t kMostLeft = 64 << 10;  // pieces

 public:
  static constexpr size_t kBytes = kBlockMemory + kMostRun * sizeof(double) + kMostLeft * sizeof(Run);
  // `inputs`: of the plan; `target`: lies_apart(), and what is read overlaps it nowhere or is the same elements; `item`: bytes of one. All
  // of it stays. `memory`: of kBytes, at a multiple of 64.
  WrittenPieces(const LoopPlan& plan, const Span* inputs, const Span& target, npy_intp item, char* memory)
      : plan_(plan), inputs_(inputs), target_(target), item_(item), memory_(memory) {}

  // For the launch. `watched`: flags that matter.
  rt::Over over(int watched);
  // Behind it: what has been left. The flags of each of the plan's ops; empty: none.
  std::vector<int> finish();

 private:
  char* made() const { return memory_ + kBlockMemory; }
  Run* left() const { return reinterpret_cast<Run*>(made() + kMostRun * sizeof(double)); }
  Span part(const Span& of, const Run& run) const;
  void redo(const Run& run, int* raised) const;

  const LoopPlan& plan_;
  const Span* const inputs_;
  const Span& target_;
  const npy_intp item_;
  int watched_ = 0;
  char* const memory_;
  std::mutex mutex_;
  int64_t n_left_ = 0;
};

}  // namespace dalsegno::replay
