// Cron expressions.
#pragma once

#include <string>

#include <rondo/cron_syntax.hpp>

#include "calendar/rule.hpp"

namespace rondo::detail {

/// Returns the rule of an expression, without a zone. Throws std::invalid_argument as cron() does.
calendar_rule parse_cron(const std::string& expression, cron_syntax syntax);

}  // namespace rondo::detail
