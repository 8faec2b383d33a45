#include "rivals/graphile_worker.hpp"

#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <stdexcept>
#include <system_error>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace durable_workloads {

graphile_worker::graphile_worker(const std::string& url) {
  const std::string program = std::string(folder()) + "/contender.mjs";
  int commands[2], answers[2];
  if (pipe(commands) != 0 || pipe(answers) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  id_ = fork();
  if (id_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (id_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(commands[0], 0);
    dup2(answers[1], 1);
    for (const int end : {commands[0], commands[1], answers[0], answers[1]}) close(end);
    execlp("node", "node", program.c_str(), url.c_str(), nullptr);
    _exit(127);
  }
  close(commands[0]);
  close(answers[1]);
  commands_ = fdopen(commands[1], "w");
  answers_ = fdopen(answers[0], "r");
}

graphile_worker::~graphile_worker() {
  std::fclose(commands_);  // so it ends
  std::fclose(answers_);
  waitpid(id_, nullptr, 0);
}

measure::sample graphile_worker::run(const std::string& command) const {
  measure::sample result{};
  std::fprintf(commands_, "%s\n", command.c_str());
  std::fflush(commands_);
  if (std::fscanf(answers_, "%lf %" SCNu64, &result.value, &result.checksum) != 2)
    throw std::runtime_error("graphile-worker has not answered to: " + command);
  return result;
}

}  // namespace durable_workloads
