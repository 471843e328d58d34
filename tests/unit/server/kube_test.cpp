// SPDX-License-Identifier: Apache-2.0
// How to reach an API server: kubeconfigs, service accounts, tokens that rotate.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "server/kube/client.hpp"
#include "server/kube/kubeconfig.hpp"
#include "server/kube/token.hpp"

namespace rayhook::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

/// A folder of its own that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rayhook-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(path(name), std::ios::trunc) << text;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

class KubeconfigTest : public testing::Test {
 protected:
  Folder folder;

  /// A kubeconfig with these lines in its cluster and its user.
  Result<ClusterAccess> read(const std::string& cluster, const std::string& user) {
    const std::string text =
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
        "contexts:\n- name: other\n  context: {cluster: nowhere, user: nobody}\n"
        "- name: here\n  context: {cluster: c, user: u}\n"
        "clusters:\n- name: c\n  cluster: {" +
        cluster + "}\nusers:\n- name: u\n  user: {" + user + "}\n";
    return read_kubeconfig(folder.write("config", text));
  }
  std::string refusal(const std::string& cluster, const std::string& user) {
    const auto access = read(cluster, user);
    return access ? "taken" : access.error().what;
  }
  static constexpr const char* kServer =
      "server: 'https://10.0.0.1:6443', certificate-authority-data: Q0E=";
};

TEST_F(KubeconfigTest, ReadsTheCurrentContext) {
  const auto access = read(kServer, "token: abc");
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(access->host, "10.0.0.1");
  EXPECT_EQ(access->port, 6443);
  EXPECT_EQ(access->path, "");
  EXPECT_EQ(access->server_name, "10.0.0.1");
  EXPECT_EQ(access->ca_pem, "CA");
  EXPECT_EQ(access->token, "abc");
  EXPECT_EQ(access->client_cert_pem, "");
}

TEST_F(KubeconfigTest, Servers) {
  const auto at = [this](const std::string& url) {
    const auto access = read("server: '" + url + "', certificate-authority-data: Q0E=", "");
    return access ? access->host + "|" + std::to_string(access->port) + "|" + access->path
                  : access.error().what;
  };
  EXPECT_EQ(at("https://api.example"), "api.example|443|");
  EXPECT_EQ(at("https://api.example/"), "api.example|443|");
  EXPECT_EQ(at("https://api.example:1/k8s/clusters/x/"), "api.example|1|/k8s/clusters/x");
  EXPECT_EQ(at("https://[::1]:6443"), "::1|6443|");
  EXPECT_EQ(at("https://[::1]"), "::1|443|");
  for (const char* bad :
       {"http://api.example", "api.example:6443", "https://", "https://a:0", "https://a:99999",
        "https://a:x", "https://u@a", "https://[::1", "https://a/?x"})
    EXPECT_THAT(at(bad), HasSubstr("server is not an https URL")) << bad;
}

TEST_F(KubeconfigTest, FilesCountFromItsFolder) {
  ASSERT_FALSE(folder.write("ca.crt", "PEM-CA").empty());
  ASSERT_FALSE(folder.write("me.crt", "PEM-CERT").empty());
  ASSERT_FALSE(folder.write("me.key", "PEM-KEY").empty());
  const auto access =
      read("server: 'https://a', certificate-authority: ca.crt, tls-server-name: kubernetes",
           "client-certificate: me.crt, client-key: " + folder.path("me.key") +
               ", tokenFile: token, token: old");
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(access->ca_pem, "PEM-CA");
  EXPECT_EQ(access->client_cert_pem, "PEM-CERT");
  EXPECT_EQ(access->client_key_pem, "PEM-KEY");
  EXPECT_EQ(access->server_name, "kubernetes");
  EXPECT_EQ(access->token_file, folder.path("token"));
  EXPECT_EQ(access->token, "");
}

TEST_F(KubeconfigTest, DataWinsOverFiles) {
  const auto access =
      read("server: 'https://a', certificate-authority: nowhere, certificate-authority-data: Q0E=",
           "client-certificate-data: QQ==, client-key-data: QUI=");
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(access->client_cert_pem, "A");
  EXPECT_EQ(access->client_key_pem, "AB");
}

