// The writer of a region's text; what the files ir*.cc share.
//
// Registers that hold unboxed values are variables of the function (allocas, which LLVM turns into values); the register file has them
// again wherever a step is called or the region is left. Object registers are always in the register file. No flag for floating point is
// ever set: no reassociation, no contraction. NaN is made by the step's own code alone, for which of two NaNs an instruction gives is the
// compiler's choice.
#pragma once
#include <compare>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "replay/native/region.h"
#include "replay/native/shared.h"
#include "replay/native/uses.h"

namespace dalsegno::native {

const char* type_of(Bits bits);

class Writer {
 public:
  // copies: may loops be written twice?
  Writer(const Region& region, const Layout& layout, bool copies) : region_(region), layout_(layout), copies_(copies) {
    for (const Block& block : region.blocks) instructions_ += block.instrs.size();
  }
  std::string write(const std::string& symbol);  // but for the prologue; "": it cannot be done
  std::string prologue() const;                  // the entry block's beginning, with what the text turned out to refer to
  bool differs() const { return differs_; }      // that was why: both copies of a loop lead to what expects something else of one

 private:
  using Key = std::pair<int32_t, int32_t>;  // block that owns the register, register

  // -- ir_registers.cc
  Key key_of(int32_t block, int32_t reg) const;
  Key key_of(int32_t reg) const { return key_of(block_, reg); }
  bool is_loop(int32_t block) const { return region_.blocks[block].parent < 0; }
  int32_t loop_of(int32_t block) const {
    while (!is_loop(block)) block = region_.blocks[block].parent;
    return block;
  }
  std::string in_file(int32_t reg) const { return std::to_string(region_.blocks[block_].offset + reg); }
  const int64_t* constant(Key key) const;
  const Constant& constant_of(Key key) const { return region_.blocks[key.first].constants.at(key.second); }
  static std::string literal(const Constant& value, Bits as);
  bool find_slots();
  void leave_behind(const Instr& in, const std::string& here);
  int32_t block_at(int32_t number) const;
  static std::string name_of(Key key) { return "%v" + std::to_string(key.first) + "_" + std::to_string(key.second); }
  static std::string place_of(int32_t reg) { return "%p" + std::to_string(reg); }
  std::string get(int32_t reg);
  void set(int32_t reg, const std::string& value) { set(key_of(reg), value); }
  void set(Key key, const std::string& value);
  void reload(int32_t reg);
  std::string place(int32_t reg) { return place(block_, reg); }
  std::string place(int32_t block, int32_t reg);
  std::vector<Key> unstored() const;
  void store_to_file(Key key);
  void store_all();
  void store_operands(const Instr& in);
  void load_first(Key key, Bits bits);
  void find_made_here();
  void find_live(const Block& block);
  bool is_around(int32_t block) const;
  // -- text
  std::string fresh() { return "%t" + std::to_string(next_++); }
  std::string label(const char* what);
  void line(const std::string& text) { text_ += "  " + text + "\n"; }
  void begin(const std::string& label);
  void go(const std::string& label) { line("br label %" + label); }
  void branch(const std::string& condition, const std::string& yes, const std::string& no, bool mostly = false) {
    line("br i1 " + condition + ", label %" + yes + ", label %" + no + (mostly ? ", !prof !0" : ""));
  }
  std::string op(const std::string& text);
  static bool is_pure(const std::string& text);
  void remember(const std::string& text, const std::string& value);
  void let(const std::string& name, const char* type, const std::string& value);
  std::string at_offset(const std::string& base, int64_t offset);  // a pointer to what stands there
  std::string field(const std::string& base, size_t offset, const char* type);
  std::string helper(size_t offset) { return field("%f", offset, "ptr"); }  // a function of the frame's
  static std::string name_of_address(int32_t index) { return "%a" + std::to_string(index); }
  std::string address(int32_t index) { return addresses_.insert(index), name_of_address(index); }
  // -- ir.cc: control
  void head(const std::string& symbol);
  void write_block();
  void write(const Instr& in);
  void write_exits();
  void write_head_exit(int32_t loop);
  void leave_when_forced();
  std::string exit_label();
  std::set<Key> stored_from(int32_t group) const;
  void guard(const std::string& condition, bool wanted = true, int32_t side = -1);
  void leads_to(int32_t side);
  std::string call_step(size_t function);
  void by_step(const Instr& in);
  void unless(const std::string& plain, const Instr& in);
  std::string aside(size_t function, const std::string& number, const std::string& a = "poison", const std::string& b = "poison");
  void step_aside(const std::string& next);
  void slowly(const Instr& in, const std::string& slow, const std::string& join);
  void unless_scalar(const std::string& plain, const Instr& in, const std::string& a, const std::string& b);
  std::string bits(const std::string& value, Bits as);
  void ask(int32_t side, const std::string& otherwise);
  void enter(const Block& block);
  // A side trace that has no objects of its own: the file has nothing of it but what exits and steps are given.
  bool is_light(int32_t block) const;
  void note_entered(int32_t block);
  void note_light(int32_t block);
  std::string nothing_waits() {
    const std::string waits = op("load volatile i8, ptr " + breaker_), other = op("load i8, ptr " + unsettled_);
    return op("icmp eq i8 " + op("or i8 " + waits + ", " + other) + ", 0");
  }
  std::string settled() { return op("icmp eq i8 " + op("load i8, ptr " + unsettled_) + ", 0"); }
  void guard_world(const Instr& in);

