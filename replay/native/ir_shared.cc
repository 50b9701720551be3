// What many places of a region need stands behind it once. These functions leave their callers' registers as they are, so who calls them
// keeps what it has where it is.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "replay/native/writer.h"

namespace dalsegno::native {
namespace {

constexpr int64_t kDigit = 30;  // bits

std::string power_of_two(int64_t exponent) { return std::to_string(int64_t{1} << exponent); }

}  // namespace

std::string Writer::spare(Rep rep) {
  const size_t offset = offsetof(Frame, spare) + sizeof(void*) * static_cast<size_t>(spare_of(rep));
  return op("getelementptr i8, ptr %f, i64 " + std::to_string(offset));
}

// An object of this type that nobody else holds becomes another number; on to `slow` if it cannot: it is one of the interpreter's own, or
// has more digits than the old one. (An int of more than two keeps none in its memory.)
void Writer::write_number(Rep rep, const std::string& value, const std::string& object, const std::string& slow) {
  if (typed::is_pair(rep)) {
    const int32_t offset = rep == Rep::kComplex ? layout_.complex_value : layout_.numpy_complex_value;
    return line("store <2 x double> " + value + ", ptr " + at_offset(object, offset) + ", align 8");
  }
  if (rep != Rep::kInt) {
    const int32_t offset = rep == Rep::kFloat ? layout_.float_value : layout_.numpy_double_value;
    return line("store double " + value + ", ptr " + at_offset(object, offset));
  }
  const std::string room = label("r"), two = label("t"), done = label("d");
  const std::string magnitude = magnitude_of(value), high = op("lshr i64 " + magnitude + ", " + std::to_string(kDigit));
  const std::string more = op("icmp ne i64 " + high + ", 0");
  const std::string digits = digits_of(field(object, static_cast<size_t>(layout_.int_size), "i64"));
  const std::string needed = op("select i1 " + more + ", i64 2, i64 1");
  const std::string enough = op("and i1 " + op("icmp ule i64 " + needed + ", " + digits) + ", " + op("icmp ult i64 " + digits + ", 3"));
  const std::string fits = op("and i1 " + enough + ", " + op("icmp ult i64 " + magnitude + ", " + power_of_two(2 * kDigit)));
  branch(op("select i1 " + is_small_int(value) + ", i1 false, i1 " + fits), room, slow);
  begin(room);
  const std::string negative = op("icmp slt i64 " + value + ", 0");
  const std::string size = layout_.int_tagged
                               ? op("add i64 " + op("shl i64 " + needed + ", 3") + ", " + op("select i1 " + negative + ", i64 2, i64 0"))
                               : op("select i1 " + negative + ", i64 " + op("sub i64 0, " + needed) + ", i64 " + needed);
  put_field(size, object, layout_.int_size);
  const auto put_digit = [&](const std::string& digit, int32_t k) {
    line("store i32 " + op("trunc i64 " + digit + " to i32") + ", ptr " + at_offset(object, layout_.int_digit + 4 * k));
  };
  put_digit(op("and i64 " + magnitude + ", " + std::to_string((int64_t{1} << kDigit) - 1)), 0);
  branch(more, two, done);
  begin(two);
  put_digit(high, 1);
  go(done);
  begin(done);
}

// How many digits an int has whose size field this is.
std::string Writer::digits_of(const std::string& size) { return layout_.int_tagged ? op("lshr i64 " + size + ", 3") : magnitude_of(size); }

std::string Writer::magnitude_of(const std::string& value) {
  return op("select i1 " + op("icmp slt i64 " + value + ", 0") + ", i64 " + op("sub i64 0, " + value) + ", i64 " + value);
}

// ---- functions -------------------------------------------------------------------------------------------------------------------

struct Writer::SharedFunction {
  Shared what;
  const char *name, *gives, *takes;  // takes: beside the frame, and where it may put something; null: the number
  void (Writer::*write)(Rep);
  const char* convention = "preserve_allcc ";
};

const Writer::SharedFunction& Writer::shared_function(Shared what) {
  static constexpr SharedFunction kFunctions[] = {
      {Shared::kBox, "box", "ptr", nullptr, &Writer::write_box},
      {Shared::kFresh, "fresh", "ptr", nullptr, &Writer::write_fresh, ""},
      {Shared::kPutInt, "put_int", "i1", "ptr %place, i64 %x", &Writer::write_put_int},
      {Shared::kRetire, "retire", "void", "ptr %o", &Writer::write_retire},
      {Shared::kKeep, "keep", "i1", "ptr %o", &Writer::write_keep},
      {Shared::kIntOf, "int_of", "i64", "ptr %o", &Writer::write_int_of},
      {Shared::kPut, "put", "i1", "ptr %place, ptr %o", &Writer::write_put},
  };
  return *std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const SharedFunction& one) { return one.what == what; });
}

