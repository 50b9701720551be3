#include "numpy/fours.h"

namespace dalsegno::numpy {

#if defined(__x86_64__) && !defined(__clang_analyzer__)

namespace {

// Each is asked for once.
template <InnerLoop (*make)(const InnerLoop&)>
InnerLoop once(const InnerLoop& numpys) {
  static const InnerLoop kLoop = make(numpys);
  return kLoop;
}

using Make = InnerLoop (*)(const InnerLoop&);
struct Function {
  ArrayFn fn;
  DType dtype;
  Make make;
};
// clang-format off
constexpr Function kFunctions[] = {
    {ArrayFn::exp, DType::kFloat64, once<exp_by_fours>},
    {ArrayFn::exp, DType::kComplex128, once<complex_exp_by_fours>},
    {ArrayFn::expm1, DType::kFloat64, once<expm1_by_fours>},
    {ArrayFn::log, DType::kFloat64, once<log_by_fours>},
    {ArrayFn::log1p, DType::kFloat64, once<log1p_by_fours>},
    {ArrayFn::log2, DType::kFloat64, once<log2_by_fours>},
    {ArrayFn::log10, DType::kFloat64, once<log10_by_fours>},
    {ArrayFn::power, DType::kFloat64, once<power_by_fours>},
    {ArrayFn::sin, DType::kFloat64, once<sin_by_fours>},
    {ArrayFn::cos, DType::kFloat64, once<cos_by_fours>},
    {ArrayFn::arcsin, DType::kFloat64, once<arcsin_by_fours>},
    {ArrayFn::arccos, DType::kFloat64, once<arccos_by_fours>},
    {ArrayFn::arctan, DType::kFloat64, once<arctan_by_fours>},
    {ArrayFn::arctan2, DType::kFloat64, once<arctan2_by_fours>},
    {ArrayFn::tanh, DType::kFloat64, once<tanh_by_fours>},
    {ArrayFn::hypot, DType::kFloat64, once<hypot_by_fours>},
    {ArrayFn::remainder, DType::kFloat64, once<remainder_by_fours>},
    {ArrayFn::fmod, DType::kFloat64, once<fmod_by_fours>},
    {ArrayFn::floor_divide, DType::kFloat64, once<floor_divide_by_fours>},
};
// clang-format on

}  // namespace

InnerLoop by_fours(ArrayFn fn, DType dtype, const InnerLoop& numpys) {
  for (const Function& known : kFunctions)
    if (known.fn == fn && known.dtype == dtype) return known.make(numpys);
  return numpys;
}

#else

InnerLoop by_fours(ArrayFn, DType, const InnerLoop& numpys) { return numpys; }

#endif

}  // namespace dalsegno::numpy