  // -- ir_jumps.cc
  void jump(const Instr& in);
  void ask(const Promise& promise);
  void prepare(const Instr& in);
  bool goes_to(const Instr& jump, Key key) const;
  void go_back(int32_t made);
  std::string shared(const Move& move, const std::string& made);
  std::string element_of(const std::string& array, int32_t index);
  std::string part_of(int32_t index);
  std::string bits_as_int(const std::string& value, Bits as);

  // -- ir_scalars.cc
  std::string truth_of(const std::string& bit) { return op("zext i1 " + bit + " to i64"); }
  void binary(const Instr& in);
  void checked(const Instr& in, const char* name, const std::string& a, const std::string& b);
  void integer(const Instr& in, const std::string& a, const std::string& b);
  void shift_left(const Instr& in, const std::string& a, const std::string& b);
  void divides(const std::string& b) { guard(op("icmp ugt i64 " + op("add i64 " + b + ", 1") + ", 1")); }  // neither by 0 nor by -1
  std::string wraps(const std::string& rest, const std::string& b);
  int shift_of(const Instr& in) const;
  void floor_divide(const Instr& in, const std::string& a, const std::string& b);
  void remainder(const Instr& in, const std::string& a, const std::string& b);
  void true_divide(const Instr& in, const std::string& a, const std::string& b);
  void floating(const Instr& in, const std::string& a, const std::string& b);
  std::string is_passed_on(const std::string& name, const std::string& type, const std::string& a, const std::string& b,
                           const std::string& out);
  void unary(const Instr& in);
  void compare(const Instr& in);
  std::string compared(const Instr& in);
  void truth(const Instr& in);
  void by_function(const Instr& in, const std::string& a, const std::string& b);

  // ---- powers (ir_powers.cc)
  struct Sum {  // of two doubles, the second one far smaller; "": 0
    std::string high, low;
  };
  std::string fused(const std::string& a, const std::string& b, const std::string& c);
  Sum times(const Sum& a, const Sum& b);
  Sum root(const std::string& x);
  Sum inverse(const Sum& a);
  Sum power_of(const std::string& x, double by);
  bool power(const Instr& in, const std::string& a, const std::string& b);
  void c_function(const Instr& in);
  bool narrow(const Instr& in, const std::string& a, const std::string& b);
  std::string cut(Rep rep, const std::string& value);
  void fit(const Instr& in, Rep rep, const std::string& value);
  void convert(const Instr& in);
  void convert_integer(const Instr& in, const std::string& a);
  // -- ir_complex.cc
  std::string part(const std::string& value, int index);
  std::string of_parts(const std::string& real, const std::string& imag);
  std::string product(const std::string& a, const std::string& b);
  std::string natural_power(const Instr& in, std::string x);
  void complex_binary(const Instr& in);
  void numpy_complex_binary(const Instr&in), numpy_product(const Instr&in), numpy_quotient(const Instr&in);  // ir_numpy_complex.cc
  std::string pair(const std::string&how, const std::string&a, const std::string&b), pair_size(const std::string&a);
  std::string exact(const std::string& x, const std::string& y, const std::string& products);
  void beside_real(const Instr& in);
  void complex_compare(const Instr&in), complex_call(const Instr&in);
  std::string both(const std::string& pair);
  // -- ir_scalars.cc
  void call(const Instr& in);
  void clip(const Instr& in, const std::string& type, const std::string& a);
  void extreme(const Instr& in, const std::string& type, std::string found);
  void absolute(const Instr& in, const std::string& a);
  void same(const Instr& in, const std::string& a);
  void whole(const Instr& in, const std::string& value);

