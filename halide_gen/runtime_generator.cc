// Build tool: writes Halide's runtime, compiled for the host's operating system and the oldest CPU of its kind, as an object file.
#include <Halide.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: runtime_generator OUT.o\n");
    return 2;
  }
  const Halide::Target host = Halide::get_host_target();
  const Halide::Target plain(host.os, host.arch, host.bits);
  Halide::compile_standalone_runtime(std::map<Halide::OutputFileType, std::string>{{Halide::OutputFileType::object, argv[1]}}, plain);
  return 0;
}
