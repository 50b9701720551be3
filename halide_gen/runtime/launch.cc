// Runs a kernel over its iteration: the whole at once, or tile by tile through its stages; on one thread, or in chunks on several.
#include "halide_gen/runtime/launch.h"

#include <HalideRuntime.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "halide_gen/runtime/flags.h"
#include "halide_gen/runtime/pack.h"
#include "halide_gen/runtime/per_thread.h"
#include "halide_gen/runtime/pool.h"
#include "halide_gen/runtime/scratch.h"

namespace dalsegno::rt {
namespace {

constexpr int kScratchElement = 8;  // a slot holds elements of any dtype

struct HalideType {
  uint8_t code, bits;
};
constexpr HalideType kHalideTypes[] = {{halide_type_uint, 8},   {halide_type_int, 32},   {halide_type_int, 64},  // in order of DType
                                       {halide_type_float, 32}, {halide_type_float, 64}, {halide_type_int, 8},   {halide_type_uint, 8},
                                       {halide_type_int, 16},   {halide_type_uint, 16},  {halide_type_uint, 32}, {halide_type_uint, 64}};

struct Chunk {
  const LaunchKernel* kernel;
  const Launch* launch;
  int64_t extents[kMaxRank];
  int64_t first[kMaxRank];  // of the chunk, per axis
};

const LaunchOperand& operand(const Launch& launch, const LaunchRef& ref) {
  return ref.place == 0 ? launch.inputs[ref.index] : launch.outputs[ref.index];
}

Chunk all_of(const LaunchKernel* kernel, const Launch* launch) {
  Chunk c{kernel, launch, {}, {}};
  std::copy(launch->extents, launch->extents + launch->rank, c.extents);
  return c;
}

// Elements from the operand's first one to the chunk's.
int64_t offset_of(const LaunchOperand& o, const Chunk& c) {
  int64_t offset = 0;
  for (int d = 0; d < c.launch->rank; ++d) offset += c.first[d] * o.strides[d];
  return offset;
}

char* start(const LaunchOperand& o, const LaunchRef& ref, const Chunk& c) { return o.data + offset_of(o, c) * ref.size; }

void set_type(halide_buffer_t& b, const LaunchRef& ref) {
  b.type.code = static_cast<halide_type_code_t>(kHalideTypes[ref.dtype].code);
  b.type.bits = kHalideTypes[ref.dtype].bits;
  b.type.lanes = 1;
}

// Halide's types zero themselves, which takes longer than a small kernel does.
template <class T, size_t kCount>
union Unwritten {
  Unwritten() {}  // NOLINT
  T at[kCount];
};

int64_t elements_of(const Launch& launch) {
  int64_t n = 1;
  for (int d = 0; d < launch.rank; ++d) n *= launch.extents[d];
  return n;
}

// Is it more than most of the last cache holds, all threads' parts together?
bool streams(const Launch& launch, int size) {
  static const int64_t most = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE) / 4 * 3, 16 << 20);
  if (launch.pieces != nullptr || launch.over != nullptr) return false;  // it is read at once
  return elements_of(launch) * size > most;
}

// The only stage of a kernel, called for all of a chunk, or for one after the other.
class Whole {
 public:
  explicit Whole(const Chunk& c) : c_(c), stage_(c.kernel->stages[0]), rank_(c.launch->rank) {
    for (int i = 0; i < stage_.reads + stage_.writes; ++i) {
      const LaunchRef& ref = stage_.refs[i];
      const LaunchOperand& o = operand(*c.launch, ref);
      arguments_[i] = ref.scalar ? static_cast<void*>(o.data) : &buffers_.at[i];
      if (ref.scalar) continue;
      halide_buffer_t& b = buffers_.at[i];
      halide_dimension_t* dim = dims_.at + static_cast<size_t>(i) * rank_;
      for (int d = 0; d < rank_; ++d) dim[d].min = 0, dim[d].flags = 0, dim[d].stride = static_cast<int32_t>(o.strides[d]);
      b.device = 0, b.device_interface = nullptr, b.padding = nullptr;
      b.flags = i >= stage_.reads && streams(*c.launch, ref.size) ? kStreams : 0;
      b.dimensions = rank_, b.dim = dim;
      set_type(b, ref);
    }
  }

  // Of the chunk as it is now.
  int run() {
    for (int i = 0; i < stage_.reads + stage_.writes; ++i) {
      const LaunchRef& ref = stage_.refs[i];
      if (ref.scalar) continue;
      halide_buffer_t& b = buffers_.at[i];
      for (int d = 0; d < rank_; ++d) b.dim[d].extent = static_cast<int32_t>(c_.extents[d]);
      b.host = reinterpret_cast<uint8_t*>(start(operand(*c_.launch, ref), ref, c_));
    }
    return stage_.code(arguments_);
  }

