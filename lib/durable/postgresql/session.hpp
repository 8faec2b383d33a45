// A dispatcher's connection to PostgreSQL.
#pragma once

#include <string>
#include <vector>

#include "durable/engine.hpp"
#include "durable/postgresql/connection.hpp"
#include "durable/postgresql/wake_pipe.hpp"

namespace rondo::durable::detail::postgresql {

class server_session final : public session {
 public:
  server_session(std::string url, std::string owner, claim_rules rules);

  turn_result take(const turn& what) override;
  bool wait() override;
  bool changed() override { return false; }  // the server notifies instead: see wait()
  duration look_every() const override { return duration::max(); }
  void interrupt() noexcept override { interrupts_.wake(); }

 private:
  std::vector<call> calls_for(const turn& what) const;
  std::vector<ticket> locked_of(const turn& what, const std::vector<ticket>& settled);
  bool heard_news();

  connection database_;
  std::string owner_;
  claim_rules rules_;
  wake_pipe interrupts_;
  // Set after a reconnect: this session has not been notified of tasks submitted while there was no connection.
  bool perhaps_missed_some_ = false;
};

}  // namespace rondo::durable::detail::postgresql
