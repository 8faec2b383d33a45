// The five or six fields of cron.
#pragma once

#include <string>

#include "calendar/rule.hpp"

namespace rondo::detail {

/// Returns the rule of an expression, without a zone. Throws std::invalid_argument as cron() does.
calendar_rule parse_cron(const std::string& expression);

}  // namespace rondo::detail