 private:
  const Chunk& c_;
  const LaunchStage& stage_;
  const int rank_;
  Unwritten<halide_buffer_t, kMaxStageOperands> buffers_;
  Unwritten<halide_dimension_t, size_t{kMaxStageOperands} * kMaxRank> dims_;
  void* arguments_[kMaxStageOperands];
};

// One stage's operands, walking along a row: rows are what the innermost axis spans.
struct StageState {
  halide_buffer_t buffers[kMaxStageOperands];
  halide_dimension_t dims[kMaxStageOperands];
  void* arguments[kMaxStageOperands];
  char* row[kMaxStageOperands];      // start of the row, or of the scratch slot
  intptr_t step[kMaxStageOperands];  // bytes an element moves it along the row; scratch starts anew with each tile
  bool fixed[kMaxStageOperands];     // lies in scratch
};

class Tiles {
 public:
  // `packs` follows the scratch slots: a tile for each packed input, in order.
  Tiles(const Chunk& c, char* scratch, char* packs, StageState* states) : c_(c), scratch_(scratch), packs_(packs), states_(states) {
    for (int s = 0; s < c_.kernel->n_stages; ++s) prepare(c_.kernel->stages[s], states_[s]);
  }

  // Flags that came up before inner loops ran: some of NumPy's loops clear the flags when they are done.
  int seen() const { return seen_; }

  int run() {
    int64_t index[kMaxRank] = {};
    for (;;) {
      for (int s = 0; s < c_.kernel->n_stages; ++s) set_row(c_.kernel->stages[s], states_[s], index);
      for (int64_t at = 0; at < c_.extents[0]; at += c_.kernel->tile) {
        const int64_t n = std::min<int64_t>(c_.kernel->tile, c_.extents[0] - at);
        pack_inputs(at, n);
        for (int s = 0; s < c_.kernel->n_stages; ++s) {
          if (const int failed = run_tile(c_.kernel->stages[s], states_[s], at, n)) return failed;
        }
      }
      int d = 1;
      for (; d < c_.launch->rank && ++index[d] == c_.extents[d]; ++d) index[d] = 0;
      if (d >= c_.launch->rank) return 0;
    }
  }

 private:
  bool packed(const LaunchRef& ref) const { return ref.place == 0 && !ref.scalar && (c_.launch->packing.packed >> ref.index & 1) != 0; }

  char* pack_slot(int input) const {
    const int before = std::popcount(c_.launch->packing.packed & ((uint64_t{1} << input) - 1));
    return packs_ + static_cast<size_t>(before) * c_.kernel->tile * kScratchElement;
  }

  void pack_inputs(int64_t at, int64_t n) {
    for (uint64_t rest = c_.launch->packing.packed; rest != 0; rest &= rest - 1) {
      const int input = std::countr_zero(rest);
      pack(c_.launch->inputs[input], c_.launch->packing, c_.launch->inputs[input].size, c_.first[0] + at, n, pack_slot(input));
    }
  }

  void prepare(const LaunchStage& stage, StageState& s) {
    for (int i = 0; i < stage.reads + stage.writes; ++i) {
      const LaunchRef& ref = stage.refs[i];
      const bool slot = ref.place == 2 || packed(ref);
      s.fixed[i] = slot;
      const int64_t stride = slot ? 1 : ref.scalar ? 0 : operand(*c_.launch, ref).strides[0];
      s.step[i] = static_cast<intptr_t>(stride) * ref.size;
      if (packed(ref)) s.row[i] = pack_slot(ref.index);
      if (ref.place == 2) s.row[i] = scratch_ + static_cast<size_t>(ref.index) * c_.kernel->tile * kScratchElement;
      if (ref.scalar) s.row[i] = operand(*c_.launch, ref).data;
      s.dims[i] = {0, 0, static_cast<int32_t>(stride), 0};
      s.buffers[i] = {};
      s.buffers[i].dimensions = 1, s.buffers[i].dim = &s.dims[i];
      set_type(s.buffers[i], ref);
      s.arguments[i] = ref.scalar ? static_cast<void*>(s.row[i]) : &s.buffers[i];
    }
  }

