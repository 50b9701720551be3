/* How many values an instruction takes off the stack and puts there (3.14 on; CPython's own table, which is C). */
#pragma once
#ifdef __cplusplus
extern "C" {
#endif

int dalsegno_popped(int opcode, int argument);
int dalsegno_pushed(int opcode, int argument);

#ifdef __cplusplus
}
#endif
