// Launching a kernel: plain data that the runner fills in once per kernel, and once per call.
// libdalsegno_rt.so exports dalsegno_launch; it is found by name, so nothing links against the library. Any thread, without the GIL.
#pragma once
#include <cstdint>

namespace dalsegno::rt {

inline constexpr int kMaxRank = 8;
inline constexpr int kMaxOperands = 64;  // of a kernel: inputs and outputs
inline constexpr int kMaxStageOperands = 64;

// Signature of NumPy's inner loops.
using LoopFunction = void (*)(char** args, const intptr_t* dimensions, const intptr_t* steps, void* data);

struct LaunchRef {
  uint8_t place;   // 0 input, 1 output, 2 scratch
  uint8_t dtype;   // dalsegno::DType
  uint8_t size;    // bytes of an element
  uint8_t scalar;  // passed by value
  int32_t index;
};

struct LaunchStage {
  int (*code)(void** arguments);  // expression stage: Halide's argv entry; null for a loop stage
  LoopFunction loop;
  void* loop_data;
  const LaunchRef* refs;  // reads, then writes
  int32_t reads, writes;
};

struct LaunchKernel {
  const LaunchStage* stages;
  int32_t n_stages;
  int32_t tile;  // 0: the one stage takes the whole iteration
  int32_t scratch_slots;
  int32_t has_loops;
};

struct LaunchOperand {
  char* data;
  int32_t size;               // bytes of an element
  int64_t strides[kMaxRank];  // in elements, innermost axis first; 0 = broadcast. Not looked at for scalars
};

// Rows shorter than a tile's worth of work are run through together: outputs are dense, so the iteration is one long row, and inputs
// that are not (bit i of `packed`) are copied into scratch, tile by tile. Their strides are then along the packing's axes.
struct Packing {
  uint64_t packed;  // 0: none
  int32_t rank;
  int64_t extents[kMaxRank];
};

// The iteration in pieces along its outermost axis, each of which is handed on as it is made, while it lies in the cache.
struct Pieces {
  int32_t count;
  int32_t outputs;       // of the kernel
  const int64_t* first;  // count + 1 of them: piece i is [first[i], first[i + 1])
  uint64_t aside;        // outputs (by bit) of which nothing is kept: each piece lies in memory of the thread's
  int64_t most_bytes;    // of such a piece
  // On any thread. outputs: where the piece begins, and the flags that came up in it; null and kFailed: it was not made.
  void (*take)(void* context, int32_t piece, char* const* outputs, int raised);
  void* context;
};

// An output that is written over what the launch reads, element on element, in pieces that stay in the first cache. Where a flag that is
// watched comes up in one, its place is left as it was.
struct Over {
  int32_t output, outputs;  // which one, of so many
  int watched;
  int64_t most_pieces;  // where there are more the launch fails, and nothing is written
  // On any thread, as often at most: elements [first, end), in C order of the iteration, were not written.
  void (*leave)(void* context, int64_t first, int64_t end);
  void* context;
};

struct Launch {
  int32_t rank;
  int32_t threads;            // at most this many, the caller included
  int64_t extents[kMaxRank];  // innermost axis first; none is 0
  LaunchOperand* inputs;
  LaunchOperand* outputs;
  Packing packing;       // tiled kernels of rank 1 only
  const Pieces* pieces;  // null: at once
  const Over* over;      // null: no output lies where anything is read
};

// In the flags of a result's buffer: all of it is larger than the caches, so that what is written need not be read into them first.
inline constexpr uint64_t kStreams = uint64_t{1} << 32;

// Floating-point flags raised by the launch, in any of its threads.
enum : int { kInvalid = 1, kDivide = 4, kOverflow = 8, kUnderflow = 16, kFailed = 0x100 };

extern "C" {
// Without a kernel: pieces->take() alone, of no outputs.
int dalsegno_launch(const LaunchKernel* kernel, const Launch* launch);
}

}  // namespace dalsegno::rt