  void set_row(const LaunchStage& stage, StageState& s, const int64_t* index) {
    for (int i = 0; i < stage.reads + stage.writes; ++i) {
      const LaunchRef& ref = stage.refs[i];
      if (s.fixed[i] || ref.scalar) continue;
      const LaunchOperand& o = operand(*c_.launch, ref);
      int64_t offset = 0;
      for (int d = 1; d < c_.launch->rank; ++d) offset += index[d] * o.strides[d];
      s.row[i] = start(o, ref, c_) + offset * ref.size;
    }
  }

  int run_tile(const LaunchStage& stage, StageState& s, int64_t at, int64_t n) {
    const int count = stage.reads + stage.writes;
    const auto place = [&](int i) { return s.row[i] + (s.fixed[i] ? 0 : at * s.step[i]); };
    if (stage.code == nullptr) {
      char* args[kMaxStageOperands];
      for (int i = 0; i < count; ++i) args[i] = place(i);
      const intptr_t length = static_cast<intptr_t>(n);
      seen_ |= raised() | x87_raised();
      stage.loop(args, &length, s.step, stage.loop_data);
      return 0;
    }
    for (int i = 0; i < count; ++i) {
      s.buffers[i].host = reinterpret_cast<uint8_t*>(place(i));
      s.dims[i].extent = static_cast<int32_t>(n);
    }
    return stage.code(s.arguments);
  }

  const Chunk& c_;
  char* scratch_;
  char* packs_;
  StageState* states_;
  int seen_ = 0;
};

// Flags seen on the way, or kFailed.
int run_tiled(const Chunk& c) {
  const size_t packs = static_cast<size_t>(std::popcount(c.launch->packing.packed));
  const size_t slot = static_cast<size_t>(c.kernel->tile) * kScratchElement, slots = (c.kernel->scratch_slots + packs) * slot;
  const size_t states = sizeof(StageState) * static_cast<size_t>(c.kernel->n_stages);
  const size_t slots_rounded = (slots + kAlign - 1) / kAlign * kAlign;
  auto* scratch = PerThread<Scratch>::get();
  char* memory = scratch ? scratch->get(slots_rounded + states) : nullptr;
  if (memory == nullptr) return kFailed;
  Tiles tiles(c, memory, memory + c.kernel->scratch_slots * slot, reinterpret_cast<StageState*>(memory + slots_rounded));
  const int failed = tiles.run();
  return failed != 0 ? kFailed : tiles.seen();
}

// What is in MXCSR at the end is the caller's business; overflow of an inner loop may be in the x87 word only.
int run_chunk(const Chunk& c) {
  if (c.kernel->tile == 0) return Whole(c).run() != 0 ? kFailed : 0;
  if (c.kernel->has_loops) x87_clear();
  int status = run_tiled(c);
  if (c.kernel->has_loops) status |= x87_raised();
  return status;
}

class AsideScratch : public Scratch {};  // (the kernel has its own)

// A chunk of a launch that writes over what it reads. Where the kernel goes through a row by whole vectors, no two of which meet, and there
// is nothing else it makes, it writes at once, and what was there is kept in the thread's memory until no flag has come up; else it is made
// there.
class OverRun {
 public:
  explicit OverRun(const Chunk& all)
      : all_(all), over_(*all.launch->over), to_(all.launch->outputs[over_.output]), at_once_(all.kernel->tile == 0 && over_.outputs == 1) {
    const Launch& launch = *all.launch;
    const int64_t least = std::max<int64_t>(all.kernel->tile, 4 * elements_of(launch) / over_.most_pieces);
    const int64_t most = std::max(kBytes / to_.size, least), row = all.extents[0];
    std::fill_n(piece_, launch.rank, 1);
    piece_[0] = std::min(row, most);
    if (launch.rank > 1 && row == launch.extents[0]) piece_[1] = std::clamp<int64_t>(most / row, 1, all.extents[1]);
  }

  // Not more than so many: where it begins within a line, and what is less than a vector, is apart.
  int64_t pieces() const {
    int64_t count = (all_.extents[0] + piece_[0] - 1) / piece_[0] + 2;
    for (int d = 1; d < all_.launch->rank; ++d) count *= (all_.extents[d] + piece_[d] - 1) / piece_[d];
    return count;
  }

