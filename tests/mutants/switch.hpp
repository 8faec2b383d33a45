// Included by the copy of the project that has all mutants: tests/mutants/run puts it before every source file.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdlib>

inline unsigned long rondo_chosen_mutant() noexcept {
  static const unsigned long chosen = [] {
    const char* const id = std::getenv("RONDO_MUTANT");
    return id == nullptr ? 0 : std::strtoul(id, nullptr, 16);
  }();
  return chosen;
}

/// One byte for each id, in the file that RONDO_MUTANTS_REACHED names; null without one. The processes of a test share it.
inline char* rondo_reached_mutants() noexcept {
  static char* const reached = []() -> char* {
    const char* const name = std::getenv("RONDO_MUTANTS_REACHED");
    const int file = name == nullptr ? -1 : open(name, O_RDWR | O_CLOEXEC);
    if (file < 0) return nullptr;
    void* const bytes = mmap(nullptr, 1 << 24, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return bytes == MAP_FAILED ? nullptr : static_cast<char*>(bytes);
  }();
  return reached;
}

/// Whether the mutant with this id is switched on, and notes that its place was reached. (Threads may note the same at once.)
__attribute__((no_sanitize("thread"))) inline bool rondo_is_chosen(unsigned long id) noexcept {
  if (char* const reached = rondo_reached_mutants()) reached[id] = 1;
  return rondo_chosen_mutant() == id;
}

/// The same; always false in constant evaluation. (Uses the builtin, because Meson tries compilers without -std=c++20.)
constexpr bool rondo_mutant(unsigned long id) noexcept {
  return !__builtin_is_constant_evaluated() && rondo_is_chosen(id);
}
