#include "numpy/fours.h"

namespace dalsegno::numpy {

#if defined(__x86_64__) && !defined(__clang_analyzer__)

// Each is asked for once.
template <InnerLoop (*make)(const InnerLoop&)>
static InnerLoop once(const InnerLoop& numpys) {
  static const InnerLoop kLoop = make(numpys);
  return kLoop;
}

InnerLoop by_fours(ArrayFn fn, const InnerLoop& numpys) {
  switch (fn) {
    case ArrayFn::exp:
      return once<exp_by_fours>(numpys);
    case ArrayFn::log:
      return once<log_by_fours>(numpys);
    case ArrayFn::power:
      return once<power_by_fours>(numpys);
    case ArrayFn::sin:
      return once<sin_by_fours>(numpys);
    case ArrayFn::cos:
      return once<cos_by_fours>(numpys);
    case ArrayFn::hypot:
      return once<hypot_by_fours>(numpys);
    case ArrayFn::remainder:
      return once<remainder_by_fours>(numpys);
    case ArrayFn::fmod:
      return once<fmod_by_fours>(numpys);
    case ArrayFn::floor_divide:
      return once<floor_divide_by_fours>(numpys);
    default:
      return numpys;
  }
}

#else

InnerLoop by_fours(ArrayFn, const InnerLoop& numpys) { return numpys; }

#endif

}  // namespace dalsegno::numpy
