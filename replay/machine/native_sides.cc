// Which steps lead to side traces that may be part of a region.
#include <algorithm>
#include <iterator>

#include "replay/machine/native.h"

namespace dalsegno::replay {

bool asks_for_class(const Step& s) {
  return s.does == native::Do::kAttribute || s.does == native::Do::kSetAttribute || s.fn == step_class_attr;
}

int32_t side_plan(native::Do what, const Step& s) {
  using native::Do;
  if (s.advances) return s.other;
  if (asks_for_class(s) || s.by_type) return s.exit;
  constexpr Do kGuards[] = {Do::kGuardedCompare, Do::kGuardTruth, Do::kGuardIs, Do::kGuardFunction, Do::kGuardDefaults,
                            Do::kGuardTruthy,    Do::kGuardType,  Do::kUnbox,   Do::kGuardWaiting};
  if (std::find(std::begin(kGuards), std::end(kGuards), what) != std::end(kGuards) || native::tells_types(what, s.rep)) return s.exit;
  return what == Do::kRangeNext || what == Do::kRangeEnd || what == Do::kItemsEnd || what == Do::kNextItem || what == Do::kNextElement ||
                 what == Do::kNext
             ? s.other
             : -1;
}

bool comes_back(const ProgramImpl& side) {
  if (!side.steps.empty() && side.steps.back().does == native::Do::kJump) return true;
  return std::any_of(side.exit_records.begin(), side.exit_records.end(),
                     [](const Exit& exit) { return exit.side && comes_back(static_cast<const ProgramImpl&>(*exit.side)); });
}

}  // namespace dalsegno::replay
