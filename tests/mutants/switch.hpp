// Included by the copy of the project that has all mutants: tests/mutants/run puts it before every source file.
#pragma once

#include <cstdlib>

inline unsigned long rondo_chosen_mutant() noexcept {
  static const unsigned long chosen = [] {
    const char* const id = std::getenv("RONDO_MUTANT");
    return id == nullptr ? 0 : std::strtoul(id, nullptr, 16);
  }();
  return chosen;
}

/// Whether the mutant with this id is switched on. Always false in constant evaluation. (Uses the builtin, because
/// Meson tries compilers without -std=c++20.)
constexpr bool rondo_mutant(unsigned long id) noexcept {
  return !__builtin_is_constant_evaluated() && rondo_chosen_mutant() == id;
}
