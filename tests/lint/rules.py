#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules that no compiler knows: what compiles without a warning and is wrong all the same.

  rules.py              looks through all tracked files
  rules.py --self-test  each rule finds its bad examples, and nothing in its good ones

A line for which a rule is wrong says so on itself or the line above: `lint-ok(rule-name): reason`."""

import dataclasses
import os
import re
import sys
from typing import Callable

from sources import ROOT, tracked


@dataclasses.dataclass
class Rule:
    name: str
    why: str  # what goes wrong, and what to write instead
    files: str  # regex over the path
    find: Callable  # text → offsets; text is without comments and string contents, for C++
    bad: list
    good: list
    raw: bool = False  # wants the text with comments and strings


def pattern(regex):
    compiled = re.compile(regex)
    return lambda text: [match.start() for match in compiled.finditer(text)]


def blank(text):
    """C++ without comments and without what stands in string literals; every offset stays the same."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)

    def blanked(match):
        found = match.group()
        if found[0] == "'" and match.start() and text[match.start() - 1].isalnum():  # 16'000
            return found
        inner = re.sub(r"[^\n]", " ", found)
        return inner if found[0] == "/" else found[0] + inner[1:-1] + found[-1]

    return token.sub(blanked, text)


def co_await_temporaries(text):
    """Lambdas, braced values and ternaries inside the expression that co_await waits for."""
    for match in re.finditer(r"\bco_await\b", text):
        depth, place = 0, match.end()
        while place < len(text):
            char = text[place]
            if char in "([":
                # A lambda with captures by value. An index follows a name, ) or ]; [] and [&x] are harmless.
                lambda_here = char == "[" and not re.search(r"[\w)\]]\s*$", text[max(0, place - 40):place])
                if lambda_here and not re.match(r"\[\s*(\]|&\w+\s*(,\s*&\w+\s*)*\])", text[place:place + 200]):
                    yield match.start()
                    break
                depth += 1
            elif char in ")]":
                depth -= 1
                if depth < 0:
                    break
            elif char == "{" or (char == "?" and depth > 0):
                yield match.start()
                break
            elif char == ";":
                break
            place += 1


def throwing_asio(text):
    """Calls on sockets and acceptors that have an overload with an error_code, without one."""
    call = re.compile(
        r"\b\w*(?:acceptor|socket|lowest_layer)\w*(?:\([^()]*\))?(?:\.|->)(?:open|bind|listen|close|shutdown|set_option|"
        r"cancel|non_blocking|connect|accept|assign|remote_endpoint|local_endpoint|release)\(")
    for match in [*call.finditer(text), *re.finditer(r"\bmake_address(_v[46])?\(", text)]:
        depth, place = 1, match.end()
        while place < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[place], 0)
            place += 1
        if not re.search(r"\b(ec|error\w*|ignored\w*|failure|fault)_?\b", text[match.end():place]):
            yield match.start()


def json_access(text):
    """`x["key"]` that is read, `.at("key")`, `.get<T>()`, `.value("key", …)`: throw, or worse, on other types."""
    for match in re.finditer(r'\.(at|value)\(\s*"|\.get<|\.get_ref<', text):
        # Whoever asked for the type a few lines above may take it.
        asked = re.search(r"is_(object|array|string|boolean|number\w*|structured)\(\)", text[max(0, match.start() - 700):match.start()])
        if "get" not in match.group() or not asked:
            yield match.start()
    for match in re.finditer(r'[\w)\]](\["[^"\n]*"\])+', text):
        if not re.match(r"\s*(=[^=]|\.push_back|\+=)", text[match.end():match.end() + 20]):
            yield match.start()


def throwing_dumps(text):
    """A number, asked for on the same line, cannot be bad UTF-8."""
    for match in re.finditer(r"\.dump\(\s*(-?\d+)?\s*\)", text):
        if "is_number" not in text[text.rfind("\n", 0, match.start()) + 1:match.start()]:
            yield match.start()


def default_captures(text):
    """Only where lambdas can be queued: in files that have to do with Asio."""
    return pattern(r"\[\s*[&=]\s*[\],]")(text) if "asio" in text else []


def missing_spdx(text):
    head = "\n".join(text.split("\n")[:5])
    return [] if "SPDX-License-Identifier: Apache-2.0" in head else [0]


