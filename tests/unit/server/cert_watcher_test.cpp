// SPDX-License-Identifier: Apache-2.0
// Time that passes; everything else about it is in tests/server/certificates_test.py.
#include "server/cert_watcher.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "certs/issue.hpp"

namespace rayhook {
namespace {

constexpr std::int64_t kStart = 1'800'000'000;
constexpr std::int64_t kHour = 3600;

std::filesystem::path new_folder() {
  std::string place = ::testing::TempDir() + "rayhook-certs-XXXXXX";
  if (!::mkdtemp(place.data())) std::abort();
  return place;
}

/// A folder with a certificate, a clock of its own, and a watcher over them.
class CertWatcherTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(Validity validity) {
    const std::vector<std::string> names{"a.svc"};
    const auto issued = issue_leaf(ca_, names, validity);
    ASSERT_TRUE(issued);
    std::ofstream(files_.certificate) << issued->certificate;
    std::ofstream(files_.key) << issued->key;
  }

  /// Lets the watcher work until it says so, or for five seconds.
  void run_until_ready(bool ready) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (readiness_.ready() != ready && std::chrono::steady_clock::now() < end)
      context_.run_one_for(std::chrono::milliseconds(50));
    EXPECT_EQ(readiness_.ready(), ready) << readiness_.hindrances();
  }

  /// Something happens in the folder, so that the watcher looks.
  void touch() const { std::ofstream(folder_ / "touched") << "x"; }

  void start() {
    readiness_.clear(Hindrance::services);
    watcher_.load();
    asio::co_spawn(context_, watcher_.run(), asio::detached);
    asio::co_spawn(context_, watcher_.listen(), asio::detached);
  }

  std::filesystem::path folder_ = new_folder();
  TlsFiles files_{folder_ / "tls.crt", folder_ / "tls.key", {}, {}, {}};
  IssuedPair ca_ = *issue_authority("CA", {kStart, kStart + 1000 * kHour});
  std::int64_t now_ = kStart;
  int served_ = 0;
  Log log_{LogLevel::error};
  Metrics metrics_;
  Readiness readiness_;
  asio::io_context context_;
  CertWatcher watcher_{
      context_, files_,    [this](const auto&) { ++served_; }, [this] { return now_; }, log_,
      metrics_, readiness_};
};

TEST_F(CertWatcherTest, ACertificateThatEndsWhileItIsServed) {
  write({kStart, kStart + kHour});
  start();
  EXPECT_TRUE(readiness_.ready());
  now_ += kHour;
  touch();
  context_.run_one_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(readiness_.ready()) << "it is valid to the last second";
  now_ += 1;
  touch();
  run_until_ready(false);
  EXPECT_NE(readiness_.hindrances().find("has expired at 2027-01-15 09:00 UTC"), std::string::npos);
  write({now_, now_ + kHour});
  run_until_ready(true);
  EXPECT_EQ(served_, 2);
}

TEST_F(CertWatcherTest, ACertificateWhoseTimeComes) {
  write({kStart + kHour, kStart + 2 * kHour});
  start();
  EXPECT_FALSE(readiness_.ready());
  EXPECT_NE(readiness_.hindrances().find("is not valid before"), std::string::npos);
  EXPECT_EQ(served_, 0);
  now_ += kHour;
  touch();
  run_until_ready(true);
  EXPECT_EQ(served_, 1);
}

}  // namespace
}  // namespace rayhook