  // -- ir_arrays.cc: elements, and what is known of objects: looked up once, where nothing changes it
  // The type of the object in a register, or all that elements of the array in it ask for. An array that is not as it should be has no
  // element.
  static constexpr int32_t kRangeFact = -2, kElementsFact = -3;
  struct Fact {
    Key key;
    int32_t type = -1;  // index into the region's addresses, or -1: an array, or kRangeFact: a range's iterator, or kElementsFact: the
                        // array that an iterator goes through
    Rep rep = Rep::kNone;
    int32_t rank = 0;
    auto operator<=>(const Fact&) const = default;
  };
  std::optional<Fact> fact_of(const Instr& in) const;
  static std::string name_of(const Fact& fact);
  struct Changes {                            // by the number of the first instruction that does it
    std::map<Key, int32_t> changed, stepped;  // object registers that something writes; that steps look at
    int32_t runs_code = std::numeric_limits<int32_t>::max();
  };
  void find_changes();
  void find_changes(const Instr& in);
  void find_held();
  std::vector<int32_t> puts(const Instr& in) const;
  // No instruction puts anything into the object register, and nothing is there where its loop begins.
  bool is_always_null(Key key) const { return !held_.contains(key) && !stepped_.contains(loop_of(key.first)); }
  void note_change(Key key);
  void find_given(const Instr& in);
  bool is_changed(const Fact& fact, int32_t block) const;
  void forget(Key key);
  using GoesAlong = std::map<Fact, Fact>;  // by what the loop will know: what is known of the same object here
  GoesAlong goes_along(const Instr& jump) const;
  void carry_through();
  bool carry_through(const Instr& jump, int32_t through);
  void look_up(int32_t loop, bool enters, const GoesAlong& known = {});
  bool holds_always(const Fact& fact) const;
  void declare(const Fact& fact);
  void know(const Fact& fact) {
    if (fresh_.insert(fact).second) refresh(fact);
  }
  void refresh(const Fact& fact);
  void take_over(const Fact& fact, const Fact& from);
  std::vector<std::pair<std::string, const char*>> parts_of(const Fact& fact) const;
  void refresh_array(const Fact& fact, const std::string& name, const std::string& object);
  struct Memory {
    const char *type, *wider, *alignment = "";  // wider: to 64 bits
  };
  static Memory memory_of(Rep rep);
  void element(const Instr& in);
  void next_element(const Instr& in);
  void draw(const Instr& in);
  void draw_bits(const Instr& in);
  void let_go_of_items(const std::string& it, const std::string& sequence, const std::string& last);
  void ended(const Instr& in, const std::string& end);
  std::string loaded(Rep rep, const std::string& at);
  void refresh_elements(const Fact& fact, const std::string& name, const std::string& object);