# Written in pieces, so that this file does not find itself.
MACHINE = "|".join(["/wo" + "rk/", "/ro" + "ot/", "/fa" + "rm/", "/ho" + r"me/[a-z]"])
UNFINISHED = "|".join(["TO" + "DO", "FIX" + "ME", r"\bXX" + r"X\b", r"\bHA" + r"CK\b", "DISA" + "BLED_", "GTEST_" + "SKIP"])
# Addresses that a reader may follow; anything else could be a place to fetch from.
LINKS = r"(localhost|127\.0\.0\.1|\[::1\]|[\w.-]*example(\.\w+)?|[\w.-]*\.invalid|[\w.-]+\.svc|(www\.)?(apache|rfc-editor|w3|spdx|json-schema)\.org|" \
        r"(docs\.|www\.)?ray\.io|kubernetes\.io|github\.com|keepachangelog\.com|semver\.org|service-ray-cluster|ray-head\w*)"

CPP = r"\.(cpp|hpp)$"
PRODUCT = r"^(lib|server|certs)/.*\.(cpp|hpp)$"

RULES = [
    Rule("co-await-temporary",
         "g++ 12 destroys a lambda, aggregate or ternary inside a co_await expression twice: name it first, then move it in",
         CPP, co_await_temporaries,
         bad=["co_await f([x] { return x; });", "co_await f(Agg{1, 2});", "co_await f(a ? X() : y);",
              "auto n = co_await asio::async_initiate<T>(\n    [p](auto h) { go(h); }, token);",
              "if (co_await f({.n = 3})) {"],
         good=["auto [ec, n] = co_await stream.async_read_some(buffer, token);", "if (co_await f(x)) { y(); }",
               "co_await f(x[3], y);", "co_await f([&x] (int) -> int);", "co_await f(); g(Agg{1});", "// co_await f(Agg{})"]),
    Rule("default-capture",
         "beside Asio, [&] and [=] outlive the frame unseen once a lambda is queued: name what is captured",
         r"^server/.*\.(cpp|hpp)$", default_captures,
         bad=["asio::post(ex, [&] { f(); });", "asio::x; auto g = [=, this]() {};"],
         good=["asio::post(x, [&x] {});", "asio::x([this, n = 3] {})", "asio::a[b]", "sort(a, [&] { return b; });"]),
    Rule("message-in-place-of-parser",
         "reading into parser.get() uses a fresh parser without our limits: pass the parser",
         CPP, pattern(r"read(_some|_header)?\s*\([^;]*\bparser\w*(\.|->)get\(\)"),
         bad=["http::async_read(stream, buffer, parser.get(), token);"],
         good=["http::async_read(stream, buffer, parser, token);", "handle(parser.get());"]),
    Rule("json-access",
         'reading ["key"], at(), value() and get<>() end the program or throw on JSON of another shape: find() and is_…() first',
         PRODUCT, json_access,
         bad=['auto n = review["request"];', 'review.at("request")', "x.get<int>()", 'f(a["b"]["c"])', 'x.value("a", 3)'],
         good=['out["metadata"]["name"] = name;', "if (x.is_string()) use(x.get_ref<const std::string&>());", "values[3]", "p.get()", "value.get(number)", "x.value()"]),
    Rule("dump-without-handler",
         "dump() throws on text that is no UTF-8: dump(-1, ' ', false, json::error_handler_t::replace)",
         PRODUCT, throwing_dumps,
         bad=["out += value.dump();", "x.dump(2)"],
         good=["x.dump(-1, ' ', false, json::error_handler_t::replace)"]),
    Rule("throwing-asio",
         "this overload throws: give it an error_code",
         r"^(server|certs)/.*\.(cpp|hpp)$", throwing_asio,
         bad=["acceptor_.listen();", "socket.set_option(tcp::no_delay(true));", "socket().remote_endpoint()", "make_address(text)"],
         good=["acceptor_.listen(max, ec);", "socket.close(ignored);", "file.close()", "make_address(text, error)"]),
    Rule("throwing-token",
         "use_awaitable throws: use as_tuple(use_awaitable)",
         r"^(server|certs)/.*\.(cpp|hpp)$", pattern(r"(?<!as_tuple\()(?<!as_tuple\(asio::)(?<!as_tuple\(boost::asio::)(?<!asio/)\b(?:boost::)?(?:asio::)?use_awaitable\b(?!_t)(?<!using asio::use_awaitable)"),
         bad=["co_await t.async_wait(use_awaitable);", "co_await t.async_wait(asio::use_awaitable);"],
         good=["auto token = asio::as_tuple(asio::use_awaitable);", "#include <boost/asio/use_awaitable.hpp>", "using T = use_awaitable_t<E>;"]),
    Rule("impure-library",
         "lib/ is pure: no sockets, threads, clock, files, streams; that belongs to server/",
         r"^lib/.*\.(cpp|hpp)$",
         pattern(r"#\s*include\s*(<(thread|mutex|shared_mutex|condition_variable|future|atomic|stop_token|chrono|ctime|time\.h|fstream|iostream|"
                 r"filesystem|cstdio|stdio\.h|random|csignal|unistd\.h|fcntl\.h|sys/[^>]*|netinet/[^>]*|arpa/[^>]*|poll\.h|"
                 r"boost/(asio|beast)[^>]*|spdlog[^>]*|prometheus[^>]*|CLI[^>]*)>|\"server/)"),
         bad=["#include <thread>", "#include <boost/asio/ip/tcp.hpp>", '#include "server/log.hpp"'],
         good=["#include <string>", '#include "lib/error.hpp"', "#include <simdjson.h>"], raw=True),
    Rule("no-pragma-once", "a header begins with #pragma once", r"\.hpp$",
         lambda text: [] if re.search(r"^#pragma once$", text, re.MULTILINE) else [0],
         bad=["int x;"], good=["// c\n#pragma once\nint x;"]),
    Rule("no-spdx", "no SPDX-License-Identifier line among the first five",
         r"(\.(cpp|hpp|py|sh|go|cmake)|(^|/)(CMakeLists\.txt|Makefile|\.clang-format|\.clang-tidy)|^\.ci/run|^examples/.*\.yaml)$", missing_spdx,
         bad=["#!/usr/bin/env bash\nset -euo pipefail\n"], good=["# SPDX-License-Identifier: Apache-2.0\n"], raw=True),
    Rule("machine-path", "a path of one machine; ask the environment, or say it from the repository's root",
         r".", pattern(rf"(?<![\w.$}}-])({MACHINE})"),
         bad=["cd " + "/wo" + "rk/main", "x=" + "/ro" + "ot/.cache"], good=["network/x", "$HOME/.cache", "team" + "/wo" + "rk/x"], raw=True),
    Rule("foreign-host", "an address outside the list of links in tests/lint/rules.py: name no place to fetch from",
         r"^(?!LICENSE$)(?!.*\bgo\.(sum|mod)$)(?!tests/(corpus|unit)/).",  # there they are mere text
         pattern(rf"https?://(?!{LINKS}(?![\w.-]))(?=\w|\[[\w:])|\b[\w-]*(registry|proxy|mirror|pypi|artifact)[\w-]*(\.[\w-]+)*\.(org|io|dev|com|net)\b"),
         bad=["curl http" + "://10.1.2.3/x", "deb http" + "://deb.nowhere.net/debian", "pull from regi" + "stry.nowhere.io"],
         good=["http://localhost:8080/", "https://kubernetes.io/docs/", "http://$HOST:8000/", "admissionregistration.k8s.io"], raw=True),
    Rule("unfinished", "finish it, or file it: no such marks in the tree",
         r"^(?!LICENSE$)(?!.*\bgo\.(sum|mod)$).", pattern(UNFINISHED),
         bad=["// TO" + "DO: later", "TEST(A, DISA" + "BLED_b)"], good=["todo list", "mktemp -t x.XXXXXX"], raw=True),
]


