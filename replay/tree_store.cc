// A tree's way into the store and back.
#include "replay/tree.h"

namespace dalsegno::replay {
void Tree::look_up() { looked_up_ = true; }
void Tree::save() {}
uint64_t process_store_errors() { return 0; }
void wait_for_store() {}
void configure_store(const std::string&) {}
}
