// NumPy's complex numbers (scalarmath.c.src): pairs of doubles. Where the result is finite, and nothing on the way an underflow for
// certain, no flag has come up. The rest is done as the step does it (steps_numpy_complex.cc).
#include <bit>

#include "replay/native/writer.h"
#include "trace/fault.h"
#include "trace/trace.h"

namespace dalsegno::native {
namespace {

constexpr const char* kMost = "<double 0x7FEFFFFFFFFFFFFF, double 0x7FEFFFFFFFFFFFFF>";
constexpr const char* kLeast = "<double 0x0010000000000000, double 0x0010000000000000>";

}  // namespace

std::string Writer::pair(const std::string& how, const std::string& a, const std::string& b) {
  return op(how + " <2 x double> " + a + ", " + b);
}

std::string Writer::pair_size(const std::string& a) { return op("call <2 x double> @llvm.fabs.v2f64(<2 x double> " + a + ")"); }

// Of the products x * y: is none of them an underflow? (Where a factor is 0 the product is exact.)
std::string Writer::exact(const std::string& x, const std::string& y, const std::string& products) {
  const std::string zero = op("or <2 x i1> " + pair("fcmp oeq", x, "zeroinitializer") + ", " + pair("fcmp oeq", y, "zeroinitializer"));
  return op("or <2 x i1> " + pair("fcmp ogt", pair_size(products), kLeast) + ", " + zero);
}

void Writer::numpy_complex_binary(const Instr& in) {
  const auto binary = static_cast<BinaryOp>(in.imm);
  const Constant* by = binary == BinaryOp::power && constant(key_of(in.b)) ? &constant_of(key_of(in.b)) : nullptr;
  if (binary == BinaryOp::multiply || (by && by->imag == 0 && by->bits == std::bit_cast<int64_t>(2.0))) return numpy_product(in);
  if (binary == BinaryOp::true_divide) return numpy_quotient(in);
  const std::string a = get(in.a), b = get(in.b);
  if (binary == BinaryOp::power) {
    set(in.dst, a);
    return unless_scalar("false", in, a, b);
  }
  const std::string out = pair(binary == BinaryOp::add ? "fadd" : "fsub", a, b);
  set(in.dst, out);
  unless_scalar(both(pair("fcmp ole", pair_size(out), kMost)), in, a, b);
}

// A square is the product with itself, but of 0, which is 0 without signs.
void Writer::numpy_product(const Instr& in) {
  const bool squares = static_cast<BinaryOp>(in.imm) == BinaryOp::power;
  const std::string a = get(in.a), by = get(in.b), b = squares ? a : by;
  const auto shuffled = [&](const std::string& x, const std::string& y, const char* order) {
    return op("shufflevector <2 x double> " + x + ", <2 x double> " + y + ", <2 x i32> " + order);
  };
  const auto all = [&](const std::string& x, const std::string& y) { return op("and <2 x i1> " + x + ", " + y); };
  const auto above = [&](const std::string& x) { return pair("fcmp ogt", pair_size(x), kLeast); };
  const std::string real = shuffled(a, a, "<i32 0, i32 0>"), imag = shuffled(a, a, "<i32 1, i32 1>"),
                    turned = shuffled(b, b, "<i32 1, i32 0>");
  const std::string by_real = pair("fmul", real, b), by_imag = pair("fmul", imag, turned);
  const std::string out = shuffled(pair("fsub", by_real, by_imag), pair("fadd", by_real, by_imag), "<i32 0, i32 3>");
  set(in.dst, out);
  if (planted(Fault::native_flags)) return;
  const std::string finite = pair("fcmp ole", pair_size(out), kMost), rare = label("z"), done = label("j");
  branch(both(all(finite, all(above(by_real), above(by_imag)))), done, rare, true);
  begin(rare);
  std::string plain = both(all(finite, all(exact(real, b, by_real), exact(imag, turned, by_imag))));
  if (squares) plain = op("and i1 " + plain + ", " + op("xor i1 " + both(pair("fcmp oeq", a, "zeroinitializer")) + ", true"));
  unless_scalar(plain, in, a, by);
  go(done);
  begin(done);
}

// By the larger part of the divisor (Smith 1962), as CDOUBLE_divide has it (loops.c.src).
void Writer::numpy_quotient(const Instr& in) {
  const std::string a = get(in.a), b = get(in.b), size = pair_size(b);
  const auto of = [&](const std::string& how, const std::string& x, const std::string& y) { return op(how + " double " + x + ", " + y); };
  const std::string a_real = part(a, 0), a_imag = part(a, 1), b_real = part(b, 0), b_imag = part(b, 1);
  const std::string by_real = of("fcmp oge", part(size, 0), part(size, 1));
  const auto chosen = [&](const std::string& x, const std::string& y) {
    return op("select i1 " + by_real + ", double " + x + ", double " + y);
  };
  const std::string large = chosen(b_real, b_imag), small = chosen(b_imag, b_real), ratio = of("fdiv", small, large);
  const std::string more = of("fmul", small, ratio), scale = of("fdiv", "1.0", of("fadd", large, more));
  const std::string ratios = of_parts(ratio, ratio), scales = of_parts(scale, scale), products = pair("fmul", a, ratios);
  const std::string real = part(products, 0), imag = part(products, 1);
  const std::string parts =
      of_parts(of("fadd", chosen(a_real, real), chosen(imag, a_imag)), of("fsub", chosen(a_imag, imag), chosen(real, a_real)));
  const std::string out = pair("fmul", parts, scales);
  set(in.dst, out);
  const auto all = [&](const std::string& x, const std::string& y) { return op("and i1 " + x + ", " + y); };
  const std::string is_real = of("fcmp oeq", small, "0.0"), normal = both(pair("fcmp ogt", pair_size(of_parts(ratio, more)), kLeast));
  const std::string scaled = of("fcmp ogt", op("call double @llvm.fabs.f64(double " + scale + ")"), "0x0010000000000000");
  const std::string ratios_fit = op("or i1 " + is_real + ", " + all(normal, both(exact(a, "<double 1.0, double 1.0>", products))));
  const std::string fits = all(both(pair("fcmp ole", pair_size(out), kMost)), both(exact(parts, "<double 1.0, double 1.0>", out)));
  unless_scalar(all(all(scaled, ratios_fit), fits), in, a, b);
}

}  // namespace dalsegno::native
