// A dispatcher's connection to a SQLite database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "durable/engine.hpp"
#include "durable/sqlite/connection.hpp"
#include "durable/sqlite/engine.hpp"
#include "durable/sqlite/owner_locks.hpp"

namespace rondo::durable::detail::sqlite {

class file_session final : public session {
 public:
  file_session(std::string file, settings with, std::string owner, claim_rules rules);

  turn_result take(const turn& what) override;
  bool wait() override;
  bool changed() override;
  duration look_every() const override { return std::chrono::milliseconds(50); }
  void interrupt() noexcept override;

 private:
  using candidate = std::pair<std::int64_t, std::int64_t>;  // due, id

  class entrance;

  void open();
  void enter(entrance& by);
  bool free_held_by_dead();
  std::int64_t data_version();
  std::int64_t lease_from(std::int64_t when) const;
  // Of task_of()'s columns, max_attempts, whether it has a lane, the schedule, what to do with missed points, and the
  // offset of the point.
  claim claim_of(const rows& row) const;

  // The parts of a turn, in order.
  void finish(const turn& what, turn_result& done);
  void fail(const turn& what, turn_result& done);
  void pass(const turn& what, turn_result& done);
  void put_back(const turn& what);
  void renew(const turn& what, turn_result& done);
  void begin(const turn& what, turn_result& done);
  void watch(const turn& what, turn_result& done);
  void adopt(turn_result& done);
  void end_expired(const std::string& queue, turn_result& done);
  void find_claimable(const std::string& queue, std::size_t limit, const std::string& unreadable,
                      std::vector<candidate>& found);
  void find_in_lanes(const std::string& queue, std::size_t limit, const std::string& unreadable,
                     std::vector<candidate>& found, turn_result& done);
  void claim_tasks(const turn& what, turn_result& done);
  void take_over(std::int64_t id, turn_result& done);

  std::string file_;
  settings with_;
  std::string owner_;
  claim_rules rules_;
  std::optional<owner_locks> locks_;
  bool has_lock_ = false;               // by which others see that this session lives
  std::optional<connection> database_;  // none if the next call must reconnect
  std::int64_t seen_version_ = 0;       // the last data_version()
  std::int64_t now_ = 0;                // the time of the turn
  news::reader waits_;
};

}  // namespace rondo::durable::detail::sqlite