  void run() {
    auto* scratch = PerThread<AsideScratch>::get();
    memory_ = scratch ? scratch->get(static_cast<size_t>(piece_[0] * rows_of(piece_) * to_.size)) : nullptr;
    Chunk c = all_, aside = all_;
    Launch launch = *all_.launch;
    LaunchOperand outputs[kMaxOperands];
    std::copy(launch.outputs, launch.outputs + over_.outputs, outputs);
    launch.outputs = outputs, aside.launch = &launch;
    LaunchOperand& made = outputs[over_.output];
    std::fill_n(made.strides, kMaxRank, 0);
    made.strides[0] = 1, made.strides[1] = piece_[0];
    const auto run_aside = [&](const auto& kernel) {
      std::copy_n(c.first, kMaxRank, aside.first), std::copy_n(c.extents, kMaxRank, aside.extents);
      made.data = reinterpret_cast<char*>(reinterpret_cast<intptr_t>(memory_) - static_cast<intptr_t>(offset_of(made, c) * to_.size));
      if (!goes_well(kernel())) return false;
      copy(c, false);
      return true;
    };
    if (!at_once_) return run_pieces(&c, [&] { return run_aside([&] { return run_chunk(aside); }); });
    Whole whole(c), part(aside);
    run_pieces(&c, [&] {
      if (c.extents[0] % kVector != 0) return run_aside([&] { return part.run() != 0 ? kFailed : 0; });
      if (over_.watched != 0) copy(c, true);
      if (goes_well(whole.run() != 0 ? kFailed : 0)) return true;
      if (over_.watched != 0) copy(c, false);
      return false;
    });
  }

 private:
  static constexpr int64_t kBytes = 4 << 10;   // of a piece: with its operands it stays in the first cache
  static constexpr int64_t kCopied = 1 << 10;  // at once: from 2 KB on glibc takes `rep movsb`, which is slow to begin
  static constexpr int64_t kVector = 64;       // elements, a multiple of those of any kernel's vectors

  int64_t rows_of(const int64_t* extents) const { return all_.launch->rank > 1 ? extents[1] : 1; }

  template <class Write>
  void run_pieces(Chunk* c, const Write& write) const {
    do {
      for (int d = 0; d < c->launch->rank; ++d) c->extents[d] = std::min(piece_[d], all_.first[d] + all_.extents[d] - c->first[d]);
      if (at_once_ && rows_of(piece_) == 1 && c->extents[0] > kVector) {
        const int64_t before = all_.extents[0] > piece_[0] ? before_line(*c) : 0;
        c->extents[0] = before > 0 ? before : c->extents[0] - c->extents[0] % kVector;
      }
      if (!memory_ || !write()) leave(*c);
    } while (advance(c));
  }

  // Elements from here to the next line of the cache: the vectors behind them are each written to one line.
  int64_t before_line(const Chunk& c) const { return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(place_of(c)) % kAlign) / to_.size; }

  char* place_of(const Chunk& c) const { return to_.data + offset_of(to_, c) * to_.size; }

  bool goes_well(int status) const {
    status |= raised();
    if ((status & (over_.watched | kFailed)) == 0) return true;
    set_control_word(control_word());
    return false;
  }

  // Between its place and the thread's memory.
  void copy(const Chunk& c, bool keep) const {
    const int64_t rows = rows_of(c.extents), bytes = c.extents[0] * to_.size;
    char *place = place_of(c), *memory = memory_;
    for (int64_t i = 0; i < rows; ++i, memory += bytes, place += to_.strides[1] * to_.size) {
      for (int64_t at = 0; at < bytes; at += kCopied) {
        const auto size = static_cast<size_t>(std::min(kCopied, bytes - at));
        std::memcpy((keep ? memory : place) + at, (keep ? place : memory) + at, size);
      }
    }
  }

  void leave(const Chunk& c) const {
    int64_t first = 0, count = 1, dense = 1;
    for (int d = 0; d < c.launch->rank; ++d) {
      first += c.first[d] * dense, count *= c.extents[d];
      dense *= c.launch->extents[d];
    }
    over_.leave(over_.context, first, first + count);
  }

  bool advance(Chunk* c) const {
    for (int d = 0; d < c->launch->rank; ++d) {
      c->first[d] += c->extents[d];
      if (c->first[d] < all_.first[d] + all_.extents[d]) return true;
      c->first[d] = all_.first[d];
    }
    return false;
  }

  const Chunk& all_;
  const Over& over_;
  const LaunchOperand& to_;
  const bool at_once_;
  int64_t piece_[kMaxRank];
  char* memory_ = nullptr;
};

constexpr int64_t kLine = 512;  // chunks of the innermost axis are multiples of this many elements

struct Parallel {
  const LaunchKernel* kernel;
  const Launch* launch;
  int axis;
  int64_t length;  // of a chunk along the axis
  std::atomic<int> status{0};
};

