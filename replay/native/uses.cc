#include "replay/native/uses.h"

#include <algorithm>
#include <iterator>

namespace dalsegno::native {

std::vector<Use> uses_of(const Instr& in) {
  const Bits bits = bits_of(in.rep);
  std::vector<Use> uses;
  const auto reads = [&](int32_t reg, Bits as) { uses.push_back({reg, as, false}); };
  const auto writes = [&](int32_t reg, Bits as) { uses.push_back({reg, as, true}); };
  switch (in.what) {
    case Do::kBinary:
      reads(in.a, bits), reads(in.b, bits);
      writes(in.dst, bits_of(in.to));
      break;
    case Do::kUnary:
      reads(in.a, bits), writes(in.dst, bits);
      break;
    case Do::kCompare:
    case Do::kGuardedCompare:
      reads(in.a, bits), reads(in.b, bits), writes(in.dst, Bits::kInt64);
      break;
    case Do::kNot:
      reads(in.a, Bits::kInt64), writes(in.dst, Bits::kInt64);
      break;
    case Do::kTruth:
      reads(in.a, bits), writes(in.dst, Bits::kInt64);
      break;
    case Do::kConvert:
      reads(in.a, bits), writes(in.dst, bits_of(in.to));
      break;
    case Do::kGuardTruth:
      reads(in.a, Bits::kInt64);
      break;
    case Do::kLoad:
    case Do::kStore:
      for (int32_t reg : in.list) reads(reg, Bits::kInt64);
      if (in.what == Do::kLoad)
        writes(in.dst, bits);
      else
        reads(in.c, bits);
      break;
    case Do::kCall:
      for (int32_t reg : in.list) reads(reg, bits);
      writes(in.dst, bits_of(in.to));
      break;
    case Do::kItem:
    case Do::kSetItem:
      reads(in.b, Bits::kInt64);
      break;
    case Do::kTakeItem:
      reads(in.b, Bits::kInt64);
      if (in.rep != Rep::kNone) writes(in.c, bits);
      break;
    case Do::kNextItem:
    case Do::kPop:
    case Do::kAttribute:
      if (in.rep != Rep::kNone) writes(in.c, bits);
      break;
    case Do::kQuick:
      if (in.imm != 0) writes(in.dst, Bits::kInt64);
      if (in.rep != Rep::kNone) in.dst >= 0 ? writes(in.c, bits) : reads(in.c, bits);
      break;
    case Do::kPiece:
      for (const int32_t end : {in.b, in.c})
        if (end >= 0) reads(end, Bits::kInt64);
      break;
    case Do::kNextElement:
      writes(in.dst, bits);
      break;
    case Do::kPutItem:
      reads(in.b, Bits::kInt64);
      if (in.rep != Rep::kNone) reads(in.c, bits);
      break;
    case Do::kUnbox:
      reads(in.dst, bits), writes(in.dst, bits);  // stays as it is where there is no object
      break;
    case Do::kDraw:
      writes(in.dst, Bits::kDouble);
      break;
    case Do::kDrawBits:
      reads(in.b, Bits::kInt64), writes(in.dst, Bits::kInt64);
      break;
    case Do::kExtent:
    case Do::kLength:
    case Do::kHasItems:
      writes(in.dst, Bits::kInt64);
      break;
    case Do::kRangeIterator:
      for (int32_t reg : in.list) reads(reg, Bits::kInt64);
      break;
    case Do::kRangeNext:
    case Do::kRangeEnd:
      writes(in.c, Bits::kInt64);
      break;
    case Do::kAppend:
    case Do::kSetAttribute:
      if (in.rep != Rep::kNone) reads(in.c, bits);
      break;
    case Do::kOrd:
    case Do::kSameText:
      writes(in.dst, Bits::kInt64);
      break;
    case Do::kLetter:
      reads(in.b, Bits::kInt64);
      break;
    case Do::kByte:
      reads(in.b, Bits::kInt64), writes(in.dst, Bits::kInt64);
      break;
    case Do::kNumber:
      reads(in.b, Bits::kInt64), writes(in.dst, bits_of(typed::number_of_item(in.rep)));
      break;
    case Do::kPutNumber:
      reads(in.b, Bits::kInt64), reads(in.c, bits_of(typed::number_of_item(in.rep)));
      break;
    case Do::kPutByte:
      reads(in.b, Bits::kInt64), reads(in.c, Bits::kInt64);
      break;
    case Do::kNext:
      for (const NextItem& item : in.next)
        if (item.rep != Rep::kNone) writes(item.raw, bits_of(item.rep));
      break;
    case Do::kBox:
      reads(in.a, bits);
      break;
    case Do::kJump:
      for (const Move& move : in.moves) {
        if (move.from >= 0) reads(move.from, bits_of(move.rep));
        if (move.to >= 0) writes(move.to, bits_of(move.rep));
      }
      break;
    default:
      break;
  }
  return uses;
}

bool gives_object(Do what) {
  constexpr Do kGiving[] = {Do::kItem,  Do::kTakeItem,  Do::kNextItem, Do::kItemsEnd,  Do::kLetter,    Do::kPop,           Do::kCell,
                            Do::kField, Do::kFieldItem, Do::kUnpack,   Do::kTupleItem, Do::kAttribute, Do::kItemsIterator, Do::kTakeSlot};
  return std::find(std::begin(kGiving), std::end(kGiving), what) != std::end(kGiving);
}

}  // namespace dalsegno::native
