// A dispatcher's connection to PostgreSQL.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "durable/engine.hpp"
#include "durable/postgresql/connection.hpp"
#include "durable/postgresql/pipeline.hpp"

namespace rondo::durable::detail::postgresql {

class wake_pipe {
 public:
  wake_pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) != 0)
      throw std::system_error(errno, std::generic_category(), "rondo: cannot create a pipe");
  }
  ~wake_pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  wake_pipe(const wake_pipe&) = delete;
  wake_pipe& operator=(const wake_pipe&) = delete;

  /// May be called from any thread. If the pipe is full, the thread wakes anyway.
  void wake() noexcept {
    while (::write(ends_[1], "", 1) < 0 && errno == EINTR) {
    }
  }

  /// The descriptor to poll: readable after wake().
  int descriptor() const noexcept { return ends_[0]; }

  /// Whether wake() was called since the last call of woken().
  bool woken() noexcept {
    std::array<char, 64> some{};
    bool any = false;
    for (;;) {
      const auto got = ::read(ends_[0], some.data(), some.size());
      if (got > 0)
        any = true;
      else if (got == 0 || errno != EINTR)
        return any;
    }
  }

 private:
  std::array<int, 2> ends_{};
};

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
  std::uint64_t listening_ = 0;  // the connection that listens, and has shown its timeline
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
