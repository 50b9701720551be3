// The instructions the recorder knows, by CPython's names. X(name): the same name in every version that has it. What differs
// between versions is normalised by decode() (instructions.cc): see the notes beside the names.
#pragma once

// clang-format off
#define DALSEGNO_INSTRUCTIONS(X)                                                                                                           \
  /* stack */                                                                                                                              \
  X(NOP)                                                                                                                                   \
  X(RESUME)                                                                                                                                \
  X(CACHE) X(POP_TOP) X(PUSH_NULL) X(COPY) X(SWAP) X(END_FOR) X(POP_ITER) /* frame set-up, before RESUME */ \
      X(MAKE_CELL) X(COPY_FREE_VARS) X(RETURN_GENERATOR) X(YIELD_VALUE) X(SEND) /* names */                                                        \
      X(LOAD_CONST) X(LOAD_SMALL_INT) X(LOAD_COMMON_CONSTANT) X(LOAD_FAST) \
          X(LOAD_FAST_CHECK) X(LOAD_FAST_AND_CLEAR) X(STORE_FAST) X(DELETE_FAST) X(LOAD_FAST_LOAD_FAST)             \
          X(STORE_FAST_LOAD_FAST) X(STORE_FAST_STORE_FAST) X(LOAD_CLOSURE) X(LOAD_DEREF) X(STORE_DEREF) X(DELETE_DEREF) X(LOAD_GLOBAL)     \
              X(STORE_GLOBAL) X(DELETE_GLOBAL) /* operators */                                                                             \
      X(BINARY_OP) X(BINARY_SUBSCR) X(BINARY_SLICE) X(STORE_SLICE) X(STORE_SUBSCR) X(DELETE_SUBSCR) X(UNARY_POSITIVE) X(UNARY_NEGATIVE)    \
          X(UNARY_INVERT) X(UNARY_NOT) X(TO_BOOL) X(COMPARE_OP) X(IS_OP) X(CONTAINS_OP) X(GET_LEN) /* attributes */                        \
      X(LOAD_ATTR) X(LOAD_METHOD) X(LOAD_SUPER_ATTR) X(STORE_ATTR) X(DELETE_ATTR)                                     /* containers and strings */            \
      X(BUILD_TUPLE) X(BUILD_LIST) X(BUILD_SET) X(BUILD_MAP) X(BUILD_CONST_KEY_MAP) X(BUILD_STRING) X(BUILD_SLICE) X(LIST_APPEND)          \
          X(LIST_EXTEND) X(LIST_TO_TUPLE) X(SET_ADD) X(SET_UPDATE) X(MAP_ADD) X(DICT_UPDATE) X(DICT_MERGE) X(UNPACK_SEQUENCE) X(UNPACK_EX) \
              X(FORMAT_VALUE) X(CONVERT_VALUE) X(FORMAT_SIMPLE) X(FORMAT_WITH_SPEC) /* calls */                                            \
      X(KW_NAMES) X(PRECALL) X(CALL) X(CALL_KW) X(CALL_FUNCTION_EX) X(CALL_INTRINSIC_1) X(MAKE_FUNCTION) X(SET_FUNCTION_ATTRIBUTE)         \
          X(LOAD_ASSERTION_ERROR) X(IMPORT_NAME) X(IMPORT_FROM) X(RETURN_VALUE) X(RETURN_CONST) /* control flow */                         \
      X(GET_ITER) X(FOR_ITER) X(JUMP_FORWARD) X(JUMP_BACKWARD) X(JUMP_BACKWARD_NO_INTERRUPT) X(POP_JUMP_IF_TRUE) X(POP_JUMP_IF_FALSE)      \
          X(POP_JUMP_IF_NONE) X(POP_JUMP_IF_NOT_NONE) X(JUMP_IF_TRUE_OR_POP)                                                               \
              X(JUMP_IF_FALSE_OR_POP) /* exceptions: name the reason the recording ends */                                                 \
      X(BEFORE_WITH) X(LOAD_SPECIAL) X(RAISE_VARARGS) X(RERAISE) X(PUSH_EXC_INFO) X(POP_EXCEPT) X(CHECK_EXC_MATCH) X(EXTENDED_ARG)
// clang-format on