void run_part(void* context, int i) {
  auto& p = *static_cast<Parallel*>(context);
  Chunk c = all_of(p.kernel, p.launch);
  c.first[p.axis] = i * p.length;
  c.extents[p.axis] = std::min(p.length, p.launch->extents[p.axis] - c.first[p.axis]);
  if (p.launch->over != nullptr) return OverRun(c).run();
  p.status.fetch_or(run_chunk(c));
}

// The outermost axis that gives every thread a few chunks; else the longest.
int split_axis(const Launch& launch, int chunks) {
  for (int d = launch.rank - 1; d > 0; --d) {
    if (launch.extents[d] >= chunks) return d;
  }
  int best = 0;
  for (int d = 1; d < launch.rank; ++d) {
    if (launch.extents[d] > launch.extents[best] / kLine) best = d;
  }
  return best;
}

int run_parallel(const LaunchKernel* kernel, const Launch* launch) {
  const int chunks = launch->threads * 4;
  const int axis = split_axis(*launch, chunks);
  const int64_t unit = axis == 0 ? kLine : 1, extent = launch->extents[axis];
  const int64_t length = std::max<int64_t>((extent + chunks * unit - 1) / (chunks * unit) * unit, unit);
  Parallel p{kernel, launch, axis, length};
  const int flags = parallel(static_cast<int>((extent + length - 1) / length), launch->threads, run_part, &p);
  return flags | p.status.load();
}

// Flags are seen to piece by piece.
int run_over(const Chunk& all) {
  const Launch& launch = *all.launch;
  OverRun alone(all);
  if (launch.threads * alone.pieces() > launch.over->most_pieces) return kFailed;
  if (launch.threads > 1)
    run_parallel(all.kernel, &launch);
  else
    alone.run();
  return 0;
}

int run_alone(const Chunk& all) {
  const int status = run_chunk(all);  // a statement of its own: the operands of | have no order
  return status | raised();
}

struct InPieces {
  const LaunchKernel* kernel;
  const Launch* launch;
  std::atomic<int> status{0};
};

void run_piece(void* context, int i) {
  auto& p = *static_cast<InPieces*>(context);
  const Pieces& pieces = *p.launch->pieces;
  if (p.kernel == nullptr) return pieces.take(pieces.context, i, nullptr, 0);
  Launch launch = *p.launch;
  LaunchOperand outputs[kMaxOperands];
  char* begins[kMaxOperands];
  std::copy(p.launch->outputs, p.launch->outputs + pieces.outputs, outputs);
  launch.outputs = outputs;
  const int axis = launch.rank - 1;
  const size_t room = (static_cast<size_t>(pieces.most_bytes) + kAlign - 1) / kAlign * kAlign;
  auto* scratch = PerThread<AsideScratch>::get();
  char* memory = scratch ? scratch->get(room * static_cast<size_t>(std::max(1, std::popcount(pieces.aside)))) : nullptr;
  if (memory == nullptr) {
    p.status.fetch_or(kFailed);
    return pieces.take(pieces.context, i, nullptr, kFailed);
  }
  for (int k = 0; k < pieces.outputs; ++k) {
    const intptr_t offset = static_cast<intptr_t>(pieces.first[i] * outputs[k].strides[axis] * outputs[k].size);
    const bool aside = (pieces.aside >> k & 1) != 0;
    begins[k] = aside ? memory : outputs[k].data + offset;
    if (aside) outputs[k].data = reinterpret_cast<char*>(reinterpret_cast<intptr_t>(memory) - offset), memory += room;
  }
  Chunk c = all_of(p.kernel, &launch);
  c.first[axis] = pieces.first[i];
  c.extents[axis] = pieces.first[i + 1] - pieces.first[i];
  const int status = run_chunk(c);
  p.status.fetch_or(status);
  const bool failed = (status & kFailed) != 0;
  pieces.take(pieces.context, i, failed ? nullptr : begins, failed ? kFailed : status | raised());
}

}  // namespace

extern "C" int dalsegno_launch(const LaunchKernel* kernel, const Launch* launch) {
  const ControlWord control = control_word();
  set_control_word(control);
  if (launch->pieces != nullptr) {
    InPieces p{kernel, launch};
    const int flags = parallel(launch->pieces->count, launch->threads, run_piece, &p);
    set_control_word(control);
    return flags | p.status.load();
  }
  const Chunk all = all_of(kernel, launch);
  const int status = launch->over != nullptr ? run_over(all) : launch->threads > 1 ? run_parallel(kernel, launch) : run_alone(all);
  set_control_word(control);
  return status;
}

}  // namespace dalsegno::rt
