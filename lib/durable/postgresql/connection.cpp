#include "durable/postgresql/connection.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include <poll.h>

#include <rondo/durable.hpp>

#include "durable/postgresql/pipeline.hpp"
#include "durable/text.hpp"

namespace rondo::durable::detail::postgresql {
namespace {

/// Sets what our statements need, until the end of the transaction. $1: whether a commit waits for the disk, $2: whether a
/// locked table is waited for as lock_wait::one_second says.
///
/// With these settings, every statement finds its rows by an index, and its plan is made once. So statistics cannot
/// mislead the planner. They are always outdated for a queue, and a queue whose table is scanned from the beginning
/// comes to a standstill. JIT would take the cost penalties of this for work that is worth compiling.
constexpr statement settings{"rondo_settings", R"sql(
  select pg_backend_pid(),
    set_config('synchronous_commit', case when $1::boolean then 'on' else 'off' end, true),
    case when $2::boolean then set_config('lock_timeout', '1s', true) end,
    set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)
)sql"};

/// What a role or a database may have set that a transaction cannot change later. (Because it sets something, pgpool-II sends
/// it to where it sends our transactions.)
constexpr const char* defaults = R"sql(
  select pg_backend_pid(), current_setting('default_transaction_isolation') <> 'read committed'
    or current_setting('default_transaction_read_only') <> 'off', current_setting('session_replication_role'),
    set_config('jit', 'off', true)
)sql";

std::string one_line(std::string_view message) {
  std::string line;
  for (const char c : message) {
    if (c != '\n')
      line += c == '\t' ? ' ' : c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return "rondo: PostgreSQL: " + (line.empty() ? "the connection broke" : line);
}

/// A statement is prepared that was not, or not where it was: on another session of the server.
bool shows_pooler(const std::string& state) { return state == "42P05" || state == "26000"; }

constexpr const char* before_state = ", SQLSTATE ";

std::string message_of(PGconn* c, const result& answer) {
  const char* primary = PQresultErrorField(answer.get(), PG_DIAG_MESSAGE_PRIMARY);
  if (primary == nullptr) return one_line(answer ? PQresultErrorMessage(answer.get()) : PQerrorMessage(c));
  const char* detail = PQresultErrorField(answer.get(), PG_DIAG_MESSAGE_DETAIL);
  return one_line(std::string(primary) + (detail == nullptr ? "" : std::string(" (") + detail + ")") +
                  (shows_pooler(answer.state())
                       ? " (does a pooler of transactions lie between? It must pool sessions)"
                       : "") +
                  before_state + answer.state());
}

/// Whether a new connection may succeed where this one cannot:
/// - the server is ending it or is not up yet (08, 57P), or has become a replica (25006);
/// - what is prepared there is not what this connection has prepared (26000, 42P05), or a table is not what it was then
///   (0A000: "cached plan must not change result type");
/// - the tables are now in another schema, which a later connection may search (42P01).
bool needs_new_connection(const std::string& state) {
  return state.starts_with("08") || state.starts_with("57P") || state == "25006" || state == "26000" ||
         state == "42P05" || state == "0A000" || state == "42P01";
}

/// libpq's own messages quote the part of a URL that is wrong, which may be of the password. A password with an
/// unescaped @ or / ends up in the host or the port.
bool is_well_formed(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> all(
      PQconninfoParse(url.c_str(), nullptr), PQconninfoFree);
  if (all == nullptr) return false;
  for (const PQconninfoOption* each = all.get(); each->keyword != nullptr; ++each) {
    const std::string_view name = each->keyword;
    const std::string_view value = each->val == nullptr ? "" : each->val;
    if (name == "host" && value.find('@') != std::string_view::npos) return false;
    if (name == "port" && value.find_first_not_of("0123456789,") != std::string_view::npos) return false;
  }
  return true;
}

store_error silence(std::chrono::milliseconds waited, bool perhaps_done) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waited).count();
  return store_error(one_line("the server has not answered for " + std::to_string(seconds) + " s"),
                     perhaps_done);
}

constexpr int binary = 1;  // the format of all answers

}  // namespace

std::string_view state_of(const store_error& error) {
  const std::string_view said = error.what();
  const auto at = said.rfind(before_state);
  return at == std::string_view::npos ? std::string_view()
                                      : said.substr(at + std::string_view(before_state).size());
}

connection::connection(std::string url, lock_wait waits, std::chrono::milliseconds answers_within)
    : url_(std::move(url)), waits_(waits), answers_within_(answers_within) {
  if (!is_well_formed(url_))
    throw store_error(
        "rondo: PostgreSQL: the URL is malformed (is % in the password written as %25, / as %2F, @ as %40?)");
}

void connection::make() {
  if (connected_ != nullptr && !broken()) return;
  if (std::exchange(begun_, false)) {
    connected_.reset();
    throw store_error(one_line("the connection broke in a transaction"));
  }
  connect();
}

