// Groups in parts: where their ops at once would take more memory than eager takes.
//
// A kernel makes all its outputs before anything that its ops have done with can be dropped: until it has run, it may still have to be done
// again by NumPy, which shows frames. So a group is done in parts (replay/lower/parts.cc) where that would make more than eager ever has.
// What eager has is measured: the first time that a group gets arrays of a size its ops run one by one, which is what eager does, and the
// arrays that nobody but registers holds are counted; for smaller ones that is asked only where the group might take more.
#include <algorithm>
#include <cstdint>
#include <map>

#include "numpy/dtypes.h"
#include "numpy/elide.h"
#include "replay/machine/loop_plan.h"
#include "replay/machine/run.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr int64_t kLittle = 32;    // a 32nd more is as good as nothing
constexpr int kMaxMeasures = 128;  // of a group: sizes that grow all the time are not measured for ever

PyArrayObject* array_at(const Reg& reg) { return numpy::is_exact_array(reg.o) ? reinterpret_cast<PyArrayObject*>(reg.o) : nullptr; }

// The array whose memory it is; null for memory that is not NumPy's.
PyArrayObject* owner_of(PyArrayObject* array) {
  while (!PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA)) {
    PyObject* base = PyArray_BASE(array);
    if (!base || !PyArray_Check(base)) return nullptr;
    array = reinterpret_cast<PyArrayObject*>(base);
  }
  return array;
}

int64_t largest_input(const Group& group, const Reg* r) {
  int64_t largest = 0;
  for (size_t k = 0; k < group.inputs.size(); ++k) {
    if (PyArrayObject* array = array_at(r[group.inputs[k]])) {
      largest = std::max<int64_t>(largest, PyArray_NBYTES(array));
    } else if (const Virtual* view = group.loops ? group.loops->of_kernel[k].view : nullptr) {  // it is not built yet
      int64_t bytes = dtype_size(view->view.dtype);
      for (int32_t d = 0; d < view->view.rank; ++d) bytes *= r[view->block + 1 + d].i;
      largest = std::max(largest, bytes);
    }
  }
  return largest;
}

// Is it an array where the group is done without objects? (Else it is in memory of the thread's that stays.)
bool is_kept(const Group& group, int32_t reg) {
  return !group.loops || std::any_of(group.loops->ops.begin(), group.loops->ops.end(), [&](const LoopOp& op) { return op.out == reg; });
}

const std::vector<Group>& parts_for(const Group& group, int64_t largest) { return group.parts[largest >= numpy::kMinElidedBytes]; }

}  // namespace

Way way_of(ProgramImpl& p, Group& group, const Reg* r, bool bare) {
  if (group.parts[0].empty() && group.parts[1].empty()) [[likely]]
    return Way::kAtOnce;
  const int64_t largest = largest_input(group, r);
  if (largest < kMinCounted || parts_for(group, largest).empty() || planted(Fault::hoarded)) return Way::kAtOnce;
  if (largest <= group.measured_at) {
    // Of smaller arrays it makes less, eager has had so much already, and what it made last may still be there, as large as any.
    const bool same = largest == group.measured_at;
    const int64_t made = bare ? group.kept : group.made, before = same ? group.before : std::max(group.before, made);
    const double part = static_cast<double>(largest) / static_cast<double>(group.measured_at);
    const double need = static_cast<double>(before) + static_cast<double>(made) * part;
    if (need <= static_cast<double>(p.most_bytes + p.most_bytes / kLittle)) return Way::kAtOnce;
    if (same) return Way::kInParts;
  }
  if (group.measures == kMaxMeasures) return Way::kInParts;
  if (group.measured_at != 0) {
    for (Group& other : p.groups) other.measured_at = 0;
    p.most_bytes = 0;
  }
  group.measured_at = largest;
  group.before = INT64_MAX;  // until it is known
  group.made = group.kept = 0;
  ++group.measures;
  ++g_machine_counters.measures;
  return Way::kMeasured;
}

// What others hold, too, is there in eager at all times: it does not count, though the program may hold it only for a while.
int64_t array_bytes(const ProgramImpl& program, const Reg* r) {
  std::map<PyArrayObject*, Py_ssize_t> held;  // the program's arrays and those they are views of: references that come from it
  for (const ProgramImpl* p = &program; p; p = p->parent)
    for (int32_t reg : p->object_regs)
      if (PyArrayObject* array = array_at(r[reg])) {
        ++held[array];
        if (PyArrayObject* owner = owner_of(array); owner && owner != array) held.try_emplace(owner, 0);
      }
  for (const auto& [array, count] : held)  // (a view that others hold keeps what it is a view of)
    if (const auto base = held.find(reinterpret_cast<PyArrayObject*>(PyArray_BASE(array))); base != held.end())
      base->second += Py_REFCNT(array) <= count;
  int64_t bytes = 0;
  for (const auto& [array, count] : held)
    if (PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA) && Py_REFCNT(array) <= count) bytes += PyArray_NBYTES(array);
  return bytes;
}

void note_measure(Group& group, const Reg* r, int64_t before) {
  group.before = before;
  for (int32_t reg : group.outputs) {
    PyArrayObject* array = array_at(r[reg]);
    if (!array) continue;
    const int64_t bytes = PyArray_NBYTES(array);
    group.made += bytes;
    if (bytes > kMostStored || is_kept(group, reg)) group.kept += bytes;
  }
}

bool run_in_parts(Machine& m, const Group& group, const std::vector<int32_t>& live, const Step** next, bool* noticed) {
  ProgramImpl& p = *m.program;
  std::vector<int32_t> held;
  size_t done = 0;
  for (const Group& part : parts_for(group, largest_input(group, m.r))) {
    if (part.runner >= 0 && run_kernel(*p.part_runners[part.runner], part, m.r)) {
      for (const auto& dead : part.dead_after) drop_quietly(dead, m.r);
    } else {
      *noticed = true;
      held = live;
      for (size_t k = 0; k < done; ++k) held.push_back(p.locs[group.ops[k]].obj);
      if (!run_one_by_one(m, part.ops, held, next, &part.dead_after)) return false;
    }
    done += part.ops.size();
  }
  return true;
}

}  // namespace dalsegno::replay
