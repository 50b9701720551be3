// Floating-point flags, cheaply: MXCSR where there is one; the x87 word as well where a C library's feraiseexcept may have been used.
#pragma once
#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace dalsegno::rt {

inline constexpr int kFlagBits = 0x1d;  // invalid, divide, overflow, underflow

#if defined(__x86_64__)
// The rounding mode and masks of a thread, with flags cleared.
using ControlWord = unsigned;
inline ControlWord control_word() { return _mm_getcsr() & ~0x3fu; }
inline void set_control_word(ControlWord word) { _mm_setcsr(word); }
inline int raised() { return static_cast<int>(_mm_getcsr()) & kFlagBits; }
inline void add_raised(int flags) { _mm_setcsr(_mm_getcsr() | static_cast<unsigned>(flags)); }
// glibc's feraiseexcept raises overflow and underflow in the x87 unit only.
inline int x87_raised() {
  unsigned short word;
  asm volatile("fnstsw %0" : "=a"(word));
  return word & kFlagBits;
}
inline void x87_clear() {
  if (x87_raised() != 0) asm volatile("fnclex");
}
#else
using ControlWord = int;
inline ControlWord control_word() { return 0; }
inline void set_control_word(ControlWord) { std::feclearexcept(FE_ALL_EXCEPT); }
inline int raised() {
  const int f = std::fetestexcept(FE_ALL_EXCEPT);
  return (f & FE_INVALID ? 1 : 0) | (f & FE_DIVBYZERO ? 4 : 0) | (f & FE_OVERFLOW ? 8 : 0) | (f & FE_UNDERFLOW ? 16 : 0);
}
inline void add_raised(int flags) {
  std::feraiseexcept((flags & 1 ? FE_INVALID : 0) | (flags & 4 ? FE_DIVBYZERO : 0) | (flags & 8 ? FE_OVERFLOW : 0) |
                     (flags & 16 ? FE_UNDERFLOW : 0));
}
inline int x87_raised() { return 0; }
inline void x87_clear() {}
#endif

// Around code of NumPy's that may raise flags in either way.
inline void clear_all_raised() {
  set_control_word(control_word());
  x87_clear();
}
inline int all_raised() { return raised() | x87_raised(); }

}  // namespace dalsegno::rt