/// libpq reports any message that no call waits for as a notice, even the last message of a connection. (Other notices
/// are discarded, so that libpq does not print them to stderr.)
void connection::hear(void* self, const PGresult* notice) noexcept {
  const char* state = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
  if (state != nullptr && std::string_view(state).starts_with("57P"))
    static_cast<connection*>(self)->given_notice_ = true;
}

/// First reads what the server has sent since the last call: it may have ended the connection long ago.
bool connection::broken() noexcept {
  pollfd socket{.fd = PQsocket(get()), .events = POLLIN, .revents = 0};
  while (PQstatus(get()) == CONNECTION_OK && ::poll(&socket, 1, 0) > 0)
    if (PQconsumeInput(get()) == 0) return true;
  PQisBusy(get());  // makes libpq parse what it has read
  return given_notice_ || PQstatus(get()) != CONNECTION_OK;
}

void connection::connect() {
  connected_.reset();
  prepared_.clear();
  // The URL overrides the settings listed before it. A connection whose other side has vanished is given up after about
  // 15 seconds, not hours.
  constexpr std::array keywords{"fallback_application_name",
                                "connect_timeout",
                                "keepalives_idle",
                                "keepalives_interval",
                                "keepalives_count",
                                "tcp_user_timeout",
                                "dbname",
                                "client_encoding",
                                static_cast<const char*>(nullptr)};
  const std::array values{
      "rondo", "3", "5", "5", "2", "15000", url_.c_str(), "UTF8", static_cast<const char*>(nullptr)};
  static_assert(keywords.size() == std::tuple_size_v<decltype(values)>);
  std::unique_ptr<PGconn, finish> made(PQconnectdbParams(keywords.data(), values.data(), 1));
  if (made == nullptr) throw std::bad_alloc();
  if (PQstatus(made.get()) != CONNECTION_OK) throw store_error(one_line(PQerrorMessage(made.get())));
  const char* encoding = PQparameterStatus(made.get(), "server_encoding");
  if (encoding == nullptr || std::string_view(encoding) != "UTF8")
    throw store_error("rondo: PostgreSQL: the database has the encoding " +
                      std::string(encoding == nullptr ? "?" : encoding) + ", but must have UTF8");
  given_notice_ = false;
  PQsetNoticeReceiver(made.get(), hear, this);
  const result answer = answer_to(
      made.get(), PQsendQueryParams(made.get(), defaults, 0, nullptr, nullptr, nullptr, nullptr, binary),
      doubt::never);
  if (!answer.good()) throw store_error(message_of(made.get(), answer));
  if (const auto role = answer.bytes(0, 2); role == "replica")
    throw store_error(
        "rondo: PostgreSQL: session_replication_role is replica, so that the triggers of the tables would "
        "not run");
  odd_defaults_ = answer.boolean(0, 1);
  process_ = answer.integer(0, 0);
  connected_ = std::move(made);
  ++number_;
}

parameters connection::settings_for(commit how) const {
  return parameters().boolean(how == commit::durable).boolean(waits_ == lock_wait::one_second);
}

const char* connection::beginning() const noexcept {
  return odd_defaults_ ? "begin isolation level read committed read write" : "begin";
}

void connection::note_process(const result& answer) noexcept {
  const auto process = answer.integer(0, 0);
  pooled_ = pooled_ || process != process_;
  process_ = process;
}

/// Returns the last answer to the request that was `sent`; the first error is the last answer. libpq's own calls that
/// wait, such as PQexec(), would wait without end for a server that hangs.
result connection::answer_to(PGconn* on, int sent, doubt may_be_done) {
  // Connecting takes no longer, however long the calls may take.
  const auto within = on == get() ? answers_within_ : std::min(answers_within_, usual_patience);
  result last;
  while (sent != 0) {
    if (!answer_comes(on, within)) {
      connected_.reset();
      throw silence(within, may_be_done == doubt::unless_answered);
    }
    result one(PQgetResult(on));
    if (!one) break;
    last = std::move(one);
    if (PQstatus(on) != CONNECTION_OK) break;
  }
  return last;
}

result connection::run_plain(const char* what) {
  make();
  result answer =
      answer_to(get(), PQsendQueryParams(get(), what, 0, nullptr, nullptr, nullptr, nullptr, binary),
                doubt::unless_answered);
  if (!answer.good()) fail(answer);
  return answer;
}

void connection::run_script(const char* what) {
  make();
  const result answer = answer_to(get(), PQsendQuery(get(), what), doubt::unless_answered);
  if (!answer.good()) fail(answer);
}

void connection::begin() {
  make();
  run_script(beginning());
  begun_ = true;
  try {
    note_process(run(settings, settings_for(commit::durable)));
  } catch (...) {
    roll_back();
    throw;
  }
}

