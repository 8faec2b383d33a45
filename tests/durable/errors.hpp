// How tests of databases read an error.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include <rondo/durable.hpp>

namespace durable_test {

/// What a call reports that must have done nothing; empty if it succeeds.
template <class Function>
std::string error_of(Function f) {
  try {
    f();
    return "";
  } catch (const rondo::durable::store_error& e) {
    CHECK(!e.perhaps_done());
    return e.what();
  }
}

}  // namespace durable_test
