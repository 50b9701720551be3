// Next items of bytes and texts, and of several things at once. First all items are found, then all iterators are moved on: what is not as
// recorded is the step's business, and leaves before the instruction.
#include <algorithm>
#include <cstddef>

#include "replay/native/writer.h"
#include "trace/fault.h"

namespace dalsegno::native {

namespace {
bool is_any(const NextItem& item) { return item.rep == Rep::kNone && (item.over == Walked::kList || item.over == Walked::kTuple); }
}  // namespace

void Writer::put_field(const std::string& value, const std::string& object, int32_t offset) {
  line("store i64 " + value + ", ptr " + at_offset(object, offset));
}

// The k-th iterator that is held.
std::string Writer::inner(const Instr& in, const std::string& holder, size_t k) {
  if (in.holder == Holder::kNone) return holder;
  std::string held = field(holder, static_cast<size_t>(layout_.holder_inner), "ptr");
  if (in.holder == Holder::kEnumerate) return held;
  return field(held, static_cast<size_t>(layout_.tuple_items) + k * sizeof(void*), "ptr");
}

void Writer::coming_in_range(const std::string& end, Coming* coming) {
  const auto part = [&](int32_t offset) { return field(coming->it, static_cast<size_t>(offset), "i64"); };
  const std::string start = part(layout_.range_start), step = part(layout_.range_step), length = part(layout_.range_length);
  const std::string more = label("m");
  if (layout_.range_index >= 0) coming->at = part(layout_.range_index);
  branch(op("icmp sgt i64 " + length + ", " + (layout_.range_index >= 0 ? coming->at : "0")), more, end, true);
  begin(more);
  coming->item = layout_.range_index < 0 ? start : op("add i64 " + start + ", " + op("mul i64 " + coming->at + ", " + step));
  if (layout_.range_index >= 0) return;
  coming->at = op("add i64 " + start + ", " + step);
  coming->sequence = op("sub i64 " + length + ", 1");  // what is left
}

void Writer::coming_in_array(const NextItem& item, const std::string& end, Coming* coming) {
  const std::string& array = coming->sequence;
  const std::string more = label("m");
  guard(is_type(array, kArrayType));
  const std::string descr = field(array, static_cast<size_t>(layout_.descr), "ptr");
  const std::string flags = field(array, static_cast<size_t>(layout_.flags), "i32");
  guard(op("icmp eq i32 " + field(array, static_cast<size_t>(layout_.rank), "i32") + ", 1"));
  guard(op("icmp eq i32 " + field(descr, static_cast<size_t>(layout_.dtype_number), "i32") + ", " +
           std::to_string(layout_.numbers.at(item.rep))));
  guard(op("icmp ne i8 " + field(descr, static_cast<size_t>(layout_.byteorder), "i8") + ", 62"));
  guard(op("icmp ne i32 " + op("and i32 " + flags + ", " + std::to_string(layout_.aligned)) + ", 0"));
  const std::string n = field(field(array, static_cast<size_t>(layout_.dims), "ptr"), 0, "i64");
  const std::string stride = field(field(array, static_cast<size_t>(layout_.strides), "ptr"), 0, "i64");
  branch(op("icmp slt i64 " + coming->at + ", " + n), more, end, true);
  begin(more);
  const std::string data = field(array, static_cast<size_t>(layout_.data), "ptr");
  coming->item = loaded(item.rep, op("getelementptr i8, ptr " + data + ", i64 " + op("mul i64 " + coming->at + ", " + stride)));
}

// Finds what an iterator gives next; on to `end` if there is nothing.
Writer::Coming Writer::coming(const NextItem& item, const std::string& it, const std::string& end) {
  Coming coming{.it = it};
  guard(op("icmp eq ptr " + field(it, static_cast<size_t>(layout_.type), "ptr") + ", " + address(kAddresses + item.type)));
  if (item.over == Walked::kRange) return coming_in_range(end, &coming), coming;
  coming.sequence = field(it, static_cast<size_t>(layout_.iterator_sequence), "ptr");
  guard(op("icmp ne ptr " + coming.sequence + ", null"));
  coming.at = field(it, static_cast<size_t>(layout_.iterator_position), "i64");
  guard(op("icmp sge i64 " + coming.at + ", 0"));
  if (item.over == Walked::kArray) return coming_in_array(item, end, &coming), coming;
  const bool text = item.over == Walked::kAscii || item.over == Walked::kText;
  const std::string more = label("m"), n = field(coming.sequence, static_cast<size_t>(text ? layout_.text_length : layout_.size), "i64");
  branch(op("icmp slt i64 " + coming.at + ", " + n), more, end, true);
  begin(more);
  const auto items = [&](int32_t offset) { return at_offset(coming.sequence, offset); };
  const auto indirect = [&](int32_t offset) { return field(coming.sequence, static_cast<size_t>(offset), "ptr"); };
  const auto object = [&](const std::string& from) {
    coming.object = op("load ptr, ptr " + op("getelementptr ptr, ptr " + from + ", i64 " + coming.at));
  };
  const auto byte = [&](const std::string& from) {
    coming.item = op("zext i8 " + op("load i8, ptr " + op("getelementptr i8, ptr " + from + ", i64 " + coming.at)) + " to i64");
  };
  if (item.over == Walked::kList) object(indirect(layout_.list_items));
  if (item.over == Walked::kTuple) object(items(layout_.tuple_items));
  if (item.over == Walked::kBytes) byte(items(layout_.bytes_data));
  if (item.over == Walked::kBytearray) byte(indirect(layout_.bytearray_start));
  if (item.over == Walked::kAscii && layout_.letter_size > 0) byte(items(layout_.ascii_data));
  return coming;
}

// The number in an item of a list or tuple, which is in %parts then.
void Writer::number_of(const NextItem& item, int32_t k, Coming* coming) {
  const std::string type = type_of(bits_of(item.rep)), slot = part_of(k);
  line("store " + type + " " + unboxed(item.rep, coming->object, exit_label()) + ", ptr " + slot);
  coming->item = op("load " + type + ", ptr " + slot);
}

void Writer::letter_of(const NextItem& item, Coming* coming) {
  const bool known = item.over == Walked::kAscii && layout_.letter_size > 0;
  coming->object = known ? letter_in(coming->item) : new_letter(coming->sequence, coming->at);
}

void Writer::go_past(const NextItem& item, const Coming& coming) {
  if (item.over == Walked::kRange && layout_.range_index < 0) {
    put_field(coming.at, coming.it, layout_.range_start);
    return put_field(coming.sequence, coming.it, layout_.range_length);
  }
  const int32_t place = item.over == Walked::kRange ? layout_.range_index : layout_.iterator_position;
  put_field(op("add i64 " + coming.at + ", 1"), coming.it, place);
}

// Where items may be any objects: the tuple that the holder gives again, which keeps them until the next ones come. What it lets go of
// does not die.
std::string Writer::tuple_used_again(const Instr& in, const std::string& holder) {
  const auto objects = std::count_if(in.next.begin(), in.next.end(), is_any);
  if (objects == 0) return {};
  const std::string type = count_type();
  std::string tuple = field(holder, static_cast<size_t>(layout_.holder_result), "ptr");
  const auto count = [&](const std::string& object) { return op("load " + type + ", ptr " + object); };
  guard(op("icmp eq " + type + " " + count(tuple) + ", 1"));
  guard(op("icmp ne i64 " + op("load i64, ptr " + at_offset(tuple, layout_.tracked)) + ", 0"));
  for (size_t k = 0; k < in.next.size(); ++k)  // (an immortal one has the largest count of all)
    if (is_any(in.next[k]))
      guard(op("icmp ugt " + type + " " + count(field(tuple, place_in_tuple(k), "ptr")) + ", " + std::to_string(objects)));
  return tuple;
}

size_t Writer::place_in_tuple(size_t k) const { return static_cast<size_t>(layout_.tuple_items) + k * sizeof(void*); }

void Writer::put_into(const std::string& tuple, size_t k, const std::string& object) {
  drop_reference(field(tuple, place_in_tuple(k), "ptr"), exit_label());
  add_reference(object);
  line("store ptr " + object + ", ptr " + at_offset(tuple, static_cast<int64_t>(place_in_tuple(k))));
}

void Writer::next(const Instr& in) {
  const std::string holder = object_in(in.a), end = label("e");
  const bool counts = in.holder == Holder::kEnumerate;
  std::string number;
  if (in.holder != Holder::kNone) {
    guard(is_type(holder, counts ? kEnumerateType : kZipType));
    number = field(holder, static_cast<size_t>(layout_.holder_number), "i64");
    guard(op(counts ? "icmp ne i64 " + number + ", 9223372036854775807" : "icmp eq i64 " + number + ", " + std::to_string(in.next.size())));
  }
  if (in.holder == Holder::kZip)
    for (size_t k = 1; k < in.next.size(); ++k)
      for (size_t j = 0; j < k; ++j) guard(op("icmp ne ptr " + inner(in, holder, j) + ", " + inner(in, holder, k)));
  const std::string none = in.side >= 0 ? end : exit_label();
  std::vector<Coming> items;
  for (size_t k = 0; k < in.next.size(); ++k)
    items.push_back(in.next[k].over == Walked::kCount ? Coming{.item = number} : coming(in.next[k], inner(in, holder, k), none));
  most_parts_ = std::max(most_parts_, static_cast<int32_t>(items.size()));
  for (size_t k = 0; k < items.size(); ++k)
    if (in.next[k].rep != Rep::kNone && !items[k].object.empty()) number_of(in.next[k], static_cast<int32_t>(k), &items[k]);
  const std::string found = label("c");
  go(found);
  if (in.side >= 0) ended(in, end);
  begin(found);
  const std::string tuple = tuple_used_again(in, holder);
  // (Texts that may have to be made come first: that can fail.)
  for (const bool made : {true, false})
    for (size_t k = 0; k < items.size(); ++k)
      if (in.next[k].rep == Rep::kNone && !is_any(in.next[k]) && made == (in.next[k].over == Walked::kText || layout_.letter_size == 0))
        letter_of(in.next[k], &items[k]);
  for (size_t k = 0; k < items.size(); ++k) {
    const NextItem& item = in.next[k];
    if (in.next[k].over == Walked::kList || in.next[k].over == Walked::kTuple) add_reference(items[k].object);
    if (is_any(item)) put_into(tuple, k, items[k].object);
    if (item.obj >= 0) line("store ptr " + items[k].object + ", ptr " + place(item.obj));
    std::erase_if(fresh_, [&](const Fact& fact) { return item.obj >= 0 && fact.key == key_of(item.obj); });
    if (item.rep != Rep::kNone) set(item.raw, items[k].item);
    if (item.over != Walked::kCount) go_past(item, items[k]);
  }
  if (counts && !planted(Fault::native_count)) put_field(op("add i64 " + number + ", 1"), holder, layout_.holder_number);
}

}  // namespace dalsegno::native