void connection::commit_all() {
  run_script("commit");
  begun_ = false;
}

void connection::roll_back() noexcept {
  begun_ = false;
  if (get() == nullptr || PQtransactionStatus(get()) == PQTRANS_IDLE) return;
  try {
    answer_to(get(), PQsendQuery(get(), "rollback"), doubt::never);
  } catch (const std::exception&) {  // the server rolls back when the connection ends
    connected_.reset();
  }
  if (get() != nullptr && PQtransactionStatus(get()) != PQTRANS_IDLE) connected_.reset();
}

result connection::run(const statement& what, const parameters& with) {
  make();
  if (!prepared_.contains(&what)) prepare(what);  // by itself: if this is lost, nothing has been done
  return std::move(
      in_one_round_trip(commit::durable, [&](pipeline& to) { return to.send(what, with); }).front());
}

void connection::prepare(const statement& what) {
  const result answer = answer_to(
      get(), PQsendPrepare(get(), what.name, with_states(what.text).c_str(), 0, nullptr), doubt::never);
  if (!answer.good()) fail(answer, doubt::never);
  prepared_.insert(&what);
}

std::vector<result> connection::run_all(const std::vector<call>& calls, commit how) {
  return in_one_round_trip(how, [&](pipeline& to) {
    return std::ranges::all_of(calls, [&](const call& each) { return to.send(*each.what, each.with); });
  });
}

template <class Send>
std::vector<result> connection::in_one_round_trip(commit how, Send send_calls) {
  try {
    return together(how, send_calls);
  } catch (const store_error&) {
    throw;
  } catch (...) {  // out of memory: the next call would receive the answers to what has been sent
    connected_.reset();
    throw;
  }
}

/// What is sent in one pipeline is one transaction, without "begin" and "commit", which would cost more.
template <class Send>
std::vector<result> connection::together(commit how, Send send_calls) {
  pipeline all(get(), prepared_);
  bool sent = all.enter();
  const bool own_transaction = !begun_;
  const bool explicitly = own_transaction && odd_defaults_;
  if (explicitly) sent = sent && all.send(beginning());
  if (own_transaction) sent = sent && all.send(settings, settings_for(how));
  sent = sent && send_calls(all);
  if (explicitly) sent = sent && all.send("commit");
  sent = sent && all.sync();
  if (!sent) {
    const result none;
    fail(none);  // libpq may have sent some of it
  }
  auto answers = all.answers(answers_within_);
  if (all.silent()) {
    connected_.reset();
    throw silence(answers_within_, true);
  }
  if (all.wrong().has_value()) {
    const auto error = error_of(*all.wrong());
    roll_back();
    // An explicit commit was answered before the server ended the connection.
    throw store_error(error.what(), error.perhaps_done() || (explicitly && all.wrong_at_the_end()));
  }
  if (own_transaction) {
    note_process(answers.front());
    answers.erase(answers.begin());
  }
  return answers;
}

/// An error from the server has an SQLSTATE. Any other error arose on this side, and the connection is given up. That
/// includes a failure to send, which does not change PQstatus().
store_error connection::error_of(const result& answer, doubt may_be_done) {
  const auto state = answer.state();
  const auto message = message_of(get(), answer);
  pooled_ = pooled_ || shows_pooler(state);
  if (PQstatus(get()) != CONNECTION_OK || PQpipelineStatus(get()) != PQ_PIPELINE_OFF || state.empty() ||
      needs_new_connection(state))
    connected_.reset();
  return store_error(message, may_be_done == doubt::unless_answered && state.empty());
}

void connection::fail(const result& answer, doubt may_be_done) { throw error_of(answer, may_be_done); }

result run_on(PGconn* callers, const std::string& what, const parameters& with) {
  if (PQstatus(callers) != CONNECTION_OK)
    throw store_error(one_line("the transaction's connection is broken"));
  if (PQclientEncoding(callers) != pg_char_to_encoding("UTF8"))
    throw store_error("rondo: PostgreSQL: the transaction's connection must have the client_encoding UTF8");
  if (PQpipelineStatus(callers) != PQ_PIPELINE_OFF || PQtransactionStatus(callers) == PQTRANS_ACTIVE)
    throw store_error("rondo: PostgreSQL: the transaction's connection is in use, or in pipeline mode");
  const bool alone = PQtransactionStatus(callers) == PQTRANS_IDLE;
  const auto values = with.pointers();
  result answer(PQexecParams(callers, what.c_str(), with.count(), nullptr, values.data(),
                             with.lengths().data(), with.formats().data(), binary));
  if (answer.good()) return answer;
  throw store_error(message_of(callers, answer), alone && answer.state().empty());
}

}  // namespace rondo::durable::detail::postgresql
