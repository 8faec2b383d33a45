// A dispatcher's connection to PostgreSQL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "durable/engine.hpp"
#include "durable/postgresql/connection.hpp"
#include "durable/postgresql/result.hpp"
#include "durable/postgresql/wake_pipe.hpp"

namespace rondo::durable::detail::postgresql {

class server_session final : public session {
 public:
  server_session(std::string url, std::string owner, claim_rules rules);

  turn_result take(const turn& what) override;
  bool wait() override;
  /// Frees what sessions that have ended held, and returns whether there were any. (Of other changes, the server
  /// notifies: see wait().)
  bool changed() override;
  duration look_every() const override { return std::chrono::milliseconds(500); }
  void interrupt() noexcept override { interrupts_.wake(); }

 private:
  std::vector<call> calls_for(const turn& what) const;
  std::vector<ticket> locked_of(const turn& what, const std::vector<ticket>& settled);
  bool settle_claim(const result& claims);
  bool heard_news();
  void connect();
  void look_at_timeline();

  connection database_;
  std::string owner_;
  claim_rules rules_;
  wake_pipe interrupts_;
  // Set after a reconnect: this session has not been notified of tasks submitted while there was no connection.
  bool perhaps_missed_some_ = false;
  // Set after a reconnect, until the dispatcher has said again which runs have begun: the server may have crashed.
  bool perhaps_forgotten_ = false;
  bool listens_ = false;  // and knows the timeline
  bool told_of_pooler_ = false;
  bool perhaps_went_back_ = false;  // the server has another timeline, which is not yet reported
  // All fences that the server gives on its timeline are greater. 0 if it does not say which that is.
  std::int64_t fences_after_ = 0;
  // How many claims look also for the first tasks of lanes and for leases that have run out. These claims take longer (by
  // a tenth of the whole for 20,000 due tasks), so they begin when another claim says that there are some, and end after
  // this number of them that has found none.
  static constexpr int most_claims_of_all = 100;
  int claims_of_all_ = 0;
  bool lanes_are_stuck_ = false;  // the last claim has found lanes that wait for `free_lanes`
  bool has_lock_ = false;         // by which others see that this session lives
};

}  // namespace rondo::durable::detail::postgresql
