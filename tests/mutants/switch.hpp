// What the copy of the project with all mutants is compiled with: run puts it before every source file.
#pragma once

#include <cstdlib>

inline unsigned long rondo_chosen_mutant() noexcept {
  static const unsigned long chosen = [] {
    const char* const id = std::getenv("RONDO_MUTANT");
    return id == nullptr ? 0 : std::strtoul(id, nullptr, 16);
  }();
  return chosen;
}

/// Whether the mutant with this id is switched on. Not in what the compiler evaluates itself. (The builtin, as Meson
/// tries compilers without -std=c++20.)
constexpr bool rondo_mutant(unsigned long id) noexcept {
  return !__builtin_is_constant_evaluated() && rondo_chosen_mutant() == id;
}