  // -- ir_hoisted.cc
  struct Place {
    Key base;  // the range's item, or what the loop does not change
    int64_t offset = 0;
  };
  struct Element {
    Fact fact;
    bool written = false;
    std::vector<Place> at;  // by axis
    bool implied = false;   // within what others of the loop are known to be
  };
  // -- ir_forwarded.cc: what one turn stores and the next one loads stays in a variable
  struct Forwarded {
    int64_t step = 0;         // of the range, for which that holds; 0: nothing is
    int32_t first = -1;       // number of one of the loads
    std::set<int32_t> loads;  // numbers
  };
  // What of a loop is looked at as it is entered: by the instructions' numbers.
  struct Hoisted {
    std::set<int32_t> blocks;  // that are written twice: those that a turn may come through
    Fact range;                // that the loop goes through, if its type is kRangeFact
    Key item;
    std::map<int32_t, Element> elements;
    std::map<int32_t, Key> sums;  // of the base and a constant: they do not overflow
    std::set<Fact> facts;         // types and arrays that are guarded in each turn
    std::set<Key> nulls;          // object registers that a turn puts nothing into
    Forwarded forwarded;
  };
  void find_hoisted();
  void find_hoisted(int32_t loop);
  void find_places(int32_t loop, const std::vector<int32_t>& turns, Hoisted* hoisted);
  void find_places_in(int32_t block, const std::vector<int32_t>& turns, const std::map<Key, int>& writes, std::map<Key, Place>* places,
                      Hoisted* hoisted);
  static bool is_implied(const Element& element, const std::map<int32_t, Element>& others);
  void find_forwarded(int32_t loop, const std::vector<int32_t>& turns, Hoisted* hoisted) const;
  static std::string name_of_forwarded(int32_t loop) { return "%k" + std::to_string(loop) + "_forwarded"; }
  void begin_forwarded(int32_t loop, const Hoisted& hoisted);
  void find_nulls(int32_t loop, Hoisted* hoisted) const;
  std::map<Key, int> writes_in(int32_t loop) const;
  void enter_loop(int32_t loop, bool turns);
  void write_latch(int32_t loop);
  // In what is being written: of a loop that is written twice, the copy with checks hoisted alone.
  bool turns_meet(int32_t loop) const { return copies_ && hoisted_copy_ == hoisted_.contains(loop) && !region_.leaves_anywhere; }
  std::string holds(const Hoisted& hoisted);
  std::string holds_places(const Hoisted& hoisted);
  bool is_hoisted(const Instr& in) const;
  bool is_hoisted(const Fact& fact) const;
  bool is_hoisted_array(const Fact& fact) const;
  bool is_hoisted_sum() const;
  // Is it known, here, that there is nothing in the object register?
  bool is_null(Key key) const { return is_always_null(key) || (hoisted_copy_ && hoisted_.at(loop_of(block_)).nulls.contains(key)); }
  void modular(const Instr& in, const std::string& a, const std::string& b);
  // Blocks that no turn comes through are there once.
  std::string label_of(int32_t block) const {
    const bool copied = hoisted_copy_ && hoisted_.at(loop_of(block)).blocks.contains(block);
    return (copied ? "f" : "b") + std::to_string(block);
  }
  std::string exit_name(int32_t number, bool hoisted) const { return (hoisted ? "fx" : "x") + std::to_string(number); }

  // -- ir_joined.cc
  bool is_short(const Instr& in) const;
  bool goes_round(const Instr& in, int32_t loop) const;
  bool joins(const Instr& in);
  void join(const Instr& in);
  std::map<Key, std::string> write_way(const std::string& taken);

  // -- ir_texts.cc
  void same_text(const Instr& in);
  void ord(const Instr& in);
  void letter(const Instr& in);
  void byte(const Instr& in);
  void number(const Instr& in);
  std::string letter_in(const std::string& code);
  std::string new_letter(const std::string& text, const std::string& at);

  // -- ir_next.cc
  struct Coming {
    std::string it, at, sequence, item, object;  // the iterator, its position, ...; item: unboxed
  };
  void next(const Instr& in);
  std::string inner(const Instr& in, const std::string& holder, size_t k);
  Coming coming(const NextItem& item, const std::string& it, const std::string& end);
  void coming_in_range(const std::string& end, Coming* coming);
  void coming_in_array(const NextItem& item, const std::string& end, Coming* coming);
  void number_of(const NextItem& item, int32_t k, Coming* coming);
  void letter_of(const NextItem& item, Coming* coming);
  void go_past(const NextItem& item, const Coming& coming);
  std::string tuple_used_again(const Instr& in, const std::string& holder);
  size_t place_in_tuple(size_t k) const;
  void put_into(const std::string& tuple, size_t k, const std::string& object);
  void put_field(const std::string& value, const std::string& object, int32_t offset);

