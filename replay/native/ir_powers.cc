// Powers of doubles by small constants.
//
// glibc's pow() (sysdeps/ieee754/dbl-64/e_pow.c; 2.28 and later) errs by less than 0.55 units in the last place. So where the exact power
// lies within 29/64 of a unit of a double, that double is what pow() gives. The power is computed here as the sum of two doubles (T. J.
// Dekker, "A floating-point technique for extending the available precision", 1971), with a relative error below 2**-98; what is nearer
// to the middle between two doubles, one power in eleven, pow() is asked for. So it is for powers of two, whose neighbours below are
// nearer, and for what is far from 1.
#include <bit>
#include <cmath>

#include "replay/native/writer.h"
#include "trace/trace.h"

namespace dalsegno::native {
namespace {

constexpr double kMostTwice = 16;  // the greatest exponent is 8

bool has_exact_sums() {
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__i386__))
  static const bool fused = __builtin_cpu_supports("fma") != 0;
  return fused;
#else
  return false;
#endif
}

}  // namespace

std::string Writer::fused(const std::string& a, const std::string& b, const std::string& c) {
  return op("call double @llvm.fma.f64(double " + a + ", double " + b + ", double " + c + ")");
}

Writer::Sum Writer::times(const Sum& a, const Sum& b) {
  const std::string high = op("fmul double " + a.high + ", " + b.high);
  std::string low = fused(a.high, b.high, op("fneg double " + high));
  if (!a.low.empty()) low = fused(a.low, b.high, low);
  if (!b.low.empty()) low = fused(a.high, b.low, low);
  return {high, low};
}

Writer::Sum Writer::root(const std::string& x) {
  const std::string high = op("call double @llvm.sqrt.f64(double " + x + ")");
  const std::string rest = fused(op("fneg double " + high), high, x);
  return {high, op("fdiv double " + rest + ", " + op("fmul double " + high + ", 2.0"))};
}

Writer::Sum Writer::inverse(const Sum& a) {
  const std::string high = op("fdiv double 1.0, " + a.high), minus = op("fneg double " + high);
  std::string rest = fused(minus, a.high, "1.0");
  if (!a.low.empty()) rest = fused(minus, a.low, rest);
  return {high, op("fmul double " + rest + ", " + high)};
}

// Of a number between 2**-100 and 2**100 by a multiple of 1/2.
Writer::Sum Writer::power_of(const std::string& x, double by) {
  const double size = std::fabs(by);
  Sum out, square{x, ""};
  const auto multiply = [&](const Sum& factor) { out = out.high.empty() ? factor : times(out, factor); };
  for (auto n = static_cast<int64_t>(size); n != 0; n >>= 1) {
    if (n & 1) multiply(square);
    if (n > 1) square = times(square, square);
  }
  if (size != std::floor(size)) multiply(root(x));
  return by < 0 ? inverse(out) : out;
}

// False: by something else.
bool Writer::power(const Instr& in, const std::string& a, const std::string& b) {
  const int64_t* bits = constant(key_of(in.b));
  if (static_cast<BinaryOp>(in.imm) != BinaryOp::power || bits_of(in.rep) != Bits::kDouble || !bits || !has_exact_sums()) return false;
  const auto by = std::bit_cast<double>(*bits);
  const double twice = 2 * by;
  if (!(std::fabs(twice) <= kMostTwice) || twice != std::floor(twice) || by == 0 || by == 1) return false;
  const std::string near = label("p"), have = label("h"), slow = label("s"), join = label("j");
  const auto absolute = [&](const std::string& x) { return op("call double @llvm.fabs.f64(double " + x + ")"); };
  const std::string size = twice == 2 * std::floor(by) ? absolute(a) : a;  // (roots are of what is positive)
  branch(op("and i1 " + op("fcmp ogt double " + size + ", 0x39B0000000000000") + ", " +
            op("fcmp olt double " + size + ", 0x4630000000000000")),
         near, slow, true);
  begin(near);
  const Sum exact = power_of(a, by);
  const std::string out = op("fadd double " + exact.high + ", " + exact.low);
  const std::string off = absolute(op("fadd double " + op("fsub double " + exact.high + ", " + out) + ", " + exact.low));
  const std::string pattern = op("bitcast double " + out + " to i64");
  const std::string unit =
      op("bitcast i64 " + op("sub i64 " + op("and i64 " + pattern + ", 9218868437227405312") + ", 234187180623265792") + " to double");
  const std::string clear = op("fcmp olt double " + off + ", " + op("fmul double " + unit + ", 4.531250e-01"));
  const std::string between = op("icmp ne i64 " + op("and i64 " + pattern + ", 4503599627370495") + ", 0");
  branch(op("and i1 " + clear + ", " + between), have, slow, true);
  begin(have);
  set(in.dst, out);
  go(join);
  begin(slow);
  by_function(in, a, b);
  go(join);
  begin(join);
  return true;
}

}  // namespace dalsegno::native