namespace {

// Calls a function of the frame's where the way goes round: all registers stay as they are, so the way that is mostly taken need not care.
// What is returned comes through memory, behind what the function puts there itself. (One that takes fewer arguments finds them in place.)
constexpr const char* kAside =
    "define internal preserve_allcc void @aside(ptr %f, i64 %at, i32 %n, i64 %a, i64 %b, ptr %out) #0 {\n"
    "  %place = getelementptr i8, ptr %f, i64 %at\n"
    "  %function = load ptr, ptr %place\n"
    "  %r = call i32 %function(ptr %f, i32 %n, i64 %a, i64 %b, ptr %out)\n"
    "  %came = getelementptr i8, ptr %out, i64 16\n"
    "  store i32 %r, ptr %came\n"
    "  ret void\n}\n";

// The same for an operator on two doubles.
std::string scalar_aside() {
  return "define internal preserve_allcc void @scalar(ptr %f, i32 %n, double %x, double %y, ptr %out) noinline cold {\n"
         "  %a = bitcast double %x to i64\n"
         "  %b = bitcast double %y to i64\n"
         "  call preserve_allcc void @aside(ptr %f, i64 " +
         std::to_string(offsetof(Frame, scalar)) +
         ", i32 %n, i64 %a, i64 %b, ptr %out)\n"
         "  ret void\n}\n";
}

// Boxes by the frame's function.
std::string make_aside() {
  return "define internal preserve_allcc void @make_aside(ptr %f, i32 %rep, i64 %bits, ptr %out) #0 {\n"
         "  %place = getelementptr i8, ptr %f, i64 " +
         std::to_string(offsetof(Frame, box)) +
         "\n  %function = load ptr, ptr %place\n"
         "  %r = call ptr %function(ptr %f, i32 %rep, i64 %bits)\n"
         "  store ptr %r, ptr %out\n"
         "  ret void\n}\n";
}

}  // namespace

// As it is called and defined.
std::string Writer::with_arguments(Shared what, Rep rep, const std::string& arguments) {
  const SharedFunction& of = shared_function(what);
  return std::string(of.convention) + of.gives + " @" + of.name + std::to_string(static_cast<int>(rep)) + "(ptr %f, ptr %out, " +
         arguments + ")";
}

// The function's result.
std::string Writer::by_function(Shared what, Rep rep, const std::string& arguments) {
  shared_.insert({what, rep});
  const std::string gives = shared_function(what).gives, call = "call " + with_arguments(what, rep, arguments);
  if (gives != "void") return op(call);
  line(call);
  return "";
}

// Behind the region's own function. (One may call others.)
void Writer::write_functions() {
  std::set<std::pair<Shared, Rep>> written;
  while (written.size() < shared_.size())
    for (const auto& function : std::set(shared_))
      if (written.insert(function).second) write_function(function.first, function.second);
  const bool boxes = std::any_of(written.begin(), written.end(), [](const auto& function) { return function.first == Shared::kBox; });
  if (boxes) text_ += make_aside();
  if (goes_aside_) text_ += kAside + scalar_aside();
}

