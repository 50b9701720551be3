/* Audit hooks (PEP 578), which are called by C code that says what it does: id(), say. Needs the GIL. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Is there any, of the interpreter or of the process? */
int dalsegno_is_audited(void);

#ifdef __cplusplus
}
#endif
