#include "trace/op_rules.h"

#include <array>

namespace dalsegno {
namespace {

using K = OpKind;
constexpr int32_t kMax = INT32_MAX;
constexpr int32_t kAny = INT32_MIN;
constexpr int32_t kLastBinary = static_cast<int32_t>(BinaryOp::xor_);
constexpr int32_t kLastUnary = static_cast<int32_t>(UnaryOp::rint);
constexpr uint8_t kNameSnapshot = kName | kSnapshot;
constexpr uint8_t kObjectSnapshot = kObject | kSnapshot;

constexpr OpRule kRules[] = {
    // loads
    {K::param, kNothing, 0, kMax},
    {K::constant, kObject},
    {K::load_global, kName | kObject | kObject2 | kSnapshot},
    {K::store_global, kName | kObject},
    {K::delete_global, kName | kObject | kSnapshot},
    {K::func_closure, kNothing, 0, kMax},
    {K::func_default, kNothing, 0, kMax},
    {K::func_kwdefault, kNameSnapshot},
    {K::cell_new, kNothing, kAny, kMax, 0, 1},
    {K::cell_get, kSnapshot},
    {K::cell_set, kNothing},
    {K::cell_delete, kSnapshot},
    // guards
    {K::guard_type, kObjectSnapshot},
    {K::guard_array, kFacts | kSnapshot},
    {K::guard_true, kSnapshot},
    {K::guard_false, kSnapshot},
    {K::guard_is, kObjectSnapshot},
    {K::guard_is_not, kObjectSnapshot},
    {K::guard_truthy, kObjectSnapshot},
    {K::guard_function, kObject | kImmObject | kSnapshot, 0, kMax},
    {K::guard_defaults, kSnapshot, 0, kMax},
    {K::guard_builtin, kObjectSnapshot},
    {K::guard_quiet_iterator, kSnapshot},
    {K::guard_quiet_lookup, kSnapshot},
    {K::guard_waiting, kName | kObject2 | kObjectSnapshot, 0, kMax},
    {K::guard_world, kSnapshot},
    // python ops
    {K::get_attr, kNameSnapshot},
    {K::own_attr, kName | kObjectSnapshot},
    {K::class_attr, kName | kObject2 | kObjectSnapshot},
    {K::set_own_attr, kName | kObjectSnapshot},
    {K::make_instance, kName | kObject2 | kObjectSnapshot},
    {K::load_special, kNameSnapshot},
    {K::super_attr, kNameSnapshot},
    {K::set_attr, kNameSnapshot},
    {K::del_attr, kNameSnapshot},
    {K::get_item, kSnapshot},
    {K::set_item, kSnapshot},
    {K::del_item, kSnapshot},
    {K::binary, kSnapshot, 0, kLastBinary},
    {K::inplace, kSnapshot, 0, kLastBinary},
    {K::unary, kSnapshot, 0, kLastUnary},
    {K::compare, kSnapshot, 0, 5},
    {K::contains, kSnapshot, 0, 1},
    {K::is_, kNothing, 0, 1},
    {K::truth, kSnapshot},
    {K::not_, kSnapshot},
    {K::call, kSnapshot, 0, kMax, 1},
    {K::call_tree, kSnapshot, 0, kMax, 1},
    {K::call_ex, kSnapshot, kAny, kMax, 2, 3},
    {K::method_func, kNothing},
    {K::method_self, kNothing},
    {K::bind_method, kNothing},
    {K::jitted_func, kNothing},
    {K::build_tuple, kNothing},
    {K::build_list, kNothing},
    {K::build_set, kSnapshot},
    {K::build_map, kSnapshot},
    {K::build_string, kNothing},
    {K::build_slice, kNothing, kAny, kMax, 2, 3},
    {K::list_append, kNothing},
    {K::list_extend, kSnapshot},
    {K::list_to_tuple, kNothing},
    {K::set_add, kSnapshot},
    {K::set_update, kSnapshot},
    {K::map_add, kSnapshot},
    {K::dict_update, kSnapshot},
    {K::dict_merge, kSnapshot},
    {K::dict_values, kObjectSnapshot},
    {K::convert, kSnapshot, 1, 3},
    {K::format, kSnapshot, kAny, kMax, 1, 2},
    {K::unpack, kSnapshot, 0, kMax},
    {K::unpack_ex, kSnapshot, 0, 0xffffff},
    {K::tuple_item, kNothing, 0, kMax},
    {K::get_len, kSnapshot},
    {K::get_iter, kSnapshot},
    {K::iter_next, kSnapshot | kExitSnapshot, 0, kMax},
    {K::import_name, kName | kObject | kSnapshot},
    {K::import_from, kNameSnapshot},
    {K::make_function, kObject, 0, 15, 1, 5},
    {K::set_function_attribute, kNothing, 1, 16},
    // generators
    {K::waiting_slot, kNothing, -1, kMax},
    {K::begin_to_run, kNothing, 0, kMax},
    {K::wait_at, kName | kObjectSnapshot, 0, kMax, 1},
    {K::end_running, kNothing, 0, kMax},
    // scopes and lifetimes
    {K::enter, kNothing, kAny, kMax, 1},
    {K::leave_frame, kNothing},
    {K::release, kNothing},
    // ends
    {K::return_, kNothing, 0, kMax},
    {K::jump, kSnapshot, 0, kMax},
    {K::leave, kSnapshot},
};

// The rows stand in the order of the op table, so a kind is an index.
constexpr bool rows_in_order() {
  size_t i = 0;
  for (const OpRule& rule : kRules) {
    if (static_cast<size_t>(rule.kind) != i++) return false;
  }
  return i == static_cast<size_t>(OpKind::kCount);
}
static_assert(rows_in_order(), "every op kind of op_table.h needs its row here, in the same order");

}  // namespace

const OpRule& op_rule(OpKind kind) { return kRules[static_cast<size_t>(kind)]; }

}  // namespace dalsegno
