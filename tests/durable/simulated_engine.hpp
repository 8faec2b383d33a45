// What a simulated database does for stores, and for dispatchers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"
#include "durable/simulated_transaction.hpp"

namespace durable_test {

rondo::durable::task task_of(const row& r);

class simulated_engine final : public rondo::durable::detail::engine {
 public:
  explicit simulated_engine(std::shared_ptr<simulated_data> data) : data_(std::move(data)) {}

  using due_time = rondo::durable::detail::due_time;
  using transaction = rondo::durable::transaction;

  std::int64_t submit(const due_time& due, const rondo::durable::submission& what,
                      const transaction* in) override;
  std::vector<std::int64_t> submit_all(std::span<const rondo::durable::planned> all,
                                       const transaction* in) override;
  std::int64_t repeat(const rondo::durable::repeated& what, const transaction* in) override;
  bool cancel(std::int64_t id, const transaction* in) override;
  bool cancel(const std::string& queue, const std::string& key, const transaction* in) override;
  bool reschedule(std::int64_t id, const due_time& due, const transaction* in) override;
  bool reschedule(const std::string& queue, const std::string& key, const due_time& due,
                  const transaction* in) override;
  std::optional<rondo::durable::task> find(std::int64_t id, const transaction* in) override;
  std::optional<rondo::durable::task> find(const std::string& queue, const std::string& key,
                                           const transaction* in) override;
  void pause(const std::string& queue) override;
  void resume(const std::string& queue) override;
  bool paused(const std::string& queue) override;
  std::vector<rondo::durable::listed> list(const std::string& queue,
                                           std::optional<rondo::durable::task_state> only,
                                           std::int64_t after_id, std::size_t limit) override;
  bool retry(std::int64_t id) override;
  std::unique_ptr<rondo::durable::detail::session> connect(
      const std::string& owner, const rondo::durable::detail::claim_rules& rules) override;

 private:
  template <class Function>
  auto change(const transaction* in, Function f);
  template <class Function>
  auto read(const transaction* in, Function f);

  std::shared_ptr<simulated_data> data_;
};

class simulated_session final : public rondo::durable::detail::session {
 public:
  simulated_session(std::shared_ptr<simulated_data> data, std::string owner,
                    rondo::durable::detail::claim_rules rules);
  ~simulated_session() override;
  simulated_session(const simulated_session&) = delete;
  simulated_session& operator=(const simulated_session&) = delete;

  rondo::durable::detail::turn_result take(const rondo::durable::detail::turn& what) override;
  /// Does not block.
  bool wait() override;
  bool changed() override;
  rondo::duration look_every() const override;
  void interrupt() noexcept override { interrupted_ = true; }

 private:
  using turn = rondo::durable::detail::turn;
  using turn_result = rondo::durable::detail::turn_result;
  using ticket = rondo::durable::detail::ticket;
  using entry = simulated_transaction::entry;

  void connect();
  bool lives() const;
  void finish(simulated_transaction& t, const turn& what, turn_result& done);
  void fail(simulated_transaction& t, const turn& what, turn_result& done);
  void pass(simulated_transaction& t, const turn& what, turn_result& done);
  void take_back(simulated_transaction& t, const turn& what, turn_result& done);
  void give_back(simulated_transaction& t, const turn& what, turn_result& done);
  void renew(simulated_transaction& t, const turn& what, turn_result& done);
  void keep(simulated_transaction& t, const turn& what);
  void begin(simulated_transaction& t, const turn& what, turn_result& done);
  bool may_begin(const simulated_transaction& t, const row& r, std::int64_t due) const;
  bool stop_rivals(simulated_transaction& t, const row& r);
  void watch(simulated_transaction& t, const turn& what, turn_result& done);
  void adopt(simulated_transaction& t, turn_result& done);
  void claim_tasks(simulated_transaction& t, const turn& what, turn_result& done);
  void find_claimable(simulated_transaction& t, const std::string& queue, const turn& what,
                      std::vector<entry*>& found);
  bool is_claimable(const simulated_transaction& t, const row& r) const;
  void end_expired(simulated_transaction& t, const std::string& queue, turn_result& done);
  rondo::durable::detail::claim claim_of(const simulated_transaction& t, const row& r) const;
  std::int64_t lease_from(std::int64_t when) const;
  void free_held_by(simulated_transaction& t, const std::string& owner);

  const std::shared_ptr<simulated_data> data_;
  rondo::durable::detail::claim_rules rules_;
  simulated_listener self_;
  std::int64_t seen_changes_ = 0;  // of others
  std::int64_t timeline_ = 0;
  bool perhaps_forgotten_ = false, went_back_ = false;  // as in PostgreSQL's session
  bool interrupted_ = false;
};

}  // namespace durable_test
