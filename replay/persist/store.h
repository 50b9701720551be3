// The process's one store, and what of it the layers above need. Needs no GIL; any thread.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "replay/kernels/config.h"
#include "store/store.h"

namespace dalsegno::replay {

// Which file is the store: "" the default place, "off" none. It is opened when it is first used; what was open is closed.
void use_store(const std::string& path);
bool store_in_use(const std::string& path);  // the last use_store() named it

// What was noted of a function in the store that is in use, the latest of each size (store/pace.h). Opens nothing but that small file.
std::vector<store::Pace> noted_paces(uint64_t function);
bool store_opened();  // process_store() has been called
// Whether notes beside that store name others, or there was no such file, and they do not name this function: most likely it holds nothing
// of it. They are read anew.
bool never_noted(uint64_t function);

// Connected by the first who needs it (Store::configure). Never destroyed: background threads may use it to the last.
store::Store& process_store();
// The same for people: there is a file from now on, or a reason why not.
store::Store& connected_store();

// Keeps kernels in the process's store.
KernelCache& store_kernel_cache();

}  // namespace dalsegno::replay
