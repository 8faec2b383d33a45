// For the messages of a simulation.
#pragma once

#include <string>

#include "durable/engine.hpp"
#include "durable/row.hpp"

namespace durable_test {

std::string text_of(const row& r);
std::string text_of(const rondo::durable::detail::turn& t);

}  // namespace durable_test