  // -- ir_ranges.cc. Among the registers whose values the file lacks (dirty_) the state of a range stands beside its iterator's register.
  static Key state_of(Key key) { return {key.first, ~key.second}; }
  static bool is_state(Key key) { return key.second < 0; }
  static Key range_of(Key state) { return {state.first, ~state.second}; }
  void range_iterator(const Instr& in);
  void range_by_ones(const Instr& in, const std::string& start, const std::string& stop);
  void range_next(const Instr& in);
  void range_end(const Instr& in);
  void advance(const Instr& in, const Fact& fact);
  void refresh_range(const std::string& name, const std::string& object);
  void rewind(Key key);
  void keep_iterator(int32_t reg, const std::string& object, const std::string& gone);
  std::string spare_iterator(size_t kind);
  void keep_items_iterator(int32_t reg, const std::string& object, const std::string& gone);
  void let_go(Key key);
  void let_go_for(int32_t target);

  // -- ir_boxes.cc
  bool boxes(Rep rep) const;
  int32_t spare_of(Rep rep) const;
  std::string spare(Rep rep);
  static Address type_of_number(Rep rep);
  void write_number(Rep rep, const std::string& value, const std::string& object, const std::string& slow);
  std::string truth_object(const std::string& value);
  std::string boxed(Rep rep, const std::string& value);
  std::string new_box(Rep rep, const std::string& value);
  std::string lasting_box(Rep rep, const std::string& value);
  void free_float();
  void write_fresh(Rep rep);
  void share(const Instr& in, const std::string& chosen, const std::string& value);
  std::string object_of(const Instr& in, size_t operand);
  void put_item(const Instr& in);
  void put_at(const Instr& in, const std::string& place, const std::string& old, const std::string& slow, size_t function);

  // -- ir_shared.cc: what many places need stands behind the region once, as functions that leave their callers' registers alone
  std::string by_function(Shared what, Rep rep, const std::string& arguments);
  void write_functions();
  void write_function(Shared what, Rep rep);
  struct SharedFunction;
  static const SharedFunction& shared_function(Shared what);
  static std::string with_arguments(Shared what, Rep rep, const std::string& arguments);
  void write_box(Rep), write_keep(Rep), write_put_int(Rep), write_put(Rep), write_retire(Rep), write_int_of(Rep);
  std::string loaded_addresses() const;
  std::string magnitude_of(const std::string& value);
  std::string digits_of(const std::string& size);

  // -- ir_attributes.cc
  // -- ir_generators.cc
  std::string next_of_generator(const Instr& in);
  void guard_waiting(const Instr& in);
  void take_slot(const Instr& in);
  void put_state(const std::string& generator, int32_t state, int32_t count);
  void wait_at(const Instr& in);
  void generator(const Instr& in);
  std::string attribute_place(const Instr& in, const std::string& slow);
  void attribute(const Instr& in);
  void set_attribute(const Instr& in);
  void quick(const Instr& in);
  void guard_class(const Instr& in);
  void guard_function(const Instr& in);
  void guard_truthy(const Instr& in);
  void items_iterator(const Instr& in);
  void came_quickly(const Instr& in, const std::string& done);

  // -- ir_objects.cc
  std::string object_in(int32_t reg) { return object_in(key_of(reg)); }
  std::string object_in(Key key);
  std::string is_type(const std::string& object, Address type) {
    return op("icmp eq ptr " + field(object, static_cast<size_t>(layout_.type), "ptr") + ", " + address(type));
  }
  std::string wrapped(const std::string& index, const std::string& length);
  void extent(const Instr& in);
  void length(const Instr& in);
  void item(const Instr& in);
  void set_item(const Instr& in);
  void take_item(const Instr& in);
  void cell(const Instr& in);
  void unpack(const Instr& in);
  void tuple_item(const Instr& in);
  void give(int32_t reg, const std::string& object);
  void next_item(const Instr& in);
  void items_end(const Instr& in);
  void append(const Instr& in);
  void pop(const Instr& in);
  std::string is_small_int(const std::string& value) { return op("icmp ult i64 " + op("add i64 " + value + ", 5") + ", 262"); }
  std::string small_int(const std::string& value) {
    return op("getelementptr i8, ptr " + address(kZero) + ", i64 " +
              op("mul i64 " + value + ", " + std::to_string(layout_.small_int_size)));
  }
  std::string items(const Instr& in, const std::string& sequence);
  void took(const Instr& in, const std::string& item);
  void unbox(const Instr& in);
  // Is it known that there is no object, and the number is where it should be?
  bool is_there(const Instr& in) const { return in.what == Do::kUnbox && is_null(key_of(in.a)) && comes_unboxed(key_of(in.dst)); }
  bool comes_unboxed(Key key) const { return is_loop(key.first) || given_numbers_.contains(key); }
  void take_number(int32_t reg, Rep rep, const std::string& object, int32_t side = -1);
  void make_box(const Instr& in);
  std::string unboxed(Rep rep, const std::string& object, const std::string& slow);
  std::string unboxed_int(const std::string& object, const std::string& slow);
  void release(const Instr& in);
  std::string taken(const Move& move);
  void drop(int32_t reg);
  const char* count_type() const { return layout_.immortal ? "i32" : "i64"; }
  void add_reference(const std::string& object);
  void drop_reference(const std::string& object, const std::string& last);

