// SPDX-License-Identifier: Apache-2.0
#include "server/http/fault_report.hpp"

#include <gmock/gmock.h>

#include "support.hpp"

namespace rayhook::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class FaultReportTest : public testing::Test {
 protected:
  Metrics metrics;
  FakeClock clock;
  FileLog log{LogLevel::info};
  FaultReport report{metrics, clock, log.log()};

  /// The lines, without their times.
  std::vector<std::string> lines() {
    std::vector<std::string> out;
    std::istringstream text(log.text());
    for (std::string line; std::getline(text, line);) out.push_back(line.substr(line.find("msg")));
    return out;
  }
};

TEST_F(FaultReportTest, SaysNothingOfNothing) {
  report.look();
  clock.advance(std::chrono::hours(1));
  report.look();
  report.tell();
  EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(FaultReportTest, TheFirstAtOnceAndThenOneLineAMinute) {
  metrics.handshake_failed(HandshakeFault::closed);
  report.look();
  for (int i = 0; i < 10'000; ++i) {
    metrics.handshake_failed(i % 4 == 0 ? HandshakeFault::protocol : HandshakeFault::closed);
    clock.advance(std::chrono::milliseconds(5));  // in all 50 s
    report.look();
  }
  metrics.fault(HttpFault::truncated);
  metrics.connection_refused();
  clock.advance(std::chrono::seconds(10));
  report.look();
  EXPECT_THAT(lines(), testing::ElementsAre(
                           HasSubstr(R"("handshakes":{"closed":1}})"),
                           HasSubstr(R"("handshakes":{"closed":7500,"protocol":2500},)"
                                     R"("requests":{"truncated":1},"connectionsRefused":1})")));
}

TEST_F(FaultReportTest, TheRestIsToldAtTheEnd) {
  metrics.fault(HttpFault::bad_body);
  report.look();
  metrics.fault(HttpFault::bad_body);
  report.look();
  report.tell();
  report.tell();
  EXPECT_THAT(lines(), testing::ElementsAre(HasSubstr(R"("requests":{"bad_body":1}})"),
                                            HasSubstr(R"("requests":{"bad_body":1}})")));
}

}  // namespace
}  // namespace rayhook::test