TEST_F(KubeconfigTest, WhatIsRefusedSaysWhy) {
  EXPECT_THAT(refusal("server: 'https://a', insecure-skip-tls-verify: true", ""),
              HasSubstr("insecure-skip-tls-verify is refused"));
  EXPECT_EQ(refusal(std::string(kServer) + ", insecure-skip-tls-verify: false", ""), "taken");
  EXPECT_THAT(refusal("server: 'https://a'", ""), HasSubstr("no certificate-authority"));
  EXPECT_THAT(refusal("server: 'https://a', certificate-authority: nowhere.crt", ""),
              HasSubstr("cannot open"));
  EXPECT_THAT(refusal("server: 'https://a', certificate-authority-data: '***'", ""),
              HasSubstr("certificate-authority-data is not base64"));
  EXPECT_THAT(refusal(std::string(kServer) + ", proxy-url: 'http://p.example'", ""),
              HasSubstr("proxy-url"));
  EXPECT_THAT(refusal(kServer, "exec: {command: aws}"), HasSubstr("exec is refused"));
  EXPECT_THAT(refusal(kServer, "auth-provider: {name: gcp}"),
              HasSubstr("auth-provider is refused"));
  EXPECT_THAT(refusal(kServer, "username: me, password: x"), HasSubstr("basic authentication"));
  EXPECT_THAT(refusal(kServer, "client-certificate-data: QQ=="), HasSubstr("go together"));
  EXPECT_THAT(refusal(kServer, "token: \"a\\r\\nX: y\""), HasSubstr("token has characters"));
  EXPECT_THAT(refusal(kServer, "token: [a]"), HasSubstr("token is not a text"));
}

TEST_F(KubeconfigTest, WhatIsNoKubeconfig) {
  const auto what = [this](std::string_view text) {
    const auto access = read_kubeconfig(folder.write("config", text));
    return access ? "taken" : access.error().what;
  };
  EXPECT_THAT(what(""), HasSubstr("not a kubeconfig"));
  EXPECT_THAT(what("[]"), HasSubstr("not a kubeconfig"));
  EXPECT_THAT(what("{}"), HasSubstr("current-context is not set"));
  EXPECT_THAT(what("current-context: x"), HasSubstr("contexts has no entry \"x\""));
  EXPECT_THAT(what("current-context: x\ncontexts: [7, {name: x, context: {cluster: other}}]"),
              HasSubstr("clusters has no entry \"other\""));
  EXPECT_THAT(what("a: [b"), HasSubstr("line "));
  EXPECT_THAT(what("current-context: {a: b}"), HasSubstr("current-context is not a text"));
  EXPECT_THAT(read_kubeconfig(folder.path("nowhere")).error().what, HasSubstr("cannot open"));
}

TEST(ServiceAccount, OfThisPod) {
  const Folder folder;
  EXPECT_THAT(service_account_access("10.0.0.1", "443", folder.path("")).error().what,
              HasSubstr("ca.crt"));
  ASSERT_FALSE(folder.write("ca.crt", "CA").empty());
  const auto v4 = service_account_access("10.0.0.1", "443", folder.path(""));
  ASSERT_TRUE(v4) << v4.error().what;
  EXPECT_EQ(v4->host, "10.0.0.1");
  EXPECT_EQ(v4->ca_pem, "CA");
  EXPECT_THAT(v4->token_file, testing::EndsWith("/token"));
  const auto v6 = service_account_access("fd00::1", "6443", folder.path(""));
  ASSERT_TRUE(v6) << v6.error().what;
  EXPECT_EQ(v6->host, "fd00::1");
  EXPECT_EQ(v6->port, 6443);
  EXPECT_THAT(service_account_access("", "", folder.path("")).error().what,
              HasSubstr("--kubeconfig"));
}

TEST(TokenTest, IsReadAgainWhenItsFileChanges) {
  const Folder folder;
  const std::string file = folder.write("token", "one\n");
  TimePoint now{seconds(1000)};
  Token token("", file);
  EXPECT_EQ(token.get(now), "one");
  ASSERT_FALSE(folder.write("token", "second").empty());
  EXPECT_EQ(token.get(now + seconds(9)), "one") << "not looked at yet";
  EXPECT_EQ(token.get(now + seconds(10)), "second");
  now += seconds(20);
  ASSERT_FALSE(folder.write("token", "").empty());
  EXPECT_EQ(token.get(now), "second") << "half-written: the old one stays";
  std::filesystem::remove(file);
  EXPECT_EQ(token.get(now + seconds(10)), "second");
  ASSERT_FALSE(folder.write("token", "bad\r\nX: y").empty());
  EXPECT_EQ(token.get(now + seconds(20)), "second");
}

TEST(TokenTest, IsLookedAtOnceWhenRefused) {
  const Folder folder;
  const TimePoint now{seconds(1000)};
  Token token("", folder.write("token", "one"));
  EXPECT_EQ(token.get(now), "one");
  EXPECT_FALSE(token.refused(now)) << "there is no other";
  ASSERT_FALSE(folder.write("token", "two and more").empty());
  ASSERT_FALSE(folder.write("token", "another").empty());
  EXPECT_TRUE(token.refused(now));
  EXPECT_EQ(token.get(now), "another");
  Token fixed("fixed", "");
  EXPECT_EQ(fixed.get(now), "fixed");
  EXPECT_FALSE(fixed.refused(now));
}

TEST(ClientTls, UnusableCertificatesAreErrors) {
  ClusterAccess access;
  access.ca_pem = "nonsense";
  EXPECT_THAT(client_tls(access).error().what, HasSubstr("CA cannot be used"));
}

}  // namespace
}  // namespace rayhook::test