void Writer::write_function(Shared what, Rep rep) {
  const std::string before = std::exchange(text_, {});
  const std::set<int32_t> addresses = std::exchange(addresses_, {});
  known_.clear();
  remembered_.clear();
  const SharedFunction& of = shared_function(what);
  (this->*of.write)(rep);
  const std::string takes = of.takes ? of.takes : type_of(bits_of(rep)) + std::string(" %x");
  text_ = before + "define internal " + with_arguments(what, rep, takes) +
          " noinline noimplicitfloat {\n  %came = getelementptr i8, ptr %out, i64 16\n" + loaded_addresses() + text_ + "}\n";
  addresses_ = addresses;
}

// The interpreter's own small ints; else the box that is left over becomes the number's, if there is one that has room; else a new one.
void Writer::write_box(Rep rep) {
  const std::string left = label("l"), none = label("n");
  if (rep == Rep::kInt) {
    const std::string small = label("i"), large = label("b");
    branch(is_small_int("%x"), small, large);
    begin(small);
    const std::string found = small_int("%x");
    add_reference(found);
    line("ret ptr " + found);
    begin(large);
  }
  const std::string at = spare(rep), object = op("load ptr, ptr " + at);
  branch(op("icmp ne ptr " + object + ", null"), left, none);
  begin(left);
  write_number(rep, "%x", object, none);
  line("store ptr null, ptr " + at);
  line("ret ptr " + object);
  begin(none);
  if (rep == Rep::kFloat && layout_.free_floats_count != 0) free_float();
  line("call preserve_allcc void @make_aside(ptr %f, i32 " + std::to_string(static_cast<int>(rep)) + ", i64 " +
       bits_as_int("%x", bits_of(rep)) + ", ptr %out)");
  line("ret ptr " + op("load ptr, ptr %out"));
}

// Where it is called often, and hardly ever gets one that is left over: whoever calls it saves its own registers.
void Writer::write_fresh(Rep rep) {
  if (rep == Rep::kFloat && layout_.free_floats_count != 0) free_float();
  line("ret ptr " + lasting_box(rep, "%x"));
}

// The first one that the interpreter keeps, if there is one (PyFloat_FromDouble() of Objects/floatobject.c).
void Writer::free_float() {
  const std::string some = label("f"), empty = label("e"), first = address(kFreeFloats), object = op("load ptr, ptr " + first);
  branch(op("icmp ne ptr " + object + ", null"), some, empty, true);
  begin(some);
  const std::string type = at_offset(object, layout_.type);
  line("store ptr " + op("load ptr, ptr " + type) + ", ptr " + first);
  const std::string count = at_offset(first, layout_.free_floats_count);
  line("store i32 " + op("sub i32 " + op("load i32, ptr " + count) + ", 1") + ", ptr " + count);
  line("store ptr " + address(kFloatType) + ", ptr " + type);
  line("store i64 1, ptr " + object);
  write_number(Rep::kFloat, "%x", object, empty);
  line("ret ptr " + object);
  begin(empty);
}

// An old number that nobody else holds becomes the new one, as the same memory would.
void Writer::write_put_int(Rep) {
  const std::string last = label("a"), common = label("c"), number = label("n"), alike = label("y"), other = label("o"), made = label("m"),
                    refused = label("s"), type = count_type();
  const std::string old = op("load ptr, ptr %place");
  branch(op("icmp eq " + type + " " + op("load " + type + ", ptr " + old) + ", 1"), last, common);
  begin(last);
  branch(op("or i1 " + is_type(old, kIntType) + ", " + is_type(old, kFloatType)), number, refused);
  begin(number);
  branch(is_type(old, kIntType), alike, other);
  begin(alike);
  write_number(Rep::kInt, "%x", old, other);
  line("ret i1 true");
  begin(other);
  const auto put_new = [&] {
    const std::string some = label("t"), object = new_box(Rep::kInt, "%x");
    branch(op("icmp ne ptr " + object + ", null"), some, refused, true);
    begin(some);
    line("store ptr " + object + ", ptr %place");
  };
  put_new();
  by_function(Shared::kRetire, Rep::kNone, "ptr " + old);
  line("ret i1 true");
  begin(common);
  put_new();
  drop_reference(old, made);  // (which is not the last one)
  go(made);
  begin(made);
  line("ret i1 true");
  begin(refused);
  line("ret i1 false");
}

