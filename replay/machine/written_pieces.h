// How what ends a group of array ops is written where its kernel makes it.
//
// Operators in place that end a large group are done piece by piece: the kernel makes a piece in the thread's memory, which stays in the
// cache, and it is copied over its operand if no flag came up. Where one did, the piece waits and is done by NumPy's inner loops behind the
// launch, to know which op the flags are of; then the ops' warnings are given, which eager gives before anything is written. So this is the
// way only where nobody can tell (numpy::warns_unseen()).
#pragma once
#include <cstdint>
#include <vector>

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

class WrittenPieces final : public Taker {
 public:
  // `inputs`: of the plan; `target`: lies_apart(), and what is read overlaps it nowhere or is the same elements; `item`: bytes of one;
  // `watched`: flags that matter. All of it stays.
  WrittenPieces(const LoopPlan& plan, const Span* inputs, const Span& target, npy_intp item, int watched)
      : plan_(plan), inputs_(inputs), target_(target), item_(item), watched_(watched) {}

  std::vector<int64_t> cut(int rank, const intptr_t* shape, int64_t unit, bool* ordered) override;
  bool settles_flags() const override { return true; }
  void take(int piece, const char* data, int64_t elements, int raised) override;
  // Behind the launch: what has been left. `memory`: of kBytes, at a multiple of 64. The flags of each of the plan's ops; empty: none.
  std::vector<int> finish(char* memory);

  static constexpr int64_t kMostPiece = 256 << 10;  // bytes
  static constexpr size_t kBytes = kBlockMemory + kMostPiece;

 private:
  // A piece: rows, one behind the other, of one place along the axes before.
  struct Box {
    npy_intp at[Span::kMaxRank];  // its first row, and the place
    npy_intp rows;
  };
  Box box(size_t piece) const;
  Span part(const Span& of, const Box& box) const;
  void put(const Box& box, const char* data) const;

  const LoopPlan& plan_;
  const Span* const inputs_;
  const Span& target_;
  const npy_intp item_;
  const int watched_;
  int axis_ = 0;      // that is cut
  npy_intp row_ = 1;  // elements behind it
  std::vector<int64_t> begins_;
  std::vector<uint8_t> left_;  // pieces that wait for finish()
};

}  // namespace dalsegno::replay
