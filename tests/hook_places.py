"""Where a function can be left: the depth of the stack before each of its instructions, found from the code alone."""

import dis
import sys
import types

# code unit -> (stack depth, legal place to go on, first unit of the instruction, next instruction), units of two bytes
Places = dict[int, tuple[int, int, int, int]]

_NO_SUCCESSOR = {
    "RETURN_VALUE",
    "RETURN_CONST",
    "RAISE_VARARGS",
    "RERAISE",
    "JUMP_FORWARD",
    "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
}
_JUMPS = set(dis.hasjrel) | set(dis.hasjabs)


def _effect(instruction: dis.Instruction, jump: bool) -> int:
    if instruction.opname == "EXTENDED_ARG":
        return 0
    argument = instruction.arg if instruction.opcode >= dis.HAVE_ARGUMENT or instruction.arg is not None else None
    return dis.stack_effect(instruction.opcode, argument, jump=jump)


def _successors(instructions: list[dis.Instruction], n: int) -> list[tuple[int, int]]:
    """(offset, effect on the depth) of whatever may follow instruction n."""
    instruction = instructions[n]
    found = []
    if instruction.opcode in _JUMPS:
        found.append((instruction.argval, _effect(instruction, True)))
    if instruction.opname not in _NO_SUCCESSOR and n + 1 < len(instructions):
        found.append((instructions[n + 1].offset, _effect(instruction, False)))
    return found


def depths(code: types.CodeType) -> dict[int, int]:
    """Byte offset -> depth before the instruction there; unreachable ones are missing."""
    instructions = list(dis.get_instructions(code))
    index = {instruction.offset: n for n, instruction in enumerate(instructions)}
    handlers = dis._parse_exception_table(code)
    result: dict[int, int] = {}
    work = [(instructions[0].offset, 0)]
    while work:
        offset, depth = work.pop()
        if offset in result:
            assert result[offset] == depth, (code.co_name, offset, result[offset], depth)
            continue
        result[offset] = depth
        for handler in handlers:
            if handler.start <= offset < handler.end:
                work.append((handler.target, handler.depth + 1 + handler.lasti))
        for target, effect in _successors(instructions, index[offset]):
            work.append((target, depth + effect))
    return result


def _legal(instructions: list[dis.Instruction], n: int) -> int:
    """Rule 4: never behind EXTENDED_ARG, nor between KW_NAMES, PRECALL and CALL."""
    while n > 0:
        before, here = instructions[n - 1].opname, instructions[n].opname
        if before not in ("EXTENDED_ARG", "KW_NAMES") and not (before == "PRECALL" and here == "CALL"):
            break
        n -= 1
    return n


def places(code: types.CodeType) -> Places:
    instructions = list(dis.get_instructions(code))
    known = depths(code)
    result: Places = {}
    for n, instruction in enumerate(instructions):
        legal = instructions[_legal(instructions, n)]
        if legal.offset not in known:
            continue
        end = instructions[n + 1].offset if n + 1 < len(instructions) else len(code.co_code)
        for unit in range(instruction.offset // 2, end // 2):
            result[unit] = (known[legal.offset], legal.offset // 2, instruction.offset // 2, end // 2)
    return result


def all_places(*functions: types.FunctionType) -> dict[types.CodeType, Places]:
    """Places of the functions and of those written inside them, but for generators, whose frames cannot be left."""
    found: dict[types.CodeType, Places] = {}
    work = [function.__code__ for function in functions]
    while work:
        code = work.pop()
        generator = code.co_flags & (0x20 | 0x80 | 0x200)
        if code in found or generator or not code.co_flags & 0x1:
            continue
        found[code] = places(code)
        work.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return found


def behind_prefix(code: types.CodeType, unit: int) -> bool:
    return unit > 0 and code.co_code[2 * unit - 2] == dis.EXTENDED_ARG


def is_old_tracing() -> bool:
    """3.11: observed by a trace function, which has no event behind EXTENDED_ARG."""
    return sys.version_info < (3, 12)