  const Region& region_;
  const Layout& layout_;
  const bool copies_;
  size_t instructions_ = 0;
  std::map<Key, Bits> slots_;
  std::set<Key> written_, dirty_;  // dirty: the register file may have something else
  enum Over : unsigned { kList = 1, kTuple = 2 };
  std::map<Key, unsigned> over_items_;     // iterators over lists, tuples, or both
  std::set<Key> carried_, made_here_;      // written by jumps to their loops; what the first loop computes before it reads it
  std::set<Key> unboxed_, given_numbers_;  // registers that kUnbox writes; that others write
  std::set<int32_t> places_;
  std::vector<Changes> changes_;            // by block
  std::set<Key> given_, made_anew_;         // those that native code puts objects into; that steps do: these mostly die
  std::set<Key> held_;                      // those that anything is put into, or that hold something from the beginning
  std::set<int32_t> stepped_;               // loops of which steps are called
  std::map<Key, Rep> boxed_;                // those that jumps put boxes into
  std::set<int32_t> asked_;                 // side traces that nothing leads to without having asked
  int32_t most_made_ = 0, most_parts_ = 0;  // by one jump
  std::set<Fact> declared_, fresh_, always_;
  // Side traces: what is known, and what the register file lacks, where they begin.
  std::map<int32_t, std::set<Fact>> before_;
  std::map<int32_t, std::set<Key>> dirty_before_;
  std::map<int32_t, int32_t> leave_before_;
  std::map<std::pair<bool, int32_t>, int32_t> exits_;  // of the copy with checks hoisted?, numbers of instructions left before: the group
  std::map<int32_t, Hoisted> hoisted_;                 // by loop
  bool hoisted_copy_ = false, differs_ = false;        // hoisted_copy_: which copy is being written
  // What exits store, before they go on to those stores that others do as well, or leave.
  struct Leaving {
    std::vector<Key> stores;
    int32_t on;
  };
  std::vector<Leaving> leaving_;
  int32_t leave_ = -1;  // the last one of this turn
  struct Behind {
    std::string label;
    int32_t number, group;
  };
  std::vector<Behind> behind_;         // ways there of instructions that have been done
  std::set<int32_t> heads_, latches_;  // loops that are left at their heads; whose turns come together
  std::set<int32_t> joined_;           // side traces that are written where they part
  std::string taken_;                  // while a way is written that may not be the one that is taken: whether it is
  std::set<int32_t> refused_;          // numbers of instructions that may not be done here: ints too large, elements out of bounds
  std::string head_, text_, breaker_, unsettled_;
  bool goes_aside_ = false;
  std::set<int32_t> addresses_;              // that the text refers to
  std::set<std::pair<Shared, Rep>> shared_;  // that it calls
  int32_t block_ = 0, number_ = 0;
  size_t index_ = 0;                 // of the instruction in its block
  std::vector<std::set<Key>> live_;  // in this block, per instruction
  int64_t next_ = 0, moment_ = 0;
  // What has been computed on the way to here, or where it stands, by its text; newest last. made_: the moments labels were made at.
  std::map<std::string, std::string> known_;
  std::vector<std::pair<int64_t, std::string>> remembered_;
  std::map<std::string, int64_t> made_;
};

}  // namespace dalsegno::native
