// Snapshots: what leaving a trace needs, per frame its function, next instruction, locals and stack as values. Plain data, no Python.h.
//
// A trace has about as many snapshots as instructions, and from one to the next hardly anything changes. They are therefore kept
// as deltas: the frames around the innermost one are shared, as they do not change while it runs, and the innermost one is what
// differs from an earlier state of itself. The weights of the deltas between a frame and the one written in full under it stay below
// the frame's size, so that all snapshots of a trace take memory linear in what was recorded, and reading one takes time linear
// in its frames:
//
//     s0  f0 in full: locals [v0 v1 -], stack []
//     s1  f1 = f0 with local 2 = v5
//     s2  f2 = f1 with the stack [v6 v7]       the call; f2 is the outer frame of f3 and f4
//     s3  f3 inside f2, in full: locals [v7]
//     s4  f4 inside f2 = f3 with the stack [v8]
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dalsegno {

using ValueId = int32_t;              // index of the op that defines the value
inline constexpr ValueId kNull = -1;  // an unbound local, or a NULL on the stack

// What becomes of the result of the frame inside: a member of hook::ReturnAction, and in the bits above how many operands are dropped.
inline constexpr int32_t kReturnActions = 8, kReturnActionBits = 8;
inline constexpr bool is_return_action(int32_t action) { return action >= 0 && (action & ((1 << kReturnActionBits) - 1)) < kReturnActions; }

// One frame of a snapshot.
struct SnapshotFrame {
  ValueId function = kNull;     // the function object, a value
  int32_t code = -1;            // object: the code object of the function
  int32_t offset = 0;           // innermost: next instruction; outer: the call instruction. Code units
  int32_t after = 0;            // outer: where to go on when the inner frame has returned
  std::vector<ValueId> locals;  // co_nlocalsplus
  std::vector<ValueId> stack;
  int32_t action = 0;  // is_return_action()
  bool operator==(const SnapshotFrame&) const = default;
};

struct Snapshot {
  std::vector<SnapshotFrame> frames;  // outermost first
  bool operator==(const Snapshot&) const = default;
};

// A frame as what differs from an earlier state of it. Without base: from one with all locals unbound and an empty stack.
struct FrameDelta {
  int32_t outer = -1;  // index of the frame around it, or -1
  int32_t base = -1;   // index of the earlier state, or -1
  ValueId function = kNull;
  int32_t code = -1;
  int32_t offset = 0;
  int32_t after = 0;
  int32_t action = 0;
  int32_t n_locals = 0;
  int32_t kept = 0;     // stack slots as in base, from the bottom
  int32_t first = 0;    // into Snapshots::slots: `changed` locals and their values in pairs, then `pushed` values
  int32_t changed = 0;  // locals
  int32_t pushed = 0;   // stack slots above the kept ones
  bool operator==(const FrameDelta&) const = default;
};

// The snapshots of a trace. They can be built only where fault() finds nothing.
struct Snapshots {
  std::vector<FrameDelta> frames;  // a frame comes after its base and its outer frame
  std::vector<int32_t> slots;
  std::vector<int32_t> tops;  // per snapshot: its innermost frame
  bool operator==(const Snapshots&) const = default;

  size_t size() const { return tops.size(); }
  Snapshot at(int32_t snapshot) const;
  SnapshotFrame frame(int32_t index) const;
  // Innermost frame's place alone.
  const FrameDelta& top(int32_t snapshot) const { return frames[tops[snapshot]]; }

  // What is wrong with how they are written down (what values and objects they name is verify()'s business), or null. Linear in it.
  const char* fault() const;

  // Adds a snapshot. Frames it shares with snapshot `like` are shared, others written as deltas to that one's; -1: in full.
  int32_t add(const Snapshot& snapshot, int32_t like = -1);
  // Adds a frame without slots; changed(), pushed() add them to the last frame: first all locals, then the stack.
  int32_t add_frame(const FrameDelta& head);
  void change(int32_t local, ValueId v);
  void push(ValueId v);
  // Forgets what was added since there were so many.
  struct Mark {
    size_t frames = 0, slots = 0, tops = 0;
  };
  Mark mark() const { return {frames.size(), slots.size(), tops.size()}; }
  void back_to(const Mark& mark);
};

// Deltas over a frame of this many slots may weigh (1 and their slots, each) so much before it is written in full again.
inline int64_t delta_budget(size_t slots) { return static_cast<int64_t>(slots) + 16; }

}  // namespace dalsegno