def findings(rule, text):
    searched = text if rule.raw else blank(text)
    if rule.name == "json-access":  # its keys are in strings, only comments must go
        searched = re.sub(r"//[^\n]*", lambda match: " " * len(match.group()), text)
    return list(rule.find(searched))


def allowed(rule, lines, number):
    return any(f"lint-ok({rule.name}): " in line for line in lines[max(0, number - 2):number])


def check_tree():
    count = 0
    paths = tracked()
    for path in paths:
        with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
            text = file.read()
        lines = text.split("\n")
        for rule in RULES:
            if not re.search(rule.files, path):
                continue
            for offset in findings(rule, text):
                number = text.count("\n", 0, offset) + 1
                if not allowed(rule, lines, number):
                    print(f"{path}:{number}: {rule.name}: {lines[number - 1].strip()[:100]}\n    {rule.why}")
                    count += 1
    print(f"{len(paths)} files, {len(RULES)} rules, {count} findings")
    return 1 if count else 0


def self_test():
    wrong = 0
    for rule in RULES:
        for sample in rule.bad:
            if not findings(rule, sample):
                print(f"{rule.name} does not find: {sample!r}")
                wrong += 1
        for sample in rule.good:
            if findings(rule, sample):
                print(f"{rule.name} finds fault with: {sample!r}")
                wrong += 1
    samples = sum(len(rule.bad) + len(rule.good) for rule in RULES)
    print(f"{len(RULES)} rules, {samples} examples, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else check_tree())
