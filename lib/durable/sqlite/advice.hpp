// What an operator can do about an error.
#pragma once

namespace rondo::durable::detail::sqlite {

/// The end of a message: a space and the advice in parentheses, or nothing. `code` is SQLite's; `reason` is the system's
/// error number, or 0 if it is not known.
const char* advice_on(int code, int reason = 0) noexcept;

}  // namespace rondo::durable::detail::sqlite
