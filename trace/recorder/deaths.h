// The order in which a frame that ends lets go of what it holds, which finalisers show.
#pragma once
#include <Python.h>

#include <algorithm>
#include <vector>

#include "trace/fault.h"
#include "trace/trace.h"

namespace dalsegno::recorder {

inline constexpr bool kDropsLastFirst = PY_VERSION_HEX >= 0x030e0000;  // before: the first variable first

// Each value's last place in it counts.
inline std::vector<ValueId> in_order_of_deaths(const std::vector<ValueId>& locals, const std::vector<ValueId>& stack) {
  std::vector<ValueId> order = locals;
  order.insert(order.end(), stack.begin(), stack.end());
  if (kDropsLastFirst != planted(Fault::unordered_deaths)) std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace dalsegno::recorder