// It is kept for the next one.
void Writer::write_retire(Rep) {
  const std::string kept = label("k");
  for (const Rep rep : {Rep::kInt, Rep::kFloat, Rep::kComplex}) {
    const std::string other = label("o");
    if (spare_of(rep) < 0) continue;
    branch(by_function(Shared::kKeep, rep, "ptr %o"), kept, other);
    begin(other);
  }
  line("store ptr %o, ptr %out");
  aside(offsetof(Frame, discard), "1", op("ptrtoint ptr %out to i64"));
  go(kept);
  begin(kept);
  line("ret void");
}

// Ints of more than two digits are not kept.
void Writer::write_keep(Rep rep) {
  const std::string alike = label("y"), left = label("l"), other = label("o"), at = spare(rep);
  branch(is_type("%o", type_of_number(rep)), alike, other);
  begin(alike);
  std::string room = op("icmp eq ptr " + op("load ptr, ptr " + at) + ", null");
  if (rep == Rep::kInt) {
    const std::string small = op("icmp ult i64 " + digits_of(field("%o", static_cast<size_t>(layout_.int_size), "i64")) + ", 3");
    room = op("and i1 " + room + ", " + small);
  }
  branch(room, left, other);
  begin(left);
  line("store ptr %o, ptr " + at);
  line("ret i1 true");
  begin(other);
  line("ret i1 false");
}

// Of two digits; else, if at all, by the frame's function.
void Writer::write_int_of(Rep) {
  const std::string whole = label("y"), two = label("t"), other = label("o"), some = label("r"), none = label("n");
  branch(is_type("%o", kIntType), whole, none, true);
  begin(whole);
  const std::string size = field("%o", static_cast<size_t>(layout_.int_size), "i64");
  branch(op("icmp eq i64 " + digits_of(size) + ", 2"), two, other, true);
  begin(two);
  const auto digit = [&](int32_t k) {
    return op("zext i32 " + field("%o", static_cast<size_t>(layout_.int_digit) + 4 * static_cast<size_t>(k), "i32") + " to i64");
  };
  const std::string value = op("or i64 " + digit(0) + ", " + op("shl i64 " + digit(1) + ", " + std::to_string(kDigit)));
  const std::string negative =
      op(layout_.int_tagged ? "icmp eq i64 " + op("and i64 " + size + ", 3") + ", 2" : "icmp slt i64 " + size + ", 0");
  line("ret i64 " + op("select i1 " + negative + ", i64 " + op("sub i64 0, " + value) + ", i64 " + value));
  begin(other);
  const std::string fits = aside(offsetof(Frame, unbox), std::to_string(static_cast<int>(Rep::kInt)), op("ptrtoint ptr %o to i64"));
  branch(op("icmp ne i32 " + fits + ", 0"), some, none);
  begin(some);
  line("ret i64 " + op("load i64, ptr %out"));
  begin(none);
  line(std::string("ret i64 ") + kNoNumber);
}

// What dies, the last reference to it being here, must be a number: that of others may be seen.
void Writer::write_put(Rep) {
  const std::string number = label("n"), differs = label("d"), refused = label("s"), old = op("load ptr, ptr %place");
  branch(op("or i1 " + is_type(old, kIntType) + ", " + is_type(old, kFloatType)), number, refused);
  begin(number);
  branch(op("icmp ne ptr %o, " + old), differs, refused, true);
  begin(differs);
  add_reference("%o");
  line("store ptr %o, ptr %place");
  by_function(Shared::kRetire, Rep::kNone, "ptr " + old);
  line("ret i1 true");
  begin(refused);
  line("ret i1 false");
}

}  // namespace dalsegno::native
